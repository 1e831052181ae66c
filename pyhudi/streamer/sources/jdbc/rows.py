"""Columns of a database as Arrow's, by the types that the table declares: so a column of nulls has its type, too.

NUMERIC(10,2)                decimal(10, 2); without a precision decimal(38, 18), as in Spark
TIMESTAMP, DATETIME          a time without a zone; TIMESTAMPTZ, and MySQL's TIMESTAMP, with UTC
UUID, JSON, ENUM, INET, …    their text
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.streamer.sources.jdbc.client import JdbcDatabase

__all__ = ["DatabaseTable", "reflected", "streamed"]

_PRECISION_MAX, _SCALE = 38, 18
_FLOATS_OF_4_BYTES = ("REAL", "FLOAT")
_AS_TEXT = ("MONEY", "INET", "CIDR", "MACADDR", "MACADDR8", "CITEXT", "TSVECTOR", "XML")
_UTC = "UTC"


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table as the database has it now."""

    table: Any  # SQLAlchemy's
    schema: pa.Schema

    def column(self, name: str) -> tuple[Any, pa.DataType]:
        """A column by its name, also in another case. Raises ConfigError."""
        names = [one for one in self.schema.names if one == name] or [
            one for one in self.schema.names if one.lower() == name.lower()
        ]
        if len(names) != 1:
            raise ConfigError(
                f"hoodie.streamer.jdbc.table.incr.column.name={name}: the table {self.table.fullname} has the columns "
                f"{', '.join(self.schema.names)}."
            )
        return self.table.c[names[0]], self.schema.field(names[0]).type


def reflected(database: JdbcDatabase, connection: Any, name: str) -> DatabaseTable:
    """A table or view. Raises ConfigError for a name that is none, and for columns that Hudi has no type for."""
    schema, _, bare = name.strip().rpartition(".")
    if not bare or any(character in name for character in "() \n"):
        raise ConfigError(
            f"hoodie.streamer.jdbc.table.name={name!r:.100}: expected the name of a table or view. Make a view of a "
            "query."
        )
    sql = database.library
    with database.errors():
        table = sql.Table(
            bare.strip('"`'), sql.MetaData(), schema=schema.strip('"`') or None, autoload_with=connection,
            resolve_fks=False,
        )  # fmt: skip
    for column in table.columns:
        if isinstance(column.type, sql.types.Float):
            column.type.asdecimal = False  # MySQL's doubles as decimals of ten digits
    fields = [pa.field(column.name, _arrow(database, column)) for column in table.columns]
    return DatabaseTable(table, pa.schema(fields))


def streamed(result: Any, schema: pa.Schema, where: str) -> pa.Table:
    """The rows of a result, whose columns are those of the schema. Raises SchemaMismatch for a value that has no type
    of its column.
    """
    batches: list[pa.RecordBatch] = []
    parts = result.partitions()
    while True:
        try:
            part = next(parts, None)
        except (ValueError, TypeError, ArithmeticError) as error:  # of SQLAlchemy's conversions
            raise SchemaMismatch(
                f"{where}: a value is none of its column's type: {error}. Nothing was written."
            ) from error
        if part is None:
            return pa.Table.from_batches(batches, schema)
        columns = list(zip(*part, strict=True))
        arrays = [_array(field, values, where) for field, values in zip(schema, columns, strict=True)]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))


def _array(field: pa.Field, values: Sequence[Any], where: str) -> pa.Array:
    try:
        if pt.is_string(field.type):
            return pa.array([one if one is None else _text(one) for one in values], pa.string())
        if pt.is_boolean(field.type):  # MySQL's TINYINT(1) are numbers
            return pa.array([one if one is None else bool(one) for one in values], pa.bool_())
        array: pa.Array = pa.array(values, field.type)
        return array
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise SchemaMismatch(
            f"{where}: the column {field.name!r} is declared as {field.type}, and has a value that is none: {error}. "
            "Nothing was written."
        ) from error


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (Mapping, list, bool, int, float)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (set, frozenset)):
        return ",".join(sorted(map(str, value)))
    return str(value)


def _arrow(database: JdbcDatabase, column: Any) -> pa.DataType:
    try:
        kind = _arrow_type(database, column.type)
    except NotImplementedError:
        kind = None
    if kind is None:
        raise ConfigError(
            f"{database.where}: the column {column.name!r} has the type {column.type!r:.60}, for which Hudi has none. "
            "Make a view that casts it or leaves it out, and name the view."
        )
    return kind


def _arrow_type(database: JdbcDatabase, kind: Any) -> pa.DataType | None:
    sql, name = database.library.types, type(kind).__name__.upper()
    if name == "DOMAIN":
        return _arrow_type(database, kind.data_type)
    if name in _AS_TEXT:
        return pa.string()
    if name == "YEAR":
        return pa.int32()
    if isinstance(kind, sql.Boolean) or (name == "TINYINT" and getattr(kind, "display_width", None) == 1):
        return pa.bool_()
    if isinstance(kind, sql.Integer):
        return _integer(database, kind, name)
    if isinstance(kind, sql.Float):
        return pa.float32() if name in _FLOATS_OF_4_BYTES and not database.is_sqlite else pa.float64()
    if isinstance(kind, sql.Numeric):
        if kind.precision is None:
            return pa.decimal128(_PRECISION_MAX, _SCALE)
        precision, scale = min(kind.precision, _PRECISION_MAX), kind.scale or 0
        return pa.decimal128(precision, scale) if 0 <= scale <= precision else None
    if isinstance(kind, sql.DateTime):
        has_zone = kind.timezone or (name == "TIMESTAMP" and database.engine.dialect.name in ("mysql", "mariadb"))
        return pa.timestamp("us", _UTC if has_zone else None)
    if isinstance(kind, sql.ARRAY):
        item = _arrow_type(database, kind.item_type)
        return None if item is None or kind.dimensions not in (None, 1) else pa.list_(item)
    for bases, arrow in _by_base(sql):
        if isinstance(kind, bases):
            return arrow
    return None


def _integer(database: JdbcDatabase, kind: Any, name: str) -> pa.DataType:
    is_unsigned = bool(getattr(kind, "unsigned", False))
    if name == "BIGINT":
        return pa.decimal128(20, 0) if is_unsigned else pa.int64()
    is_int64 = database.is_sqlite or (is_unsigned and name == "INTEGER")
    return pa.int64() if is_int64 else pa.int32()


def _by_base(sql: Any) -> Iterable[tuple[Any, pa.DataType]]:
    yield sql.Date, pa.date32()
    yield sql.Time, pa.time64("us")
    yield (sql.String, sql.JSON, sql.Uuid), pa.string()
    yield sql.LargeBinary, pa.binary()
