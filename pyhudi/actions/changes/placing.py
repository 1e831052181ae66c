"""Computed rows to write tasks: their places are known, only rows that may be new are looked for in the index.

    computed rows → keys, places, moves → (index, for new rows) → counts → slots

Source: docs/sql-dml.md, "How a statement becomes a commit"; docs/architecture.md, "How an upsert flows".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.action import ActionContext, PreparedWrite, Schedule
from pyhudi.actions.changes.computed import CLAUSE, Computed, PlaceRows, check_places, placed_schema
from pyhudi.actions.partitioner import RowCount, SlotPlan, profile_of
from pyhudi.actions.rows import AssignSlots, batch_by_partition
from pyhudi.actions.table_keys import table_keygen
from pyhudi.actions.writes.index_lookup import lookup_of, table_index
from pyhudi.actions.writes.keyed_write import KeyedWrite
from pyhudi.actions.writes.preparation import write_spec
from pyhudi.engine.base import Frame, TaskContext
from pyhudi.index.base import LOCATION_PARTITION, Index
from pyhudi.index.key_join import count_groups
from pyhudi.keygen.base import KeyGenerator
from pyhudi.model.instant import Instant
from pyhudi.model.keys import LOCATION, PARTITION_PATH
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["placed_write"]

_PLACE = "_pyhudi_place"  # string: LOCATION by the meta columns, while the index makes its own


def placed_write(
    write: KeyedWrite, computed: Computed, schedule: Schedule, instant: Instant, context: ActionContext
) -> PreparedWrite[SlotPlan]:
    """The order for computed rows. `write`: its frame has the meta columns of rows that are there.

    Raises: CorruptFile for meta columns that name no file group of the table; KeyGenError for keys of new rows.
    """
    engine = context.engine
    keygen = table_keygen(context, instant.requested_time)
    spec = write_spec(schedule, keygen, instant, context)
    schema = placed_schema(engine.schema(write.frame))
    rows = engine.map(write.frame, PlaceRows(schema, keygen, computed), schema)
    index = table_index(context)
    kept: tuple[Frame, ...] = ()
    if computed.looks_up or index.places_inserts:
        rows, kept = _looked_up(rows, computed, index, keygen, context)
    rows = engine.cache(rows)
    counts = count_groups(engine, rows)
    view = FileSystemView.load(context.meta, partitions={path for path, _ in counts})
    if not index.places_inserts:
        known = ((s.group.partition_path, s.group.file_id) for s in view.all_slices())
        check_places(counts, known, context.meta.storage.root)
    listed = [RowCount(path, file_id, number) for (path, file_id), number in counts.items()]
    plan = write.planned(listed, view, index, instant, context)
    work = AssignSlots(plan)
    slotted = engine.extend(rows, work.columns, work, work.schema)
    profile = profile_of(listed, plan, write.operation)
    return PreparedWrite(instant, schedule, spec, profile, slotted, plan, (rows, *kept))


def _looked_up(
    rows: Frame, computed: Computed, index: Index, keygen: KeyGenerator, context: ActionContext
) -> tuple[Frame, tuple[Frame, ...]]:
    """Rows without a place get that of their key, if the table has it."""
    engine = context.engine
    schema = engine.schema(rows)
    aside = pa.schema([field.with_name(_PLACE) if field.name == LOCATION else field for field in schema])
    waiting = engine.cache(engine.map(rows, _Renamed(aside), aside))
    batch = batch_by_partition(engine, waiting)
    view = FileSystemView.load(context.meta, partitions=None if index.is_global else batch)
    lookup = lookup_of(index, batch, view, keygen, context, ordering_fields=(), only_live=False)
    tagged = index.tag(waiting, lookup)
    return engine.map(tagged.rows, _Settled(schema, computed.arrives), schema), (waiting, *tagged.kept)


@dataclass(frozen=True, slots=True)
class _Renamed:
    """Stream work: the same columns under other names."""

    schema: pa.Schema

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)


@dataclass(frozen=True, slots=True)
class _Settled:
    """Stream work: the place by meta columns, else the index's; a global index says the partition, too.

    `arrives`: the number of rows that come from another partition, where a global index still finds them.
    """

    schema: pa.Schema
    arrives: int

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            place, found = batch.column(_PLACE), batch.column(LOCATION)
            made = {LOCATION: pc.coalesce(place, found)}
            if LOCATION_PARTITION in batch.schema.names:
                comes = pc.fill_null(pc.equal(batch.column(CLAUSE), self.arrives), False)
                found = pc.if_else(comes, pa.scalar(None, pa.string()), found)
                made[LOCATION] = pc.coalesce(place, found)
                elsewhere = pc.and_(pc.is_null(place), pc.is_valid(found))
                path = batch.column(PARTITION_PATH)
                made[PARTITION_PATH] = pc.if_else(elsewhere, batch.column(LOCATION_PARTITION), path)
            arrays = [made[name] if name in made else batch.column(name) for name in self.schema.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
