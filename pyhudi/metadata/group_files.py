"""Files of the metadata table: their content, and base files that a compaction makes by patching older ones.

`GroupFiles` writes three kinds of files: base files, log files with a block of records and one of deletes, and the
empty log file with which a file group begins.

`patch_of` serves a compaction whose log files changed only a few of many records:

    log files of the slice  → the keys that they have, or delete
    these keys              → their versions in the base file, where these count → live records, merged as always
    the base file           → its blocks, with these records replaced (`formats/hfile/patching.py`)

So a compaction costs as much as the writes since the last one, plus a copy of the unchanged blocks. A copied record
keeps the name of its first file as `_hoodie_file_name`, which nobody reads.

Source: docs/formats/metadata-table.md, "Records", "Writing", "Compaction and cleaning"; docs/formats/hfile.md,
"Entries"; docs/formats/log.md, "Block frame", "Delete block"; docs/decisions/0017-patched-base-files.md.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.formats.avro.encode import AvroEncoder
from pyhudi.formats.avro.varint import encode_varints
from pyhudi.formats.bloom import DYNAMIC_V0, BloomFilter
from pyhudi.formats.hfile import HFileReader, HFileWriter, Sink
from pyhudi.formats.hfile.patching import HFilePatch
from pyhudi.formats.log.blocks import delete
from pyhudi.formats.log.envelope import BlockType, HeaderKey, encode_block
from pyhudi.formats.log.writer import LogFileWriter
from pyhudi.metadata.merging import COMBINED, merged_records
from pyhudi.metadata.records import KEY, concat_records, dictionary_rows
from pyhudi.metadata.schema import (
    kind_of,
    of_schema,
    one_field_schema,
    record_fields,
    stored_fields,
    stored_record_schema,
)
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileSlice
from pyhudi.model.filenames import BaseFileName, LogFileName, data_path
from pyhudi.model.keys import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from pyhudi.storage.base import Storage, as_storage_error

__all__ = ["EMPTY_LOG_TOKEN", "GroupFiles", "encoded_records", "new_filter", "patch_of", "record_file", "record_info"]


EMPTY_LOG_TOKEN = "0-0-0"  # write token of the log file with which a file group begins
_CODED = pa.dictionary(pa.int32(), pa.binary())
_FIELD_NULL = b"\x00"  # of a union whose first branch is null
_ROWS_AT_ONCE = 1 << 17  # records encoded together, a few tens of MB
_BLOOM_KEYS, _BLOOM_MAX_KEYS, _BLOOM_ERROR_RATE = 10_000, 100_000, 1e-9  # Hudi's values for the metadata table


def encoded_records(
    bodies: pa.Table, table_version: int, file_name: str | None = None, *, pool: ThreadPoolExecutor | None = None
) -> pa.Array:
    """Each record as Avro binary under `stored_record_schema`. The key is empty: the HFile has it.

    Args:   bodies: records without their keys: `type` and payloads, which may be dictionaries; file_name: value of
                `_hoodie_file_name`; pool: its threads encode runs of records side by side.
    Returns: binary, or a dictionary of it where many records differ only in their keys.
    """
    encode = partial(_encoded, table_version=table_version, file_name=file_name)
    runs = bodies.to_batches(_ROWS_AT_ONCE)
    parts = list(map(encode, runs) if pool is None else pool.map(encode, runs))
    if parts and all(isinstance(part, pa.DictionaryArray) for part in parts):
        return pa.chunked_array(parts, _CODED).unify_dictionaries().combine_chunks()
    return pa.concat_arrays([pa.array([], pa.binary()), *(part.cast(pa.binary()) for part in parts)])


def _encoded(bodies: pa.RecordBatch, table_version: int, file_name: str | None) -> pa.Array:
    """Encode records that differ only in their keys once; the keys of one data file have such records."""
    distinct = dictionary_rows(bodies)
    if distinct is None:
        return _each_encoded(bodies, table_version, file_name)
    once = _each_encoded(bodies.take(distinct.first), table_version, file_name)
    return pa.DictionaryArray.from_arrays(distinct.numbers.cast(pa.int32()), once)


def _each_encoded(bodies: pa.RecordBatch, table_version: int, file_name: str | None) -> pa.Array:
    """Encode each record. Fields that the records lack are null constants, which are encoded before the rows."""
    pieces: list[pa.Array | pa.Scalar] = []
    constant = _meta_fields(file_name) + b"\x00"
    for name in stored_fields(table_version)[len(META_COLUMNS) + 1 :]:
        at = bodies.schema.get_field_index(name)
        if at < 0:
            constant += _FIELD_NULL
            continue
        pieces.append(pa.scalar(constant, pa.binary()))
        constant = b""
        values = bodies.column(at)
        values = values.dictionary_decode() if isinstance(values, pa.DictionaryArray) else values
        column = pa.RecordBatch.from_arrays([values], [name])
        pieces.append(_encoder(table_version, name).encode(column))
    pieces += [pa.scalar(constant, pa.binary()), pa.scalar(b"", pa.binary())]
    return pc.binary_join_element_wise(*pieces)


def _hfile_content(keys: pa.Array, values: pa.Array, table_version: int) -> bytes:
    """The content of an HFile of records, as a log file's block holds it; see `GroupFiles.log_file`."""
    sink = io.BytesIO()
    writer = record_file(sink, table_version)
    writer.append_columns(keys, values)
    writer.close()
    return sink.getvalue()


def record_file(sink: Sink, table_version: int) -> HFileWriter:
    """Return a writer of the HFile in a log file's block; it takes keys and `encoded_records`."""
    return HFileWriter(sink, info=record_info(table_version))


def record_info(table_version: int) -> dict[str, bytes]:
    """The file info of HFiles in the metadata table."""
    return {"schema": stored_record_schema(table_version).encode()}


def new_filter() -> BloomFilter:
    """An empty filter for a new base file."""
    return BloomFilter(_BLOOM_KEYS, _BLOOM_ERROR_RATE, DYNAMIC_V0, _BLOOM_MAX_KEYS)


@cache
def _encoder(table_version: int, field: str) -> AvroEncoder:
    return AvroEncoder(one_field_schema(table_version, field), unions=True)


def _meta_fields(file_name: str | None) -> bytes:
    nulls = _FIELD_NULL * (len(META_COLUMNS) - 1)
    if file_name is None:
        return nulls + _FIELD_NULL
    text = file_name.encode()
    length, _ = encode_varints(np.array([len(text)], np.int64))
    return nulls + b"\x02" + length.tobytes() + text


@dataclass(frozen=True, slots=True)
class GroupFiles:
    """Makes the files of one instant. `storage`: the metadata table's; the partition's folder exists."""

    storage: Storage
    table_version: int
    instant_time: str

    def empty_log(self, partition: str, file_id: str) -> str:
        """Write the log file without records that starts a file group; return its path."""
        block = encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: self.instant_time}, delete.EMPTY)
        name = LogFileName(file_id, self.instant_time, 1, EMPTY_LOG_TOKEN)
        return self._log(data_path(partition, str(name)), [block])[0]

    def log_file(
        self,
        partition: str,
        name: LogFileName,
        keys: pa.Array,
        values: pa.Array,
        deleted: pa.Array,
        stands_for: Sequence[str] = (),
        pieces: Iterable[bytes] = (),
    ) -> tuple[str, int]:
        """Write a log file with the records and then the deletes; return its path and its size in bytes.

        Args:   keys: of the records, in ascending order of their bytes; values: `encoded_records`, one for each key;
                deleted: keys to delete; stands_for: instants whose blocks these replace; pieces: HFiles of older
                records, each written as a separate block before these.
        """
        header = {HeaderKey.INSTANT_TIME: self.instant_time, HeaderKey.SCHEMA: stored_record_schema(self.table_version)}
        if stands_for:
            header[HeaderKey.COMPACTED_BLOCK_TIMES] = ",".join(stands_for)

        def blocks() -> Iterator[bytes]:
            for piece in pieces:
                yield encode_block(BlockType.HFILE_DATA, header, piece)
            if len(keys):
                yield encode_block(BlockType.HFILE_DATA, header, _hfile_content(keys, values, self.table_version))
            if len(deleted):
                within = pa.array([partition] * len(deleted), pa.string())
                entries = pa.RecordBatch.from_arrays([deleted, within], [RECORD_KEY, PARTITION_PATH])
                yield encode_block(BlockType.DELETE, header, delete.encode(entries))

        return self._log(data_path(partition, str(name)), blocks())

    def base_name(self, file_id: str, write_token: str) -> str:
        """The name of a base file."""
        return str(BaseFileName(file_id, write_token, self.instant_time, ".hfile"))

    def base_file(
        self, partition: str, name: str, records: Iterable[pa.Table], *, names_itself: bool
    ) -> tuple[str, int, int]:
        """Write a base file with these records; return its path, its size in bytes and its number of records.

        Args:   name: see `base_name`; records: ascending by key over all tables; names_itself: the records hold the
                file's name, as those of a compaction do.
        """
        path = data_path(partition, name)
        count = 0
        with as_storage_error(self.storage.full_path(path)), self.storage.open_output(path) as sink:
            writer = HFileWriter(sink, info=record_info(self.table_version), bloom_filter=new_filter())
            for table in records:
                values = encoded_records(
                    table.drop_columns(["key"]), self.table_version, name if names_itself else None
                )
                writer.append_columns(table.column("key").combine_chunks(), values)
                count += table.num_rows
            size_bytes = writer.close()
        return path, size_bytes, count

    def patched_file(self, partition: str, name: str, patch: HFilePatch) -> tuple[str, int, int]:
        """Like `base_file`, from an older base file and the changes to it."""
        path = data_path(partition, name)
        with as_storage_error(self.storage.full_path(path)), self.storage.open_output(path) as sink:
            size_bytes, count = patch.write(sink)
        return path, size_bytes, count

    def _log(self, path: str, blocks: Iterable[bytes]) -> tuple[str, int]:
        log = LogFileWriter(self.storage, path)
        for block in blocks:
            log.append(block)
        return path, log.close()


_FEW_LOG_BYTES = 4 << 20  # compressed: their records are all in memory
_FEW_LOG_SHARE = 0.25  # of the base file's bytes: above it, few blocks would remain unchanged


@contextmanager
def patch_of(table: MetadataTable, file_slice: FileSlice, file_name: str) -> Iterator[HFilePatch | None]:
    """The patch that merges a slice's log files into its base file; None if the whole file has to be rewritten. The
    old file stays open until the iterator is closed.

    Args:    file_name: the new file's. Raises: MetadataTableDamaged, CorruptFile.
    """
    base, log_bytes = file_slice.base_file, sum(log.size_bytes for log in file_slice.log_files)
    if base is None or log_bytes > min(_FEW_LOG_BYTES, _FEW_LOG_SHARE * base.size_bytes):
        yield None
        return
    version = table.data.config.table_version
    with table.meta.storage.open_input(base.path) as source:
        keys, values = _changed(table, file_slice, file_name)
        reader = HFileReader(source, base.path)
        yield HFilePatch.of(reader, record_info(version), new_filter(), keys, values)


def _changed(table: MetadataTable, file_slice: FileSlice, file_name: str) -> tuple[pa.Array, pa.Array]:
    """The keys of the log files, ascending, and for each its live record as the base file will hold it, or null."""
    kind, version = kind_of(file_slice.group.partition_path), table.data.config.table_version
    logs = table.reader(replace(file_slice, base_file=None)).all()
    keys = pc.unique(logs.column(KEY).combine_chunks())
    versions = logs
    if kind in COMBINED:
        versions = concat_records([table.reader(replace(file_slice, log_files=())).with_keys(keys), logs])
    live = merged_records(versions, kind)
    changed = keys.cast(pa.binary())
    changed = changed.take(pc.sort_indices(changed))
    if not live.num_rows:
        return changed, pa.nulls(len(changed), pa.binary())
    rows = of_schema(live, record_fields(version, kind))
    encoded = encoded_records(rows.drop_columns([KEY]), version, file_name).cast(pa.binary())
    return changed, encoded.take(pc.index_in(changed, rows.column(KEY).combine_chunks().cast(pa.binary())))
