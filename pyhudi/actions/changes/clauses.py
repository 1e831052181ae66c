"""The clauses of a change: each selects rows and says how they change.

A row takes the first clause of its kind whose condition is true. The kind of a clause decides which columns it sees:

    update, delete              the table's columns
    merge, matched              the table's columns; struct columns `source` and `target` with those of each side
    merge, not matched          the source's columns; struct column `source`
    merge, not by source        the table's columns; struct column `target`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from difflib import get_close_matches
from enum import Enum
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.changes.values import (
    SOURCE,
    Assignment,
    ClauseRows,
    assignment,
    clause_schema,
    computed,
    condition_of,
    mask_of,
)
from pyhudi.errors import ConfigError
from pyhudi.merge.base import Mask
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.table_config import TableConfig
from pyhudi.queries.filters import Where
from pyhudi.queries.sql_values import EngineValue
from pyhudi.shown_text import is_text

__all__ = ["BoundClause", "Clause", "Columns", "When", "bound_clauses", "set_values"]


class When(Enum):
    """The kind of rows that a clause applies to."""

    MATCHED = "rows of the table that a source row has the key of"
    NOT_MATCHED = "source rows whose key the table does not have"
    NOT_MATCHED_BY_SOURCE = "rows of the table that no source row has the key of"


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause as the caller states it. `values`: column → value; None: every column of the source."""

    when: When
    does: Literal["update", "delete", "insert"]
    condition: Where = None
    values: Mapping[str, object] | None = None

    @property
    def takes_all(self) -> bool:
        """Does it take the columns of the source by their names?"""
        return self.values is None and self.does != "delete"


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
    does: Literal["update", "delete", "insert"]
    condition: pc.Expression | EngineValue | None
    assignments: tuple[Assignment, ...] = ()

    def holds(self, clause_rows: ClauseRows) -> Mask:
        """Which rows the condition is true for."""
        if self.condition is None:
            return np.ones(len(clause_rows), np.bool_)
        if isinstance(self.condition, EngineValue):
            return mask_of(self.condition(clause_rows.rows))
        return mask_of(computed(self.condition, clause_rows.rows, "The condition"))


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that clauses can name. `stored`: the table's data columns; `shown`: the columns that a query of it
    returns; `source`: those of the other side of a merge, None without one; `zone`: the zone of times that name none,
    see `in_zone`.
    """

    config: TableConfig
    stored: pa.Schema
    shown: pa.Schema
    source: pa.Schema | None = None
    zone: tzinfo | None = None

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
    condition = None if clause.condition is None else condition_of(clause.condition, schema, columns.zone)
    assignments = {"update": _updates, "insert": _inserts, "delete": lambda *_: ()}[clause.does](
        clause, columns, schema
    )
    return BoundClause(clause.when, clause.does, condition, tuple(assignments))


def _updates(clause: Clause, columns: Columns, schema: pa.Schema) -> Iterable[Assignment]:
    if clause.values is None:
        assert columns.source is not None
        source_names = set(columns.source.names) - set(columns.fixed)
        shared = [name for name in columns.stored.names if name in source_names]
        return [Assignment(columns.stored.field(name), pc.field(SOURCE, name)) for name in shared]
    if not clause.values:
        raise ConfigError("set= is empty; name the columns to change, such as set={'n': 'n + 1'}.")
    fixed = [name for name in clause.values if name in columns.fixed]
    if fixed:
        raise ConfigError(
            f"set= names {', '.join(fixed)}: key and partition columns say which row it is and where it is, and can't "
            "change. Delete the row and insert it again."
        )
    return [assignment(columns.column(name), value, schema, columns.zone) for name, value in clause.values.items()]


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
    return [assignment(columns.column(name), value, schema, columns.zone) for name, value in values.items()]
