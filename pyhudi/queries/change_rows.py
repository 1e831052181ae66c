"""The changes that one commit made to one file group, as rows (op, ts_ms, before, after).

    logged     the records of change logs; images that they don't hold are looked up in base files
    inserted   every row of the slice after the commit
    deleted    every row of the slice before the commit
    merged     the slices before and after the commit's log files, compared on the keys in these files

Source: docs/formats/incremental.md, "Changes".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.filegroup.read.log_blocks import BlockRules
from pyhudi.filegroup.read.record_buffer import with_record_keys
from pyhudi.filegroup.read.slice import SliceSpec, read_file_slice
from pyhudi.formats.base import BATCH_ROWS
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.java.nested_text import image_texts
from pyhudi.merge.combine import single_array
from pyhudi.model.change_logs import AFTER, BEFORE, CHANGE_COLUMNS, DELETE, INSERT, LOGGED_KEY, OP, UPDATE
from pyhudi.model.file_group import FileSlice
from pyhudi.model.keys import RECORD_KEY
from pyhudi.model.table_format import TableFormat
from pyhudi.queries.schema import with_path_values
from pyhudi.schema.column_mapping import file_columns
from pyhudi.schema.projection import project

__all__ = [
    "CHANGES_SCHEMA",
    "DELETED",
    "INSERTED",
    "LOGGED",
    "MERGED",
    "NO_DELETES",
    "ONLY_DELETES",
    "ChangeReading",
    "GroupChange",
    "read_changes",
]

CHANGES_SCHEMA = pa.schema([pa.field(name, pa.string()) for name in CHANGE_COLUMNS])

LOGGED = "logged"
INSERTED = "inserted"
DELETED = "deleted"
MERGED = "merged"

ONLY_DELETES = "only deletes"
NO_DELETES = "no deletes"

_NO_TEXT = pa.scalar(None, pa.string())


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A change of one file group by one commit, and the files that hold it.

    `before`, `after`: the slice before and after the commit, None if not needed. `log_paths`: change logs (LOGGED), or
    the log files that the commit wrote (MERGED). `only`: ONLY_DELETES or NO_DELETES, a part of the change; "": all.
    """

    instant_time: str
    kind: str
    before: FileSlice | None = None
    after: FileSlice | None = None
    log_paths: tuple[str, ...] = ()
    only: str = ""


@dataclass(frozen=True, slots=True)
class ChangeReading:
    """The way slices are read for changes: all columns of the table, meta columns first if it has them. Picklable."""

    merge: SliceSpec
    columns: pa.Schema


def read_changes(
    reading: ChangeReading, change: GroupChange, from_path: Mapping[str, str | None], batch_rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Batches of CHANGES_SCHEMA.

    Args:    from_path: columns whose value is taken from the partition's path.
    Raises:  CorruptFile, UnsupportedTable, SchemaMismatch.
    """
    reader = _Reader(reading, change, from_path, batch_rows)
    if change.kind == LOGGED:
        yield from reader.logged()
    elif change.kind == MERGED:
        yield from reader.merged()
    else:
        yield from reader.of_whole_slice()


class _Reader:
    def __init__(
        self, reading: ChangeReading, change: GroupChange, from_path: Mapping[str, str | None], batch_rows: int
    ) -> None:
        self._reading, self._change, self._from_path = reading, change, from_path
        self._batch_rows = batch_rows
        self._storage = reading.merge.storage

    # ---- all rows of a slice

    def of_whole_slice(self) -> Iterator[pa.RecordBatch]:
        inserted = self._change.kind == INSERTED
        for rows, _ in self._rows(before=not inserted):
            texts = _texts(rows)
            yield self._batch(INSERT, None, texts) if inserted else self._batch(DELETE, texts, None)

    # ---- change logs

    def logged(self) -> Iterator[pa.RecordBatch]:
        for path in self._change.log_paths:
            for block in scan_log(self._storage, path):
                if not isinstance(block, LogBlock) or not block.is_changes:
                    raise CorruptFile(
                        f"{path}: expected a change log, found other content. It is cut off or damaged; restore the "
                        "file, or begin after its commit."
                    )
                if block.instant_time == self._change.instant_time:
                    rows = self._of_interest(block.rows())
                    for first in range(0, len(rows), self._batch_rows):
                        yield self._logged(rows.slice(first, self._batch_rows).combine_chunks(), path)

    def _of_interest(self, logged: pa.Table) -> pa.Table:
        if not self._change.only:
            return logged
        is_delete = pc.equal(logged.column(OP), DELETE)
        return logged.filter(is_delete if self._change.only == ONLY_DELETES else pc.invert(is_delete))

    def _logged(self, rows: pa.Table, path: str) -> pa.RecordBatch:
        """Records of a change log as changes. Images that it holds are printed as Hudi prints them: `null` as text."""
        ops = single_array(rows.column(OP))
        images: dict[str, pa.Array] = {}
        for name, op_without in ((BEFORE, INSERT), (AFTER, DELETE)):
            if name in rows.column_names:
                held = single_array(rows.column(name))
                assert isinstance(held, pa.StructArray)
                images[name] = pc.fill_null(image_texts(self._shown(held), spaced=True), "null")
            elif LOGGED_KEY in rows.column_names:
                has_image = pc.not_equal(ops, op_without)
                keys = pc.if_else(has_image, single_array(rows.column(LOGGED_KEY)), _NO_TEXT)
                images[name] = self._looked_up(keys, name == BEFORE, path)
            else:
                raise CorruptFile(f"{path}: expected the column {name} or {LOGGED_KEY}, found {rows.column_names}.")
        return self._batch(ops, images[BEFORE], images[AFTER])

    def _shown(self, held: pa.StructArray) -> pa.StructArray:
        """Images of a change log with the partition values that snapshots show, which are the path's. A row that stayed
        in its partition holds the value with which it arrived.
        """
        fields = list(held.type)
        if not any(field.name in self._from_path for field in fields):
            return held
        stored = pa.RecordBatch.from_arrays([held.field(at) for at in range(len(fields))], schema=pa.schema(fields))
        shown = with_path_values(stored, self._from_path, stored.schema)
        return pa.StructArray.from_arrays(shown.columns, fields=fields, mask=held.is_null())

    def _looked_up(self, keys: pa.Array, before: bool, path: str) -> pa.Array:
        """Images of the slice's rows with these keys, null for null keys. Raises CorruptFile for a missing key."""
        rows = self._rows_of(keys.drop_null(), before=before, path=path)
        texts, rows_of_keys = _texts(rows), pc.index_in(keys, value_set=single_array(rows.column(RECORD_KEY)))
        missing = pc.and_(keys.is_valid(), rows_of_keys.is_null())
        if pc.any(missing).as_py():
            key = keys.filter(missing)[0].as_py()
            where = self._change.before if before else self._change.after
            raise CorruptFile(f"{path} names the key {key!r:.200}, which {_name(where)} does not have.")
        return texts.take(rows_of_keys)

    # ---- log files

    def merged(self) -> Iterator[pa.RecordBatch]:
        keys = self._changed_keys()
        before = self._rows_of(keys, before=True)
        after = self._rows_of(keys, before=False)
        old, new = single_array(before.column(RECORD_KEY)), single_array(after.column(RECORD_KEY))
        old_texts, new_texts = _texts(before), _texts(after)
        is_deleted = pc.invert(pc.is_in(old, value_set=new))
        place = pc.index_in(new, value_set=old)
        earlier = old_texts.take(place)
        is_new = place.is_null()
        # Rows that lost against the stored ones leave these unchanged, meta columns included.
        has_changed = pc.or_(is_new, pc.fill_null(pc.not_equal(earlier, new_texts), True))
        ops = pc.if_else(is_new, pa.scalar(INSERT), pa.scalar(UPDATE)).filter(has_changed)
        if self._change.only != NO_DELETES:
            yield from self._cut(self._batch(DELETE, old_texts.filter(is_deleted), None))
        if self._change.only != ONLY_DELETES:
            yield from self._cut(self._batch(ops, earlier.filter(has_changed), new_texts.filter(has_changed)))

    def _changed_keys(self) -> pa.Array:
        """The keys in the blocks that the commit wrote, each once."""
        keys_of_blocks: list[pa.Array] = []
        for path in self._change.log_paths:
            for block in scan_log(self._storage, path):
                if not isinstance(block, LogBlock) or block.instant_time != self._change.instant_time:
                    continue
                if block.is_delete:
                    keys_of_blocks.append(block.deletes().keys.column(RECORD_KEY))
                elif block.is_data:
                    keys_of_blocks.append(single_array(self._with_keys(block).column(RECORD_KEY)))
        return pc.unique(
            pa.concat_arrays([pa.array([], pa.string()), *(keys.cast(pa.string()) for keys in keys_of_blocks)])
        )

    def _with_keys(self, block: LogBlock) -> pa.Table:
        """The record keys of a data block; a table without meta columns makes them from its data columns."""
        spec = self._reading.merge
        if spec.key_generator is None:
            keyed = block.rows({RECORD_KEY})
            if RECORD_KEY not in keyed.column_names:
                raise CorruptFile(f"{block.where}: expected the column {RECORD_KEY}, found none. Restore the file.")
            return keyed
        names = [name for name in spec.key_generator.input_columns if name in spec.schema.names]
        columns = file_columns(spec.history, block.instant_time, names)
        stored = project(
            columns.named(block.rows(set(columns.names))), pa.schema([spec.schema.field(n) for n in names])
        )
        return with_record_keys(spec.key_generator, stored)

    # ---- slices

    def _rows(self, *, before: bool, path: str = "") -> Iterator[tuple[pa.StructArray, pa.Array]]:
        """All rows of the slice before or after, as the table has them, and their keys."""
        file_slice = self._change.before if before else self._change.after
        if file_slice is None:
            if self._change.kind == LOGGED:
                raise UnsupportedTable(
                    f"{path} holds no images of rows, though the table says that its change logs do "
                    "(hoodie.table.cdc.supplemental.logging.mode): set the property to what was true for this commit."
                )
            return
        merge = self._merge(before=before)
        columns = self._reading.columns
        imaged = set(columns.names) - self._from_path.keys()
        stored = [name for name in merge.schema.names if name in imaged]
        names = list(dict.fromkeys([*stored, RECORD_KEY]))  # tables without meta columns compute it
        for batch in read_file_slice(merge, file_slice, names, self._batch_rows):
            rows = with_path_values(batch, self._from_path, columns)
            yield pa.StructArray.from_arrays(rows.columns, fields=list(columns)), batch.column(RECORD_KEY)

    def _merge(self, *, before: bool) -> SliceSpec:
        """The merge rules of the slice before or after the commit. Below version 8 a log file has blocks of several."""
        merge = self._reading.merge
        rules: BlockRules = merge.blocks
        if TableFormat(rules.table_version).has_own_log_files:
            return merge
        until = self._change.instant_time
        return replace(merge, blocks=replace(rules, latest_instant=_just_before(until) if before else until))

    def _rows_of(self, keys: pa.Array, *, before: bool, path: str = "") -> pa.Table:
        """Rows with these keys, with the columns IMAGE and RECORD_KEY."""
        kind = pa.struct(list(self._reading.columns))
        images: list[pa.Array] = []
        keys_of_images: list[pa.Array] = []
        for rows, row_keys in self._rows(before=before, path=path) if len(keys) else ():
            is_asked_for = pc.is_in(row_keys, value_set=keys)
            images.append(rows.filter(is_asked_for))
            keys_of_images.append(row_keys.filter(is_asked_for))
        return pa.table(
            {_IMAGE: pa.chunked_array(images, kind), RECORD_KEY: pa.chunked_array(keys_of_images, pa.string())},
        )

    # ---- results

    def _batch(self, op: str | pa.Array, before: pa.Array | None, after: pa.Array | None) -> pa.RecordBatch:
        images = before if before is not None else after
        assert images is not None
        count = len(images)
        columns = [
            pa.repeat(pa.scalar(op), count) if isinstance(op, str) else op,
            pa.repeat(pa.scalar(self._change.instant_time), count),
            *(pa.nulls(count, pa.string()) if texts is None else texts for texts in (before, after)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=CHANGES_SCHEMA)

    def _cut(self, changes: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for first in range(0, changes.num_rows, self._batch_rows):
            yield changes.slice(first, self._batch_rows)


_IMAGE = "image"


def _texts(rows: pa.StructArray | pa.Table) -> pa.Array:
    images = single_array(rows.column(_IMAGE)) if isinstance(rows, pa.Table) else rows
    assert isinstance(images, pa.StructArray)
    return image_texts(images, spaced=False)


def _just_before(instant_time: str) -> str:
    return str(int(instant_time) - 1).zfill(len(instant_time))


def _name(file_slice: FileSlice | None) -> str:
    return file_slice.base_file.path if file_slice is not None and file_slice.base_file is not None else "no file"
