"""ChangeRows: the action of update, delete by a filter, and merge.

Rows are read as of the moment when the action's instant is drawn. A write that completes in the meantime in one of the
same file groups is a conflict, so no other write is lost.

    no source    the slices that the filter selects → each is read, changed and written by one task
    source       upsert's path for the source's rows; the task of a slot reads its slice and pairs the rows

Changed rows carry the ordering value of the stored row unless they set it, so that they win the tie against it. On
merge-on-read tables an update of some columns may write only those (see `_partial_columns`).
Source: docs/formats/log.md, "Header", "Partial blocks"; docs/formats/merging.md, "Two versions of a key",
"Partial updates".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo

import pyarrow as pa

from pyhudi.actions.action import ActionContext, PreparedWrite, Schedule
from pyhudi.actions.changes.clauses import BoundClause, Clause, Columns, When, bound_clauses, loose_columns
from pyhudi.actions.changes.computed import CLAUSE, Computed, NumberedClause, placed_write
from pyhudi.actions.changes.slice_reader import SliceReader, StoredColumns
from pyhudi.actions.changes.slots import ChangeSlot, ChangeTask
from pyhudi.actions.clustering_updates import groups_closed_to_inserts
from pyhudi.actions.constraints import bound_constraints
from pyhudi.actions.partitioner import RowCount, SlotPlan, plan_slots, profile_of
from pyhudi.actions.rows import table_rules
from pyhudi.actions.table_keys import PROBE_TIME, is_automatic, table_keygen
from pyhudi.actions.writes.delete_keys import ordered_deletes
from pyhudi.actions.writes.index_lookup import appended_keys, stored_slices, table_index
from pyhudi.actions.writes.keyed_write import KeyedWrite, Rules, log_plan
from pyhudi.actions.writes.new_columns import check_source_names
from pyhudi.actions.writes.preparation import (
    check_keys,
    commit_body,
    log_options,
    schedule_more_columns,
    schedule_unchanged,
    sizing,
    write_spec,
)
from pyhudi.actions.writes.slot_work import WriteSlot
from pyhudi.engine.base import Frame
from pyhudi.errors import ConfigError, OutdatedRows
from pyhudi.expressions.binding import Where, bind
from pyhudi.expressions.where import parse_where
from pyhudi.filegroup.read.log_blocks import REWRITING
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.filegroup.write.status import STATUS_SCHEMA, from_table
from pyhudi.formats.avro.schema import without_meta
from pyhudi.merge.rules import MergeRules
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStatus
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.keys import SLOT
from pyhudi.queries.plan import ReadPlan, ReadSlice, plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.schema import read_schema
from pyhudi.view.committed_logs import damage_rules
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["ChangeRows"]

_LATEST = MergeRules("COMMIT_TIME_ORDERING")


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """`work`: for all slots; `tasks`: of the slots with source rows; `alone`: of those without."""

    work: ChangeSlot
    tasks: tuple[ChangeTask, ...]
    alone: tuple[ChangeTask, ...]


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """Change rows by clauses.

    `where`: only these rows of the table can change; `source`: rows to merge, with keys. `computed`: the source was
    computed from the table, and numbers in it select the clause of each row. `zone`: the zone of times without one;
    None: such times are refused where the column holds moments. `replaces`: source rows take the place of stored ones
    whatever their ordering values are. `combines`: of several source rows of a key one is taken, as in an upsert.
    `evolves`: the table gets the columns of the source that it lacks. `refuses_moves`: a row that a global index would
    move to another partition is an error; else it stays where it is.
    """

    clauses: tuple[Clause, ...] | tuple[NumberedClause, ...]
    where: Where = None
    source: Frame | None = None
    kind: ActionKind = field(default=ActionKind.COMMIT)
    computed: Computed | None = None
    zone: tzinfo | None = None
    replaces: bool = False
    combines: bool = False
    evolves: bool = False
    refuses_moves: bool = False

    @property
    def operation(self) -> str:
        return OperationType.DELETE if self._keys_suffice else OperationType.UPSERT

    @property
    def _keys_suffice(self) -> bool:
        """True if rows are only deleted, except by a merge: its deletes carry the row's ordering value, as in Hudi."""
        only_deletes = self.source is None if self.computed is None else self.computed.only_deletes
        return only_deletes and all(clause.verb == "delete" for clause in self.clauses)

    @property
    def _inserts(self) -> bool:
        return any(clause.when is When.NOT_MATCHED for clause in self.clauses)

    def schedule(self, context: ActionContext) -> Schedule:
        read = None if self.computed is None else self.computed.read
        if read is not None and context.meta.timeline.commits() != read:
            raise OutdatedRows(
                f"{context.meta.storage.root}: another write completed after the rows of this change were computed. "
                "Nothing was written; compute them again."
            )
        if self.source is not None and (self.computed is None or not self.computed.is_placed):
            self._check_source(self.source, context)
        schedule = self._schedule_columns(context)
        self._bound(schedule, context)
        bind(parse_where(self.where), read_schema(context.meta, None), self.zone)
        return schedule

    def _schedule_columns(self, context: ActionContext) -> Schedule:
        if self.source is None or not self.evolves:
            return schedule_unchanged(context)
        columns = context.engine.schema(self.source)
        return schedule_more_columns(pa.schema([field for field in columns if field.name != CLAUSE]), context)

    def _check_source(self, source: Frame, context: ActionContext) -> None:
        config, schema = context.meta.config, context.engine.schema(source)
        if is_automatic(config):
            raise ConfigError(
                f"{context.meta.storage.root}: the table has no key fields, so there is nothing to match rows by. "
                "update and delete with where= work; merge needs hoodie.datasource.write.recordkey.field."
            )
        found_anywhere = table_index(context).is_global and not self._inserts
        columns = (*config.record_key_fields, *(() if found_anywhere else config.partition_fields))
        column_names = set(schema.names)
        missing = [name for name in columns if name not in column_names and name.partition(".")[0] not in column_names]
        if missing:
            raise ConfigError(
                f"The source of the merge lacks {', '.join(missing)}: rows meet by key, within their partition unless "
                f"the index is global. Its columns: {', '.join(schema.names)}."
            )
        check_keys(table_keygen(context, PROBE_TIME), schema)
        if any(isinstance(clause, Clause) and clause.takes_all for clause in self.clauses) and not self.evolves:
            check_source_names(without_meta(schema), context)

    def prepare(self, schedule: Schedule, instant: Instant, context: ActionContext) -> PreparedWrite[ChangePlan]:
        plan = plan_snapshot(
            context.meta,
            Query(where=self.where, zone=self.zone, merger_classes=context.options.merger_classes, use_metadata=False),
        )
        if self.source is None:
            keygen = None if context.meta.config.populate_meta_fields else table_keygen(context, instant.requested_time)
            spec = write_spec(schedule, keygen, instant, context)
            prepared = PreparedWrite(instant, schedule, spec, None, None, SlotPlan((), {}, {}))
            reads: Sequence[ReadSlice] = plan.slices
        else:
            refuses = self._may_not_move(self.source, context)
            rules = Rules(
                self.operation, combines=False, drop_unknown=not self._inserts, moves=False, refuses_moves=refuses
            )
            write = KeyedWrite(self.source, rules, self.kind)
            if self.computed is not None and self.computed.is_placed:
                prepared = placed_write(write, self.computed, schedule, instant, context)
            else:
                prepared = write.prepare(schedule, instant, context)
            everything = any(clause.when is When.NOT_MATCHED_BY_SOURCE for clause in self.clauses)
            reads = [read for read in plan.slices if _group(read) not in prepared.plan.updates] if everything else ()
        return self._with_work(prepared, plan, reads, instant, context)

    def _may_not_move(self, source: Frame, context: ActionContext) -> bool:
        """True if a row that a global index would move to the partition of its columns is an error."""
        config, names = context.meta.config, context.engine.schema(source).names
        if not all(name.partition(".")[0] in names for name in config.partition_fields):
            return False
        # Where a path does not tell the values of its columns, all columns of the source include those of another path.
        takes_all = any(isinstance(c, Clause) and c.verb == "update" and c.values is None for c in self.clauses)
        loose = loose_columns(config, context.meta.table_schema(), is_global=True)
        is_loose = any(name.partition(".")[0] in loose for name in config.partition_fields)
        return self.refuses_moves or self.computed is not None or (takes_all and is_loose)

    def _with_work(
        self,
        prepared: PreparedWrite[SlotPlan],
        plan: ReadPlan,
        alone: Sequence[ReadSlice],
        instant: Instant,
        context: ActionContext,
    ) -> PreparedWrite[ChangePlan]:
        """The prepared write with the work of its tasks; `alone`: slices without source rows that may change."""
        plan_alone = _slots_of(alone, instant, context)
        by_key = prepared.plan
        first = len(by_key.tasks)
        slots = dict(by_key.updates)
        slots |= {group: first + slot for group, slot in plan_alone.updates.items()}
        by_group = {_group(read): read for read in plan.slices}
        clauses, rules = self._bound(prepared.schedule, context), table_rules(context)
        spec = prepared.spec
        schema = spec.schema
        if self._keys_suffice:
            # As in the delete operation, these deletes win against any stored ordering value.
            spec = replace(spec, merge_mode=_LATEST.mode, rules=None)
            schema = pa.schema([schema.field(name) for name in ordered_deletes(spec, context)])
        elif self.replaces and not context.meta.config.is_merge_on_read:
            spec = replace(spec, merge_mode=_LATEST.mode, rules=None)
        reading = replace(stored_slices(spec.key_generator, context), history=spec.history)
        if not context.options.damage.rewrite:
            reading = replace(reading, damage=damage_rules(context.meta, raises=True, advice=REWRITING))
        stored = SliceReader(reading, replace(plan, slices=(), merge=None))
        options = context.options
        # Constraints are checked on whole rows.
        constraints = bound_constraints(context.meta.config, context.meta.table_schema())
        in_logs = {} if constraints else _partial_columns(clauses, spec, rules, context)
        in_files = {} if constraints else _untouched_columns(clauses, spec, rules)
        is_placed = self.computed is not None and self.computed.is_placed
        work = ChangeSlot(
            WriteSlot(
                spec,
                _LATEST,
                True,
                context.clock,
                log_options(options),
                in_logs,
                unchanged=in_files,
                appended=appended_keys(spec, context),
            ),
            stored,
            clauses,
            schema,
            rules,
            self.source is not None,
            self.computed is not None,
            StoredColumns.of(clauses, spec, rules, in_files, in_logs, is_placed=is_placed),
            constraints=constraints,
            combines=self.combines,
            must_win=self.replaces and context.meta.config.is_merge_on_read and rules.by_ordering,
            arrives=-1 if self.computed is None else self.computed.arrives,
        )
        reads = {slot: by_group[group] for group, slot in slots.items() if group in by_group}
        tasks = tuple(
            ChangeTask(slot, task, reads.get(slot)) for slot, task in enumerate((*by_key.tasks, *plan_alone.tasks))
        )
        profile = prepared.profile or profile_of(_counts(alone), plan_alone, self.operation)
        changes = ChangePlan(work, tasks[:first], tasks[first:])
        return PreparedWrite(
            prepared.instant,
            prepared.schedule,
            spec,
            profile,
            prepared.frame,
            changes,
            prepared.cached,
            prepared.not_found,
            prepared.combined,
        )

    def execute(self, prepared: PreparedWrite[ChangePlan], context: ActionContext) -> tuple[WriteStatus, ...]:
        plan = prepared.plan
        engine, statuses = context.engine, []
        if prepared.frame is not None and plan.tasks:
            rows = engine.map_groups(prepared.frame, SLOT, plan.tasks, plan.work, STATUS_SCHEMA)
            statuses += from_table(engine.collect(rows))
        if plan.alone:
            statuses += from_table(engine.collect(engine.fan_out(plan.alone, plan.work.alone, STATUS_SCHEMA)))
        # Which slices hold rows to change is known only now.
        groups_closed_to_inserts((FileGroupId(s.stat.partition_path or "", s.stat.file_id) for s in statuses), context)
        return tuple(statuses)

    def summarise(
        self, prepared: PreparedWrite[ChangePlan], statuses: tuple[WriteStatus, ...], context: ActionContext
    ) -> CommitMetadata:
        return commit_body(self.operation, prepared.schedule, statuses, context)

    def _bound(self, schedule: Schedule, context: ActionContext) -> tuple[BoundClause | NumberedClause, ...]:
        meta, fills = context.meta, context.options.null_for_missing_columns
        written = schedule.schema if self.evolves else meta.table_schema()
        numbered = [clause for clause in self.clauses if isinstance(clause, NumberedClause)]
        if self.computed is not None:
            assert self.source is not None
            rows = context.engine.schema(self.source)
            return tuple(clause.bound(written, rows, fills=fills) for clause in numbered)
        source = None if self.source is None else without_meta(context.engine.schema(self.source))
        clauses = [clause for clause in self.clauses if isinstance(clause, Clause)]
        is_global = source is not None and table_index(context).is_global
        columns = Columns(meta.config, written, read_schema(meta, None), source, self.zone, is_global, fills)
        return bound_clauses(clauses, columns)


def _group(read: ReadSlice) -> tuple[str, str]:
    group = read.file_slice.group
    return group.partition_path, group.file_id


def _counts(reads: Iterable[ReadSlice]) -> list[RowCount]:
    """Row counts: how many rows change is unknown until they are read, which happens when they are written."""
    return [RowCount(*_group(read), 0) for read in reads]


def _slots_of(reads: Sequence[ReadSlice], instant: Instant, context: ActionContext) -> SlotPlan:
    """A slot for each slice."""
    paths = {read.file_slice.group.partition_path for read in reads}
    view = FileSystemView.load(context.meta, partitions=paths)
    logs = log_plan(paths, view, instant, context) if context.meta.config.is_merge_on_read else None
    return plan_slots(_counts(reads), {path: view.base_files(path) for path in paths}, sizing(context), logs=logs)


def _untouched_columns(
    clauses: Sequence[BoundClause | NumberedClause], spec: WriteSpec, rules: MergeRules
) -> Mapping[int, frozenset[str]]:
    """By clause number, the columns that the clause does not set: a rewrite of the file copies them from its rows."""
    if not spec.populate_meta_fields or rules.needs_pairs:
        return {}
    # Ordering values are compared before rows are merged, and rows without a required value are refused.
    required = {name.partition(".")[0] for name in rules.ordering_fields}
    required |= {field.name for field in spec.schema if not field.nullable}
    untouched = {}
    for number, clause in enumerate(clauses):
        if clause.verb == "update":
            assigned_names = required | {assigned.column.name for assigned in clause.assignments}
            untouched[number] = frozenset(name for name in spec.schema.names if name not in assigned_names)
    return {number: names for number, names in untouched.items() if names}


def _partial_columns(
    clauses: Sequence[BoundClause | NumberedClause], spec: WriteSpec, rules: MergeRules, context: ActionContext
) -> Mapping[int, frozenset[str]]:
    """By clause number, the columns of its partial updates; clauses that write whole rows are left out.

    Log records are merged among themselves before they are merged with the base row. So a late row after a partial
    update fills the columns that the update lacks, and with them wins against the base row. Unless the caller asks for
    Hudi's behaviour, partial updates are written only where no row can be late.

    Where rows win by ordering value, the update includes the ordering columns: without them Hudi's readers compare the
    value with the int 0, their "none", and fail on the whole slice. Where the row written last wins, Hudi 1.0, the
    reader of version 8, has no merger for partial updates and fails on the slice, too.
    """
    config, in_part = context.meta.config, context.options.partial_updates
    if in_part is None:
        in_part = not rules.by_ordering and not context.options.concurrency.is_non_blocking
    if not config.is_merge_on_read or not config.format.has_partial_updates(rules.by_ordering):
        return {}
    if not config.populate_meta_fields:
        return {}
    if rules.needs_pairs or not in_part:
        return {}
    ordering = {name.partition(".")[0] for name in rules.ordering_fields} if rules.by_ordering else set()
    by_clause = {}
    for number, clause in enumerate(clauses):
        if clause.verb == "update":
            columns = frozenset(ordering | {assigned.column.name for assigned in clause.assignments})
            if not columns.issuperset(spec.stored_schema.names):
                by_clause[number] = columns
    return by_clause
