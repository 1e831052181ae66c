"""The common path of upsert, insert and delete: rows get keys, locations and slots; each slot is one write task.

    frame → keys → (one row per key) → location → counts → slots → files

`Rules` holds the differences between the three.
Source: docs/architecture.md, "How a table changes"; docs/formats/indexes.md, "Finding keys";
docs/formats/table-services.md, "Where inserts go".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from pyhudi.actions.action import ActionContext, PreparedWrite, Schedule
from pyhudi.actions.clustering_updates import groups_closed_to_inserts
from pyhudi.actions.partitioner import LogPlan, RowCount, SlotPlan, plan_slots, profile_of
from pyhudi.actions.rows import (
    KEYED_FIELDS,
    AddKeys,
    CombineRows,
    KeepUnknown,
    MoveRows,
    batch_by_partition,
    delete_flag_columns,
    input_rules,
    marker_columns,
    slotted,
    table_rules,
)
from pyhudi.actions.table_keys import PROBE_TIME, table_keygen
from pyhudi.actions.writes.delete_keys import delete_index, delete_keygen, deleted_rows
from pyhudi.actions.writes.index_lookup import appended_keys, lookup_of, table_index
from pyhudi.actions.writes.preparation import (
    commit_body,
    constrained,
    data_columns,
    log_options,
    schedule_delete,
    schedule_write,
    sizing,
    write_spec,
)
from pyhudi.actions.writes.slot_work import WriteSlot, are_quick
from pyhudi.engine.base import Frame, TaskContext
from pyhudi.errors import ConfigError
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.filegroup.write.status import STATUS_SCHEMA, from_table
from pyhudi.index.base import Index, PartitionRows
from pyhudi.index.key_join import count_groups
from pyhudi.index.key_lookup import BloomIndex
from pyhudi.keygen import KeyGenerator
from pyhudi.merge.rules import MergeRules
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStatus
from pyhudi.model.file_group import BaseFile, FileGroupId
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.keys import LOCATION, RECORD_KEY, SLOT
from pyhudi.model.options import WriteOptions
from pyhudi.view.file_system_view import FileSystemView
from pyhudi.view.pending_plans import pending_compactions, slices_to_append_to
from pyhudi.warnings import warn_caller

__all__ = ["KeyedWrite", "Rules", "delete", "insert", "log_plan", "upsert"]

_COMMIT_TIME = "COMMIT_TIME_ORDERING"
_NO_UUID = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one operation.

    `tags`: look up the keys in the table. `combines`: one row per key. `deletes`: every row is a delete and only its
    key counts. `match_keys`: rows replace stored rows of their key. `refuse_known`, `drop_known`: rows whose key is in
    the table are an error, or left out (insert with a policy on duplicates). `drop_unknown`: rows with new keys change
    nothing. `moves`: a global index may move a row to another partition, if its options say so; `refuses_moves`: such a
    row is an error instead. `replaces`: rows go to new base files, which replace the old ones.
    """

    operation: str
    tags: bool = True
    combines: bool = True
    deletes: bool = False
    match_keys: bool = True
    drop_known: bool = False
    refuse_known: bool = False
    drop_unknown: bool = False
    moves: bool = True
    refuses_moves: bool = False
    replaces: bool = False


def upsert(frame: Frame, options: WriteOptions) -> KeyedWrite:
    """Rows replace the stored rows of their key, by the table's merge mode; new keys are inserted.

    Rows whose `_hoodie_is_deleted` is true delete their key. With `hoodie.combine.before.upsert=false` the caller
    promises that no key occurs twice; rows that break this are all inserted when their key is new, and refused when it
    is stored. Source: docs/formats/merging.md, "Deletes", "Two versions of a key".
    """
    return KeyedWrite(frame, Rules(OperationType.UPSERT, combines=options.combine_before_upsert))


def insert(frame: Frame, options: WriteOptions, *, operation: str = OperationType.INSERT) -> KeyedWrite:
    """Rows are added without looking up their keys; small files are filled first.

    `hoodie.datasource.insert.dup.policy` drop leaves out rows whose key the table holds, fail refuses them. Duplicates
    inside the batch stay unless `hoodie.combine.before.insert` is set. `operation`: the word for the commit, which a
    bulk insert into buckets changes. Source: docs/formats/table-services.md, "Where inserts go".
    """
    policy = options.insert_dup_policy
    combines = options.combine_before_insert or (
        operation == OperationType.BULK_INSERT and options.combine_before_bulk_insert
    )
    rules = Rules(
        operation,
        tags=policy in ("drop", "fail"),
        combines=combines,
        match_keys=False,
        drop_known=policy == "drop",
        refuse_known=policy == "fail",
    )
    return KeyedWrite(frame, rules)


def delete(frame: Frame) -> KeyedWrite:
    """The rows name keys, and the table's rows with them are deleted; unknown keys change nothing.

    The frame needs only the key and partition columns. Without the partition columns, keys are looked up everywhere
    (`delete_keys.py`). Source: docs/formats/merging.md, "Deletes".
    """
    return KeyedWrite(frame, Rules(OperationType.DELETE, deletes=True))


@dataclass(frozen=True, slots=True)
class KeyedWrite:
    """An action that brings rows to file groups by their keys. `index`: instead of the one that the options name."""

    frame: Frame
    rules: Rules
    kind: ActionKind = field(default=ActionKind.COMMIT)
    index: Index | None = None

    @property
    def operation(self) -> str:
        return self.rules.operation

    def schedule(self, context: ActionContext) -> Schedule:
        keygen = self._keygen(PROBE_TIME, context)
        if self._index(context).lists_file_groups and self.rules.replaces:
            raise ConfigError(
                f"{context.meta.storage.root}: {self.operation.lower()} replaces file groups, and the new ones of "
                "consistent hashing have the same ids, so the new rows would not be seen. Delete rows and "
                "upsert instead."
            )
        if self.rules.deletes:
            return schedule_delete(self.frame, keygen, context)
        delete_flag_columns(context.engine.schema(self.frame))
        # Readers merge an insert in a log file with the stored row of its key.
        in_logs = context.meta.config.is_merge_on_read and self._index(context).places_inserts
        keeps_stored = (self.rules.match_keys or in_logs) and not self.rules.replaces
        return schedule_write(self.frame, keygen, context, keeps_stored=keeps_stored)

    def prepare(self, schedule: Schedule, instant: Instant, context: ActionContext) -> PreparedWrite[SlotPlan]:
        engine = context.engine
        keygen = self._keygen(instant.requested_time, context)
        spec = write_spec(schedule, keygen, instant, context)
        if self.rules.deletes:
            # The delete operation names keys: its deletes win against any stored ordering value.
            spec = replace(spec, merge_mode=_COMMIT_TIME, rules=None)
        with_keys = engine.cache(self._with_keys(keygen, context))
        try:
            return self._placed(with_keys, keygen, spec, schedule, instant, context)
        except BaseException:
            engine.release(with_keys)  # a row without a key, for example, is noticed when the first frame is read
            raise

    def _placed(
        self,
        with_keys: Frame,
        keygen: KeyGenerator,
        spec: WriteSpec,
        schedule: Schedule,
        instant: Instant,
        context: ActionContext,
    ) -> PreparedWrite[SlotPlan]:
        """The tasks for rows with keys."""
        engine = context.engine
        batch = batch_by_partition(engine, with_keys)
        index = self._index(context)
        tags = self.rules.tags or index.places_inserts
        if self.rules.replaces:
            view = FileSystemView({})  # rows find none of the files that they replace
        else:
            view = FileSystemView.load(context.meta, partitions=None if tags and index.is_global else batch)
        cached: tuple[Frame, ...] = (with_keys,)
        if tags:
            rows, counts, cached = self._tagged(with_keys, index, batch, view, keygen, context)
        else:
            rows = engine.extend(with_keys, [RECORD_KEY], _no_location, _LOCATION_SCHEMA)
            counts = {(path, None): part.rows for path, part in batch.items()}
        row_counts = [RowCount(path, file_id, rows_) for (path, file_id), rows_ in counts.items()]
        plan = self.planned(row_counts, view, index, instant, context)
        profile = profile_of(row_counts, plan, self.operation)
        not_found = sum(c.rows for c in row_counts if (c.partition_path, c.file_id) not in plan.updates)
        frame = slotted(rows, plan, engine)
        missing = not_found if self.rules.deletes else 0
        combined = sum(part.combined for part in batch.values())
        return PreparedWrite(
            instant, schedule, spec, profile, frame, plan, cached, not_found=missing, combined=combined
        )

    def execute(self, prepared: PreparedWrite[SlotPlan], context: ActionContext) -> tuple[WriteStatus, ...]:
        plan = prepared.plan
        if not plan.tasks:
            return ()
        assert prepared.frame is not None
        combining = self._combining(context) if self.rules.combines else None
        options = context.options
        logs = log_options(options)
        fields = context.meta.config.record_key_fields
        appended = appended_keys(prepared.spec, context)
        work = WriteSlot(
            prepared.spec, combining, self.rules.match_keys, context.clock, logs, key_fields=fields,
            appended=appended, deleted=deleted_rows(prepared.spec, context) if self.rules.deletes else None,
            is_quick=are_quick(plan.tasks, prepared.spec.storage),
        )  # fmt: skip
        rows = context.engine.map_groups(prepared.frame, SLOT, tuple(enumerate(plan.tasks)), work, STATUS_SCHEMA)
        statuses = tuple(from_table(context.engine.collect(rows)))
        warning = next((status.warning for status in statuses if status.warning), "")
        if warning:
            warn_caller(f"{context.meta.storage.root}: {warning}")
        # Where the index does not know keys, a file may be rewritten though it lacks the rows' keys.
        return () if self.rules.deletes and not any(map(_deletes, statuses)) else statuses

    def summarise(
        self, prepared: PreparedWrite[SlotPlan], statuses: tuple[WriteStatus, ...], context: ActionContext
    ) -> CommitMetadata:
        return commit_body(self.operation, prepared.schedule, statuses, context)

    def _keygen(self, instant_time: str, context: ActionContext) -> KeyGenerator:
        if self.rules.deletes:
            return delete_keygen(context.engine.schema(self.frame), context, instant_time)
        return table_keygen(context, instant_time)

    def _index(self, context: ActionContext) -> Index:
        if self.index is not None:
            return self.index
        return delete_index(context.engine.schema(self.frame), context) if self.rules.deletes else table_index(context)

    def _with_keys(self, keygen: KeyGenerator, context: ActionContext) -> Frame:
        """Rows with KEYED_FIELDS; a delete keeps nothing else."""
        engine = context.engine
        rows = self.frame if self.rules.deletes else constrained(data_columns(self.frame, context), context)
        schema = engine.schema(rows)
        column_names = dict.fromkeys(schema.names)
        columns = [name for name in keygen.input_columns or column_names if name in column_names]
        merging = table_rules(context)
        flags = [] if self.rules.deletes else [*delete_flag_columns(schema), *marker_columns(schema, merging)]
        flag = [c for c in flags if c not in columns]
        work = AddKeys(keygen, self.rules.deletes, merging)
        with_keys = engine.extend(rows, [*columns, *flag], work, pa.schema(KEYED_FIELDS))
        if self.rules.deletes:
            with_keys = engine.select(with_keys, [column.name for column in KEYED_FIELDS])
        if self.rules.combines and self._index(context).is_global:
            # With a global index rows of one key but different partitions must meet before they are placed; otherwise
            # rows of one key meet in their slot.
            work_ = CombineRows((RECORD_KEY,), self._combining(context), counts=True)
            schema = work_.schema(engine.schema(with_keys))
            with_keys = engine.map(engine.arrange(with_keys, partition_by=[RECORD_KEY]), work_, schema)
        return with_keys

    def _combining(self, context: ActionContext) -> MergeRules:
        return MergeRules(_COMMIT_TIME) if self.rules.deletes else input_rules(context)

    def _tagged(
        self,
        with_keys: Frame,
        index: Index,
        batch: Mapping[str, PartitionRows],
        view: FileSystemView,
        keygen: KeyGenerator,
        context: ActionContext,
    ) -> tuple[Frame, Mapping[tuple[str, str | None], int], tuple[Frame, ...]]:
        """Rows with LOCATION, their number for each file group, and the frames that the engine caches."""
        engine, merging = context.engine, table_rules(context)
        only_live = self.rules.drop_known or self.rules.refuse_known
        if only_live and index.places_inserts:
            # This index says where a key belongs, even when no row is stored under it.
            with_keys = self._unknown(with_keys, batch, view, keygen, context)
            only_live = False
        may_move = index.settings.update_partition_path and not self.rules.deletes
        moves, refuses = may_move and self.rules.moves, may_move and self.rules.refuses_moves
        fields = merging.ordering_fields if index.is_global and moves and merging.by_ordering else ()
        lookup = lookup_of(index, batch, view, keygen, context, ordering_fields=fields, only_live=only_live)
        tagged = index.tag(with_keys, lookup)
        rows, counts = tagged.rows, tagged.counts
        if index.is_global:
            schema = pa.schema([*engine.schema(with_keys), pa.field(LOCATION, pa.string())])
            rows = engine.map(rows, MoveRows(schema, moves, merging, fields, refuses), schema)
        if only_live:
            rows = engine.map(rows, KeepUnknown(self.rules.refuse_known), engine.schema(rows))
            counts = None
        if counts is not None:
            return rows, counts, (with_keys, *tagged.cached)
        rows = engine.cache(rows)
        try:
            counts = count_groups(engine, rows)
        except BaseException:
            for frame in (rows, *tagged.cached):
                engine.release(frame)
            raise
        return rows, counts, (rows, with_keys, *tagged.cached)

    def _unknown(
        self,
        with_keys: Frame,
        batch: Mapping[str, PartitionRows],
        view: FileSystemView,
        keygen: KeyGenerator,
        context: ActionContext,
    ) -> Frame:
        """The rows whose key no file of their partition holds."""
        engine, schema = context.engine, context.engine.schema(with_keys)
        index = BloomIndex()
        lookup = lookup_of(index, batch, view, keygen, context, ordering_fields=(), only_live=True)
        tagged = index.tag(with_keys, lookup).rows
        rows = engine.map(tagged, KeepUnknown(self.rules.refuse_known), engine.schema(tagged))
        return engine.select(rows, schema.names)

    def planned(
        self, counts: list[RowCount], view: FileSystemView, index: Index, instant: Instant, context: ActionContext
    ) -> SlotPlan:
        """Write tasks for rows with known locations. `view`: of their partitions."""
        paths = {count.partition_path for count in counts}
        appends = context.meta.config.is_merge_on_read and not self.rules.replaces
        base_files: dict[str, tuple[BaseFile, ...]] = {path: view.base_files(path) for path in paths}
        updated = [FileGroupId(c.partition_path, c.file_id) for c in counts if c.file_id is not None]
        closed = frozenset[FileGroupId]() if self.rules.replaces else groups_closed_to_inserts(updated, context)
        return plan_slots(
            counts,
            base_files,
            sizing(context, inserts=any(count.file_id is None for count in counts)),
            closed=closed,
            new_file_id=lambda location: index.new_file_id(location, _new_uuid(context)),
            drop_inserts=self.rules.deletes or self.rules.drop_unknown,
            logs=log_plan(paths, view, instant, context) if appends else None,
        )


def _deletes(status: WriteStatus) -> bool:
    """True if the task deleted rows from its file group. For log files only readers can tell."""
    return status.stat.num_deletes > 0 or status.stat.log_version is not None


def _new_uuid(context: ActionContext) -> str:
    """A UUID for the names of file groups. Non-blocking writers must give a bucket the same name."""
    return _NO_UUID if context.options.concurrency.is_non_blocking else context.clock.new_uuid()


def log_plan(paths: set[str], view: FileSystemView, instant: Instant, context: ActionContext) -> LogPlan:
    """The planning's view of the slices in these partitions of a merge-on-read table."""
    compacting = pending_compactions(context.meta)
    own_slices = context.meta.config.format.has_own_log_files
    return LogPlan(
        {path: slices_to_append_to(view, path, compacting, context.meta) for path in paths},
        frozenset(compacting),
        context.options.small_file_candidates_max,
        instant.requested_time if own_slices else None,
    )


_LOCATION_SCHEMA = pa.schema([pa.field(LOCATION, pa.string())])


def _no_location(context: TaskContext, batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows, pa.string())], schema=_LOCATION_SCHEMA)
