"""The table that a statement changes: its columns, fields of structs and names in the engine's SQL.

Source: docs/sql-dml.md, "Types", "UPDATE"; Spark's SQL reference, "ANSI Compliance", "named_struct".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import pyarrow as pa

from pyhudi.actions.changes.clauses import loose_columns
from pyhudi.errors import ConfigError
from pyhudi.lazy_property import lazy_property
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.table_config import TableConfig
from pyhudi.sql.columns import literal, quoted
from pyhudi.sql.session import NamedTable, SqlSession, TableName
from pyhudi.sql.tokens import Reader, SqlToken, TokenKind, dotted_at

__all__ = [
    "FieldPath",
    "Scope",
    "Target",
    "cast",
    "field_path",
    "may_change",
    "read_alias",
    "read_target",
    "struct_with",
    "value_of",
]


# Types with the same name in both engines; values of other types are converted when they are written.
_TYPE_NAMES: Mapping[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
    pa.timestamp("ms", "UTC"): "TIMESTAMP",
}


_BY_VALUE = ("SIMPLE", "COMPLEX", "NON_PARTITION", "GLOBAL_DELETE")


@dataclass(frozen=True)
class Target:
    """The state of a table at the beginning of the statement."""

    table: NamedTable

    @lazy_property
    def config(self) -> TableConfig:
        """The table's properties."""
        return self.table.table.state().config

    @lazy_property
    def schema(self) -> pa.Schema:
        """The data columns, with partition columns last, as in Spark's catalog."""
        last = set(self.partitions)
        first = [field for field in self._table_schema if field.name not in last]
        return pa.schema([*first, *(self._table_schema.field(name) for name in self.partitions)])

    @lazy_property
    def _table_schema(self) -> pa.Schema:
        """The data columns in the table's own order."""
        return self.table.table.schema()

    @lazy_property
    def keys(self) -> tuple[str, ...]:
        """The key fields; none for a table with generated keys."""
        return self.config.record_key_fields

    @lazy_property
    def partitions(self) -> tuple[str, ...]:
        """The partition fields that are columns."""
        names = set(self._table_schema.names)
        return tuple(name for name in self.config.partition_fields if name in names)

    @lazy_property
    def fixed(self) -> tuple[str, ...]:
        """The key and partition columns, which identify a row and its partition."""
        top = (name.partition(".")[0] for name in (*self.keys, *self.config.partition_fields))
        return tuple(dict.fromkeys(name for name in top if name in self.schema.names))

    @lazy_property
    def loose(self) -> frozenset[str]:
        """The `fixed` columns whose values may differ between rows with the same key and partition path."""
        return loose_columns(self.config, self.schema, is_global=True)

    @property
    def paths_tell_values(self) -> bool:
        """True if a partition path determines its columns' values. Not with TIMESTAMP, CUSTOM and users' generators."""
        return (self.config.key_generator or "SIMPLE").upper() in _BY_VALUE

    def column(self, name: str) -> pa.Field:
        """A column by its name in any case. Raises ConfigError with the nearest name."""
        exact_name = self.find(name)
        if exact_name is None:
            near = get_close_matches(name, self.schema.names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ConfigError(
                f"The table {self.table.name} has no column {name!r}.{hint} Columns: {', '.join(self.schema.names)}."
            )
        return self.schema.field(exact_name)

    def find(self, name: str) -> str | None:
        """A column's name in the table's case; None without such a column."""
        return self._by_word.get(name.lower())

    @lazy_property
    def _by_word(self) -> Mapping[str, str]:
        return {name.lower(): name for name in self.schema.names}

    def columns_in(self, tokens: Iterable[SqlToken]) -> list[str]:
        """The columns that these tokens may name; all if a star is among them."""
        words = set()
        for token in tokens:
            if token.is_symbol("*"):
                return list(self.schema.names)
            if token.is_name:
                words.add(token.value.lower())
        return [name for name in self.schema.names if name.lower() in words]

    def read_columns(self, names: Iterable[str]) -> list[str]:
        """The columns for a query of the table: these, and those that distinguish rows."""
        columns = set(names)
        if not self.config.populate_meta_fields:
            columns.update(self.fixed)
        metas = META_COLUMNS if self.config.populate_meta_fields else ()
        return [*metas, *(name for name in self.schema.names if name in columns)]


def value_of(expression: str, field: pa.Field, target: Target, kind: pa.DataType | None) -> str:
    """Convert a value that a statement gives a column to an expression of the column's type.

    The engine's casts round and truncate: the key of a new row with 1.4 would be 1, the key of another row. So values
    of key and partition columns keep their type, and the write refuses values that don't fit the column
    (`pyhudi.schema.exact`).

    Args:    kind: the expression's type, None if unknown.
    """
    return expression if field.name in target.fixed and may_change(kind, field.type) else cast(expression, field)


def may_change(kind: pa.DataType | None, column: pa.DataType) -> bool:
    """True if a cast to the type of a key or partition column may change a value. `kind`: None if unknown."""
    is_number = pa.types.is_integer(column) or pa.types.is_floating(column) or pa.types.is_decimal(column)
    if not (is_number or pa.types.is_date(column) or pa.types.is_boolean(column)):
        return False
    if kind is None:
        return True
    is_narrower = pa.types.is_integer(kind) and pa.types.is_integer(column) and kind.bit_width <= column.bit_width
    return not (is_narrower or pa.types.is_null(kind) or kind.equals(column))


def cast(expression: str, field: pa.Field) -> str:
    """Cast an expression to a column's type. The engine or the write raises for a value that does not fit."""
    kind = field.type
    name = f"DECIMAL({kind.precision}, {kind.scale})" if pa.types.is_decimal(kind) else _TYPE_NAMES.get(kind)
    return expression if name is None else f"CAST({expression} AS {name})"


FieldPath = tuple[str, ...]  # names of nested fields in a column, in the table's case


def field_path(column: pa.Field, names: Sequence[str], text: str) -> FieldPath:
    """Find nested fields of a column by these names, in any case. `text`: the whole name, for the error.

    Raises: ConfigError for an unknown field.
    """
    path: list[str] = []
    kind = column.type
    for name in names:
        fields = list(kind.fields) if pa.types.is_struct(kind) else []
        inside = next((field for field in fields if field.name.lower() == name.lower()), None)
        if inside is None:
            hint = f"its fields are {', '.join(field.name for field in fields)}" if fields else "it is no struct"
            raise ConfigError(f"SET {text}: {'.'.join((column.name, *path)):.200} has no field {name!r}; {hint}.")
        path.append(inside.name)
        kind = inside.type
    return tuple(path)


def struct_with(column: pa.Field, reference: str, values: Mapping[FieldPath, str]) -> str:
    """The expression for a struct in which some fields get new values and the others keep theirs.

    As in Spark, a null struct becomes a struct whose other fields are null.

    Args:
        reference: the column as an expression.
        values: expressions by field; none of them lies within another.
    """
    return _struct(column.type, reference, (), values)


def _struct(kind: pa.StructType, reference: str, path: FieldPath, values: Mapping[FieldPath, str]) -> str:
    parts = []
    for field in kind.fields:
        inner = (*path, field.name)
        expression = f"{reference}.{quoted(field.name)}"
        if inner in values:
            expression = cast(values[inner], field)
        elif any(other[: len(inner)] == inner for other in values):
            expression = _struct(field.type, expression, inner, values)
        parts.append(f"{literal(field.name)}, {expression}")
    return f"named_struct({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class Scope:
    """The table of a statement under its alias. `name`: the table's name, which expressions may repeat in full."""

    name: TableName
    alias: str

    def without_table(self, name: tuple[str, ...]) -> tuple[str, ...]:
        """A column's name without the table's."""
        length = self._prefix(name)
        return name[length:] if length < len(name) else name

    def _prefix(self, name: tuple[str, ...]) -> int:
        """The number of parts of a dotted name that name the table."""
        lower = [part.lower() for part in name]
        if lower[0] == self.alias.lower():
            return 1
        table_parts = [part.lower() for part in self.name.parts]
        return len(table_parts) if lower[: len(table_parts)] == table_parts else 0

    def text(self, reader: Reader, owner: tuple[str, Collection[str]] | None = None) -> str:
        """An expression in the user's own text. A table name of several parts is replaced by its alias.

        The word DEFAULT alone becomes NULL, as columns of Hudi's tables have no other default.

        Args: owner: an alias, and the columns (in lower case) that belong to it without a qualifier.
        """
        tokens, at, pieces = reader.tokens, reader.at, []
        if at >= reader.stop:
            return ""
        if at + 1 == reader.stop and tokens[at].is_word("DEFAULT"):
            return "NULL"
        if any(token.is_word("SELECT") for token in tokens[at : reader.stop]):
            owner = None  # a name in a subquery may belong to that subquery
        copied = tokens[at].start
        while at < reader.stop:
            token = tokens[at]
            if not token.is_name or (at > reader.at and tokens[at - 1].is_symbol(".")):
                at += 1
                continue
            parts, end = dotted_at(tokens[: reader.stop], at)
            length = self._prefix(parts)
            if 1 < length < len(parts):
                pieces += [reader.text[copied : token.start], quoted(self.alias)]
                copied = tokens[at + 2 * length - 2].end
            elif owner is not None and len(parts) == 1 and parts[0].lower() in owner[1] and _is_column(reader, at):
                pieces += [reader.text[copied : token.start], quoted(owner[0]), "."]
                copied = token.start
            at = end
        pieces.append(reader.text[copied : tokens[reader.stop - 1].end])
        return "".join(pieces)


def _is_column(reader: Reader, at: int) -> bool:
    """True if a word without a qualifier can be a column, not a function, type, alias or unit of an interval."""
    before: SqlToken | None = reader.tokens[at - 1] if at > reader.at else None
    after: SqlToken | None = reader.tokens[at + 1] if at + 1 < reader.stop else None
    if before is not None and (before.is_word("AS") or before.kind in (TokenKind.NUMBER, TokenKind.TEXT)):
        return False
    if after is None:
        return True
    return not (after.is_symbol("(") or after.is_symbol("=>") or after.is_word("FROM") or after.kind is TokenKind.TEXT)


def read_alias(reader: Reader, *ends: str) -> str | None:
    """Read `[AS] alias`; None without an alias. `ends`: the words that may follow instead."""
    if reader.accept("AS"):
        return reader.identifier("an alias")
    token = reader.peek()
    if token is None or not token.is_name or token.is_word(*ends):
        return None
    reader.at += 1
    return token.value


def read_target(reader: Reader, session: SqlSession, end: str) -> tuple[NamedTable, str] | None:
    """Read the table that a statement changes, and its alias; None for a table that is not Hudi's.

    Args: end: the word that follows the table or its alias.
    """
    name = reader.table_name()
    table = session.find_table(name)
    return None if table is None else (table, read_alias(reader, end) or name.parts[-1])
