"""Records of the metadata table: collected from HFiles, decoded together, and compared for equal rows.

`RecordBatchBuilder` gathers entries of several files and decodes them together. Many files may hold a few records each,
and a few take as long to decode as hundreds.

`dictionary_rows` finds equal rows column by column, without comparing whole rows. Equal rows are common in a record
index: its records hold locations, and all keys of a file have the same location.

Source: docs/formats/metadata-table.md, "Records", "Record index".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile
from pyhudi.formats.avro.decode import AvroDecoder
from pyhudi.formats.hfile import GATHER_BYTES, Entries, HFileReader, gathered
from pyhudi.formats.log.reader import LogBlock
from pyhudi.model.keys import RECORD_KEY

__all__ = [
    "DELETED",
    "KEY",
    "SEQUENCE",
    "TYPE",
    "DictionaryRows",
    "RecordBatchBuilder",
    "Take",
    "concat_records",
    "decoded_records",
    "deletes_of",
    "dictionary_rows",
    "no_records",
    "numbered",
]


KEY, TYPE, SEQUENCE, DELETED = "key", "type", "sequence", "deleted"
_SCHEMAS = 32  # parsed schemas in the cache; releases have a few, and each kind of partition its columns

Take = Callable[[HFileReader], Iterable[Entries]]


class RecordBatchBuilder:
    """Collects records of slices of one partition: `key`, `type`, payloads, `sequence` and `deleted`."""

    def __init__(self, payloads: Sequence[str]) -> None:
        self._payloads, self._columns = payloads, (KEY, TYPE, *payloads)
        self._tables: list[pa.Table] = []
        self._entries: dict[str, list[tuple[Entries, str, int]]] = {}  # by schema: entries, their file, sequence
        self._waiting_bytes = 0
        self._deletes: list[pa.Table] = []

    def add(self, reader: HFileReader, where: str, number: int, take: Take) -> None:
        """Add entries of a file. `number`: its position in the order of writing."""
        entries_of_schema = self._entries.setdefault(_schema_of(reader, where), [])
        for entries in take(reader):
            entries_of_schema.append((entries, where, number))
            self._waiting_bytes += entries.size_bytes
            if self._waiting_bytes >= GATHER_BYTES:
                self._decode()

    def add_rows(self, rows: pa.Table, number: int) -> None:
        """Add decoded records."""
        if rows.num_rows:
            self._tables.append(numbered(rows, pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows)))

    def add_deletes(self, block: LogBlock, number: int, keys: pa.Array | None) -> None:
        """Add a delete block's entries for these keys; None: for all."""
        if block.deletes().keys.num_rows:  # a new file group begins with an empty block
            self._deletes.append(deletes_of(block, number, keys))

    def table(self) -> pa.Table:
        """All records; rows of delete blocks have only keys."""
        self._decode()
        filled = [part for part in (*self._tables, *self._deletes) if part.num_rows]
        return concat_records([no_records(self._payloads), *filled])

    def _decode(self) -> None:
        for schema_json, entries_of_schema in self._entries.items():
            if entries_of_schema:
                self._tables.append(_decoded_together(entries_of_schema, _decoder(schema_json, self._columns)))
                entries_of_schema.clear()
        self._waiting_bytes = 0


def no_records(payloads: Sequence[str]) -> pa.Table:
    """No rows, in the columns of records."""
    fields = [pa.field(KEY, pa.string()), pa.field(TYPE, pa.int32())]
    fields += [pa.field(name, pa.null()) for name in payloads]
    return pa.schema([*fields, pa.field(SEQUENCE, pa.int32()), pa.field(DELETED, pa.bool_())]).empty_table()


def decoded_records(reader: HFileReader, where: str, payloads: Sequence[str]) -> Iterator[pa.Table]:
    """All records of an HFile in the order of their keys: `key`, `type` and payloads. Raises CorruptFile."""
    decoder = _decoder(_schema_of(reader, where), (KEY, TYPE, *payloads))
    for entries in reader.scan():
        yield _decoded(entries, where, decoder)


@lru_cache(maxsize=_SCHEMAS)
def _decoder(schema_json: str, columns: tuple[str, ...]) -> AvroDecoder:
    """One decoder for all blocks of a schema: parsing it takes as long as looking up some keys."""
    return AvroDecoder(schema_json, columns, unions=True)


def concat_records(parts: Sequence[pa.Table]) -> pa.Table:
    """All records as one table. Where a column's form differs by table version, missing fields are null."""
    kinds: dict[str, set[pa.DataType]] = {}
    for field in (field for part in parts for field in part.schema if pa.types.is_struct(field.type)):
        kinds.setdefault(field.name, set()).add(field.type)
    changed = {name for name, types in kinds.items() if len(types) > 1}
    if changed:
        parts = [_with_optional_fields(part, changed) for part in parts]
    return pa.concat_tables(parts, promote_options="permissive")


def _with_optional_fields(part: pa.Table, changed: Collection[str]) -> pa.Table:
    """Make all struct fields in these columns optional, so that Arrow joins structs with different fields."""
    for at, field in enumerate(part.schema):
        if field.name in changed and pa.types.is_struct(field.type):
            column = pa.chunked_array(
                [_optional(chunk) for chunk in part.column(at).chunks], _optional_type(field.type)
            )
            part = part.set_column(at, field.name, column)
    return part


def _optional(values: pa.Array) -> pa.Array:
    if not isinstance(values, pa.StructArray):
        return values
    fields = [field.with_nullable(True).with_type(_optional_type(field.type)) for field in values.type]
    children = [_optional(values.field(number)) for number in range(values.type.num_fields)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=values.is_null())


def _optional_type(kind: pa.DataType) -> pa.DataType:
    if not pa.types.is_struct(kind):
        return kind
    return pa.struct([field.with_nullable(True).with_type(_optional_type(field.type)) for field in kind])


def _decoded_together(entries_of_schema: Sequence[tuple[Entries, str, int]], decoder: AvroDecoder) -> pa.Table:
    counts = [len(entries) for entries, _, _ in entries_of_schema]
    numbers = pa.array(np.repeat(np.array([number for _, _, number in entries_of_schema], np.int32), counts))
    if len(entries_of_schema) > 1:
        (together,) = gathered(
            (entries for entries, _, _ in entries_of_schema), sum(e.size_bytes for e, _, _ in entries_of_schema) + 1
        )
        try:
            return numbered(_decoded(together, entries_of_schema[0][1], decoder), numbers)
        except CorruptFile:
            pass  # decoding records one by one finds the damaged one
    rows = pa.concat_tables([_decoded(entries, where, decoder) for entries, where, _ in entries_of_schema])
    return numbered(rows, numbers)


def _schema_of(reader: HFileReader, where: str) -> str:
    schema = reader.schema_json
    if schema is None:
        raise CorruptFile(f"{where}: an HFile of the metadata table without a schema.")
    return schema


def numbered(rows: pa.Table, numbers: pa.Array) -> pa.Table:
    """The records with their `sequence`, none of them `deleted`."""
    rows = rows.append_column(SEQUENCE, numbers)
    return rows.append_column(DELETED, pa.repeat(pa.scalar(False), rows.num_rows))


def _decoded(entries: Entries, where: str, decoder: AvroDecoder) -> pa.Table:
    rows = decoder.decode(entries.content, entries.value_starts, entries.value_ends, where)
    return _with_keys(rows, entries.key_array(), where)


def _with_keys(rows: pa.Table, keys: pa.Array, where: str) -> pa.Table:
    """The rows with the HFile's keys as `key`, which is empty in the values."""
    try:
        texts = keys.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise CorruptFile(f"{where}: a key of the metadata table is not UTF-8 ({error}).") from error
    return rows.set_column(rows.schema.get_field_index(KEY), KEY, texts)


def deletes_of(block: LogBlock, number: int, keys: pa.Array | None) -> pa.Table:
    """The keys of a delete block as `deleted` rows, limited to `keys` unless that is None."""
    deleted = block.deletes().keys.column(RECORD_KEY)
    if keys is not None:
        deleted = deleted.filter(pc.is_in(deleted, keys))
    rows = len(deleted)
    columns = [deleted, pa.repeat(pa.scalar(number, pa.int32()), rows), pa.repeat(pa.scalar(True), rows)]
    return pa.table(dict(zip((KEY, SEQUENCE, DELETED), columns, strict=True)))


_MANY = 2  # rows per distinct row, at least; fewer gain nothing
_CODES = 2**62


@dataclass(frozen=True, slots=True)
class DictionaryRows:
    """`first`: the first row of each kind; `numbers`: for each row, the number of its kind."""

    first: pa.Array
    numbers: pa.Array


def dictionary_rows(rows: pa.RecordBatch) -> DictionaryRows | None:
    """Find equal rows; None if most rows differ, or if columns have unsupported types."""
    most = len(rows) // _MANY
    codes, kinds = np.zeros(len(rows), np.int64), 1
    for column in _leaves(rows.columns):
        if column is None or kinds > most:
            return None
        coded = column.dictionary_encode(null_encoding="encode")
        assert isinstance(coded, pa.DictionaryArray)
        values = max(1, len(coded.dictionary))
        if kinds * values > _CODES:
            return None
        if values > 1:
            codes, kinds = _numbered(codes * values + coded.indices.to_numpy())
    if not len(rows) or kinds > most:
        return None
    first = np.empty(kinds, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # the last of several assignments wins
    return DictionaryRows(pa.array(first), pa.array(codes))


def _numbered(codes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    """The codes renumbered from 0 without gaps, and the number of distinct codes."""
    coded = pa.array(codes).dictionary_encode()
    assert isinstance(coded, pa.DictionaryArray)
    return coded.indices.to_numpy().astype(np.int64), len(coded.dictionary)


def _leaves(columns: list[pa.Array]) -> Iterator[pa.Array | None]:
    """The integers and texts in columns and structs, and the indexes of dictionaries; None for other types and for null
    structs.
    """
    for column in columns:
        kind = column.type
        if isinstance(column, pa.StructArray) and not column.null_count:
            yield from _leaves(column.flatten())
        elif isinstance(column, pa.DictionaryArray) and not column.indices.null_count:
            yield column.indices
        else:
            is_plain = pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)
            yield column if is_plain else None
