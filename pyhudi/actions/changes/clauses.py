"""The clauses of a change: each says what happens to which rows.

A row takes the first clause of its kind whose condition is true. A clause sets a column to a constant, a column, an
Arrow expression, or the result of a function of the rows. The kind of a clause decides which columns it sees:

    update, delete              the table's columns
    merge, matched              the table's columns; struct columns `source` and `target` with those of each side
    merge, not matched          the source's columns; struct column `source`
    merge, not by source        the table's columns; struct column `target`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from difflib import get_close_matches
from enum import Enum
from typing import Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.merge.base import Mask
from pyhudi.merge.combine import single_array
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.predicate import parse_where
from pyhudi.model.predicate.limits import brief, check_expressions
from pyhudi.model.table_config import TableConfig
from pyhudi.queries.filters import Where, bind, to_arrow
from pyhudi.queries.literals import in_zone
from pyhudi.schema.projection import project
from pyhudi.shown_text import is_text

__all__ = [
    "SOURCE",
    "TARGET",
    "Assignment",
    "BoundClause",
    "Clause",
    "ClauseRows",
    "Columns",
    "When",
    "assignment",
    "bound_clauses",
    "clause_schema",
    "computed",
    "mask_of",
    "set_values",
]


SOURCE, TARGET = "source", "target"


@dataclass(frozen=True, slots=True)
class ClauseRows:
    """Rows as a clause sees them, row by row: of the table, of the source, or pairs. `merging`: with struct columns."""

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
        """What a function is called with: the table's rows, then the source's."""
        return tuple(side for side in (self.target, self.source) if side is not None)

    def filter(self, rows: Mask) -> ClauseRows:
        """Only some of the rows."""
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
    arrays = [single_array(column) for column in side.columns]  # of dictionaries their values
    fields = [field.with_type(array.type) for field, array in zip(side.schema, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields)


@dataclass(frozen=True, slots=True)
class Assignment:
    """A column and what it is set to: a scalar of its type, an expression, or a function."""

    column: pa.Field
    value: pa.Scalar | pc.Expression | Callable[..., object]

    def of(self, clause_rows: ClauseRows) -> pa.ChunkedArray:
        """The column for these rows. Raises ConfigError, SchemaMismatch when values don't fit the column."""
        if isinstance(self.value, pa.Scalar):
            return pa.chunked_array([pa.repeat(self.value, len(clause_rows))])
        if isinstance(self.value, pc.Expression):
            values = computed(self.value, clause_rows.rows, f"set={self.column.name!r}")
        else:
            values = self._called(clause_rows)
        return _fitted(values, self.column)

    def _called(self, clause_rows: ClauseRows) -> pa.ChunkedArray:
        assert callable(self.value)
        values = self.value(*clause_rows.sides)
        if isinstance(values, pa.Scalar):
            return pa.chunked_array([pa.repeat(values, len(clause_rows))])
        if isinstance(values, pa.Array):
            values = pa.chunked_array([values])
        if not isinstance(values, pa.ChunkedArray):
            try:
                values = pa.chunked_array([pa.array(cast("Iterable[object]", values), self.column.type)])
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


def assignment(column: pa.Field, value: object, schema: pa.Schema, zone: tzinfo | None = None) -> Assignment:
    """Check what a caller wants to set a column to.

    Args:    value: a constant; "source.x" or "target.x" in a merge; a `pyarrow.compute` expression; a function of the
             table's rows, the source's, or both; schema: the columns of `ClauseRows.rows`; zone: see `in_zone`.
    Raises:  ConfigError for values that can't become the column's type.
    """
    if isinstance(value, str):
        side, dot, name = value.partition(".")
        packed = schema.field(side).type if dot and side in (SOURCE, TARGET) and side in schema.names else None
        if packed is not None and pa.types.is_struct(packed):
            if packed.get_field_index(name) >= 0:
                value = pc.field(side, name)
            elif name.isidentifier():
                raise ConfigError(
                    f"The column {column.name!r} is set to {brief(value)}, but the {side} has no column "
                    f"{brief(name)}; it has "
                    f"{', '.join(field.name for field in packed)}. The text itself is pyarrow.scalar({brief(value)})."
                )
    if isinstance(value, pc.Expression):
        check_expressions([value], f"set={column.name!r}")
        checked = Assignment(column, value)
        # Types are told by no rows at all; values that don't fit are found when there are some.
        _fitted(computed(value, schema.empty_table(), f"set={column.name!r}"), column)
        return checked
    if callable(value):
        return Assignment(column, value)
    scalar = _constant(column, in_zone(value, column.type, zone, f"set= gives the column {column.name}"))
    if not scalar.is_valid and not column.nullable:
        raise ConfigError(
            f"The column {column.name!r} is NOT NULL and can't be set to null; "
            f"table.alter(DropNotNull({column.name!r})) lets it take nulls."
        )
    return Assignment(column, scalar)


def _constant(column: pa.Field, value: object) -> pa.Scalar:
    try:
        if isinstance(value, pa.Scalar):
            return value.cast(column.type)
        if isinstance(value, str) and not pa.types.is_string(column.type):
            return pa.scalar(value).cast(column.type)
        return pa.scalar(value, column.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ConfigError(
            f"The column {column.name!r} is of type {column.type} and can't be set to {brief(value)}: "
            f"{str(error)[:500]}. What is computed is given as an expression, such as "
            "pyarrow.compute.field('x') * 2, or as a function of the rows."
        ) from error


def computed(expression: pc.Expression, rows: pa.Table, what: str) -> pa.ChunkedArray:
    """The values of an expression, row by row. Raises ConfigError with `what` when Arrow can't compute it."""
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(rows))
    project_ = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["value"]))
    try:
        return acero.Declaration.from_sequence([source, project_]).to_table(use_threads=False).column(0)
    except (pa.ArrowException, ValueError, KeyError) as error:
        raise ConfigError(f"{what} can't be computed: {error}. Columns: {', '.join(rows.column_names)}.") from error


def _fitted(values: pa.ChunkedArray, column: pa.Field) -> pa.ChunkedArray:
    """The values in the column's type: numbers become other numbers when they fit exactly."""
    if values.type != column.type:
        try:
            if pa.types.is_nested(column.type):
                values = project(pa.table({column.name: values}), pa.schema([column])).column(0)
            else:
                values = values.cast(column.type)
        except pa.ArrowException as error:
            raise SchemaMismatch(
                f"The column {column.name!r} is of type {column.type}, its new values of type {values.type} don't fit: "
                f"{error}. Cast or round them."
            ) from error
    return values


def mask_of(values: pa.ChunkedArray) -> Mask:
    """Where a condition is true; unknown is not."""
    flags: Mask = np.asarray(pc.fill_null(values, False).to_numpy(), dtype=np.bool_)
    return flags


class When(Enum):
    """Which rows a clause is about."""

    MATCHED = "rows of the table that a source row has the key of"
    NOT_MATCHED = "source rows whose key the table does not have"
    NOT_MATCHED_BY_SOURCE = "rows of the table that no source row has the key of"


@dataclass(frozen=True, slots=True)
class Clause:
    """As the caller says it. `values`: column → value; None: every column that the source has."""

    when: When
    does: Literal["update", "delete", "insert"]
    condition: Where = None
    values: Mapping[str, object] | None = None


def set_values(call: str, values: object, *, has_all: bool = False) -> dict[str, object] | None:
    """Columns and their values, None for all columns of the source. Raises ConfigError for what is neither."""
    if has_all and isinstance(values, str) and values.strip() == "*":
        return None
    if not isinstance(values, Mapping):
        other = ' or "*" for all columns' if has_all else ""
        raise ConfigError(f"{call}: expected a mapping, {{'column': value}}{other}, found {values!r:.200}.")
    return dict(values)


@dataclass(frozen=True, slots=True)
class BoundClause:
    """A clause that was checked against the columns of both sides. Picklable when its functions are."""

    when: When
    does: Literal["update", "delete", "insert"]
    condition: pc.Expression | None
    assignments: tuple[Assignment, ...] = ()

    def holds(self, clause_rows: ClauseRows) -> Mask:
        """Which rows the condition is true for."""
        if self.condition is None:
            return np.ones(len(clause_rows), np.bool_)
        return mask_of(computed(self.condition, clause_rows.rows, "The condition"))


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that clauses can name. `stored`: the table's data columns; `shown`: what a query of it returns;
    `source`: of the other side of a merge, None without one; `zone`: that of times which name none, see `in_zone`.
    """

    config: TableConfig
    stored: pa.Schema
    shown: pa.Schema
    source: pa.Schema | None = None
    zone: tzinfo | None = None

    def schema_of(self, when: When) -> pa.Schema:
        """What a clause of this kind sees."""
        target = None if when is When.NOT_MATCHED else self.shown
        source = None if when is When.NOT_MATCHED_BY_SOURCE else self.source
        return clause_schema(target, source, self.source is not None)

    @property
    def fixed(self) -> frozenset[str]:
        """Columns that say who a row is and where it lives."""
        fields = (*self.config.record_key_fields, *self.config.partition_fields)
        return frozenset(name.partition(".")[0] for name in fields)

    def column(self, name: str) -> pa.Field:
        """A data column by its name. Raises ConfigError naming the nearest."""
        if not is_text(name) or self.stored.get_field_index(name) < 0:
            near = get_close_matches(name, self.stored.names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            if name in META_COLUMNS:
                hint = " Hudi's meta columns are written by Hudi."
            raise ConfigError(
                f"The table has no column {name!r} to set.{hint} Columns: {', '.join(self.stored.names)}."
            )
        return self.stored.field(name)


def bound_clauses(clauses: Sequence[Clause], columns: Columns) -> tuple[BoundClause, ...]:
    """Check clauses. Raises ConfigError for unknown columns, values that don't fit, keys that would change."""
    return tuple(_bound(clause, columns) for clause in clauses)


def _bound(clause: Clause, columns: Columns) -> BoundClause:
    schema = columns.schema_of(clause.when)
    condition = None
    if clause.condition is not None:
        condition = to_arrow(bind(parse_where(clause.condition), schema, columns.zone), schema)
        kind = computed(condition, schema.empty_table(), "The condition").type
        if not pa.types.is_boolean(kind):
            raise ConfigError(f"The condition {brief(clause.condition)} is of type {kind}; expected true or false.")
    assignments = {"update": _updates, "insert": _inserts, "delete": lambda *_: ()}[clause.does](
        clause, columns, schema
    )
    return BoundClause(clause.when, clause.does, condition, tuple(assignments))


def _updates(clause: Clause, columns: Columns, schema: pa.Schema) -> Iterable[Assignment]:
    if clause.values is None:
        assert columns.source is not None
        shared = [name for name in columns.stored.names if name in columns.source.names and name not in columns.fixed]
        return [Assignment(columns.stored.field(name), pc.field(SOURCE, name)) for name in shared]
    if not clause.values:
        raise ConfigError("set= is empty; name the columns to change, such as set={'status': 'done'}.")
    fixed = [name for name in clause.values if name in columns.fixed]
    if fixed:
        raise ConfigError(
            f"set= names {', '.join(fixed)}: key and partition columns say which row it is and where it is, and can't "
            "change. Delete the row and insert it again."
        )
    return [assignment(columns.column(name), value, schema, columns.zone) for name, value in clause.values.items()]


def _inserts(clause: Clause, columns: Columns, schema: pa.Schema) -> Iterable[Assignment]:
    assert columns.source is not None
    shared = [name for name in columns.stored.names if name in columns.source.names]
    values: dict[str, object]
    if clause.values is None:
        values = {name: pc.field(SOURCE, name) for name in shared}
    else:
        values = {name: pc.field(SOURCE, name) for name in shared if name in columns.fixed}
        for name, value in clause.values.items():
            if name in columns.fixed and value != f"{SOURCE}.{name}":
                raise ConfigError(
                    f"insert values name {name!r}: key and partition columns of new rows are those of the source; "
                    f"leave it out, or give '{SOURCE}.{name}'."
                )
            values[name] = value
    missing = [column.name for column in columns.stored if not column.nullable and column.name not in values]
    if missing:
        raise ConfigError(f"New rows need values for {', '.join(missing)}, which are NOT NULL.")
    return [assignment(columns.column(name), value, schema, columns.zone) for name, value in values.items()]
