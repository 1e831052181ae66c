"""Records of Kinesis: user records from aggregates of Amazon's producer library (KPL), and rows of JSON.

    F3 89 9A C2 │ Protobuf: keys, records of (key's number, data) │ MD5 of the Protobuf

A record that only begins with these four bytes is a user record. Source: Hudi's KinesisDeaggregator.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyhudi.streamer.json_messages import RowColumns, decode_json
from pyhudi.streamer.sources.source import Rejected

__all__ = ["UserRecord", "rows_of_records", "user_records"]

_MAGIC = b"\xf3\x89\x9a\xc2"
_DIGEST_BYTES = 16
_PLACE = "_hoodie_kinesis_source_"  # Hudi's names
_KEYS, _RECORDS = 1, 3  # fields of the aggregate
_KEY_NUMBER, _DATA = 1, 3  # of its records
_VARINT, _FIXED_8, _BYTES, _FIXED_4 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class UserRecord:
    """`position`: `shard@sequence`, with `#number` in an aggregate. `refused`: why it can't be decoded."""

    shard: str
    sequence: str
    position: str
    key: str
    arrived_ms: int
    data: bytes
    refused: str | None = None


def user_records(shard: str, record: dict[str, Any], *, takes_apart: bool) -> list[UserRecord]:
    """The user records in a record of Kinesis, without blank ones."""
    data, sequence, key = record["Data"], record["SequenceNumber"], record["PartitionKey"]
    arrived_ms = round(record["ApproximateArrivalTimestamp"].timestamp() * 1000)
    position = f"{shard}@{sequence}"
    if not (takes_apart and _is_aggregate(data)):
        return [UserRecord(shard, sequence, position, key, arrived_ms, data)] if data.strip() else []
    try:
        parts = _parts(data[len(_MAGIC) : -_DIGEST_BYTES])
    except (ValueError, IndexError) as error:
        return [UserRecord(shard, sequence, position, key, arrived_ms, data, f"an aggregate that is damaged: {error}")]
    return [
        UserRecord(shard, sequence, f"{position}#{number}", own, arrived_ms, part)
        for number, (own, part) in enumerate(parts)
        if part.strip()
    ]


def rows_of_records(
    stream: str, records: Sequence[UserRecord], columns: RowColumns, *, appends_places: bool
) -> tuple[pa.Table, list[Rejected]]:
    """The rows of JSON records, and rejected records. `appends_places`: with columns for their positions."""
    whole = [one for one in records if one.refused is None]
    decoded = decode_json([one.data for one in whole], columns.without(_PLACE))
    rows = decoded.rows
    if appends_places and rows.num_columns:
        row_records = whole if decoded.numbers is None else [whole[at] for at in decoded.numbers]
        for name, array in {
            "sequence_number": pa.array([one.sequence for one in row_records], pa.string()),
            "shard_id": pa.array([one.shard for one in row_records], pa.string()),
            "partition_key": pa.array([one.key for one in row_records], pa.string()),
            "timestamp": pa.array([one.arrived_ms for one in row_records], pa.int64()),
        }.items():
            rows = rows.append_column(f"{_PLACE}{name}", array)
    refused = [(one, one.refused) for one in records if one.refused is not None]
    refused += [(whole[at], reason) for at, reason in decoded.refused]
    return rows, [
        Rejected(f"{stream}/{one.position}", one.data.decode("utf-8", "backslashreplace"), reason)
        for one, reason in refused
    ]


def _is_aggregate(data: bytes) -> bool:
    if not data.startswith(_MAGIC) or len(data) <= len(_MAGIC) + _DIGEST_BYTES:
        return False
    content, digest = data[len(_MAGIC) : -_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    return hashlib.md5(content, usedforsecurity=False).digest() == digest


def _parts(content: bytes) -> list[tuple[str, bytes]]:
    """Key and data of each record of an aggregate. Raises ValueError, IndexError for a damaged one."""
    keys: list[str] = []
    records: list[bytes] = []
    for field, value in _fields(content):
        if field == _KEYS and isinstance(value, bytes):
            keys.append(value.decode())
        elif field == _RECORDS and isinstance(value, bytes):
            records.append(value)
    if not records:
        raise ValueError("it has no records")
    parts = []
    for record in records:
        values = dict(_fields(record))
        number, data = values.get(_KEY_NUMBER), values.get(_DATA)
        if not isinstance(number, int) or not isinstance(data, bytes):
            raise ValueError("a record of it has no key or no data")
        parts.append((keys[number], data))
    return parts


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a Protobuf message."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind, value = tag & 7, 0
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield tag >> 3, value
            continue
        size, at = (8, at) if kind == _FIXED_8 else (4, at) if kind == _FIXED_4 else _varint(message, at)
        if kind not in (_FIXED_8, _FIXED_4, _BYTES) or at + size > len(message):
            raise ValueError("its Protobuf ends too early, or has a kind that is unknown")
        yield tag >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits per byte, and the offset of its end."""
    number = shift = 0
    while True:
        byte = message[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return number, at
        if shift > 63:
            raise ValueError("a number of more than 64 bits")
