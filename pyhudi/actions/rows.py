"""The path of incoming rows from the caller's frame to the write tasks, and their merge rules.

Rows get their keys, are combined and counted, move between partitions, and get slots. They carry these columns, of
which all but the data columns are control columns:

    data columns | RECORD_KEY | PARTITION_PATH | ARRIVAL | IS_DELETE | LOCATION ... | SLOT

Rows merge by the rules of the table. Where the table stores none, the rules come from the call (`table_rules`,
`input_rules`).

Source: docs/formats/merging.md, "Deletes", "Two versions of a key", "What properties say", "Mode of a table";
docs/formats/indexes.md, "Finding keys", "Global indexes".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.action import ActionContext
from pyhudi.actions.partitioner import SlotPlan
from pyhudi.actions.table_keys import RowNumbers, keys_to_write
from pyhudi.engine.base import Engine, Frame, TaskContext
from pyhudi.errors import ConfigError, SchemaMismatch, UnsupportedTable
from pyhudi.index.base import LOCATION_PARTITION, STORED_ORDERING, PartitionRows
from pyhudi.index.key_join import CountRows
from pyhudi.keygen.base import KeyGenerator, read_field
from pyhudi.merge import winners
from pyhudi.merge.pairs import combine_input
from pyhudi.merge.rules import MergeRules, marked_deletes, merge_rules
from pyhudi.model.keys import (
    ARRIVAL,
    COMBINED,
    DELETE_FLAG_COLUMN,
    IS_DELETE,
    LOCATION,
    PARTITION_PATH,
    RECORD_KEY,
    SLOT,
)
from pyhudi.model.merge_mode import COMMIT_TIME_ORDERING, EVENT_TIME_ORDERING

__all__ = [
    "KEYED_FIELDS",
    "AddKeys",
    "AssignSlots",
    "CombineRows",
    "KeepUnknown",
    "MoveRows",
    "batch_by_partition",
    "delete_flag_columns",
    "input_rules",
    "marked_rows",
    "marker_columns",
    "ordering_fields",
    "slotted",
    "table_rules",
    "would_move",
]


KEYED_FIELDS = (
    pa.field(RECORD_KEY, pa.string(), nullable=False),
    pa.field(PARTITION_PATH, pa.string(), nullable=False),
    pa.field(ARRIVAL, pa.int64(), nullable=False),
    pa.field(IS_DELETE, pa.bool_(), nullable=False),
)
_TASK_BITS = 40  # rows of one task are numbered below this, tasks above


@dataclass(frozen=True)
class AddKeys:
    """Column work: KEYED_FIELDS of each row. `deletes`: every row is a delete, even without a flag."""

    keygen: KeyGenerator
    deletes: bool
    rules: MergeRules = field(default_factory=MergeRules)
    _numbers: RowNumbers = field(default_factory=RowNumbers, compare=False, repr=False)

    def __call__(self, context: TaskContext, batch: pa.RecordBatch) -> pa.RecordBatch:
        first = self._numbers.first_of(context, batch)
        keys = keys_to_write(self.keygen, batch, context.partition_id, first)
        start = (context.partition_id << _TASK_BITS) + first
        arrival = pa.array(np.arange(start, start + batch.num_rows, dtype=np.int64))
        arrays = [keys.record_key, keys.partition_path, arrival, self._is_delete(batch)]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(KEYED_FIELDS))

    def _is_delete(self, batch: pa.RecordBatch) -> pa.Array:
        if self.deletes:
            return pa.repeat(pa.scalar(True), batch.num_rows)
        return marked_rows(batch, self.rules)


def marked_rows(batch: pa.RecordBatch, rules: MergeRules) -> pa.Array:
    """A mask of the rows that are marked as deletes, by the flag column or by the table's marker."""
    flags = pa.repeat(pa.scalar(False), batch.num_rows)
    if DELETE_FLAG_COLUMN in batch.schema.names:
        flags = pc.fill_null(batch.column(DELETE_FLAG_COLUMN), False)
    for name in marker_columns(batch.schema, rules):
        flags = pc.or_(flags, pa.array(marked_deletes(rules, batch.column(name))))
    return flags


def delete_flag_columns(schema: pa.Schema) -> list[str]:
    """The delete flag column if the rows have one; it must be boolean."""
    if DELETE_FLAG_COLUMN not in schema.names:
        return []
    data_type = schema.field(DELETE_FLAG_COLUMN).type
    if not pa.types.is_boolean(data_type):
        raise SchemaMismatch(
            f"Column {DELETE_FLAG_COLUMN}: expected boolean, found {data_type}. Cast it; nothing was written."
        )
    return [DELETE_FLAG_COLUMN]


def marker_columns(schema: pa.Schema, rules: MergeRules) -> list[str]:
    """The column whose text marks deletes, if the table has such a marker and the rows such a column."""
    return [rules.delete_field] if rules.delete_field is not None and rules.delete_field in schema.names else []


@dataclass(frozen=True, slots=True)
class CombineRows:
    """Stream work: one row for each key; a task has all rows of its keys. `counts`: with the column COMBINED."""

    keys: tuple[str, ...]
    rules: MergeRules
    counts: bool = False

    def schema(self, rows: pa.Schema) -> pa.Schema:
        """The result for rows with these columns."""
        return pa.schema([*rows, pa.field(COMBINED, pa.int32())]) if self.counts else rows

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrived = [batch for batch in batches if batch.num_rows]
        if arrived:
            rows = pa.Table.from_batches(arrived)
            combined = combine_input(rows, self.rules, self.keys)
            if self.counts:
                numbers = np.zeros(len(combined), np.int32)
                numbers[:1] = len(rows) - len(combined)
                combined = combined.append_column(COMBINED, pa.array(numbers))
            yield from combined.to_batches()


def batch_by_partition(engine: Engine, with_keys: Frame) -> dict[str, PartitionRows]:
    """Partition path → the count and size of the batch's rows for it."""
    combines = COMBINED in engine.schema(with_keys).names
    work = CountRows((PARTITION_PATH,), key_bytes=True, combined=combines)
    columns = [RECORD_KEY, PARTITION_PATH, *([COMBINED] if combines else [])]
    counted = engine.collect(engine.map(engine.select(with_keys, columns), work, work.schema))
    rows: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    combined: Counter[str] = Counter()
    for row in counted.to_pylist():
        rows[row[PARTITION_PATH]] += row["rows"]
        sizes[row[PARTITION_PATH]] += row["bytes"]
        combined[row[PARTITION_PATH]] += row.get(COMBINED, 0)
    return {path: PartitionRows(path, rows[path], sizes[path], combined[path]) for path in sorted(rows)}


@dataclass(frozen=True, slots=True)
class MoveRows:
    """Stream work for a global index: handles rows whose key lives in another partition.

    Without `update_partition_path` they go to the partition where the key is. With it, a row that wins against the
    stored one is written to its new partition as an insert, with a delete in the old one; a row that loses, and a
    delete, goes only to the old one. Extra columns of the index are removed. `refuses`: rows that would move are an
    error.
    """

    schema: pa.Schema  # result: the rows with LOCATION
    update_partition_path: bool
    rules: MergeRules
    ordering_fields: tuple[str, ...]
    refuses: bool = False

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            elsewhere = pc.fill_null(
                pc.not_equal(batch.column(LOCATION_PARTITION), batch.column(PARTITION_PATH)), False
            )
            if not pc.any(elsewhere).as_py():
                yield batch.select(self.schema.names)
                continue
            if self.refuses:
                raise would_move(batch.filter(elsewhere))
            moves = (
                pc.and_(elsewhere, self._moves(batch)) if self.update_partition_path else pa.repeat(False, len(batch))
            )
            keeps_partition = pc.and_(elsewhere, pc.invert(moves))
            at_home = pc.if_else(elsewhere, batch.column(LOCATION_PARTITION), batch.column(PARTITION_PATH))
            # Rows that keep their key's partition (all of them updates), and the inserts of rows that move.
            yield self._with(
                batch,
                pc.if_else(keeps_partition, batch.column(LOCATION_PARTITION), batch.column(PARTITION_PATH)),
                pc.if_else(moves, pa.scalar(None, pa.string()), batch.column(LOCATION)),
                batch.column(IS_DELETE),
            )
            if pc.any(moves).as_py():
                self._check_moves()
                deletes = self._with(batch, at_home, batch.column(LOCATION), pa.repeat(True, len(batch)))
                yield deletes.filter(moves)

    def _check_moves(self) -> None:
        """Refuse moves that need a merge: a moved row is written whole, and its stored row is in another file."""
        if self.rules.needs_pairs:
            raise UnsupportedTable(
                "Rows of this batch would move to another partition, and this table merges rows column by column; "
                "PyHudi can't merge a row with one of another partition. Set "
                "hoodie.simple.index.update.partition.path=false (or hoodie.bloom.index...), or delete the old rows "
                "first. Nothing was committed."
            )

    def _moves(self, batch: pa.RecordBatch) -> pa.Array:
        """True where the incoming row replaces the stored one and is not a delete."""
        wins = pa.repeat(True, len(batch))
        stored = [name for name in batch.schema.names if name.startswith(STORED_ORDERING)]
        if stored:
            existing = [batch.column(name) for name in stored]
            incoming = [cast("pa.Array", read_field(batch, name)) for name in self.ordering_fields]
            deletes = batch.column(IS_DELETE).to_numpy(zero_copy_only=False)
            wins = pa.array(winners(existing, incoming, deletes, self.rules.mode))
        return pc.and_(wins, pc.invert(batch.column(IS_DELETE)))

    def _with(
        self, batch: pa.RecordBatch, partition: pa.Array, location: pa.Array, is_delete: pa.Array
    ) -> pa.RecordBatch:
        columns_by_name = {PARTITION_PATH: partition, LOCATION: location, IS_DELETE: is_delete}
        arrays = [
            columns_by_name[name] if name in columns_by_name else batch.column(name) for name in self.schema.names
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def would_move(rows: pa.RecordBatch) -> ConfigError:
    """The error for rows with LOCATION_PARTITION that a global index finds in another partition."""
    key, old, new = (rows.column(name)[0].as_py() for name in (RECORD_KEY, LOCATION_PARTITION, PARTITION_PATH))
    return ConfigError(
        f"The row of key {key!r} is in the partition {old!r} of the table, and the data has it in {new!r}. Only whole "
        "rows move: upsert them with all columns. With hoodie.simple.index.update.partition.path=false (or "
        "hoodie.bloom.index..., hoodie.record.index...) rows stay in their partition. Nothing was written."
    )


@dataclass(frozen=True, slots=True)
class KeepUnknown:
    """Stream work: keep rows whose key no file holds. `refuses`: other rows are an error."""

    refuses: bool

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            unknown = pc.is_null(batch.column(LOCATION))
            if self.refuses and not pc.all(unknown).as_py():
                stored = batch.filter(pc.invert(unknown))
                raise ConfigError(
                    f"insert with hoodie.datasource.insert.dup.policy=fail: {stored.num_rows} rows have keys that the "
                    f"table holds, such as {stored.column(RECORD_KEY)[0].as_py()!r} in partition "
                    f"{stored.column(PARTITION_PATH)[0].as_py()!r}. Nothing was written; use upsert, or policy drop."
                )
            yield batch.filter(unknown)


_SENT_GROUPS = 2_000  # file groups whose names travel with a function: some 200 KB


def slotted(rows: Frame, plan: SlotPlan, engine: Engine) -> Frame:
    """Rows with LOCATION as rows with SLOT.

    Where there are many file groups the engine joins them to the rows, so that no task holds all of them.
    """
    joins = len(plan.updates) > _SENT_GROUPS and not getattr(engine, "shares_memory", False)
    if joins:
        paths, file_ids = zip(*plan.updates, strict=True)
        columns = {PARTITION_PATH: pa.array(paths), LOCATION: pa.array(file_ids)}
        groups = pa.table({**columns, SLOT: pa.array(plan.updates.values(), pa.int32())})
        rows = engine.join(rows, engine.from_arrow(groups), [PARTITION_PATH, LOCATION], "left")
    work = AssignSlots(replace(plan, tasks=(), updates={} if joins else plan.updates), joins)
    return engine.extend(rows, work.columns, work, work.schema)


@dataclass(frozen=True, slots=True)
class AssignSlots:
    """Column work: (RECORD_KEY, PARTITION_PATH, LOCATION) → SLOT. `completes`: rows that are no inserts have theirs."""

    plan: SlotPlan
    completes: bool

    @property
    def columns(self) -> Sequence[str]:
        return (RECORD_KEY, PARTITION_PATH, LOCATION, *((SLOT,) if self.completes else ()))

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(SLOT, pa.int32(), nullable=False)])

    def __call__(self, context: TaskContext, batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([self.plan.slots_of(*batch.columns)], schema=self.schema)


_LATEST = MergeRules(COMMIT_TIME_ORDERING)


def ordering_fields(context: ActionContext) -> tuple[str, ...]:
    """The ordering fields: the table's, else the call's, which then only combine its batch."""
    return context.meta.config.ordering_fields or context.options.ordering_fields


def table_rules(context: ActionContext) -> MergeRules:
    """The rules by which a written row and the stored one become one.

    A copy-on-write table below version 8 stores no rules: each write sets them (as in Hudi 0.x), and by default the
    later row wins. Raises UnsupportedTable when the table's merger is unknown, ConfigError when the call marks deletes
    otherwise than the table.
    """
    config, options = context.meta.config, context.options
    if not config.format.stores_merging and config.payload_class is None and config.merge_strategy_id is None:
        properties = {
            "hoodie.compaction.payload.class": options.payload_class,
            "hoodie.record.merge.mode": None if options.payload_class else options.merge_mode,
        }
        config = config.with_changes({key: text for key, text in properties.items() if text})
    rules = merge_rules(config, options.merger_classes)
    if options.delete_field is None:
        return rules
    marker = (options.delete_field, options.delete_marker)
    if rules.delete_field is not None and (rules.delete_field, rules.delete_marker) != marker:
        raise ConfigError(
            f"hoodie.payload.delete.field and .marker are {marker}, but the table {config.table_name!r} marks deletes "
            f"by {(rules.delete_field, rules.delete_marker)}. A write can't change this; leave the options out."
        )
    return replace(rules, delete_field=options.delete_field, delete_marker=options.delete_marker)


def input_rules(context: ActionContext) -> MergeRules:
    """The rules by which rows of one key in a batch become one, before they are merged with the table."""
    rules = table_rules(context).for_input
    if rules.needs_pairs:
        return rules
    # Hudi 0.x keeps the row with the greater ordering value within a batch, with any payload class.
    fields = rules.ordering_fields if rules.by_ordering else ordering_fields(context)
    by_value = rules.mode == EVENT_TIME_ORDERING or not context.meta.config.format.combines_input_by_mode
    return MergeRules(EVENT_TIME_ORDERING, fields) if by_value and fields else _LATEST
