"""Merge: rows of a source are matched with those of a table; clauses say what to do with them.

table.merge(changes).when_matched_delete("source.gone").when_matched_update_all().when_not_matched_insert_all().execute()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from pyhudi.actions.changes.change import ChangeRows
from pyhudi.actions.changes.clauses import Clause, When, set_values
from pyhudi.actions.changes.values import SOURCE, TARGET
from pyhudi.actions.result import WriteResult
from pyhudi.errors import ConfigError
from pyhudi.expressions.binding import Where
from pyhudi.expressions.values import tree_of
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.registry import Registry
from pyhudi.storage.base import Storage
from pyhudi.table.calls import Options, session_options, session_zone
from pyhudi.table.input import TableInput, choose_writer, input_of
from pyhudi.table.write import change_table
from pyhudi.table.wrong_names import checked_methods

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession

__all__ = ["Merge"]

# The function that runs a merge on a condition is on a higher floor.
_MERGES_ON: Registry[Callable[[Merge], WriteResult]] = Registry("merge", {"SQL": "pyhudi.sql.dml.merge_on:merge_on"})


@dataclass(frozen=True, slots=True)
@checked_methods
class Merge:
    """The description of a merge; `execute` runs it. Each other method returns a new one with one more clause.

    A row takes the first clause of its kind whose condition is true; without one it stays unchanged. Conditions are
    those of `HudiTable.scan`; `source.x` and `target.x` name the side, a bare `x` is the table's, in clauses for new
    rows the source's. Values to set are as in `HudiTable.update`: text is SQL (`"source.x"`, `"target.n + source.n"`,
    a constant text `"'new'"`); expressions such as `pyarrow.compute.field("source", "x") + 1`; functions of the table's
    rows and the source's; other Python values.
    """

    storage: Storage
    source: TableInput
    on: str | Sequence[str] | None
    options: Options
    spark: SparkSession | None = None
    clauses: tuple[Clause, ...] = ()

    def __repr__(self) -> str:
        data = self.source
        rows = f" of {len(data):,} rows" if isinstance(data, list | pa.Table) else ""
        clauses = "; ".join(f"{clause.when.name.lower().replace('_', ' ')}: {clause.verb}" for clause in self.clauses)
        return f"Merge({type(data).__name__}{rows} into {self.storage.root}; {clauses or 'no clause yet'}; not run yet)"

    def when_matched_update(self, set: Mapping[str, object] | Literal["*"], condition: Where = None) -> Merge:
        """Change columns of rows whose key is in the source; "*" means all of them, as `when_matched_update_all`."""
        return self._and(When.MATCHED, "update", condition, set_values("when_matched_update", set, has_all=True))

    def when_matched_update_all(self, condition: Where = None) -> Merge:
        """Set all columns that the source has. The row keeps its key and its partition."""
        return self._and(When.MATCHED, "update", condition)

    def when_matched_delete(self, condition: Where = None) -> Merge:
        """Delete rows whose key is in the source."""
        return self._and(When.MATCHED, "delete", condition)

    def when_not_matched_insert(self, values: Mapping[str, object] | Literal["*"], condition: Where = None) -> Merge:
        """Insert source rows with new keys; unnamed columns become null, keys are the source's. "*" means
        all columns, as `when_not_matched_insert_all`.
        """
        return self._and(
            When.NOT_MATCHED, "insert", condition, set_values("when_not_matched_insert", values, has_all=True)
        )

    def when_not_matched_insert_all(self, condition: Where = None) -> Merge:
        """Insert source rows with new keys, with all columns that the table has."""
        return self._and(When.NOT_MATCHED, "insert", condition)

    def when_not_matched_by_source_update(self, set: Mapping[str, object], condition: Where = None) -> Merge:
        """Change columns of rows whose key is not in the source. The whole table is read."""
        values = set_values("when_not_matched_by_source_update", set)
        return self._and(When.NOT_MATCHED_BY_SOURCE, "update", condition, values)

    def when_not_matched_by_source_delete(self, condition: Where = None) -> Merge:
        """Delete rows whose key is not in the source. The whole table is read."""
        return self._and(When.NOT_MATCHED_BY_SOURCE, "delete", condition)

    def execute(self) -> WriteResult:
        """Run the merge as one commit.

        Raises: ConfigError when `on` is not the key, when a key is in the source more than once, and for clauses that
            don't fit the columns; WriteConflict if another write has changed the same file groups since.
        """
        if not self.clauses:
            raise ConfigError("The merge has no clause; add one, such as .when_matched_update_all().")
        meta = MetaClient.load(self.storage)
        on = self.on
        if isinstance(on, str) and not _names_columns(on, meta):
            on = _equal_columns(on)
            # Keys are looked up in their partition; a condition without it means all partitions.
            if set(on) != {*meta.config.record_key_fields, *meta.config.partition_fields}:
                return _MERGES_ON.load("SQL")(self)
        parsed = WriteOptions.parse(self.options, session_options(self.spark), meta.config)
        _check_on(on, meta)
        source = input_of(self.source, self.spark)
        source.column_names(meta)
        frame, engine = choose_writer(source, parsed, self.options)
        change = ChangeRows(self.clauses, source=frame, zone=session_zone(self.spark))
        return replace(change_table(self.storage, change, engine, parsed), operation="MERGE")

    def _and(
        self,
        when: When,
        verb: Literal["update", "delete", "insert"],
        condition: Where,
        values: Mapping[str, object] | None = None,
    ) -> Merge:
        return replace(self, clauses=(*self.clauses, Clause(when, verb, condition, values)))


def _names_columns(on: str, meta: MetaClient) -> bool:
    """True for the name of a column, which is no condition."""
    config = meta.config
    names = (*config.record_key_fields, *config.partition_fields, *meta.table_schema().names)
    return on in names or (on.isidentifier() and on.lower() not in ("true", "false", "null"))


def _equal_columns(on: str) -> list[str]:
    """The columns of `target.a = source.a AND target.b = source.b`; none for any other condition."""
    from sqlglot import exp

    tree = tree_of(on, "on")
    names: list[str] = []
    for part in tree.flatten() if isinstance(tree, exp.And) else [tree]:
        sides = [part.this, part.expression] if isinstance(part, exp.EQ) else []
        if not all(isinstance(side, exp.Column) and len(side.parts) == 2 for side in sides) or not sides:
            return []
        if {side.table for side in sides} != {SOURCE, TARGET} or sides[0].name != sides[1].name:
            return []
        names.append(sides[0].name)
    return names


def _check_on(on: str | Sequence[str] | None, meta: MetaClient) -> None:
    """Check that rows match by the table's key; other columns would not identify a row."""
    if on is None:
        return
    fields = [on] if isinstance(on, str) else list(on)
    keys, partitions = meta.config.record_key_fields, meta.config.partition_fields
    if not set(keys) <= set(fields) <= {*keys, *partitions}:
        raise ConfigError(
            f"on={on!r}: rows of this table match by its record key, {', '.join(keys) or 'which it does not have'}"
            f"{' (and the partition columns ' + ', '.join(partitions) + ')' if partitions else ''}. Leave on out."
        )
