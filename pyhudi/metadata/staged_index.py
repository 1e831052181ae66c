"""Staged index files: pieces of the record index that the tasks of a large write make from their keys.

Without these pieces, one process would receive, sort and compress all keys. The tasks sort and compress instead, and
leave their pieces in temporary files of the table for the commit:

    a task        the keys of its files; for each file group of the index a sorted HFile of them; one temporary file
    the commit    copies the HFiles into log files of the index, under the table's lock

    .hoodie/.aux/pyhudi_index_pieces/<instant>/<write token>-<number>     deleted when the instant is complete or undone

A commit reads the keys back if the file groups of the index have changed since, or if keys left the table.

A look-up opens every HFile of a file group, so a commit must not add as many HFiles as a load had tasks. `merge_staged`
merges the pieces of many tasks first, with one task for each file group of the index.

Source: docs/formats/metadata-table.md, "Record index", "Writing".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import cast

import msgspec
import numpy as np
import pyarrow as pa

from pyhudi.engine.base import Engine, TaskContext
from pyhudi.errors import CorruptFile, StorageError
from pyhudi.formats.hfile import HFileReader
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.group_files import encoded_records, record_file
from pyhudi.metadata.keys import KeysByGroup, groups_by_prefix, one_per_key
from pyhudi.metadata.locations import file_ids, instant_ms, key_records, partition_paths
from pyhudi.metadata.records import KEY, TYPE, decoded_records
from pyhudi.metadata.schema import MetadataKind, keeps_record_index
from pyhudi.metadata.sorted_runs import sorted_runs
from pyhudi.model.commit import StagedIndexFile, WriteStatus
from pyhudi.model.filenames import METADATA_TABLE_FOLDER, file_id_of, staged_index_folder
from pyhudi.storage.base import Storage, as_storage_error

__all__ = [
    "MergeStaged",
    "StagedIndexWriter",
    "delete_staged_index",
    "merge_staged",
    "staged_by_group",
    "staged_content",
    "with_keys_read_back",
]


_INDEX = MetadataKind.RECORD_INDEX
_PAYLOAD = _INDEX.payloads[0]
_NO_KEYS = pa.nulls(0, pa.string())
_LEAST_KEYS = 50_000  # of a task: the commit may as well write fewer itself
_LEAST_KEYS_OF_GROUP = 500  # an HFile of fewer would be headers more than records
_MOST_KEYS = 1_000_000  # buffered in a task: some tens of MB


@dataclass(frozen=True, slots=True)
class StagedIndexWriter:
    """Writes staged index files in tasks. Picklable. `at_ms`: the instant as `RecordLocation` has it; `least_keys`: a
    task with fewer writes no files; `most_keys`: buffered in a task until they are written.
    """

    storage: Storage
    table_version: int
    instant_time: str
    at_ms: int
    least_keys: int
    most_keys: int

    @classmethod
    def of(cls, data: MetaClient, instant_time: str) -> StagedIndexWriter | None:
        """The writer for the tasks of an instant; None for a table without record index."""
        config = data.config
        if not keeps_record_index(config):
            return None
        at_ms = instant_ms(instant_time, config.timeline_zone)
        return cls(data.storage, config.table_version, instant_time, at_ms, _LEAST_KEYS, _MOST_KEYS)

    def reported(self, task: TaskContext, statuses: Iterable[WriteStatus]) -> Iterator[WriteStatus]:
        """The statuses of a task, with pieces instead of the new keys if there are many. Raises StorageError."""
        statuses_of_file, keys, files = list[WriteStatus](), 0, 0
        for status in statuses:
            statuses_of_file.append(status)
            keys += 0 if status.new_keys is None else len(status.new_keys)
            if keys >= self.most_keys:
                yield from self._with_pieces(statuses_of_file, keys, f"{task.write_token}-{files}")
                statuses_of_file, keys, files = [], 0, files + 1
        yield from self._with_pieces(statuses_of_file, keys, f"{task.write_token}-{files}")

    def _with_pieces(self, statuses: list[WriteStatus], keys: int, name: str) -> list[WriteStatus]:
        groups = self._groups() if keys >= self.least_keys else 0
        if not groups or keys < groups * _LEAST_KEYS_OF_GROUP:
            return statuses
        path = f"{staged_index_folder(self.instant_time)}/{name}"
        pieces = tuple(self._written(statuses, groups, path))
        first, *following = (replace(status, new_keys=_NO_KEYS) for status in statuses)
        return [replace(first, staged_index=pieces), *following]

    def _groups(self) -> int:
        """The number of the index's file groups; 0 if each partition of the table has its own, or none exists yet."""
        folder = f"{METADATA_TABLE_FOLDER}/{_INDEX.value.prefix}"
        file_ids = {file_id_of(entry.name) for entry in self.storage.list(folder)}
        prefixes = groups_by_prefix(file_id for file_id in file_ids if file_id is not None)
        return len(prefixes.get(_INDEX.value.file_ids, ()))

    def _written(self, statuses: Sequence[WriteStatus], groups: int, path: str) -> Iterator[StagedIndexFile]:
        version = self.table_version
        records = key_records(version, self.at_ms, statuses)
        by_group = KeysByGroup.of(_INDEX.value.prefix, records.column(KEY), groups, version)
        places, of_places = _encoded_once(records, version)
        offset = 0
        with as_storage_error(self.storage.full_path(path)), self.storage.open_output(path) as sink:
            for number in by_group.groups().tolist():
                rows, keys = by_group.rows(number)
                file = record_file(sink, version)
                file.append_columns(keys, pa.DictionaryArray.from_arrays(places.take(rows), of_places))
                yield StagedIndexFile(number, groups, path, offset, size_bytes := file.close(), len(keys))
                offset += size_bytes


def _encoded_once(records: pa.Table, table_version: int) -> tuple[pa.Array, pa.Array]:
    """The number of its location for each record of `key_records`, and the encoded record of each location."""
    places = cast("pa.DictionaryArray", records.column(_PAYLOAD).combine_chunks())
    types = records.column(TYPE).combine_chunks().slice(0, 1).take(pa.array(np.zeros(len(places.dictionary), np.int64)))
    bodies = pa.table({TYPE: types, _PAYLOAD: places.dictionary})
    return places.indices, encoded_records(bodies, table_version).cast(pa.binary())


def staged_by_group(pieces: Iterable[StagedIndexFile]) -> dict[int, list[StagedIndexFile]]:
    """Number of a file group → its pieces, in their order."""
    by_group: dict[int, list[StagedIndexFile]] = {}
    for piece in pieces:
        by_group.setdefault(piece.group, []).append(piece)
    return by_group


def staged_content(storage: Storage, piece: StagedIndexFile) -> bytes:
    """The HFile of a piece. `storage`: the table's. Raises StorageError, even if its file was truncated: the metadata
    table itself is not damaged.
    """
    where = storage.full_path(piece.path)
    with storage.open_input(piece.path) as source:
        source.seek(piece.offset)
        content = bytes(source.read(piece.size_bytes))
    if len(content) != piece.size_bytes:
        raise StorageError(
            f"{where} at byte {piece.offset}: {piece.size_bytes} bytes that a task wrote for the record index "
            f"expected, {len(content)} found. Nothing of this write is visible; write again."
        )
    return content


def with_keys_read_back(storage: Storage, statuses: Sequence[WriteStatus]) -> list[WriteStatus]:
    """The statuses with their new keys instead of pieces. Raises StorageError."""
    keys_by_place: dict[tuple[str, str], list[pa.Array]] = {}
    for piece in (piece for status in statuses for piece in status.staged_index):
        try:
            for place, keys in _keys_by_file(storage, piece):
                keys_by_place.setdefault(place, []).append(keys)
        except CorruptFile as error:
            raise StorageError(
                f"{error} A task wrote it for the record index. Nothing of this write is visible; write again."
            ) from error
    return [_with_keys(status, keys_by_place) for status in statuses]


def _keys_by_file(storage: Storage, piece: StagedIndexFile) -> Iterator[tuple[tuple[str, str], pa.Array]]:
    where = storage.full_path(piece.path)
    with storage.open_input(piece.path) as source:
        reader = HFileReader(source, where, piece.offset, piece.size_bytes)
        for rows in decoded_records(reader, where, _INDEX.payloads):
            locations = rows.column(_PAYLOAD).combine_chunks()
            columns = {"path": partition_paths(locations), "file": file_ids(locations), KEY: rows.column(KEY)}
            by_file = pa.table(columns).group_by(["path", "file"]).aggregate([(KEY, "list")])
            for path, file_id, keys in zip(*(by_file.column(at) for at in range(3)), strict=True):
                yield (path.as_py(), file_id.as_py()), keys.values


def _with_keys(status: WriteStatus, keys_by_place: dict[tuple[str, str], list[pa.Array]]) -> WriteStatus:
    if status.new_keys is None:
        return replace(status, staged_index=())
    keys = keys_by_place.get((status.stat.partition_path or "", status.stat.file_id), [])
    return replace(status, new_keys=pa.concat_arrays([status.new_keys, *keys]), staged_index=())


def delete_staged_index(storage: Storage, instant_time: str) -> None:
    """Delete the pieces of an instant that is complete or undone."""
    storage.delete_tree(staged_index_folder(instant_time))


_PIECES_MAX = 8  # more are merged first: each adds a third of a millisecond to a look-up
_JOINED_MAX = 250  # merged at once: each is an open file
_RECORDS_MAX = 1_000_000  # of a merged piece: some 25 MB, which are in memory while it is copied
_KEY, _VALUE = "key", "value"
_SCHEMA = pa.schema([pa.field("pieces", pa.string(), nullable=False)])
_PIECES = msgspec.json.Decoder(tuple[StagedIndexFile, ...])


def merge_staged(
    engine: Engine, writer: StagedIndexWriter | None, statuses: tuple[WriteStatus, ...]
) -> tuple[WriteStatus, ...]:
    """The statuses, with pieces merged for those file groups of the index that have many.

    If tasks saw different file groups, nothing is merged: the commit can't use the pieces as they are.
    Args:   writer: the writer of the pieces, None: there are none.
    Raises: TaskFailed.
    """
    by_group = staged_by_group(piece for status in statuses for piece in status.staged_index)
    crowded = [
        tuple(pieces[start : start + _JOINED_MAX])
        for pieces in by_group.values()
        for start in range(0, len(pieces) if len(pieces) > _PIECES_MAX else 0, _JOINED_MAX)
    ]
    counts = {piece.of_groups for pieces in by_group.values() for piece in pieces}
    if writer is None or not crowded or len(counts) > 1:
        return statuses
    joined = engine.collect(engine.fan_out(crowded, MergeStaged(writer), _SCHEMA)).column("pieces").to_pylist()
    few = [piece for pieces in by_group.values() if len(pieces) <= _PIECES_MAX for piece in pieces]
    pieces = (*few, *(piece for text in joined for piece in _PIECES.decode(str(text))))
    first, *following = (replace(status, staged_index=()) for status in statuses)
    return (replace(first, staged_index=pieces), *following)


@dataclass(frozen=True, slots=True)
class MergeStaged:
    """Fan-out work: merge the pieces of one file group into one, or into a few with a range of the keys each."""

    writer: StagedIndexWriter

    def __call__(self, task: TaskContext, pieces: Sequence[StagedIndexFile]) -> Iterator[pa.RecordBatch]:
        path = f"{staged_index_folder(self.writer.instant_time)}/joined-{pieces[0].group}-{task.write_token}"
        joined = msgspec.json.encode(tuple(self._joined(pieces, path))).decode()
        yield pa.RecordBatch.from_arrays([pa.array([joined], pa.string())], schema=_SCHEMA)

    def _joined(self, pieces: Sequence[StagedIndexFile], path: str) -> Iterator[StagedIndexFile]:
        storage, version = self.writer.storage, self.writer.table_version
        where = storage.full_path(path)
        with ExitStack() as stack:
            runs = sorted_runs([self._rows(piece, stack) for piece in pieces], where)
            sink = stack.enter_context(storage.open_output(path))
            file, offset, records = record_file(sink, version), 0, 0

            def closed() -> StagedIndexFile:
                return replace(pieces[0], path=path, offset=offset, size_bytes=file.close(), records=records)

            for run in runs:
                columns = run.combine_chunks()
                rows, keys = one_per_key(columns.column(_KEY).combine_chunks(), np.arange(len(run)))
                with as_storage_error(where):
                    file.append_columns(keys, columns.column(_VALUE).combine_chunks().take(rows))
                records += len(keys)
                if records >= _RECORDS_MAX:
                    yield (piece := closed())
                    file, offset, records = record_file(sink, version), offset + piece.size_bytes, 0
            if records:
                yield closed()

    def _rows(self, piece: StagedIndexFile, stack: ExitStack) -> Iterator[pa.Table]:
        where = self.writer.storage.full_path(piece.path)
        source = stack.enter_context(self.writer.storage.open_input(piece.path))
        for entries in HFileReader(source, where, piece.offset, piece.size_bytes).scan():
            yield pa.table({_KEY: entries.key_array().cast(pa.string()), _VALUE: entries.values()})
