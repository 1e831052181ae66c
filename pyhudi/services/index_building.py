"""Indexes built while writers go on: a plan on the timeline, which any process may execute.

    schedule   lock: definition → <T>.indexing.requested → empty file groups → the table's properties list the partition
               as being built: from now on every instant writes to its file groups, which no reader uses
    execute    lock: <T>.indexing.inflight; the index is built from the newest state of the table
               no lock: the table is read, the records are kept in local files
               lock: base files → the properties list the partition → <T>.indexing

Records that writers add to the file groups during the build lie above the base files, in the order of the instants, and
the base files leave these keys out. An instant that was pending when the plan was made may not have written to them: if
one has completed since, or one that was read has been undone, the table is read again. After a dead builder the next
one starts over: only the inflight file is on storage.
Source: docs/formats/metadata-table.md, "Built while writers go on".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.action import ActionContext
from pyhudi.actions.metadata_participant import METADATA_TABLE
from pyhudi.errors import (
    ConfigError,
    CorruptFile,
    MetadataTableDamaged,
    PathNotFound,
    TableError,
    WriteConflict,
)
from pyhudi.formats.timeline.plans import encode_index_plan
from pyhudi.interrupts import uninterrupted
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.build import add_partition
from pyhudi.metadata.index_definitions import read_index_definitions, write_index_definitions
from pyhudi.metadata.initialization import begin_partition, fill_partition
from pyhudi.metadata.partitions.registry import PARTITIONS
from pyhudi.metadata.schema import file_group_id, kind_of
from pyhudi.metadata.sorted_runs import spilled
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.plans import IndexPlan
from pyhudi.model.table_format import TableFormat
from pyhudi.services.indexes import IndexInfo, IndexRequest, index_info, prepared
from pyhudi.transaction.commit import commit_locked
from pyhudi.transaction.instants import drop, request
from pyhudi.transaction.plans import Running

__all__ = ["MAX_READINGS", "build_waiting", "pending_index_plans", "run_index_plan", "schedule_index"]

# How often a builder reads the table because writes that began before it complete: each time there are fewer.
MAX_READINGS = 5
_Groups = Mapping[str, Iterable[pa.Table]]


def schedule_index(context: ActionContext, index: IndexRequest) -> Instant:
    """Put the plan of an index on the timeline; from then on writers write to the index.

    Raises: ConfigError when the table can't have the index, or not built in this way.
    """
    with context.locked():
        now, definition = prepared(context, index)
        meta, name = now.meta, index.partition
        if not meta.config.format.builds_beside_writers:
            raise ConfigError(
                f"{meta.storage.root}: indexes are built while writers go on from table version "
                f"{TableFormat.builds_beside_writers.first} on."
            )
        before = read_index_definitions(meta.storage)
        if definition is not None:
            write_index_definitions(meta.storage, before.merged([definition]))
        newest = meta.timeline.last_commit()
        plan = IndexPlan((name,), "" if newest is None else newest.requested_time)
        requested = request(ActionKind.INDEXING, encode_index_plan(plan), now)
        try:
            table = _metadata_table(meta.reload())
            count = PARTITIONS[kind_of(name)].define(table, name, now.options.metadata)
            if count is None:
                raise ConfigError(
                    f"{meta.storage.root}: a record index of keys that are unique in their partition is not built "
                    f"while writers go on. Make it with create_index alone."
                )
            begin_partition(table, name, [file_group_id(name, number) for number in range(count)])
        except BaseException:
            with uninterrupted(), suppress(Exception):  # the original error says more
                drop(requested, meta)
                write_index_definitions(meta.storage, before)
            raise
        return requested


def pending_index_plans(meta: MetaClient) -> dict[str, IndexPlan]:
    """Instant time → plan of the indexes begun but not built, oldest first."""
    building = meta.config.metadata_partitions_inflight
    plans: dict[str, IndexPlan] = {}
    for instant in meta.timeline.pending().of([ActionKind.INDEXING]):
        with suppress(CorruptFile):  # its writer died before the plan was complete
            plan = meta.reader.index_plan(instant)
            if len(plan.partitions) == 1 and plan.partitions[0] in building:
                plans[instant.requested_time] = plan
    return plans


def build_waiting(context: ActionContext) -> tuple[IndexInfo, ...]:
    """Execute all pending plans, the oldest first. See `run_index_plan`."""
    return tuple(run_index_plan(context, instant_time) for instant_time in pending_index_plans(context.meta))


def run_index_plan(context: ActionContext, instant_time: str) -> IndexInfo:
    """Build the index of a pending plan.

    Raises: TableError when there is no such plan; WriteConflict when another process builds it, or the table changed
            too often during the build. After any error the plan is kept for the next run.
    """

    # Writers go on, so failed writes are treated as LAZY.
    with Running(_WaitingIndex(), context, instant_time, beats=True) as (inflight, name):
        for _ in range(MAX_READINGS):
            info = _attempt(context.reloaded(), inflight, name)
            if info is not None:
                return info
        raise WriteConflict(
            f"{context.meta.storage.root}: while the index {name} was built, writes that had begun before it "
            f"completed, or others were undone, {MAX_READINGS} times. Its plan {instant_time} is pending; build it "
            f"again."
        )


class _WaitingIndex:
    """The plans of indexes, for `transaction.plans.Running`; a plan is the name of its partition."""

    def find(self, instant_time: str, now: ActionContext) -> tuple[Instant, str]:
        plans = pending_index_plans(now.meta)
        instant = now.meta.timeline.find(instant_time, ActionKind.INDEXING)
        if instant_time not in plans or instant is None:
            raise TableError(
                f"{now.meta.storage.root}: no index waits to be built as of {instant_time}. Waiting are: "
                f"{', '.join(plans) or 'none'}."
            )
        return instant, plans[instant_time].partitions[0]

    def check_dead(self, instant: Instant, now: ActionContext) -> None:
        if not now.is_dead(instant.requested_time):
            raise WriteConflict(
                f"{now.meta.storage.root}: another process is building the index of {instant.requested_time}; its "
                f"heartbeat is fresh. Wait for it, or build it again when the heartbeat has expired."
            )

    def check(self, instant: Instant, name: str, now: ActionContext) -> None:
        """Do nothing: the check was made with the plan."""

    def delete_files(self, instant: Instant, name: str, now: ActionContext) -> None:
        """Do nothing: records are on the builder's machine until the index is complete."""


def _attempt(now: ActionContext, inflight: Instant, name: str) -> IndexInfo | None:
    """Build from the table as it is now; None when the table must be read again."""
    table = _metadata_table(now.meta)
    count = len(table.slices(name))
    with TemporaryDirectory(prefix="hudi-index-") as folder:
        try:
            groups = spilled(PARTITIONS[kind_of(name)].records(table, name, now.options.metadata, count), folder)
        except PathNotFound:
            if now.meta.is_current():
                raise
            return None  # a clean has deleted the files being read
        with now.locked():
            return _finish(now, inflight, name, groups)


def _finish(began: ActionContext, inflight: Instant, name: str, groups: _Groups) -> IndexInfo | None:
    """Complete the index under the lock; None when the table must be read again."""
    now = began.reloaded()
    meta = now.meta
    is_built = name in meta.config.metadata_partitions  # by a write that had to rebuild all partitions
    if not is_built:
        if name not in meta.config.metadata_partitions_inflight:
            raise WriteConflict(f"{meta.storage.root}: the index {name} was dropped while it was built.")
        if not _is_enough(began.meta, meta, inflight.requested_time):
            return None
        table = _metadata_table(meta)
        if _has_archived_logs(table, name):
            add_partition(table, name, now.options.metadata)
        else:
            fill_partition(table, name, _without(groups, table.records(name).column("key")))
    newest = meta.timeline.last_commit()
    plan = IndexPlan((name,), "" if newest is None else newest.requested_time)
    commit_locked(inflight, now, lambda _: plan, participant=METADATA_TABLE)
    return index_info(meta.reload(), name)


def _has_archived_logs(table: MetadataTable, name: str) -> bool:
    """True if instants that wrote to the file groups were archived. The base files' instant begins with 14 zeros, so it
    is the first on the timeline, and readers would treat the archived ones as uncommitted.
    """
    instants = {instant.requested_time for instant in table.meta.timeline}
    return any(log.instant_time not in instants for file_slice in table.slices(name) for log in file_slice.log_files)


def _without(groups: _Groups, keys: pa.ChunkedArray) -> dict[str, Iterator[pa.Table]]:
    """The records without the keys of newer ones: counts of two records of one file would be added."""

    def without_keys(records: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in records:
            yield table.filter(pc.invert(pc.is_in(table.column("key"), keys)))

    return {file_id: without_keys(records) for file_id, records in groups.items()}


def _is_enough(read: MetaClient, now: MetaClient, planned: str) -> bool:
    """True if the read table has all instants whose writers may not have known the index, and none undone since."""
    before, after = _completed(read), _completed(now)
    since = now.timeline.active_since or ""
    rolled_back = any(time not in after and time >= since for time in before)
    return not rolled_back and not any(time < planned for time in after - before)


def _completed(meta: MetaClient) -> frozenset[str]:
    return frozenset(i.requested_time for i in meta.timeline if i.is_completed and i.action.is_commit)


def _metadata_table(meta: MetaClient) -> MetadataTable:
    table = MetadataTable.open(meta)
    if table is None:
        raise MetadataTableDamaged(f"{meta.storage.root}: the metadata table has no partition 'files'.")
    return table
