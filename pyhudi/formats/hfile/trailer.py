"""The trailer of an HFile (its last 4096 bytes), its file info, and names in base files of the metadata table.

The names are those of a meta block (`BLOOM_FILTER`) and of entries in the file info (`BLOOM_FILTER_TYPE`, `LEAST_KEY`,
`GREATEST_KEY`).

Source: docs/formats/hfile.md, "File info", "Trailer", "Meta blocks".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.formats.protobuf import bytes_field, message_fields, number_field, read_varint, varint

__all__ = [
    "BLOOM_FILTER",
    "BLOOM_FILTER_TYPE",
    "GREATEST_KEY",
    "LEAST_KEY",
    "TRAILER_BYTES",
    "Trailer",
    "decode_file_info",
    "encode_file_info",
]


TRAILER_BYTES = 4096
_MAGIC = b'TRABLK"$'
_VERSION = struct.Struct(">I")
_MAJOR, _MINOR = 3, 3
_COMPARATOR = "org.apache.hudi.io.storage.HoodieHBaseKVComparator"  # old HBase readers look up the class
_MAX_LEVELS = 10
_INFO_MAGIC = b"PBUF"


@dataclass(frozen=True, slots=True)
class Trailer:
    """The positions of all parts. `levels`: 1 if the root index names data blocks. Offsets are -1 in an empty file."""

    file_info_offset: int
    load_on_open_offset: int
    data_index_bytes: int
    total_bytes: int
    data_index_count: int
    meta_index_count: int
    entry_count: int
    levels: int
    first_data_offset: int
    last_data_offset: int
    codec: int

    @classmethod
    def decode(cls, data: bytes, where: str) -> Trailer:
        """Decode the last 4096 bytes. Raises CorruptFile, and UnsupportedTable for another version."""
        if len(data) != TRAILER_BYTES or not data.startswith(_MAGIC):
            raise CorruptFile(f"{where}: expected the trailer of an HFile in the last {TRAILER_BYTES} bytes.")
        (version,) = _VERSION.unpack(data[-_VERSION.size :])
        if version & 0xFFFFFF != _MAJOR:
            raise UnsupportedTable(f"{where}: an HFile of version {version & 0xFFFFFF}; Hudi's have version {_MAJOR}.")
        length, start = read_varint(data, len(_MAGIC), where)
        if length > TRAILER_BYTES - _VERSION.size - start:
            raise CorruptFile(f"{where}: a trailer of {length} bytes does not fit into {TRAILER_BYTES}.")
        fields = dict(message_fields(data[start : start + length], where))
        numbers = [fields.get(number, 0) for number in range(1, 11)]
        codec = fields.get(12, 1)
        if not all(isinstance(value, int) for value in (*numbers, codec)):
            raise CorruptFile(f"{where}: a field of the trailer is not a number.")
        trailer = cls(*(_signed(int(value)) for value in (*numbers, codec)))
        if not 1 <= trailer.levels <= _MAX_LEVELS:
            raise CorruptFile(f"{where}: an index of {trailer.levels} levels.")
        return trailer

    def encode(self) -> bytes:
        """Encode the last 4096 bytes."""
        values = (
            self.file_info_offset,
            self.load_on_open_offset,
            self.data_index_bytes,
            self.total_bytes,
            self.data_index_count,
            self.meta_index_count,
            self.entry_count,
            self.levels,
            self.first_data_offset,
            self.last_data_offset,
        )
        message = b"".join(number_field(number, value % 2**64) for number, value in enumerate(values, start=1))
        message += bytes_field(11, _COMPARATOR.encode()) + number_field(12, self.codec)
        head = _MAGIC + varint(len(message)) + message
        return head + bytes(TRAILER_BYTES - len(head) - _VERSION.size) + _VERSION.pack(_MINOR << 24 | _MAJOR)


def encode_file_info(info: Mapping[str, bytes]) -> bytes:
    """Encode the body of the file info block."""
    pairs = (bytes_field(1, name.encode()) + bytes_field(2, value) for name, value in sorted(info.items()))
    message = b"".join(bytes_field(1, pair) for pair in pairs)
    return _INFO_MAGIC + varint(len(message)) + message


def decode_file_info(body: bytes, where: str) -> dict[str, bytes]:
    """Decode the entries of the file info block. Raises CorruptFile."""
    if not body.startswith(_INFO_MAGIC):
        raise CorruptFile(f"{where}: the file info does not begin with {_INFO_MAGIC!r}.")
    length, start = read_varint(body, len(_INFO_MAGIC), where)
    if length > len(body) - start:
        raise CorruptFile(f"{where}: a file info of {length} bytes, where {len(body) - start} are left.")
    info: dict[str, bytes] = {}
    for number, pair in message_fields(body[start : start + length], where):
        if number == 1 and isinstance(pair, bytes):
            entry = dict(message_fields(pair, where))
            name, value = entry.get(1, b""), entry.get(2, b"")
            if isinstance(name, bytes) and isinstance(value, bytes):
                info[name.decode("utf-8", "replace")] = value
    return info


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


BLOOM_FILTER, BLOOM_FILTER_TYPE = "bloomFilter", "bloomFilterTypeCode"
LEAST_KEY, GREATEST_KEY = "minRecordKey", "maxRecordKey"
