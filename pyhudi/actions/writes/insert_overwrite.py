"""Insert overwrite: rows replace all rows of their partitions, or of the table.

    insert_overwrite         the partitions that get rows, or the ones that the call names
    insert_overwrite_table   all partitions

Rows go to new file groups without a look at keys, the same road as insert; when the options name an order of rows
(`hoodie.bulkinsert.sort.mode`, sort columns), the road of bulk insert. Source: docs/formats/table-services.md,
"Replaced file groups".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeAlias

from pyhudi.actions.action import Action, ActionContext, PlanT, PreparedWrite, Schedule
from pyhudi.actions.partitioner import SlotPlan
from pyhudi.actions.writes.bulk_insert import BulkInsert
from pyhudi.actions.writes.keyed_write import KeyedWrite, Rules
from pyhudi.actions.writes.replacing import Groups, check_not_planned, existing_groups, replacing
from pyhudi.engine.base import Frame
from pyhudi.errors import ConfigError
from pyhudi.formats.timeline.instant_files import encode_requested_replace
from pyhudi.index.chosen import index_class
from pyhudi.keygen import KeyGenerator
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStatus
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.options import WriteOptions

__all__ = ["InsertOverwrite", "Overwrite", "insert_overwrite", "insert_overwrite_table"]

_SORT_KEYS = frozenset(
    {"hoodie.bulkinsert.sort.mode", "hoodie.bulkinsert.user.defined.partitioner.sort.columns"},
)


def insert_overwrite(frame: Frame, options: WriteOptions) -> Overwrite:
    """The action for the partitions that get rows, or for those that the options name."""
    return _action(OperationType.INSERT_OVERWRITE, frame, options)


def insert_overwrite_table(frame: Frame, options: WriteOptions) -> Overwrite:
    """The action for all partitions."""
    return _action(OperationType.INSERT_OVERWRITE_TABLE, frame, options)


def _action(operation: str, frame: Frame, options: WriteOptions) -> Overwrite:
    if options.explicit & _SORT_KEYS and not index_class(options).places_inserts:
        return InsertOverwrite(BulkInsert(frame), operation)
    rules = Rules(
        operation, tags=False, combines=options.combine_before_insert, match_keys=False, moves=False, replaces=True
    )
    return InsertOverwrite(KeyedWrite(frame, rules), operation)


@dataclass(frozen=True, slots=True)
class InsertOverwrite(Generic[PlanT]):
    """`writing`: the road that the rows take to files."""

    writing: Action[PlanT]
    operation: str
    kind: ActionKind = field(default=ActionKind.REPLACECOMMIT)

    def schedule(self, context: ActionContext) -> Schedule:
        schedule = self.writing.schedule(context)
        if self._named(context) is not None:
            check_not_planned(self._replaced((), context), context, self.operation, compactions=False)
        return replace(schedule, body=encode_requested_replace())

    def prepare(self, schedule: Schedule, instant: Instant, context: ActionContext) -> PreparedWrite[PlanT]:
        prepared = self.writing.prepare(schedule, instant, context)
        if prepared.profile is None:
            return replace(prepared, profile=CommitMetadata({}, operation_type=self.operation))
        groups = self._replaced(prepared.profile.partition_to_write_stats, context)
        check_not_planned(groups, context, self.operation, compactions=False)
        return prepared

    def execute(self, prepared: PreparedWrite[PlanT], context: ActionContext) -> tuple[WriteStatus, ...]:
        return self.writing.execute(prepared, context)

    def summarise(
        self, prepared: PreparedWrite[PlanT], statuses: tuple[WriteStatus, ...], context: ActionContext
    ) -> CommitMetadata:
        body = replace(self.writing.summarise(prepared, statuses, context), operation_type=self.operation)
        groups = self._replaced(body.partition_to_write_stats, context)
        check_not_planned(groups, context, self.operation, compactions=False)
        return replacing(body, groups)

    def _named(self, context: ActionContext) -> tuple[str, ...] | None:
        """The partitions that are replaced whatever the rows are, () for all; None when the rows say it."""
        if self.operation == OperationType.INSERT_OVERWRITE_TABLE:
            return ()
        return context.options.replacing.static_partitions or None

    def _replaced(self, paths: Iterable[str], context: ActionContext) -> Groups:
        """The groups that go, when rows go to the partitions `written`. Raises ConfigError for rows of others."""
        overwritten = self._named(context)
        if not overwritten:
            return existing_groups(context, paths if overwritten is None else None)
        unnamed = sorted(set(paths) - set(overwritten))
        if unnamed:
            raise ConfigError(
                f"{context.meta.storage.root}: rows for the partition {unnamed[0]!r}, but only "
                f"{', '.join(map(repr, overwritten))} are to be overwritten (hoodie.static.overwrite.partition.paths). "
                "Nothing was changed."
            )
        return existing_groups(context, overwritten)


Overwrite: TypeAlias = InsertOverwrite[SlotPlan] | InsertOverwrite[KeyGenerator]
