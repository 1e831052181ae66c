"""Many Avro binaries of one schema → one Arrow batch, column by column.

Each record has one position; each field is read for all records at once (`walk.py`, `scalars.py`, `nested.py`). Finally
each position must be at the end of its record, which verifies the whole walk. Chunks of 16 Ki records stay in the
processor's cache.

Source: Avro specification 1.11, "Binary encoding".
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from pyhudi.errors import CorruptFile
from pyhudi.formats.avro.checked import checked_schema
from pyhudi.formats.avro.fields import (
    Reader,
    Walk,
    boolean,
    enum,
    fixed,
    integer,
    nullable,
    number,
    record,
    repeated,
    sole_branch,
    union,
    variable,
)
from pyhudi.formats.avro.schema import arrow_from_avro, nullable_branch
from pyhudi.formats.avro.varint import Buffer, Positions
from pyhudi.formats.damage import as_corrupt
from pyhudi.formats.timeline.bodies import AvroObject, AvroType

__all__ = ["AvroDecoder"]

CHUNK_RECORDS = 16 * 1024


class AvroDecoder:
    """Decodes records written under one Avro record schema.

    Args:    schema: the writer's schema as JSON; columns: top-level fields to build, None for all. The other fields are
                 skipped byte by byte, as in every Avro reader, but not built; unions: as for `arrow_from_avro`.
    """

    def __init__(self, schema: str, columns: Collection[str] | None = None, *, unions: bool = False) -> None:
        full = arrow_from_avro(schema, unions=unions)
        read_fields = [field for field in full if columns is None or field.name in columns]
        self.schema = pa.schema(read_fields)
        fields = checked_schema(schema).record["fields"]
        self._fields = [
            (field["name"], _reader(field["type"], full.field(index).type)) for index, field in enumerate(fields)
        ]

    def decode(
        self, content: bytes | memoryview, starts: Positions, ends: Positions, where: str = "Avro records"
    ) -> pa.Table:
        """Decode the records in `content[starts[i]:ends[i]]`, in their order.

        Args:    starts, ends: int64, one per record; where: for messages.
        Raises:  CorruptFile when the bytes are not records of the schema.
        """
        if len(starts) and (int(starts.min()) < 0 or int(ends.max()) > len(content) or (starts > ends).any()):
            raise CorruptFile(f"{where}: an Avro record lies outside its block.")
        walk = Walk(Buffer(content), where)
        with as_corrupt(where, "Avro records"):
            batches = [
                self._decode_chunk(walk, starts[first : first + CHUNK_RECORDS], ends[first : first + CHUNK_RECORDS])
                for first in range(0, len(starts), CHUNK_RECORDS)
            ]
            return pa.Table.from_batches(batches, schema=self.schema)

    def _decode_chunk(self, walk: Walk, starts: Positions, ends: Positions) -> pa.RecordBatch:
        positions, read_names = starts, set(self.schema.names)
        arrays: list[pa.Array] = []
        for name, read in self._fields:
            array, positions = read(walk, positions, ends, name in read_names)
            if array is not None:
                arrays.append(array)
        if not np.array_equal(positions, ends):
            raise CorruptFile(f"{walk.where}: Avro records are longer than their schema says.")
        if not arrays:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(starts), pa.struct([])))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _reader(avro: AvroType, arrow: pa.DataType) -> Reader:
    if isinstance(avro, list):
        branch, has_null = nullable_branch(avro)
        if branch is None:
            return _union(avro, arrow)
        if not has_null:
            return sole_branch(_reader(branch, arrow))
        return nullable(_reader(branch, arrow), avro.index("null"), arrow)
    parts: AvroObject = {"type": avro} if isinstance(avro, str) else avro
    kind = parts["type"]
    if isinstance(kind, (list, dict)):
        return _reader(kind, arrow)
    if kind in ("record", "error"):
        assert pa.types.is_struct(arrow)
        return record([_reader(f["type"], arrow.field(i).type) for i, f in enumerate(parts["fields"])], arrow)
    if kind == "array":
        assert pa.types.is_list(arrow)
        return repeated(_reader(parts["items"], arrow.value_type), arrow)
    if kind == "map":
        assert pa.types.is_map(arrow)
        value = _reader(parts["values"], arrow.item_type)
        entry = pa.struct([arrow.key_field, arrow.item_field])
        return repeated(record([variable(pa.string()), value], entry), arrow)
    if kind == "fixed":
        return fixed(int(parts["size"]), arrow)
    if kind == "enum":
        return enum(tuple(parts["symbols"]))
    return _simple(kind, arrow)


def _union(avro: list[AvroType], arrow: pa.DataType) -> Reader:
    assert pa.types.is_struct(arrow)
    members = iter(arrow)
    return union([None if branch == "null" else _reader(branch, next(members).type) for branch in avro], arrow)


def _simple(kind: str, arrow: pa.DataType) -> Reader:
    if kind in ("int", "long"):
        return integer(arrow, 32 if kind == "int" else 64)
    if kind in ("string", "bytes"):
        return variable(arrow)
    if kind == "float":
        return number(np.dtype("<f4"), arrow)
    if kind == "double":
        return number(np.dtype("<f8"), arrow)
    if kind == "boolean":
        return boolean
    return lambda walk, at, limits, build: (pa.nulls(len(at)) if build else None, at)
