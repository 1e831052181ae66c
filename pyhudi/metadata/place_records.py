"""Records of a record index: which file group has a key, and since which instant.

Places are few and keys are many: each place is encoded once, and a key takes the record of its place.
Source: docs/formats/metadata-table.md, "Record index".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import TableError
from pyhudi.metadata.partitions import MetadataKind, RecordType
from pyhudi.metadata.schema import record_fields
from pyhudi.model.instant import parse_instant_time

__all__ = ["RowPlace", "coded_place_records", "encoded_places", "instant_ms", "place_records"]

_PAYLOAD = MetadataKind.RECORD_INDEX.payloads[0]

_UUID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:-(0|[1-9][0-9]{0,9}))?", re.ASCII)
_NO_INDEX = -1  # of a file id that is a UUID alone, and of raw file ids
_JAVA_INTS = 2**31  # file ids count in Java's int


@dataclass(frozen=True, slots=True)
class RowPlace:
    """A file group, and when its rows came there (`instant_ms`)."""

    partition_path: str
    file_id: str
    instant_ms: int


def instant_ms(instant_time: str, zone: tzinfo | None) -> int:
    """Milliseconds since 1970 of an instant time in the zone of the timeline; 0 for one that is no moment.

    Nothing may rest on it (docs/formats/metadata-table.md), so that an odd name of a file is no reason to fail.
    """
    try:
        return round(parse_instant_time(instant_time, zone).timestamp() * 1000)
    except TableError:
        return 0


def place_records(
    table_version: int, keys: pa.Array, places: Sequence[RowPlace], numbers: npt.NDArray[np.int32] | None = None
) -> pa.Table:
    """Records of the partition `record_index`, one for each key.

    Args:    keys: text without nulls; numbers: which of `places` each key has, None: all have the first.
    Returns: columns `key`, `type` and `recordIndexMetadata`, as `record_fields` says for the table version.
    """
    of_keys = np.zeros(len(keys), np.int32) if numbers is None else numbers
    records = coded_place_records(table_version, keys, encoded_places(table_version, places), of_keys)
    payload = records.column(_PAYLOAD).combine_chunks()
    plain = payload.dictionary_decode() if isinstance(payload, pa.DictionaryArray) else payload
    schema = record_fields(table_version, MetadataKind.RECORD_INDEX)
    return pa.table([*records.columns[:-1], plain], schema=schema)


def encoded_places(table_version: int, places: Sequence[RowPlace]) -> pa.Array:
    """What the records of the keys in each of these places say of it."""
    kind = record_fields(table_version, MetadataKind.RECORD_INDEX).field(_PAYLOAD).type
    found: pa.Array = pa.array([_encoded(place) for place in places], kind)
    return found


def coded_place_records(
    table_version: int, keys: pa.Array | pa.ChunkedArray, encoded: pa.Array, numbers: npt.NDArray[np.int32]
) -> pa.Table:
    """As `place_records`, with the `encoded_places` as a dictionary: of very many keys that are sorted and written, a
    number each moves.
    """
    schema = record_fields(table_version, MetadataKind.RECORD_INDEX)
    if not len(keys):
        return schema.empty_table()
    kinds = pa.repeat(pa.scalar(RecordType.RECORD_INDEX.value, pa.int32()), len(keys))
    payload = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), encoded)
    columns = [keys.cast(schema.field("key").type), kinds, payload]
    return pa.Table.from_arrays(columns, schema=schema.set(2, schema.field(2).with_type(payload.type)))


def _encoded(place: RowPlace) -> dict[str, object]:
    """The payload of all rows of a place; `position` (from version 8 on) stays null, as in Hudi."""
    same: dict[str, object] = {"partitionName": place.partition_path, "instantTime": place.instant_ms}
    found = _UUID.fullmatch(place.file_id)
    if found is None or int(found[2] or 0) >= _JAVA_INTS:
        raw = {"fileIdHighBits": -1, "fileIdLowBits": -1, "fileIndex": _NO_INDEX, "fileId": place.file_id}
        return {**same, **raw, "fileIdEncoding": 1}
    digits = found[1].replace("-", "")
    high, low = (int.from_bytes(bytes.fromhex(half), "big", signed=True) for half in (digits[:16], digits[16:]))
    index = _NO_INDEX if found[2] is None else int(found[2])
    return {**same, "fileIdHighBits": high, "fileIdLowBits": low, "fileIndex": index, "fileId": "", "fileIdEncoding": 0}
