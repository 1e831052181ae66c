"""Insert overwrite: rows replace all rows of their partitions, or of the table.

    insert_overwrite         the partitions that get rows, or those that the call names
    insert_overwrite_table   all partitions

Rows go to new file groups without a key look-up, as in an insert. When the options name an order of rows
(`hoodie.bulkinsert.sort.mode`, sort columns), rows are arranged as in a bulk insert.

Every write that replaces file groups, `delete_partition` too, takes these steps:

    <T>.replacecommit.requested   the kind of replacement (docs/formats/timeline.md, "Bodies")
    <T>.replacecommit.inflight    the workload profile
    new files                     always base files of new file groups
    <T>.replacecommit             new files, and the replaced file groups

The replaced groups are those that existed when the write began. Groups that others add to the same partitions during
the write are kept, as if added afterwards; a write to a replaced group is a conflict. Files of replaced groups are kept
for readers of earlier instants until cleaning deletes them. Source: docs/formats/table-services.md, "Replaced file
groups"; docs/formats/timeline.md, "Bodies", "Commit metadata".

"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeAlias

from pyhudi.actions.action import Action, ActionContext, PlanT, PreparedWrite, Schedule
from pyhudi.actions.clustering_updates import groups_in_pending_plans
from pyhudi.actions.partitioner import SlotPlan
from pyhudi.actions.writes.bulk_insert import BulkInsert
from pyhudi.actions.writes.keyed_write import KeyedWrite, Rules
from pyhudi.engine.base import Frame
from pyhudi.errors import ConfigError, WriteConflict
from pyhudi.formats.timeline.instant_files import encode_requested_replace
from pyhudi.index.chosen import index_class
from pyhudi.keygen import KeyGenerator
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStatus
from pyhudi.model.instant import COMPACTIONS, ActionKind, Instant
from pyhudi.model.options import WriteOptions
from pyhudi.view.file_system_view import FileSystemView

__all__ = [
    "Groups",
    "InsertOverwrite",
    "Overwrite",
    "check_not_planned",
    "existing_groups",
    "insert_overwrite",
    "insert_overwrite_table",
    "replacing",
]


Groups = Mapping[str, tuple[str, ...]]


def existing_groups(context: ActionContext, partitions: Iterable[str] | None = None) -> Groups:
    """Partition path → ids of its file groups, in the context's table. `partitions` None: all of them."""
    paths_or_all = None if partitions is None else tuple(sorted(partitions))
    view = FileSystemView.load(context.meta, partitions=paths_or_all)
    paths = view.partitions() if paths_or_all is None else paths_or_all
    return {path: tuple(group.group.file_id for group in view.groups.get(path, ())) for path in paths}


def check_not_planned(groups: Groups, context: ActionContext, operation: str, *, compactions: bool) -> None:
    """Raise WriteConflict when a pending clustering (or compaction) is going to rewrite one of the groups.

    Its result would bring the rows back: a clustering writes them to new file groups.
    """
    pending_groups = groups_in_pending_plans(context.meta, COMPACTIONS if compactions else ())
    planned_groups = sorted(group for group in pending_groups if group.file_id in groups.get(group.partition_path, ()))
    if planned_groups:
        services = "compaction, log compaction or clustering" if compactions else "clustering"
        raise WriteConflict(
            f"{context.meta.storage.root}: {operation.lower()} can't replace {planned_groups[0].file_id} in "
            f"{planned_groups[0].partition_path!r}, because a pending {services} is going to rewrite it. Nothing was "
            "changed; run the plan or roll it back, then write again."
        )


def replacing(body: CommitMetadata, groups: Groups) -> CommitMetadata:
    """The body of the completed file. Partitions without files are named too, as Hudi does."""
    return replace(body, partition_to_replace_file_ids=dict(groups))


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
    """`writing`: the path of the rows to files. `matches`: True for partitions to overwrite without rows, too."""

    writing: Action[PlanT]
    operation: str
    kind: ActionKind = field(default=ActionKind.REPLACECOMMIT)
    matches: Callable[[str], bool] | None = None

    def schedule(self, context: ActionContext) -> Schedule:
        schedule = self.writing.schedule(context)
        if self._named(context) is not None or self.matches is not None:
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
        """The partitions to replace for any rows, () for all; None if the rows decide."""
        if self.operation == OperationType.INSERT_OVERWRITE_TABLE:
            return ()
        return context.options.replacing.static_partitions or None

    def _replaced(self, paths: Iterable[str], context: ActionContext) -> Groups:
        """The replaced groups, when rows go to the partitions `paths`. Raises ConfigError for rows of unnamed
        partitions.
        """
        if self.matches is not None:
            everything, written = existing_groups(context), set(paths)
            return {path: ids for path, ids in everything.items() if path in written or self.matches(path)}
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
