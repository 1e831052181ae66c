"""New values of a column, and the rows from which they are computed.

A value is a constant, SQL text or an Arrow expression over the rows, or a function of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import tzinfo
from decimal import Decimal
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.kinds import is_list
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.expressions.binding import Where, bind
from pyhudi.expressions.engines import projected
from pyhudi.expressions.filters import truth_of
from pyhudi.expressions.limits import check_expressions
from pyhudi.expressions.literals import in_zone
from pyhudi.expressions.predicates import Predicate
from pyhudi.expressions.values import EngineValue, Literal, SqlValue, path_of, sql_value
from pyhudi.expressions.where import parse_where
from pyhudi.merge.base import Mask
from pyhudi.merge.combine import single_array
from pyhudi.redaction import brief
from pyhudi.schema.evolution import or_widen
from pyhudi.schema.projection import project
from pyhudi.schema.value_types import named_type, typed_nulls

__all__ = [
    "SOURCE",
    "TARGET",
    "Assignment",
    "ClauseRows",
    "assignment",
    "check_fields",
    "clause_schema",
    "condition_of",
    "mask_of",
]


SOURCE, TARGET = "source", "target"


@dataclass(frozen=True, slots=True)
class ClauseRows:
    """Rows as a clause sees them: of the table, of the source, or pairs of both. `merging`: with struct columns."""

    target: pa.Table | None
    source: pa.Table | None = None
    merging: bool = False

    @property
    def rows(self) -> pa.Table:
        """The columns that conditions and expressions can name."""
        flat = self.target if self.target is not None else self.source
        assert flat is not None
        if not self.merging:
            return flat
        for name, side in ((SOURCE, self.source), (TARGET, self.target)):
            if side is not None:
                packed = _struct_of(side)
                at = flat.schema.get_field_index(name)
                flat = flat.append_column(name, packed) if at < 0 else flat.set_column(at, name, packed)
        return flat

    @property
    def sides(self) -> tuple[pa.Table, ...]:
        """The arguments of a function: the table's rows, then the source's."""
        return tuple(side for side in (self.target, self.source) if side is not None)

    def filter(self, rows: Mask) -> ClauseRows:
        """The rows where the mask is true."""
        if rows.all():
            return self
        mask = pa.array(rows)
        target, source = (None if side is None else side.filter(mask) for side in (self.target, self.source))
        return ClauseRows(target, source, self.merging)

    def __len__(self) -> int:
        return len(self.sides[0])


def clause_schema(target: pa.Schema | None, source: pa.Schema | None, merging: bool) -> pa.Schema:
    """The columns of `ClauseRows.rows`."""
    target_rows, source_rows = (None if side is None else side.empty_table() for side in (target, source))
    return ClauseRows(target_rows, source_rows, merging).rows.schema


def _struct_of(side: pa.Table) -> pa.Array:
    arrays = [single_array(column) for column in side.columns]  # dictionaries are decoded
    fields = [field.with_type(array.type) for field, array in zip(side.schema, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def condition_of(where: Where, schema: pa.Schema, zone: tzinfo | None) -> Predicate:
    """The condition of a clause or a constraint on these columns. Raises ConfigError."""
    condition = bind(parse_where(where), schema, zone)
    truth_of(condition, schema.empty_table(), "The condition")
    return condition


def mask_of(values: pa.ChunkedArray | pa.Array) -> Mask:
    """The mask of the rows where a condition is true; unknown counts as false."""
    flags: Mask = np.asarray(pc.fill_null(values, False), dtype=np.bool_)
    return flags


@dataclass(frozen=True, slots=True)
class Assignment:
    """A column and its new value: a scalar of its type, an expression, or a function.

    `fills`: fields that structs of the value lack are null; else such a value is refused.
    """

    column: pa.Field
    value: pa.Scalar | pc.Expression | EngineValue | Callable[..., object]
    fills: bool = False

    def of(self, clause_rows: ClauseRows) -> pa.ChunkedArray:
        """The column for these rows. Raises ConfigError, SchemaMismatch when values don't fit the column."""
        if isinstance(self.value, pa.Scalar):
            return pa.chunked_array([pa.repeat(self.value, len(clause_rows))])
        if isinstance(self.value, pc.Expression):
            values = projected(self.value, clause_rows.rows, f"set={self.column.name!r}")
        elif isinstance(self.value, EngineValue):
            values = self.value(clause_rows.rows)
        else:
            values = self._called(clause_rows)
        return _fitted(values, self.column, self.fills)

    def _called(self, clause_rows: ClauseRows) -> pa.ChunkedArray:
        assert callable(self.value)
        values = self.value(*clause_rows.sides)
        if isinstance(values, pa.Scalar):
            return pa.chunked_array([pa.repeat(values, len(clause_rows))])
        if isinstance(values, pa.Array):
            values = pa.chunked_array([values])
        if not isinstance(values, pa.ChunkedArray):
            try:
                value_list = list(cast("Iterable[object]", values))
                values = pa.chunked_array([pa.array(value_list, _type_of(value_list, self.column.type))])
            except (pa.ArrowException, TypeError) as error:
                raise ConfigError(
                    f"The function for the column {self.column.name!r} returned {type(values).__name__}; expected an "
                    f"Arrow array of {self.column.type}: {error}."
                ) from error
        if len(values) != len(clause_rows):
            raise ConfigError(
                f"The function for the column {self.column.name!r} returned {len(values)} values for "
                f"{len(clause_rows)} rows."
            )
        return values


def _type_of(values: Iterable[object], data_type: pa.DataType) -> pa.DataType:
    """The type of a column, whose structs have the fields that the values name."""
    return typed_nulls(named_type(data_type, values), data_type)


def assignment(
    column: pa.Field, value: object, schema: pa.Schema, zone: tzinfo | None = None, *, fills: bool = False
) -> Assignment:
    """Check a caller's value for a column.

    Args:    value: SQL text over the columns of `ClauseRows.rows`, whose `schema` this is; a constant other than text,
                 or a `Literal`; a `pyarrow.compute` expression; a function of the table's rows, the source's, or both.
             zone: see `in_zone`. fills: see `Assignment`.
    Raises:  ConfigError for values that can't become the column's type; SchemaMismatch for structs with other fields.
    """
    if isinstance(value, str):
        value = _of_text(value, column, schema, zone)
    if isinstance(value, Literal):
        value = value.value
    elif isinstance(value, EngineValue):
        _check_kind(value.text, value(schema.empty_table()).type, column)
        return Assignment(column, value, fills)
    if isinstance(value, pc.Expression):
        check_expressions([value], f"set={column.name!r}")
        checked = Assignment(column, value, fills)
        # Zero rows suffice to check types; values that don't fit are found when rows are written.
        _fitted(projected(value, schema.empty_table(), f"set={column.name!r}"), column, fills)
        return checked
    if callable(value):
        return Assignment(column, value, fills)
    scalar = _constant(column, in_zone(value, column.type, zone, f"set= gives the column {column.name}"), fills)
    if not scalar.is_valid and not column.nullable:
        raise ConfigError(
            f"The column {column.name!r} is NOT NULL and can't be set to null; "
            f"table.alter(DropNotNull({column.name!r})) lets it take nulls."
        )
    return Assignment(column, scalar)


def _of_text(text: str, column: pa.Field, schema: pa.Schema, zone: tzinfo | None) -> SqlValue:
    """The value that SQL text computes. Raises ConfigError, which says how to write the text as a constant."""
    side, dot, name = text.partition(".")
    packed = schema.field(side).type if dot and side in (SOURCE, TARGET) and side in schema.names else None
    if packed is not None and pa.types.is_struct(packed):
        if packed.get_field_index(name) >= 0:
            return pc.field(side, name)
        if name.isidentifier() and path_of((side, name), schema) is None:
            raise ConfigError(
                f"The column {column.name!r} is set to {brief(text)}, but the {side} has no column {brief(name)}; it "
                f"has {', '.join(field.name for field in packed)}. The text itself is pyarrow.scalar({brief(text)})."
            )
    try:
        what = f"set= gives the column {column.name!r} SQL text"
        value = sql_value(text, schema, what, zone=zone)
    except ConfigError as error:
        quoted = text.replace("'", "''")
        raise ConfigError(
            f"{error} The text itself is a value as {brief(chr(39) + quoted + chr(39))}, with quotes inside, or as "
            f"pyarrow.scalar({brief(text)}); update(values={{...}}) takes it as it is."
        ) from error
    if isinstance(value, Literal):
        if isinstance(value.value, int | float | Decimal):
            _check_kind(text, pa.bool_() if isinstance(value.value, bool) else pa.int64(), column)
    elif isinstance(value, pc.Expression):
        _check_kind(text, projected(value, schema.empty_table(), f"set={column.name!r}").type, column)
    return value


def _check_kind(text: str, kind: pa.DataType, column: pa.Field) -> None:
    """Raise ConfigError where SQL reads the text as a number or boolean, but the column has another type.

    `2024-01-05` is a sum and `5` is not a text: callers who write them mean the text.
    """
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    to = column.type
    takes = pa.types.is_integer(to) or pa.types.is_floating(to) or pa.types.is_decimal(to)
    if (is_number and not takes) or (pa.types.is_boolean(kind) and not pa.types.is_boolean(to)):
        what = "a number" if is_number else "true or false"
        raise ConfigError(
            f"The column {column.name!r} is of type {to}, and the SQL text {brief(text)} is {what}. The text itself is "
            f"{brief(chr(39) + text + chr(39))}, with quotes inside; a number as text is CAST({text[:100]} AS STRING)."
        )


def _constant(column: pa.Field, value: object, fills: bool) -> pa.Scalar:
    try:
        if pa.types.is_nested(column.type):
            values = [value]
            kind = value.type if isinstance(value, pa.Scalar) else _type_of(values, column.type)
            fitted: pa.Scalar = _fitted(pa.chunked_array([pa.array(values, kind)]), column, fills)[0]
            return fitted
        if isinstance(value, pa.Scalar):
            return value.cast(column.type)
        # SQL reads 0.5 as an exact number, which Arrow casts to other numbers and doesn't convert.
        is_exact = isinstance(value, Decimal) and not pa.types.is_decimal(column.type)
        if is_exact or (isinstance(value, str) and not pa.types.is_string(column.type)):
            return pa.scalar(value).cast(column.type)
        return pa.scalar(value, column.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ConfigError(
            f"The column {column.name!r} is of type {column.type} and can't be set to {brief(value)}: "
            f"{str(error)[:500]}. What is computed is given as SQL text such as 'x * 2', as an expression such as "
            "pyarrow.compute.field('x') * 2, or as a function of the rows."
        ) from error


def check_fields(kind: pa.DataType, column: pa.Field, fills: bool = False) -> None:
    """Check that the structs of new values have the fields of the column's, at any depth.

    Args:   kind: of the new values. fills: they may lack fields.
    Raises: SchemaMismatch with the path of a field that one of them does not have.
    """
    unknown = _lacking_field(column.type, kind, column.name)
    if unknown is not None:
        raise SchemaMismatch(
            f"The column {column.name!r} is of type {column.type} and has no field {unknown!r}, which its new values "
            "have. Structs are matched by the names of their fields; rename the field, or leave it out."
        )
    missing = None if fills else _lacking_field(kind, column.type, column.name)
    if missing is not None:
        raise SchemaMismatch(
            f"The column {column.name!r} is of type {column.type}, and its new values lack the field {missing!r}: they "
            f"are of type {kind}. Give each field, null where it has no value, or set "
            "hoodie.write.set.null.for.missing.columns=true to write nulls, also over stored values."
        )


def _lacking_field(kind: pa.DataType, other: pa.DataType, path: str) -> str | None:
    """The path of the first field of a struct that the struct of the other type has and this one lacks."""
    if pa.types.is_struct(kind) and pa.types.is_struct(other):
        types = {field.name: field.type for field in kind.fields}
        paths = ((field, f"{path}.{field.name}") for field in other.fields)
        inside = (
            _lacking_field(types[field.name], field.type, inner) if field.name in types else inner
            for field, inner in paths
        )
    elif pa.types.is_map(kind) and pa.types.is_map(other):
        pairs = (("key", kind.key_type, other.key_type), ("value", kind.item_type, other.item_type))
        inside = (_lacking_field(one, two, f"{path}.{word}") for word, one, two in pairs)
    elif is_list(kind) and is_list(other):
        return _lacking_field(kind.value_type, other.value_type, f"{path}.element")
    else:
        return None
    return next((one for one in inside if one is not None), None)


def _fitted(values: pa.ChunkedArray, column: pa.Field, fills: bool) -> pa.ChunkedArray:
    """The values in the column's type: numbers become other numbers when they fit exactly."""
    if values.type != column.type:
        check_fields(values.type, column, fills)
        try:
            if pa.types.is_nested(column.type):
                values = project(pa.table({column.name: values}), pa.schema([column]), exact=True).column(0)
            else:
                values = values.cast(column.type)
        except pa.ArrowException as error:
            raise SchemaMismatch(
                f"The column {column.name!r} is of type {column.type}, its new values of type {values.type} don't fit: "
                f"{error}. Cast or round them{or_widen(column.name, column.type, values.type)}."
            ) from error
    return values
