"""Changes whose rows an engine has computed from a query of the table, and the write made of them.

The number of a computed row selects its clause (`NumberedClause`). A row from the table has the Hudi meta columns of
its stored row, so no index look-up is needed. A row without meta columns is new. Computed rows hold only the columns
that are set: a write task reads the others from the stored row.

`placed_write` makes write tasks of computed rows. It knows the locations of stored rows, and asks the index only about
rows that may be new:

    computed rows → keys, locations, moves → (index, for new rows) → counts → slots

Source: docs/sql-dml.md, "How a statement becomes a commit"; docs/formats/merging.md, "Two versions of a key";
docs/architecture.md, "How a table changes".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.action import ActionContext, PreparedWrite, Schedule
from pyhudi.actions.changes.clauses import When
from pyhudi.actions.changes.values import Assignment, ClauseRows, check_fields, mask_of
from pyhudi.actions.partitioner import RowCount, SlotPlan, profile_of
from pyhudi.actions.rows import KEYED_FIELDS, batch_by_partition, slotted, would_move
from pyhudi.actions.table_keys import keys_to_write, table_keygen
from pyhudi.actions.writes.index_lookup import lookup_of, table_index
from pyhudi.actions.writes.keyed_write import KeyedWrite
from pyhudi.actions.writes.preparation import write_spec
from pyhudi.engine.base import Frame, TaskContext
from pyhudi.errors import CorruptFile
from pyhudi.index.base import LOCATION_PARTITION, Index
from pyhudi.index.key_join import count_groups
from pyhudi.keygen.base import KeyGenerator
from pyhudi.merge.base import Mask
from pyhudi.model.instant import Instant
from pyhudi.model.keys import COMMIT_SEQNO, FILE_NAME, LOCATION, PARTITION_PATH, RECORD_KEY
from pyhudi.model.timeline import Timeline
from pyhudi.view.file_system_view import FileSystemView

__all__ = [
    "CLAUSE",
    "NEW_CLAUSE",
    "NEW_VALUE",
    "Computed",
    "NumberedClause",
    "PlaceRows",
    "check_places",
    "placed_schema",
    "placed_write",
]


_TASK_BITS = 40  # rows of one task are numbered below this, tasks above

CLAUSE = "_pyhudi_clause"  # int32: the clause that takes the row, null for none
NEW_CLAUSE = "_pyhudi_new_clause"  # int32: the clause that takes the row if its key is new
NEW_VALUE = "_pyhudi_new_"  # + column: value of a new row, where it differs from that of a stored row


@dataclass(frozen=True, slots=True)
class NumberedClause:
    """The clause for rows with a number. `columns`: data column that is set → column of the computed rows."""

    when: When
    verb: Literal["update", "delete", "insert"]
    number: int
    columns: Mapping[str, str]
    numbers: str = CLAUSE
    assignments: tuple[Assignment, ...] = ()

    def bound(self, schema: pa.Schema, computed: pa.Schema, *, fills: bool) -> NumberedClause:
        """The clause with the table's columns that it sets.

        Args:   schema: the table's; computed: of the computed rows; fills: see `Assignment`.
        Raises: SchemaMismatch for values whose structs have other fields than the column's.
        """
        for name, source in self.columns.items():
            check_fields(computed.field(source).type, schema.field(name), fills)
        assignments = tuple(
            Assignment(schema.field(name), _FromRows(source), fills) for name, source in self.columns.items()
        )
        return replace(self, assignments=assignments)

    def holds(self, clause_rows: ClauseRows) -> Mask:
        """A mask of the rows with the clause's number."""
        if clause_rows.source is None:
            return np.zeros(len(clause_rows), np.bool_)
        return mask_of(pc.equal(clause_rows.source.column(self.numbers), self.number))


@dataclass(frozen=True, slots=True)
class _FromRows:
    """A value that is a column of the computed rows."""

    name: str

    def __call__(self, *sides: pa.Table) -> pa.ChunkedArray:
        return sides[-1].column(self.name)


@dataclass(frozen=True, slots=True)
class Computed:
    """The origin of the rows of a change.

    `read`: the completed commits of the table that the query saw, None for a query that did not read it. `is_placed`:
    rows have the meta columns of their stored row; otherwise they are looked up by key. `moving`: numbers of updates
    that can change a row's partition; the row is then deleted from the old one (`leaves`) and inserted into the new one
    (`arrives`). `looks_up`: new rows may have an existing key; then they update its row. `only_deletes`: a DELETE,
    which wins over any ordering value.
    """

    read: Timeline | None = None
    is_placed: bool = True
    moving: frozenset[int] = frozenset()
    leaves: int = -1
    arrives: int = -1
    looks_up: bool = False
    only_deletes: bool = False


@dataclass(frozen=True, slots=True)
class PlaceRows:
    """Stream work: KEYED_FIELDS and LOCATION of each computed row; a row that moves becomes two.

    Args: schema: the result's; keygen: the table's, for new rows and new partitions.
    """

    schema: pa.Schema
    keygen: KeyGenerator
    computed: Computed

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in batches:
            for replaced in self._placed(context, batch, first):
                if replaced.num_rows:
                    yield replaced
            first += batch.num_rows

    def _placed(self, context: TaskContext, batch: pa.RecordBatch, first: int) -> Iterator[pa.RecordBatch]:
        start = _number(context, first)
        is_new = pc.is_null(batch.column(FILE_NAME))
        stored = batch if not pc.any(is_new).as_py() else batch.filter(pc.invert(is_new))
        fresh = batch.slice(0, 0) if stored is batch else batch.filter(is_new)
        if fresh.num_rows:
            yield self._new(context, fresh, first)
        moves = self._moving(context, stored, first)
        if moves is None:
            yield self._at_home(stored, start)
            return
        yield self._at_home(stored.filter(pa.array(~moves)), start)
        away = stored.filter(pa.array(moves))
        yield self._numbered(self._at_home(away, start), self.computed.leaves)
        yield _as_new(self._numbered(self._new(context, away, first), self.computed.arrives))

    def _moving(self, context: TaskContext, stored: pa.RecordBatch, first: int) -> Mask | None:
        """A mask of the rows that move to another partition; None if none can."""
        if not self.computed.moving or not stored.num_rows:
            return None
        numbers = pa.array(sorted(self.computed.moving), pa.int32())
        moves = mask_of(pa.chunked_array([pc.is_in(stored.column(CLAUSE), value_set=numbers)]))
        candidates = stored.filter(pa.array(moves))
        keys = keys_to_write(self.keygen, candidates, context.partition_id, first)
        differs = pc.not_equal(keys.partition_path, candidates.column(PARTITION_PATH))
        moves[moves] = mask_of(pa.chunked_array([differs]))
        return moves if moves.any() else None

    def _at_home(self, stored: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """Rows with the location of their stored row: a file's name begins with the id of its file group."""
        groups = pc.list_element(pc.split_pattern(stored.column(FILE_NAME), "_", max_splits=1), 0)
        return self._made(stored, stored.column(RECORD_KEY), stored.column(PARTITION_PATH), groups, first)

    def _new(self, context: TaskContext, rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
        keys = keys_to_write(self.keygen, rows, context.partition_id, first)
        start = _number(context, first)
        return self._made(rows, keys.record_key, keys.partition_path, pa.nulls(rows.num_rows, pa.string()), start)

    def _made(
        self, rows: pa.RecordBatch, keys: pa.Array, paths: pa.Array, groups: pa.Array, first: int
    ) -> pa.RecordBatch:
        control = {
            KEYED_FIELDS[0].name: keys,
            KEYED_FIELDS[1].name: paths,
            KEYED_FIELDS[2].name: pa.array(np.arange(first, first + rows.num_rows, dtype=np.int64)),
            KEYED_FIELDS[3].name: pa.repeat(False, rows.num_rows),
            LOCATION: groups,
        }
        arrays = [control[name] if name in control else rows.column(name) for name in self.schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _numbered(self, rows: pa.RecordBatch, number: int) -> pa.RecordBatch:
        at = rows.schema.get_field_index(CLAUSE)
        return rows.set_column(at, self.schema.field(at), pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows))


def _as_new(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows that leave their stored row behind: its number would name no row of the new file group, or another one."""
    at = rows.schema.get_field_index(COMMIT_SEQNO)
    return rows if at < 0 else rows.set_column(at, rows.schema.field(at), pa.nulls(rows.num_rows, pa.string()))


def _number(context: TaskContext, first: int) -> int:
    return (context.partition_id << _TASK_BITS) + first


def placed_schema(schema: pa.Schema) -> pa.Schema:
    """The columns that `PlaceRows` adds to computed rows."""
    control_columns = {FILE_NAME, *(field.name for field in KEYED_FIELDS)}
    data = [field for field in schema if field.name not in control_columns]
    return pa.schema([*data, *KEYED_FIELDS, pa.field(LOCATION, pa.string())])


def check_places(counts: Iterable[tuple[str, str | None]], stored_groups: Iterable[tuple[str, str]], root: str) -> None:
    """Raise CorruptFile when meta columns of stored rows name a file group that the table lacks."""
    groups = set(stored_groups)
    for path, file_id in counts:
        if file_id is not None and (path, file_id) not in groups:
            raise CorruptFile(
                f"{root}: rows say by _hoodie_file_name that they are in file group {file_id} of partition {path!r}, "
                "which the table does not have. Nothing was written."
            )


_PLACE = "_pyhudi_place"  # string: LOCATION from the meta columns, while the index adds its own


def placed_write(
    write: KeyedWrite, computed: Computed, schedule: Schedule, instant: Instant, context: ActionContext
) -> PreparedWrite[SlotPlan]:
    """The prepared write of computed rows. `write`: its frame has the meta columns of existing rows.

    Raises: CorruptFile for meta columns that name no file group of the table; KeyGenError for keys of new rows.
    """
    engine = context.engine
    keygen = table_keygen(context, instant.requested_time)
    spec = write_spec(schedule, keygen, instant, context)
    schema = placed_schema(engine.schema(write.frame))
    rows = engine.map(write.frame, PlaceRows(schema, keygen, computed), schema)
    index = table_index(context)
    cached: tuple[Frame, ...] = ()
    if computed.looks_up or index.places_inserts:
        rows, cached = _looked_up(rows, computed, index, keygen, context)
    rows = engine.cache(rows)
    counts = count_groups(engine, rows)
    view = FileSystemView.load(context.meta, partitions={path for path, _ in counts})
    if not index.places_inserts:
        stored_groups = ((s.group.partition_path, s.group.file_id) for s in view.all_slices())
        check_places(counts, stored_groups, context.meta.storage.root)
    row_counts = [RowCount(path, file_id, number) for (path, file_id), number in counts.items()]
    plan = write.planned(row_counts, view, index, instant, context)
    profile = profile_of(row_counts, plan, write.operation)
    return PreparedWrite(instant, schedule, spec, profile, slotted(rows, plan, engine), plan, (rows, *cached))


def _looked_up(
    rows: Frame, computed: Computed, index: Index, keygen: KeyGenerator, context: ActionContext
) -> tuple[Frame, tuple[Frame, ...]]:
    """Give rows without a location that of their key, if the table has it; return them and the cached frames."""
    engine = context.engine
    schema = engine.schema(rows)
    renamed = pa.schema([field.with_name(_PLACE) if field.name == LOCATION else field for field in schema])
    cached = engine.cache(engine.map(rows, _RenameColumns(renamed), renamed))
    batch = batch_by_partition(engine, cached)
    view = FileSystemView.load(context.meta, partitions=None if index.is_global else batch)
    lookup = lookup_of(index, batch, view, keygen, context, ordering_fields=(), only_live=False)
    tagged, moves = index.tag(cached, lookup), index.settings.update_partition_path
    return engine.map(tagged.rows, _SettleLocation(schema, computed.arrives, moves), schema), (cached, *tagged.cached)


@dataclass(frozen=True, slots=True)
class _RenameColumns:
    """Stream work: the same columns under other names."""

    schema: pa.Schema

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)


@dataclass(frozen=True, slots=True)
class _SettleLocation:
    """Stream work: the location from meta columns, else from the index; a global index sets the partition, too.

    `arrives`: the number of the clause for rows from another partition, which a global index still finds there.
    `moves`: other new rows that it finds in another partition would move, which is an error.
    """

    schema: pa.Schema
    arrives: int
    moves: bool

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            place, location = batch.column(_PLACE), batch.column(LOCATION)
            replaced = {LOCATION: pc.coalesce(place, location)}
            if LOCATION_PARTITION in batch.schema.names:
                comes = pc.fill_null(pc.equal(batch.column(CLAUSE), self.arrives), False)
                location = pc.if_else(comes, pa.scalar(None, pa.string()), location)
                replaced[LOCATION] = pc.coalesce(place, location)
                elsewhere = pc.and_(pc.is_null(place), pc.is_valid(location))
                path = batch.column(PARTITION_PATH)
                would = pc.and_(elsewhere, pc.fill_null(pc.not_equal(batch.column(LOCATION_PARTITION), path), False))
                if self.moves and pc.any(would).as_py():
                    raise would_move(batch.filter(would))
                replaced[PARTITION_PATH] = pc.if_else(elsewhere, batch.column(LOCATION_PARTITION), path)
            arrays = [replaced[name] if name in replaced else batch.column(name) for name in self.schema.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
