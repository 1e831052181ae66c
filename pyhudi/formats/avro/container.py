"""Avro object containers with one record, as Hudi writes its plans and metadata.

    "Obj\\x01" | header map {"avro.schema": JSON} | sync (16 bytes) | count 1 | byte length | record | sync

The header has no `avro.codec` entry. The sync marker is a digest of the record, so the same body always has the same
bytes. Source: docs/formats/timeline.md, "Bodies"; Avro specification 1.11, "Object Container Files".
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import fastavro

from pyhudi.errors import CorruptFile, HudiError, UnsupportedTable
from pyhudi.formats.avro.checked import checked_schema
from pyhudi.formats.protobuf import read_varint, varint
from pyhudi.formats.timeline.bodies import AvroObject, Body

if TYPE_CHECKING:
    from fastavro.types import Schema

__all__ = ["MAGIC", "Container", "WrittenSchema", "decode_container", "encode_container", "open_container"]

MAGIC = b"Obj\x01"
MAX_BODY_BYTES = 2**31 - 1  # Java readers hold a body in one array, so no valid one is larger

_SYNC_BYTES = 16
_CACHED_SCHEMAS_MAX = 64
_CACHED_CHARS_MAX = 256 * 1024  # longer schemas are not cached, so that the cache stays small
_QUOTED_CHARS = 500  # of fastavro's messages: they may quote the body
_SCHEMA_KEY = b"avro.schema"


def encode_container(schema: str, datum: Mapping[str, object]) -> bytes:
    """Encode the container of one record.

    Args:    schema: the Avro JSON of the record, written unchanged into the header.
    Raises:  ValueError or TypeError, from fastavro, when the datum does not fit the schema.
    """
    body = io.BytesIO()
    fastavro.schemaless_writer(body, _parse_schema(schema), dict(datum), strict_allow_default=True)
    record = body.getvalue()
    sync = hashlib.blake2b(record, digest_size=_SYNC_BYTES).digest()
    text = schema.encode()
    header = b"".join((MAGIC, _long(1), _long(len(_SCHEMA_KEY)), _SCHEMA_KEY, _long(len(text)), text, _long(0), sync))
    return b"".join((header, _long(1), _long(len(record)), record, sync))


def decode_container(data: bytes, where: str = "Avro container", reader_schema: str | None = None) -> tuple[Body, str]:
    """Decode the single record of a container, and the full name of its written type.

    Args:    where: the file's path, for messages.
             reader_schema: resolve the record to this schema (missing fields get their defaults); None: as it was
                 written.
    Raises:  CorruptFile when these bytes are not a complete, uncompressed container of one record.
    """
    container = open_container(data, where)
    return container.decoded(reader_schema), container.schema.name


def open_container(data: bytes, where: str = "Avro container") -> Container:
    """Open a container whose record is not decoded yet. Raises CorruptFile like `decode_container`."""
    if len(data) > MAX_BODY_BYTES:
        raise CorruptFile(f"{where}: {len(data)} bytes, more than the {MAX_BODY_BYTES} that a body can have.")
    if data[:4] != MAGIC:
        raise CorruptFile(f"{where}: expected an Avro container ({MAGIC!r}), found {data[:4]!r}.")
    try:
        header, position = _header(data, where)
        return Container(_written_schema(header, where), _first_block(data, position, where), where)
    except HudiError:
        raise
    except Exception as error:  # fastavro raises errors of any type
        raise _damage(f"{where}: the Avro container of {len(data)} bytes", error) from error


@dataclass(frozen=True, slots=True)
class Container:
    """`record`: the bytes of the only record. `where`: the file's path, for messages."""

    schema: WrittenSchema
    record: bytes
    where: str

    def decoded(self, reader_schema: str | None = None) -> Body:
        """Decode the record's fields. Argument and errors are those of `decode_container`."""
        try:
            reader = None if reader_schema is None else _parse_schema(reader_schema)
            record = fastavro.schemaless_reader(io.BytesIO(self.record), self.schema.parsed, reader)
        except Exception as error:  # fastavro raises errors of any type
            what = f"{self.where}: the Avro record of {len(self.record)} bytes"
            raise _damage(what, error, _asked_for(reader_schema)) from error
        if not isinstance(record, dict):
            raise CorruptFile(f"{self.where}: expected an Avro record, found {type(record).__name__}.")
        return record


def _damage(what: str, error: Exception, asked_for: str = "") -> CorruptFile:
    return CorruptFile(
        f"{what} can't be decoded{asked_for} "
        f"({type(error).__name__}: {str(error)[:_QUOTED_CHARS]}). "
        f"It is truncated or damaged; restore the file, or roll the instant back."
    )


def _asked_for(reader_schema: str | None) -> str:
    return "" if reader_schema is None else f" as {checked_schema(reader_schema).name}"


def _header(data: bytes, where: str) -> tuple[dict[bytes, bytes], int]:
    """Return the header's entries, and where the first block begins."""
    header: dict[bytes, bytes] = {}
    position = len(MAGIC)
    while True:
        count, position = _read_long(data, position, where)
        if count == 0:
            return header, position + _SYNC_BYTES
        if count < 0:  # the size of this part of the map follows
            _, position = _read_long(data, position, where)
        for _ in range(abs(count)):
            key, position = _read_bytes(data, position, where)
            header[key], position = _read_bytes(data, position, where)


def _first_block(data: bytes, position: int, where: str) -> bytes:
    count, position = _read_long(data, position, where)
    if count < 1:
        raise CorruptFile(f"{where}: expected an Avro container of one record, found {count}.")
    return _read_bytes(data, position, where)[0]


def _read_long(data: bytes, position: int, where: str) -> tuple[int, int]:
    value, position = read_varint(data, position, where)
    return (value >> 1) ^ -(value & 1), position


def _read_bytes(data: bytes, position: int, where: str) -> tuple[bytes, int]:
    size, position = _read_long(data, position, where)
    if not 0 <= size <= len(data) - position:
        raise CorruptFile(
            f"{where}: a part of {size} bytes at byte {position}, where {len(data) - position} are left. The Avro "
            f"container is truncated or damaged; restore the file, or roll the instant back."
        )
    return data[position : position + size], position + size


@dataclass(frozen=True, slots=True, eq=False)  # cached by identity
class WrittenSchema:
    """A container's writer schema: its record's full name, its JSON without references, and fastavro's form."""

    name: str
    avro: AvroObject
    parsed: Schema


def _written_schema(header: Mapping[bytes, bytes], where: str) -> WrittenSchema:
    codec = header.get(b"avro.codec", b"null").decode("utf-8", "replace")
    if codec != "null":
        raise CorruptFile(f"{where}: the Avro container is compressed with {codec!r}; Hudi writes none that is.")
    text = header[_SCHEMA_KEY].decode()
    try:
        return _check_cached(text) if len(text) <= _CACHED_CHARS_MAX else _check_schema(text)
    except (CorruptFile, UnsupportedTable) as error:
        raise CorruptFile(f"{where}: {error} Restore the file, or roll the instant back.") from error


def _check_schema(text: str) -> WrittenSchema:
    schema = checked_schema(text)
    empty = next(_types_without_bytes(schema.written), None)
    if empty is not None:
        # A few bytes could claim billions of such items in an array.
        raise CorruptFile(f"An Avro type that takes no bytes, which no body has: {str(empty)[:200]}.")
    return WrittenSchema(schema.name, schema.record, fastavro.parse_schema(schema.written))


# All bodies of a kind have the same schema.
_check_cached = lru_cache(maxsize=_CACHED_SCHEMAS_MAX)(_check_schema)


def _types_without_bytes(schema: object) -> Iterator[object]:
    """Return records without fields, fixed types of size 0, and null outside unions."""
    if isinstance(schema, list):
        for branch in schema:
            yield from _types_without_bytes(branch)
    elif isinstance(schema, dict):
        if schema.get("fields") == [] or (schema.get("type") == "fixed" and schema.get("size") == 0):
            yield schema
        for key in ("type", "items", "values"):
            if schema.get(key) == "null":
                yield schema
            yield from _types_without_bytes(schema.get(key))
        for field in schema.get("fields", ()):
            yield from _types_without_bytes(field)


@cache
def _parse_schema(schema: str) -> Schema:
    """Return one of our schemas in fastavro's form."""
    return fastavro.parse_schema(json.loads(schema))


def _long(value: int) -> bytes:
    """Return Avro's form of a number >= 0: zigzag puts the sign into bit 0."""
    return varint(value << 1)
