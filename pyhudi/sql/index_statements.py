"""Indexes of the metadata table: CREATE, DROP, SHOW and REFRESH INDEX.

    CREATE INDEX [IF NOT EXISTS] name ON [TABLE] t [USING type] (column [, …]) [OPTIONS (k = 'v', …)]
    DROP INDEX [IF EXISTS] name ON [TABLE] t
    SHOW INDEXES FROM | IN [TABLE] t
    REFRESH INDEX name ON [TABLE] t

A statement names an index by its own name, or by its partition of the metadata table.
Source: Apache Hudi's SQL reference, "Create Index".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from pyhudi.errors import ConfigError, TableNotFound
from pyhudi.services.indexes import IndexInfo
from pyhudi.sql.session import NO_ROWS, NamedTable, SqlFrame, SqlSession
from pyhudi.sql.tokens import Reader, SqlToken

__all__ = ["CreateIndex", "DropIndex", "RefreshIndex", "ShowIndexes", "parse"]

_COLUMNS = pa.schema([("index_name", pa.string()), ("index_type", pa.string()), ("col_name", pa.string())])
_PREFIXES = ("secondary_index_", "expr_index_")
_OF_KEYS = ("record_index", "bloom_filters")
_EXPRESSION = "expr"
# The arguments of an expression after the column, in the order of the function's parameters, and whether each is a
# text.
_ARGUMENTS = (
    ("format", True),
    ("days", False),
    ("position", False),
    ("length", False),
    ("pattern", True),
    ("replacement", True),
    ("index", False),
    ("trimString", True),
)


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """CREATE INDEX. `kind`: the type after USING, None without it."""

    table: NamedTable
    name: str
    columns: tuple[str, ...]
    kind: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    if_not_exists: bool = False

    def run(self, session: SqlSession) -> SqlFrame:
        """Build the index. Raises ConfigError if an index of that name exists."""
        if self.if_not_exists and _index_of(self.table, self.name) is not None:
            return session.frame_from(NO_ROWS)
        hudi_options = {key: value for key, value in self.options.items() if key.startswith("hoodie.")}
        expression = self._expression() if _EXPRESSION in self.options else None
        if expression is None and len(hudi_options) < len(self.options):
            unknown = sorted(self.options.keys() - hudi_options.keys())
            raise ConfigError(f"CREATE INDEX {self.name}: OPTIONS has the unknown key {unknown[0]!r:.100}.")
        index_type = None if self.kind is None else self.kind.lower()
        self.table.table.indexes.create(
            self.name,
            columns=() if expression or self._is_of_keys(index_type) else self.columns,
            index_type=index_type,
            expression=expression,
            options={**session.settings, **hudi_options},
        )
        return session.frame_from(NO_ROWS)

    def _is_of_keys(self, index_type: str | None) -> bool:
        """True if it is an index of the record keys. Raises ConfigError if it has other columns."""
        if (index_type or self.name) not in _OF_KEYS:
            return False
        keys = self.table.table.state().config.record_key_fields
        if self.columns != keys:
            raise ConfigError(
                f"CREATE INDEX {self.name}: this index is of the record key ({', '.join(keys) or 'generated'}), found "
                f"({', '.join(self.columns)})."
            )
        return True

    def _expression(self) -> str:
        """The call in `OPTIONS (expr = 'from_unixtime', format = 'yyyy-MM-dd')`."""
        if len(self.columns) != 1:
            raise ConfigError(f"CREATE INDEX {self.name}: an expression is of one column, found {len(self.columns)}.")
        arguments = [self.columns[0]]
        for key, is_text in _ARGUMENTS:
            value = self.options.get(key)
            if value is not None:
                arguments.append("'" + value.replace("'", "''") + "'" if is_text else value)
        keys = {_EXPRESSION, *(key for key, _ in _ARGUMENTS)}
        unknown = [key for key in self.options if key not in keys and not key.startswith("hoodie.")]
        if unknown:
            raise ConfigError(f"CREATE INDEX {self.name}: OPTIONS has the unknown key {unknown[0]!r:.100}.")
        return f"{self.options[_EXPRESSION]}({', '.join(arguments)})"


@dataclass(frozen=True, slots=True)
class DropIndex:
    """DROP INDEX."""

    table: NamedTable
    name: str
    if_exists: bool = False

    def run(self, session: SqlSession) -> SqlFrame:
        """Drop the index. Raises ConfigError for an unknown name without IF EXISTS."""
        if not (self.if_exists and _index_of(self.table, self.name) is None):
            self.table.table.indexes.drop(self.name, options=session.settings)
        return session.frame_from(NO_ROWS)


@dataclass(frozen=True, slots=True)
class ShowIndexes:
    """SHOW INDEXES."""

    table: NamedTable

    def run(self, session: SqlSession) -> SqlFrame:
        """The names, types and columns (with commas) of the indexes."""
        rows = [
            {"index_name": one.name, "index_type": one.kind, "col_name": self._columns(one)}
            for one in self.table.table.indexes.list()
        ]
        return session.frame_from(pa.Table.from_pylist(rows, _COLUMNS))

    def _columns(self, index: IndexInfo) -> str:
        """The columns of an index, separated by commas; "" for an index of all columns or of keys."""
        return ",".join(index.columns) if index.name.startswith(_PREFIXES) else ""


@dataclass(frozen=True, slots=True)
class RefreshIndex:
    """REFRESH INDEX."""

    table: NamedTable
    name: str

    def run(self, session: SqlSession) -> SqlFrame:
        """Rebuild the index from the table's rows. Raises ConfigError for an unknown name."""
        index = _index_of(self.table, self.name)
        if index is None:
            raise ConfigError(f"{self.table.location} has no index {self.name!r:.100}. SHOW INDEXES FROM lists them.")
        self.table.table.metadata.rebuild([index.name], options=session.settings)
        return session.frame_from(NO_ROWS)


def parse(
    text: str, tokens: Sequence[SqlToken], session: SqlSession
) -> CreateIndex | DropIndex | ShowIndexes | RefreshIndex | None:
    """Parse a statement; None if its table is not a Hudi table. Raises ConfigError for wrong clauses."""
    reader = Reader(text, tokens)
    if reader.accept("SHOW INDEXES"):
        if not reader.accept("IN"):
            reader.expect("FROM")
        table = _table(reader, session)
        reader.expect_end()
        return ShowIndexes(_must_be(table))
    verb = reader.take("CREATE, DROP or REFRESH").text.upper()
    reader.expect("INDEX")
    is_conditional = reader.accept("IF NOT EXISTS" if verb == "CREATE" else "IF EXISTS")
    name = reader.identifier("the name of an index")
    reader.expect("ON")
    table = _table(reader, session)
    if verb == "REFRESH":
        reader.expect_end()
        return RefreshIndex(_must_be(table), name)
    if table is None:
        return None  # engines have their own indexes
    if verb == "CREATE":
        return _create(reader, table, name, is_conditional)
    reader.expect_end()
    return DropIndex(table, name, is_conditional)


def _must_be(table: NamedTable | None) -> NamedTable:
    if table is None:
        raise TableNotFound("There is no Hudi table of the name that the statement has.")
    return table


def _create(reader: Reader, table: NamedTable, name: str, if_not_exists: bool) -> CreateIndex:
    index_type = reader.identifier("the type of an index") if reader.accept("USING") else None
    columns: list[str] = []
    options: dict[str, str] = {}
    for part in reader.parts():
        columns.append(".".join(part.dotted("a column")))
        if part.accept("OPTIONS"):
            options |= part.properties()
        part.expect_end()
    if not columns:
        raise ConfigError(f"CREATE INDEX {name}: name its columns, in parentheses.")
    if reader.accept("OPTIONS"):
        options |= reader.properties()
    reader.expect_end()
    return CreateIndex(table, name, tuple(columns), index_type, options, if_not_exists)


def _table(reader: Reader, session: SqlSession) -> NamedTable | None:
    if reader.sees("TABLE"):
        following = reader.peek(1)
        if following is not None and not following.is_symbol("."):
            reader.accept("TABLE")
    return session.find_table(reader.table_name())


def _index_of(table: NamedTable, name: str) -> IndexInfo | None:
    """The index with this name, or with this partition of the metadata table, or None."""
    names = (name, *(f"{prefix}{name}" for prefix in _PREFIXES))
    return next((one for one in table.table.indexes.list() if one.name in names), None)
