"""DESCRIBE, SHOW CREATE TABLE, SHOW COLUMNS, SHOW PARTITIONS and SHOW TBLPROPERTIES of a Hudi table.

They read the table itself, as the catalog's list of columns may be outdated.
Source: Spark's SQL reference, "DESCRIBE TABLE", "SHOW CREATE TABLE", "SHOW COLUMNS", "SHOW PARTITIONS".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.sql.columns import column_text, comment_of, literal, quoted, type_text
from pyhudi.sql.partitions import PartitionSpec, matching_paths, partition_spec
from pyhudi.sql.session import CatalogEntry, NamedTable, SqlFrame, SqlSession, TableName
from pyhudi.sql.table_options import is_ours, our_table, sql_properties
from pyhudi.sql.tokens import Reader, SqlToken

__all__ = ["Show", "parse_describe", "parse_show"]

_WHATS = ("CREATE TABLE", "COLUMNS", "PARTITIONS", "TBLPROPERTIES")
_NOT_TABLES = ("FUNCTION", "DATABASE", "SCHEMA", "NAMESPACE", "CATALOG", "QUERY", "PROCEDURE")

# The statistics in DESCRIBE EXTENDED of a column; all are NULL, as they are not computed.
_STATISTICS = ("min", "max", "num_nulls", "distinct_count", "avg_col_len", "max_col_len", "histogram")


@dataclass(frozen=True, slots=True)
class Show:
    """`what`: DESCRIBE or a word of SHOW; `detail`: EXTENDED, a column, or a property's key."""

    what: str
    name: TableName
    is_extended: bool = False
    detail: str | None = None
    partition: PartitionSpec | None = None

    def run(self, session: SqlSession) -> SqlFrame:
        """Return the answer. Raises TableNotFound; ConfigError for a column that the table lacks."""
        table = our_table(session, self.name)
        entry = session.catalog.find(self.name) if self.name.path is None else None
        rows = {
            "DESCRIBE": self._describe,
            "CREATE TABLE": self._create_statement,
            "COLUMNS": self._columns,
            "PARTITIONS": self._partitions,
            "TBLPROPERTIES": self._properties,
        }[self.what](table, entry)
        return session.frame_from(rows)

    def _describe(self, table: NamedTable, entry: CatalogEntry | None) -> pa.Table:
        schema = table.table.scan().schema
        if self.detail is not None:
            return _table(("info_name", "info_value"), self._one_column(schema, self.detail))
        rows = [(field.name, type_text(field.type), comment_of(field)) for field in schema]
        fields = _partition_fields(table)
        if fields:
            rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
            rows += [(field.name, type_text(field.type), comment_of(field)) for field in schema if field.name in fields]
        if self.is_extended:
            rows += [("", "", ""), ("# Detailed Table Information", "", "")]
            rows += [(key, value, "") for key, value in _details(table, entry)]
        return _table(("col_name", "data_type", "comment"), rows)

    def _one_column(self, schema: pa.Schema, name: str) -> list[tuple[str, str]]:
        for field in schema:
            if field.name.lower() == name.lower():
                comment = comment_of(field) or "NULL"
                rows = [("col_name", field.name), ("data_type", type_text(field.type)), ("comment", comment)]
                return [*rows, *((name, "NULL") for name in _STATISTICS)] if self.is_extended else rows
        raise ConfigError(f"SQL: {self.name} has no column {name}; its columns are {', '.join(schema.names)}.")

    def _create_statement(self, table: NamedTable, entry: CatalogEntry | None) -> pa.Table:
        columns = ",\n  ".join(column_text(field) for field in table.table.schema())
        fields = ", ".join(map(quoted, _partition_fields(table)))
        properties = ",\n  ".join(f"{literal(k)} = {literal(v)}" for k, v in sorted(_properties(table).items()))
        lines = [f"CREATE TABLE {self.name} (\n  {columns})", "USING hudi"]
        if fields:
            lines.append(f"PARTITIONED BY ({fields})")
        if entry is not None and entry.comment:
            lines.append(f"COMMENT {literal(entry.comment)}")
        lines += [f"LOCATION {literal(table.location)}", f"TBLPROPERTIES (\n  {properties})"]
        return _table(("createtab_stmt",), [("\n".join(lines) + "\n",)])

    def _columns(self, table: NamedTable, entry: CatalogEntry | None) -> pa.Table:
        return _table(("col_name",), [(name,) for name in table.table.scan().schema.names])

    def _partitions(self, table: NamedTable, entry: CatalogEntry | None) -> pa.Table:
        """The paths of the partitions in the table's form, as in Hudi."""
        if not table.table.state().config.partition_fields:
            return _table(("partition",), [])
        paths = matching_paths(table.table, [] if self.partition is None else [self.partition])
        return _table(("partition",), [(path,) for path in sorted(paths)])

    def _properties(self, table: NamedTable, entry: CatalogEntry | None) -> pa.Table:
        properties = _properties(table)
        if self.detail is None:
            return _table(("key", "value"), sorted(properties.items()))
        value = properties.get(self.detail, f"Table {self.name} does not have property: {self.detail}")
        return _table(("key", "value"), [(self.detail, value)])


def _properties(table: NamedTable) -> dict[str, str]:
    return {**sql_properties(table.table.state().config), **table.properties}


def _partition_fields(table: NamedTable) -> list[str]:
    return [name.partition(":")[0] for name in table.table.state().config.partition_fields]


def _details(table: NamedTable, entry: CatalogEntry | None) -> list[tuple[str, str]]:
    properties = ", ".join(f"{key}={value}" for key, value in sorted(_properties(table).items()))
    rows = [("Table", str(table.name)), ("Provider", "hudi"), ("Location", table.location)]
    if entry is not None:
        rows.append(("Type", "MANAGED" if entry.is_managed else "EXTERNAL"))
        if entry.comment:
            rows.append(("Comment", entry.comment))
    return [*rows, ("Table Properties", f"[{properties}]")]


def _table(names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pa.table({name: pa.array(column, pa.string()) for name, column in zip(names, columns, strict=True)})


def parse_show(text: str, tokens: Sequence[SqlToken], session: SqlSession) -> Show | None:
    """Parse SHOW … of a table; None for a table that is not Hudi's."""
    reader = Reader(text, tokens)
    reader.expect("SHOW")
    what = next((words for words in _WHATS if reader.accept(words)), None)
    if what is None:
        return None
    if what == "COLUMNS":
        _ = reader.accept("IN") or reader.accept("FROM")
    name = reader.table_name()
    if what == "COLUMNS" and (reader.accept("IN") or reader.accept("FROM")):
        name = TableName((*reader.dotted("a database"), name.parts[-1]))
    if not is_ours(session, name):
        return None
    detail: str | None = None
    partition: PartitionSpec | None = None
    if what == "PARTITIONS" and reader.accept("PARTITION"):
        partition = partition_spec(reader)
    if what == "TBLPROPERTIES" and reader.accept_symbol("("):
        detail = reader.property_key()
        reader.expect_symbol(")")
    if what == "CREATE TABLE":
        reader.accept("AS SERDE")
    reader.expect_end()
    return Show(what, name, detail=detail, partition=partition)


def parse_describe(text: str, tokens: Sequence[SqlToken], session: SqlSession) -> Show | None:
    """Parse DESCRIBE [TABLE] [EXTENDED | FORMATTED] name [column]; None for a table that is not Hudi's."""
    reader = Reader(text, tokens)
    reader.take("DESCRIBE")
    if any(reader.sees(word) for word in _NOT_TABLES):
        return None
    reader.accept("TABLE")
    is_extended = reader.accept("EXTENDED") or reader.accept("FORMATTED")
    token = reader.peek()
    if token is None or not token.is_name or reader.sees("SELECT") or reader.sees("WITH"):
        return None
    name = reader.table_name()
    if not is_ours(session, name) or reader.sees("AS JSON"):
        return None
    if reader.accept("PARTITION"):
        partition_spec(reader)
    detail = None if reader.at_end else ".".join(reader.dotted("a column"))
    reader.expect_end()
    return Show("DESCRIBE", name, is_extended, detail)
