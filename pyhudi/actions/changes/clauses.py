"""The clauses of a change: each selects rows and says how they change.

A row takes the first clause of its kind whose condition is true. The kind of a clause decides which columns it sees:

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
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pyhudi.actions.changes.values import (
    SOURCE,
    Assignment,
    ClauseRows,
    assignment,
    clause_schema,
    condition_of,
    mask_of,
)
from pyhudi.errors import ConfigError
from pyhudi.expressions.binding import Where
from pyhudi.expressions.filters import truth_of
from pyhudi.expressions.predicates import Predicate
from pyhudi.merge.base import Mask
from pyhudi.merge.combine import single_array
from pyhudi.model.keys import KEY_GENERATOR_CLASSES, META_COLUMNS
from pyhudi.model.table_config import TableConfig
from pyhudi.redaction import is_text
from pyhudi.schema.projection import project

__all__ = ["BoundClause", "Clause", "Columns", "When", "bound_clauses", "loose_columns", "set_values"]


class When(Enum):
    """The kind of rows that a clause applies to."""

    MATCHED = "rows of the table whose key a source row has"
    NOT_MATCHED = "source rows whose key the table does not have"
    NOT_MATCHED_BY_SOURCE = "rows of the table whose key no source row has"


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause as the caller states it. `values`: column → value; None: every column of the source."""

    when: When
    verb: Literal["update", "delete", "insert"]
    condition: Where = None
    values: Mapping[str, object] | None = None

    @property
    def takes_all(self) -> bool:
        """True if it takes the columns of the source by name."""
        return self.values is None and self.verb != "delete"


def set_values(call: str, values: object, *, has_all: bool = False) -> dict[str, object] | None:
    """Columns and their values, None for all columns of the source. Raises ConfigError for anything else."""
    if has_all and isinstance(values, str) and values.strip() == "*":
        return None
    if not isinstance(values, Mapping):
        other = ' or "*" for all columns' if has_all else ""
        raise ConfigError(f"{call}: expected a mapping, {{'column': value}}{other}, found {values!r:.200}.")
    return dict(values)


@dataclass(frozen=True, slots=True)
class BoundClause:
    """A clause checked against the columns of both sides. Picklable when its functions are."""

    when: When
    verb: Literal["update", "delete", "insert"]
    condition: Predicate | None
    assignments: tuple[Assignment, ...] = ()

    def holds(self, clause_rows: ClauseRows) -> Mask:
        """A mask of the rows for which the condition is true."""
        if self.condition is None:
            return np.ones(len(clause_rows), np.bool_)
        return mask_of(truth_of(self.condition, clause_rows.rows, "The condition"))


def loose_columns(config: TableConfig, schema: pa.Schema, *, is_global: bool) -> frozenset[str]:
    """Key and partition columns whose values may differ between rows with one key and one path.

    A struct has more fields than its field in the key. The generators TIMESTAMP and CUSTOM make one path of all moments
    of a day. Texts with slashes, empty texts and null may share a path, too. A user's generator may make one key or
    path of any values.

    Args:    is_global: the index finds rows in other partitions; they keep their value where the path contains it.
    """
    generator = (config.key_generator or "SIMPLE").upper()
    is_own, is_plain = generator not in KEY_GENERATOR_CLASSES, generator not in ("TIMESTAMP", "CUSTOM")
    loose = set()
    for name in config.record_key_fields:
        if is_own or "." in name or _type_of(name, schema, pt.is_timestamp):
            loose.add(name.partition(".")[0])
    for name in config.partition_fields:
        tells = is_plain and (is_global or _type_of(name, schema, _has_own_path))
        if is_own or "." in name or not tells:
            loose.add(name.partition(".")[0])
    return frozenset(loose.intersection(schema.names))


def _type_of(name: str, schema: pa.Schema, test: Callable[[pa.DataType], bool]) -> bool:
    at = schema.get_field_index(name)
    return at >= 0 and bool(test(schema.field(at).type))


def _has_own_path(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_boolean(kind) or pt.is_date(kind) or pt.is_decimal(kind))


@dataclass(frozen=True, slots=True)
class _MergedStruct:
    """The value of a struct of the key: the fields that the source has, and the stored ones for the others."""

    column: pa.Field

    def __call__(self, target: pa.Table, source: pa.Table) -> pa.ChunkedArray:
        source_values = single_array(source.column(self.column.name))
        stored = project(target.select([self.column.name]), pa.schema([self.column]))
        return pa.chunked_array([_with_fields(source_values, single_array(stored.column(0)))])


def _with_fields(source_values: pa.Array, stored: pa.Array) -> pa.Array:
    if not (isinstance(source_values, pa.StructArray) and isinstance(stored, pa.StructArray)):
        return source_values
    columns = []
    for number, field in enumerate(stored.type.fields):
        at = source_values.type.get_field_index(field.name)
        stored_values = stored.field(number)
        columns.append(stored_values if at < 0 else _with_fields(source_values.field(at), stored_values))
    fields = [field.with_type(column.type) for field, column in zip(stored.type.fields, columns, strict=True)]
    return pa.StructArray.from_arrays(
        columns, fields=fields, mask=source_values.is_null() if source_values.null_count else None
    )


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that clauses can name. `stored`: the table's data columns; `shown`: the columns that a query
    returns; `source`: those of the other side of a merge, None without one; `zone`: the zone of times without one,
    see `in_zone`; `is_global`: see `loose_columns`; `fills`: see `Assignment`.
    """

    config: TableConfig
    stored: pa.Schema
    shown: pa.Schema
    source: pa.Schema | None = None
    zone: tzinfo | None = None
    is_global: bool = False
    fills: bool = False

    def schema_of(self, when: When) -> pa.Schema:
        """The columns that a clause of this kind sees."""
        target = None if when is When.NOT_MATCHED else self.shown
        source = None if when is When.NOT_MATCHED_BY_SOURCE else self.source
        return clause_schema(target, source, self.source is not None)

    @property
    def fixed(self) -> frozenset[str]:
        """Columns that identify a row and its partition; they can't change."""
        fields = (*self.config.record_key_fields, *self.config.partition_fields)
        return frozenset(name.partition(".")[0] for name in fields)

    @property
    def loose(self) -> frozenset[str]:
        """The fixed columns in which a row may have another value: see `loose_columns`."""
        return loose_columns(self.config, self.stored, is_global=self.is_global)

    def column(self, name: str) -> pa.Field:
        """A data column by its name. Raises ConfigError naming the nearest."""
        if not is_text(name) or self.stored.get_field_index(name) < 0:
            similar = get_close_matches(name, self.stored.names, n=1)
            hint = f" Did you mean {similar[0]!r}?" if similar else ""
            if name in META_COLUMNS:
                hint = " Hudi's meta columns are written by Hudi."
            raise ConfigError(
                f"The table has no column {name!r} to set.{hint} Columns: {', '.join(self.stored.names)}."
            )
        return self.stored.field(name)

    def assignment(self, name: str, value: object, schema: pa.Schema, *, fills: bool = False) -> Assignment:
        """See `assignment`. `schema`: the columns that the clause sees."""
        return assignment(self.column(name), value, schema, self.zone, fills=fills or self.fills)


def bound_clauses(clauses: Sequence[Clause], columns: Columns) -> tuple[BoundClause, ...]:
    """Check clauses. Raises ConfigError for unknown columns, values that don't fit, keys that would change."""
    return tuple(_bound(clause, columns) for clause in clauses)


def _bound(clause: Clause, columns: Columns) -> BoundClause:
    schema = columns.schema_of(clause.when)
    condition = None if clause.condition is None else condition_of(clause.condition, schema, columns.zone)
    assignments = {"update": _updates, "insert": _inserts, "delete": lambda *_: ()}[clause.verb](
        clause, columns, schema
    )
    return BoundClause(clause.when, clause.verb, condition, tuple(assignments))


def _updates(clause: Clause, columns: Columns, schema: pa.Schema) -> Iterable[Assignment]:
    if clause.values is None:
        assert columns.source is not None
        loose = columns.loose
        source_names = set(columns.source.names) - (columns.fixed - loose)
        shared = [field for field in columns.stored if field.name in source_names]
        loose_keys = columns.fixed & loose
        values = ((f, _MergedStruct(f) if f.name in loose_keys else pc.field(SOURCE, f.name)) for f in shared)
        return [columns.assignment(field.name, value, schema) for field, value in values]
    if not clause.values:
        raise ConfigError("set= is empty; name the columns to change, such as set={'n': 'n + 1'}.")
    loose = columns.loose
    fixed = [
        n for n, value in clause.values.items() if n in columns.fixed and not (n in loose and _is_source(n, value))
    ]
    if fixed:
        raise ConfigError(
            f"set= names {', '.join(fixed)}: key and partition columns say which row it is and where it is, and can't "
            "change. Delete the row and insert it again."
        )
    return [columns.assignment(name, value, schema) for name, value in clause.values.items()]


def _is_source(name: str, value: object) -> bool:
    """True if an expression is the source's column of this name."""
    return isinstance(value, pc.Expression) and str(value) == str(pc.field(SOURCE, name))


def _inserts(clause: Clause, columns: Columns, schema: pa.Schema) -> Iterable[Assignment]:
    assert columns.source is not None
    source_names = set(columns.source.names)
    shared = [name for name in columns.stored.names if name in source_names]
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
    # A stored row keeps the fields that a struct of its key lacks here; a new one has null there.
    filled = columns.fixed if clause.takes_all else ()
    return [columns.assignment(name, value, schema, fills=name in filled) for name, value in values.items()]
