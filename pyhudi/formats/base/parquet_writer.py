"""The writer of Parquet base files, and its choice of the columns that get a dictionary.

Files have v1 data pages, optional columns, three-level lists and statistics. A column gets a dictionary only where a
sample shows that it pays off.

On a column of mostly distinct values a dictionary costs both time and size; on few values it is the best encoding. Two
samples of the first row group decide, leaf by leaf; a small group is its own sample. One sample has rows spread over
the group. It gives an estimate of the number of distinct values (Chao's estimator: values seen once against values seen
twice). The other has neighbouring rows, which show the runs of sorted data.

Source: docs/formats/base-files.md, "Parquet layouts", "Footer".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.errors import ConfigError, CorruptFile
from pyhudi.formats.base.base import BaseFileOptions, BaseFileReader, Footer, close_quietly, fit
from pyhudi.formats.base.parquet_calendar import old_calendar
from pyhudi.formats.base.parquet_reader import AVRO_SCHEMA_KEY, ParquetReader
from pyhudi.formats.base.ranges import FooterRanges, nan_columns, ranges_of_file
from pyhudi.formats.column_stats import ColumnRange, column_type
from pyhudi.formats.parquet.chunks import ChunkFile, ChunkSource, Picked, elements_of
from pyhudi.formats.parquet.footer import ParquetFooter, read_footer
from pyhudi.storage.base import Storage, as_storage_error
from pyhudi.storage.synced_file import begin_sync

__all__ = ["ParquetWriter", "dictionary_paths"]


_SAMPLE_ROWS = 2048
_WHOLE_ROWS = 2 * _SAMPLE_ROWS  # counting this many rows is as fast as taking two samples
# Share of distinct values in a row group up to which a dictionary is written and read faster than plain values
# (measured with zstd on strings, integers and doubles: they break even between 0.1 and 0.25).
_WORTH_SHARE = 0.15


def dictionary_paths(table: pa.Table, schema: pa.Schema, plain: Collection[str] = ()) -> list[str]:
    """Return Parquet paths of the leaves of `table` (a row group, columns of `schema`) that should have a dictionary.

    Args: plain: columns known not to benefit.
    """
    rows, paths = len(table), list[str]()
    if rows == 0:
        return []
    spread = pa.array(np.linspace(0, rows - 1, _SAMPLE_ROWS).astype(np.int64)) if rows > _WHOLE_ROWS else None
    for field, column in zip(schema, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            paths.append(field.name)  # the caller encoded it already
        elif field.name not in plain and spread is None:
            _collect((column.combine_chunks(),), field.name, 1, paths)
        elif field.name not in plain:
            neighbours = column.slice((rows - _SAMPLE_ROWS) // 2, _SAMPLE_ROWS).combine_chunks()
            _collect((column.take(spread).combine_chunks(), neighbours), field.name, rows / _SAMPLE_ROWS, paths)
    return paths


def _collect(samples: tuple[pa.Array, ...], path: str, scale: float, paths: list[str]) -> None:
    """Decide on the leaves below `path`.

    Args: samples: all rows, or a spread sample and neighbours; scale: rows of the group per row of the first one.
    """
    parts = [_parts(sample) for sample in samples]
    for part in zip(*parts, strict=True):
        _collect(tuple(array for _, array in part), f"{path}.{part[0][0]}", scale, paths)
    if parts[0] or pa.types.is_boolean(samples[0].type) or pa.types.is_nested(samples[0].type):
        return
    if _few_by_runs(samples[-1]) or (len(samples) > 1 and _few_by_estimate(samples[0], scale)):
        paths.append(path)


def _parts(array: pa.Array) -> list[tuple[str, pa.Array]]:
    """Return the arrays inside a nested one, each with its name in Parquet."""
    if isinstance(array, pa.StructArray):
        return [(array.type.field(index).name, part) for index, part in enumerate(array.flatten())]
    if isinstance(array, pa.MapArray):
        return [("key_value.key", array.keys), ("key_value.value", array.items)]
    return [("list.element", array.flatten())] if isinstance(array, pa.ListArray) else []


def _few_by_estimate(sample: pa.Array, scale: float) -> bool:
    counts = pc.value_counts(sample.drop_null()).field("counts").to_numpy()
    once, twice = np.count_nonzero(counts == 1), np.count_nonzero(counts == 2)
    unseen = 0.0 if once == 0 else once**2 / (2 * twice) if twice else np.inf
    return bool(len(counts) + unseen <= _most_distinct(len(sample) * scale))


def _few_by_runs(sample: pa.Array) -> bool:
    return bool(pc.count_distinct(sample).as_py() <= _most_distinct(len(sample)))


def _most_distinct(rows: float) -> float:
    return max(1.0, _WORTH_SHARE * rows)


_Codec: TypeAlias = Literal["zstd", "gzip", "snappy", "lz4", "brotli", "none"]
# Hudi's names of codecs → pyarrow's name and the default level, None if it has no levels. Level 9, pyarrow's choice for
# gzip, takes ten times as long as level 1 for a few per cent of size.
_CODECS: dict[str, tuple[_Codec, int | None]] = {
    "zstd": ("zstd", 1),
    "gzip": ("gzip", 1),
    "snappy": ("snappy", None),
    "lz4": ("lz4", None),  # the raw framing, which every current reader knows
    "lz4_raw": ("lz4", None),
    "brotli": ("brotli", 1),
    "uncompressed": ("none", None),
    "none": ("none", None),
}


_PAGE_ROWS = 4096  # readers of single rows decompress whole pages; smaller ones make files 1 % larger


@cache
def _page_limits() -> Mapping[str, int]:
    """Return the option that limits the rows of a page, if this pyarrow has it."""
    limits = {"max_rows_per_page": _PAGE_ROWS}
    try:
        pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([]), **limits).close()  # type: ignore[arg-type]
    except TypeError:  # an older pyarrow
        return {}
    return limits


@dataclass(frozen=True, slots=True)
class _Copies:
    """The file whose row groups are copied, and the file that receives them."""

    source: ParquetReader
    chunks: ChunkSource
    leaves: Mapping[str, int]
    file: ChunkFile


class ParquetWriter:
    """One Parquet base file being written."""

    def __init__(
        self, storage: Storage, path: str, schema: pa.Schema, options: BaseFileOptions, watched: Sequence[str] = ()
    ) -> None:
        codec = options.codec.lower()
        if codec not in _CODECS:
            raise ConfigError(f"Unknown Parquet codec {options.codec!r}; known: {', '.join(_CODECS)}.")
        self._codec, level = _CODECS[codec]
        # A codec without a level here has none to choose.
        self._level = level if level is None or options.compression_level is None else options.compression_level
        self._schema, self._plain, self._checksums = schema, options.plain_columns, options.page_checksums
        self._watched, self._nan_columns = tuple(watched), set[str]()
        self._storage, self._path = storage, path
        self._where = storage.full_path(path)
        self._sink = storage.open_output(path)
        self._writer: pq.ParquetWriter | None = None  # created with the first rows, which decide on dictionaries
        self._copies: _Copies | None = None
        self._metadata: pq.FileMetaData | None = None  # of the closed file
        self._first_schema: pa.Schema | None = None  # the columns in the form of the first rows
        self._dictionaries: list[str] = []

    @property
    def written_bytes(self) -> int:
        return 0 if self._writer is None and self._copies is None else int(self._sink.tell())

    def write(self, table: pa.Table) -> None:
        with as_storage_error(self._where):
            rows = self._match_encoding(table)
            if self._copies is None:
                self._writer = self._writer or self._pyarrow_writer(self._sink, rows.schema)
                self._writer.write_table(rows, row_group_size=max(1, len(rows)))
            else:
                self._copies.file.add(self._encode_row_group(rows), len(rows))
            begin_sync(self._sink)
        self._nan_columns.update(nan_columns(rows, self._watched))

    def _match_encoding(self, table: pa.Table) -> pa.Table:
        """Return the rows, with string columns in the encoding of the first rows."""
        if self._first_schema is None:
            assert table.column_names == self._schema.names, (table.column_names, self._schema.names)
            coded = [pa.types.is_dictionary(kind) for kind in table.schema.types]
            self._first_schema = pa.schema(
                [
                    pa.field(field.name, pa.dictionary(pa.int32(), field.type) if is_coded else field.type)
                    for field, is_coded in zip(self._schema, coded, strict=True)
                ]
            )
            self._dictionaries = dictionary_paths(table, self._schema, self._plain)
        columns = [
            _to_written_form(column, kind, name)
            for name, column, kind in zip(table.column_names, table.columns, self._first_schema.types, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self._first_schema).unify_dictionaries()

    def _pyarrow_writer(
        self, sink: pa.NativeFile, schema: pa.Schema, dictionaries: Collection[str] | None = None
    ) -> pq.ParquetWriter:
        return pq.ParquetWriter(
            sink, schema, version="2.6", compression=self._codec, compression_level=self._level,
            use_dictionary=self._dictionaries if dictionaries is None else list(dictionaries),  # type: ignore[arg-type]  # pyarrow takes names, too
            write_statistics=True, data_page_version="1.0", store_schema=False,
            use_compliant_nested_type=True, write_page_checksum=self._checksums, **_page_limits(),  # type: ignore[arg-type]
        )  # fmt: skip

    def _encode_row_group(self, rows: pa.Table, dictionaries: Collection[str] | None = None) -> list[Picked]:
        """Encode the chunks of a row group with these rows, in memory."""
        sink = pa.BufferOutputStream()
        with self._pyarrow_writer(sink, rows.schema, dictionaries) as writer:
            writer.write_table(rows, row_group_size=max(1, len(rows)))
        source = ChunkSource.of_buffer(sink.getvalue())
        return [(source, chunk) for chunk in source.groups[0].chunks]

    def copyable(self, source: BaseFileReader) -> frozenset[int]:
        return copyable_groups(source, self._empty_footer()) if isinstance(source, ParquetReader) else frozenset()

    def _empty_footer(self) -> ParquetFooter:
        """Return the footer of a file with these columns and without rows."""
        sink = pa.BufferOutputStream()
        self._pyarrow_writer(sink, self._schema).close()
        return read_footer(pa.BufferReader(sink.getvalue()))

    def start_copying(self, source: BaseFileReader) -> None:
        assert self._writer is None, "before the first rows"
        assert isinstance(source, ParquetReader), source
        ours, chunks = self._empty_footer(), source.chunks()[1]
        with as_storage_error(self._where):
            self._copies = _Copies(source, chunks, _leaves(ours), ChunkFile(self._sink, ours.thrift))

    def copy(self, part: int, replaced: pa.Table) -> None:
        copies = self._copies
        assert copies is not None, "start_copying comes first"
        group = copies.chunks.groups[part]
        picked = [(copies.chunks, chunk) for chunk in group.chunks]
        columns = pa.schema([self._schema.field(name) for name in replaced.column_names])
        for encoded in self._encode_row_group(replaced, dictionary_paths(replaced, columns)):
            picked[copies.leaves[encoded[1].path]] = encoded
        with as_storage_error(self._where):
            copies.file.add(picked, group.rows)
            begin_sync(self._sink)
        self._note_nan(copies.source, part, replaced)

    def _note_nan(self, source: ParquetReader, part: int, replaced: pa.Table) -> None:
        """Note the float columns with NaN, of which a footer says nothing, in a copied part and what replaces it."""
        column_names, given_names = set(self._schema.names), set(replaced.column_names)
        copied: dict[str, list[str]] = {}
        for name in self._watched:
            top = name if name in column_names else name.partition(".")[0]
            if top in given_names:
                self._nan_columns.update(nan_columns(replaced, [name]))
            elif _is_float(self._schema, name):
                copied.setdefault(top, []).append(name)
        if copied:
            floats = [name for names in copied.values() for name in names]
            for batch in source.batches(list(copied), parts=[part]):
                self._nan_columns.update(nan_columns(pa.Table.from_batches([batch]), floats))

    def close(self, footer: Footer) -> int:
        key_values = footer.key_values(AVRO_SCHEMA_KEY)
        with as_storage_error(self._where):
            if self._copies is None:
                writer = self._writer = self._writer or self._pyarrow_writer(self._sink, self._schema, [])
                writer.add_key_value_metadata(key_values)
                writer.close()
                self._metadata = writer.writer.metadata
            else:
                self._metadata = self._copies.file.close(key_values)
            size = int(self._sink.tell())
            self._sink.close()
        return size

    def ranges(self) -> tuple[ColumnRange, ...]:
        assert self._metadata is not None
        footer_ranges = FooterRanges(self._metadata, self._schema, nan_columns=self._nan_columns)
        if all(footer_ranges.of(name)[1] for name in self._watched):
            return ranges_of_file(None, footer_ranges, self._watched)
        with ParquetReader(self._storage, self._path) as reader:  # texts too long for a footer
            return ranges_of_file(reader, footer_ranges, self._watched)

    def abandon(self) -> None:
        close_quietly(self._writer, self._sink)
        self._writer = None


def _is_float(schema: pa.Schema, name: str) -> bool:
    kind = column_type(schema, name)
    return kind is not None and pa.types.is_floating(kind)


def _leaves(footer: ParquetFooter) -> dict[str, int]:
    """Return leaf columns by path."""
    schema = footer.metadata.schema
    return {schema.column(at).path: at for at in range(len(schema))}


def copyable_groups(source: ParquetReader, ours: ParquetFooter) -> frozenset[int]:
    """Return the row groups of a file that have the form of this writer's: same leaves, in this file, not encrypted."""
    try:
        footer, chunks = source.chunks()
    except CorruptFile:
        return frozenset()  # a reader of its rows reports the damage
    theirs, expected = footer.metadata.schema, ours.metadata.schema
    leaves = range(len(expected))
    if len(_leaves(ours)) != len(leaves):
        return frozenset()  # a column with a dot in its name has the path of another one's field
    if len(theirs) != len(leaves) or not all(theirs.column(at).equals(expected.column(at)) for at in leaves):
        return frozenset()
    is_nested = any(expected.column(at).max_definition_level > 1 for at in leaves)
    if is_nested and elements_of(footer.thrift) != elements_of(ours.thrift):
        return frozenset()  # equal levels can have different meanings
    if old_calendar(footer.metadata.metadata) is not None:
        return frozenset()
    damaged = {group for group, _ in footer.unreadable_chunks}
    size = chunks.file.size()
    return frozenset(
        number
        for number, group in enumerate(chunks.groups)
        if number not in damaged
        and len(group.chunks) == len(leaves)
        and group.rows == source.part_rows[number]
        and all(chunk.is_within(size) for chunk in group.chunks)
    )


def _to_written_form(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    """Return a column in the form of the writer's schema: dictionary-encoded or plain."""
    if column.type != kind and pa.types.is_dictionary(kind):
        return fit(column, kind.value_type, name).dictionary_encode()
    return fit(column, kind, name)
