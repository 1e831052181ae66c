"""DROP TABLE, TRUNCATE TABLE and REFRESH TABLE.

Source: Hudi's documentation, "SQL DDL"; Spark's SQL reference, "DROP TABLE", "TRUNCATE TABLE".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyhudi.errors import ConfigError
from pyhudi.sql.partitions import PartitionSpec, matching_paths, partition_spec
from pyhudi.sql.session import NO_ROWS, CatalogEntry, SqlFrame, SqlSession, TableName
from pyhudi.sql.table_options import is_ours, our_table
from pyhudi.sql.tokens import Reader, SqlToken

__all__ = ["DropTable", "RefreshTable", "TruncateTable", "parse_drop", "parse_refresh", "parse_truncate"]

_SYNCED_SUFFIXES = ("_ro", "_rt")  # names that read only base files, and all rows


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE. `purges`: also delete the files of an external table (one with LOCATION)."""

    name: TableName
    purges: bool = False

    def run(self, session: SqlSession) -> SqlFrame:
        """Drop the table. Files are deleted first, so that the statement can be rerun after a crash. Raises
        StorageError.
        """
        entry = session.catalog.find(self.name)
        if entry is not None and entry.location is not None and (self.purges or entry.is_managed):
            table = session.open(entry.location)
            if table is not None:
                table.drop()
        for name in self._synced_names(session, entry):
            session.catalog.remove(name)
        session.catalog.remove(self.name)
        return session.frame_from(NO_ROWS)

    def _synced_names(self, session: SqlSession, entry: CatalogEntry | None) -> Iterator[TableName]:
        """The two names that Hudi's sync adds for a merge-on-read table. They are dropped with it, as in Hudi."""
        if entry is None or entry.location is None:
            return
        for suffix in _SYNCED_SUFFIXES:
            name = TableName((*self.name.parts[:-1], self.name.parts[-1] + suffix))
            other = session.catalog.find(name)
            if other is not None and other.is_hudi and other.location == entry.location:
                yield name


@dataclass(frozen=True, slots=True)
class TruncateTable:
    """TRUNCATE TABLE. `partition`: the values of its columns; None for all rows."""

    name: TableName
    partition: PartitionSpec | None = None

    def run(self, session: SqlSession) -> SqlFrame:
        """Delete the rows in one commit. Raises ConfigError for a column that is not a partition column."""
        table = our_table(session, self.name).table
        options = dict(session.settings)
        if self.partition is None:
            table.delete_partitions(matching="*", options=options)
        else:
            paths = matching_paths(table, [self.partition])
            if paths:
                table.delete_partitions(paths, options=options)
        return session.frame_from(NO_ROWS)


@dataclass(frozen=True, slots=True)
class RefreshTable:
    """REFRESH TABLE. It does nothing, as every query reads the table's current state."""

    def run(self, session: SqlSession) -> SqlFrame:
        return session.frame_from(NO_ROWS)


def parse_drop(text: str, tokens: Sequence[SqlToken], session: SqlSession) -> DropTable | None:
    """Parse DROP TABLE [IF EXISTS] name [PURGE]; None for a table that is not Hudi's."""
    reader = Reader(text, tokens)
    reader.expect("DROP TABLE")
    reader.accept("IF EXISTS")
    name = reader.table_name()
    if not is_ours(session, name):
        return None
    if name.path is not None:
        raise ConfigError(f"SQL: {name} is no name of the catalog; HudiTable.open(path).drop() deletes its files.")
    purges = reader.accept("PURGE")
    reader.expect_end()
    return DropTable(name, purges)


def parse_truncate(text: str, tokens: Sequence[SqlToken], session: SqlSession) -> TruncateTable | None:
    """Parse TRUNCATE TABLE name [PARTITION (…)]; None for a table that is not Hudi's."""
    reader = Reader(text, tokens)
    reader.expect("TRUNCATE TABLE")
    name = reader.table_name()
    if not is_ours(session, name):
        return None
    partition = partition_spec(reader) if reader.accept("PARTITION") else None
    reader.expect_end()
    return TruncateTable(name, partition)


def parse_refresh(text: str, tokens: Sequence[SqlToken], session: SqlSession) -> RefreshTable | None:
    """Parse REFRESH [TABLE] name; None for a table that is not Hudi's."""
    reader = Reader(text, tokens)
    reader.expect("REFRESH TABLE")
    name = reader.table_name()
    if not reader.at_end or not is_ours(session, name):
        return None
    return RefreshTable()
