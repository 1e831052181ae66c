"""Rewrites the rows of some file groups: one replacecommit has their new files and replaces the groups.

Rows are read as a normal query would read them; damaged log bytes are skipped if the options allow it. The table's key
generator decides their partitions, which must be in `targets`. If a write completes after the rows were read and before
the commit begins, the repair ends with a WriteConflict; later writes to the same groups are conflicts as for every
overwrite. Buckets of consistent hashing get new nodes: the ring of each partition changes with the commit, as by a
resize.
Source: docs/repairs.md; docs/formats/table-services.md, "Replaced file groups"; docs/formats/indexes.md, "Consistent
hashing".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from pyhudi.actions.action import ActionContext, PreparedWrite, Schedule
from pyhudi.actions.clustering_updates import groups_in_pending_plans
from pyhudi.actions.partitioner import SlotPlan
from pyhudi.actions.runner import run
from pyhudi.actions.writes.insert_overwrite import Groups, InsertOverwrite
from pyhudi.actions.writes.keyed_write import KeyedWrite, Rules
from pyhudi.engine.local import in_this_process
from pyhudi.engine.local_frame import ReopenedRows
from pyhudi.errors import ConfigError, TableError, WriteConflict
from pyhudi.formats.hash_ring import HashRing
from pyhudi.index.bucket import bucket_of_file_id
from pyhudi.index.chosen import chosen_index, index_class
from pyhudi.index.consistent_bucket import RenewedBuckets, load_ring, mark_ring, renewed_ring, save_ring
from pyhudi.index.key_lookup import GlobalSimpleIndex
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStatus
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.filenames import hashing_folder
from pyhudi.model.instant import COMPACTIONS, ActionKind, Instant, State
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.timeline import Timeline
from pyhudi.queries.plan import ReadPlan, plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.read_slice import ReadSlice
from pyhudi.queries.snapshot import read_slice
from pyhudi.transaction.commit import after_commit
from pyhudi.view.archived_times import CompletedWrites

__all__ = ["Rewriting", "grouped", "plan_rows"]

Rows = Callable[[], Iterator[pa.RecordBatch]]


def plan_rows(context: ActionContext, columns: Iterable[str] | None = None) -> ReadPlan:
    """The table's rows, by file slice; `columns` None: all of them. Files are listed in folders."""
    options, meta = context.options, context.meta
    names = None if columns is None else tuple(columns)
    query = Query(columns=names, merger_classes=options.merger_classes, damage=options.damage, use_metadata=False)
    return plan_snapshot(meta, query)


def grouped(reads: Iterable[ReadSlice]) -> Groups:
    """The file groups of slices, by partition."""
    groups: dict[str, tuple[str, ...]] = {}
    for read in reads:
        group = read.file_slice.group
        groups[group.partition_path] = (*groups.get(group.partition_path, ()), group.file_id)
    return groups


@dataclass(frozen=True)
class Rewriting:
    """Rows that replace those of some file groups.

    `read`: the plan by which they were read, of the whole table; `reads`: its slices whose groups are replaced;
    `change`: changes a batch of them, meta columns first. `combines`: the merge rules choose one row for each key, in
    its partition or, if `everywhere`, in the table. `targets`: the partitions that the rows may go to.
    """

    read: ReadPlan
    reads: tuple[ReadSlice, ...]
    targets: frozenset[str]
    change: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None
    combines: bool = False
    everywhere: bool = False
    rows: Rows | None = None

    def run(self, context: ActionContext) -> str:
        """Write and commit the rows. Returns the instant time. Raises WriteConflict, ConfigError."""
        check_no_buckets(self.read, context)
        config = context.meta.config
        schema = pa.schema([field for field in self.read.schema if field.name not in META_COLUMNS])
        stream = self.rows or self._rows_of(context.meta)

        def opened() -> pa.RecordBatchReader:
            return pa.RecordBatchReader.from_batches(schema, (batch.select(schema.names) for batch in stream()))

        frame, engine = in_this_process(ReopenedRows(schema, opened))
        rings = self._rings(context)
        settings = chosen_index(context.options, config.record_key_fields).settings
        index = RenewedBuckets(settings, rings) if rings else GlobalSimpleIndex(settings) if self.everywhere else None
        rules = Rules(
            OperationType.INSERT_OVERWRITE,
            tags=False,
            combines=self.combines,
            match_keys=False,
            moves=False,
            replaces=True,
        )
        action = _ReplaceGroups(
            KeyedWrite(frame, rules, index=index),
            OperationType.INSERT_OVERWRITE,
            groups=grouped(self.reads),
            targets=self.targets,
            read=context.meta.timeline.commits(),
            rings=rings,
        )
        time = run(action, replace(context, engine=engine)).instant_time
        if rings:
            instant = Instant(time, ActionKind.REPLACECOMMIT, State.COMPLETED)
            after_commit("marking its hash rings", instant, context, partial(self._mark, rings, time, context))
        return time

    def _mark(self, rings: Iterable[str], time: str, context: ActionContext) -> None:
        for path in rings:
            mark_ring(context.meta.storage, path, time, context.meta.config.table_version)

    def _rings(self, context: ActionContext) -> dict[str, HashRing]:
        """Partition path → its ring after the commit; none for other indexes."""
        if not index_class(context.options).lists_file_groups:
            return {}
        storage = context.meta.storage
        completed = CompletedWrites(context.meta)
        rings = {}
        for path, file_ids in grouped(self.reads).items():
            ring = load_ring(storage, path, completed)
            if ring is None:
                raise TableError(
                    f"{storage.root}: partition {path!r} has no hash ring; the table was written with another index."
                )
            rings[path] = renewed_ring(ring, file_ids, context.clock.new_uuid)
        return rings

    def _rows_of(self, meta: MetaClient) -> Rows:
        def stream() -> Iterator[pa.RecordBatch]:
            for read in self.reads:
                for batch in read_slice(self.read, meta.storage, read):
                    yield batch if self.change is None else self.change(batch)

        return stream


@dataclass(frozen=True)
class _ReplaceGroups(InsertOverwrite[SlotPlan]):
    """An overwrite that replaces exactly these file groups. `read`: the commits that the rows were read from; `rings`:
    those of consistent hashing after it, by partition path.
    """

    groups: Groups | None = None
    targets: frozenset[str] = frozenset()
    read: Timeline | None = None
    rings: Mapping[str, HashRing] = field(default_factory=dict)

    def schedule(self, context: ActionContext) -> Schedule:
        if self.read is not None and context.meta.timeline.commits() != self.read:
            raise WriteConflict(
                f"{context.meta.storage.root}: another write completed after the rows of the repair were read. Nothing "
                "was changed; repair again."
            )
        planned = groups_in_pending_plans(context.meta, COMPACTIONS)
        for path, file_ids in (self.groups or {}).items():
            file_group = next((file_id for file_id in file_ids if FileGroupId(path, file_id) in planned), None)
            if file_group is not None:
                raise WriteConflict(
                    f"{context.meta.storage.root}: a pending plan is going to rewrite the file group {file_group} in "
                    f"{path!r}. Nothing was changed; run the plan (table.inspect.health() names it) or roll it back, "
                    "then repair again."
                )
        return super().schedule(context)

    def summarise(
        self, prepared: PreparedWrite[SlotPlan], statuses: tuple[WriteStatus, ...], context: ActionContext
    ) -> CommitMetadata:
        body = super().summarise(prepared, statuses, context)
        for ring in self.rings.values():  # they count as soon as the commit is complete
            save_ring(context.meta.storage, replace(ring, instant=prepared.instant.requested_time))
        return body

    def _replaced(self, paths: Iterable[str], context: ActionContext) -> Groups:
        unexpected = sorted(set(paths) - self.targets)
        if unexpected:
            raise ConfigError(
                f"{context.meta.storage.root}: by its columns a row goes to the partition {unexpected[0]!r}, not to "
                f"{', '.join(map(repr, sorted(self.targets)[:3]))}. Nothing was changed; give the options of the key "
                "generator that the table was written with."
            )
        return self.groups or {}


def check_no_buckets(read: ReadPlan, context: ActionContext) -> None:
    """Raise ConfigError for a table whose file groups look like buckets if the options do not describe the buckets:
    the new file groups would not be buckets.
    """
    file_ids = [one.file_slice.group.file_id for one in read.slices]
    looks_so = bool(file_ids) and all(bucket_of_file_id(one) is not None and one < "0001" for one in file_ids)
    looks_so = looks_so or bool(file_ids and context.meta.storage.list(hashing_folder("")))
    if (
        looks_so
        and "hoodie.index.type" not in context.options.explicit
        and not index_class(context.options).hashes_keys
    ):
        raise ConfigError(
            f"{context.meta.storage.root}: the file groups of the table look like buckets of an index. Give the "
            "options that it is written with, hoodie.index.type=BUCKET and those of the buckets, or another "
            "hoodie.index.type if they are no buckets. Nothing was changed."
        )
