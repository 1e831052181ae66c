"""CHECK constraints: conditions that rows of a table must not break, kept as properties of the table.

    hoodie.pyhudi.constraint.<name> = <SQL condition>

A row breaks a constraint when its condition is false; an unknown condition, as for a null, passes, as in SQL. PyHudi's
writes check the rows that they write. Apache Hudi ignores the properties and checks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timezone

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.changes.values import condition_of
from pyhudi.actions.rows import delete_flag_columns, marked_rows, marker_columns
from pyhudi.engine.base import TaskContext
from pyhudi.errors import ConfigError, SchemaMismatch, WriteConflict
from pyhudi.expressions.filters import top_level_columns, truth_of
from pyhudi.expressions.predicates import Predicate
from pyhudi.merge.base import Mask
from pyhudi.merge.rules import MergeRules
from pyhudi.meta_client import MetaClient
from pyhudi.model.table_config import TableConfig
from pyhudi.schema.projection import project

__all__ = [
    "CONSTRAINT_PREFIX",
    "BoundConstraint",
    "CheckRows",
    "bound_constraints",
    "broken_constraint",
    "check_rows",
    "check_same_constraints",
    "constraints_of",
    "constraints_on",
]

CONSTRAINT_PREFIX = "hoodie.pyhudi.constraint."  # properties of PyHudi's own, which Hudi ignores


def constraints_of(config: TableConfig) -> dict[str, str]:
    """Name → condition of the table's constraints, by name."""
    names = sorted(key for key in config.properties if key.startswith(CONSTRAINT_PREFIX))
    return {key.removeprefix(CONSTRAINT_PREFIX): config.properties[key] for key in names}


@dataclass(frozen=True, slots=True)
class BoundConstraint:
    """A constraint on columns of a schema. `schema`: the columns that it needs. Picklable."""

    name: str
    text: str
    condition: Predicate
    schema: pa.Schema

    @classmethod
    def of(cls, name: str, text: str, schema: pa.Schema) -> BoundConstraint:
        """Bind the condition to the columns. Raises ConfigError if they can't answer it."""
        what = f"The constraint {name!r}"
        try:
            condition = condition_of(text, schema, timezone.utc)
            names = top_level_columns(condition, schema)
            needed = [field.with_nullable(True) for field in schema if field.name in names]
            return cls(name, text, condition, pa.schema(needed))
        except ConfigError as error:
            raise ConfigError(f"{what}, {text!r}: {error}") from error

    def broken_by(self, rows: pa.Table) -> Mask:
        """A mask of the rows that break it. Columns that the rows lack are null."""
        given_names = set(rows.column_names)
        names = [name for name in self.schema.names if name in given_names]
        is_lacking = bool(self.schema.names) and not names  # a condition without columns lacks none
        columns = _nulls(self.schema, len(rows)) if is_lacking else project(rows.select(names), self.schema)
        values = truth_of(self.condition, columns, f"The constraint {self.name!r}")
        return ~np.asarray(pc.fill_null(values, True), dtype=np.bool_)


def _nulls(schema: pa.Schema, count: int) -> pa.Table:
    return pa.table([pa.nulls(count, field.type) for field in schema], schema=schema)


def bound_constraints(config: TableConfig, schema: pa.Schema) -> tuple[BoundConstraint, ...]:
    """The table's constraints for its columns. Raises ConfigError for one that they can't answer any more."""
    return tuple(BoundConstraint.of(name, text, schema) for name, text in constraints_of(config).items())


def check_same_constraints(began: MetaClient, now: MetaClient) -> None:
    """Raise WriteConflict when a constraint was added since a write began: the write has not checked its rows by it."""
    before = constraints_of(began.config)
    added = [name for name, text in constraints_of(now.config).items() if before.get(name) != text]
    if added:
        raise WriteConflict(
            f"{now.storage.root}: the constraint {added[0]!r} was added to the table during this write, which has not "
            "checked its rows by it. Nothing of it is visible; write again."
        )


def constraints_on(incoming: pa.Schema, meta: MetaClient) -> tuple[BoundConstraint, ...]:
    """The table's constraints for rows with these columns; others of the table are null."""
    if not constraints_of(meta.config):
        return ()
    table, given_names = meta.table_schema(), set(incoming.names)
    columns = [incoming.field(field.name) if field.name in given_names else field for field in table]
    return bound_constraints(meta.config, pa.schema(columns))


def check_rows(
    constraints: Iterable[BoundConstraint], rows: pa.Table | pa.RecordBatch, rules: MergeRules | None = None
) -> None:
    """Raise SchemaMismatch when rows break a constraint, with their number and an example.

    Rows that are deletes by `rules` are skipped.
    """
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    if rules is not None and (delete_flag_columns(table.schema) or marker_columns(table.schema, rules)):
        live = [batch.filter(pc.invert(marked_rows(batch, rules))) for batch in table.to_batches()]
        table = pa.Table.from_batches(live, table.schema)
    for constraint in constraints:
        broken = constraint.broken_by(table)
        if broken.any():
            raise broken_constraint(constraint, int(broken.sum()), table.filter(pa.array(broken)).slice(0, 1))


def broken_constraint(
    constraint: BoundConstraint, count: int, example: pa.Table, *, adding: bool = False
) -> SchemaMismatch:
    """The error for rows that break a constraint; `adding`: the rows are stored, and the constraint is being added."""
    row = example.select([name for name in example.column_names if not name.startswith("_")]).to_pylist()[0]
    if adding:
        return SchemaMismatch(
            f"{count:,} rows of the table break the constraint {constraint.name!r}, {constraint.text!r}, such as "
            f"{row!r:.500}. Correct or delete them first; the constraint was not added."
        )
    return SchemaMismatch(
        f"{count:,} rows break the constraint {constraint.name!r} of the table, {constraint.text!r}, such as "
        f"{row!r:.500}. Correct them, or drop the constraint: table.constraints.drop({constraint.name!r}). Nothing of "
        "the write is visible."
    )


@dataclass(frozen=True, slots=True)
class CheckRows:
    """Stream work: check the rows and pass them on unchanged."""

    constraints: tuple[BoundConstraint, ...]
    rules: MergeRules

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            check_rows(self.constraints, batch, self.rules)
            yield batch
