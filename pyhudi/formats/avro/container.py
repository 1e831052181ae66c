"""Avro object containers with one record, as Hudi writes its plans and metadata.

    "Obj\\x01" | header map {"avro.schema": JSON} | sync (16 bytes) | count 1 | byte length | record | sync

No `avro.codec` entry stands in the header. The sync marker is a digest of the record, so the same body always gives
the same bytes. Source: docs/formats/timeline.md, "Bodies"; Avro specification 1.11, "Object Container Files".
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

import fastavro

from pyhudi.errors import CorruptFile
from pyhudi.formats.bodies import Body
from pyhudi.formats.protobuf import varint

if TYPE_CHECKING:
    from fastavro.types import Schema

__all__ = ["MAGIC", "decode_container", "encode_container"]

MAGIC = b"Obj\x01"
MAX_BODY_BYTES = 2**31 - 1  # Java readers hold a body in one array, so no valid one is larger

_SYNC_BYTES = 16
_SCHEMA_KEY = b"avro.schema"


def encode_container(schema: str, datum: Mapping[str, object]) -> bytes:
    """The container of one record.

    Args:    schema: the Avro JSON of the record, written into the header as it is.
    Raises:  ValueError or TypeError, from fastavro, when the datum does not fit the schema.
    """
    body = io.BytesIO()
    fastavro.schemaless_writer(body, _parsed(schema), dict(datum), strict_allow_default=True)
    record = body.getvalue()
    sync = hashlib.blake2b(record, digest_size=_SYNC_BYTES).digest()
    text = schema.encode()
    header = b"".join((MAGIC, _long(1), _long(len(_SCHEMA_KEY)), _SCHEMA_KEY, _long(len(text)), text, _long(0), sync))
    return b"".join((header, _long(1), _long(len(record)), record, sync))


def decode_container(data: bytes, where: str = "Avro container", reader_schema: str | None = None) -> tuple[Body, str]:
    """The one record of a container, and the full name of the record that was written.

    Args:    where: the file's path, for messages.
             reader_schema: resolve the record to this schema (fields that it lacks get their defaults); without one it
             comes as it was written.
    Raises:  CorruptFile when these bytes are not a whole, uncompressed container of one record.
    """
    if len(data) > MAX_BODY_BYTES:
        raise CorruptFile(f"{where}: {len(data)} bytes, more than the {MAX_BODY_BYTES} that a body can have.")
    if data[:4] != MAGIC:
        raise CorruptFile(f"{where}: expected an Avro container ({MAGIC!r}), found {data[:4]!r}.")
    try:
        reader = fastavro.reader(io.BytesIO(data), None if reader_schema is None else _parsed(reader_schema))
        name = _check(reader.metadata, where)
        record = next(iter(reader))
    except CorruptFile:
        raise
    except Exception as error:  # fastavro raises whatever type its decoding stumbles over
        raise CorruptFile(
            f"{where}: the Avro container of {len(data)} bytes can't be decoded ({type(error).__name__}: {error}). "
            f"It is truncated or damaged; restore the file, or roll the instant back."
        ) from error
    if not isinstance(record, dict):
        raise CorruptFile(f"{where}: expected an Avro record, found {type(record).__name__}.")
    return record, name


def _check(header: Mapping[str, str], where: str) -> str:
    codec = header.get("avro.codec", "null")
    if codec != "null":
        raise CorruptFile(f"{where}: the Avro container is compressed with {codec!r}; Hudi writes none that is.")
    schema = json.loads(header["avro.schema"])
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise CorruptFile(f"{where}: expected the schema of an Avro record, found {str(schema)[:200]}.")
    empty = next(_types_without_bytes(schema), None)
    if empty is not None:
        # A few bytes could claim billions of such items in an array.
        raise CorruptFile(f"{where}: an Avro type that takes no bytes, which no body has: {str(empty)[:200]}.")
    name, namespace = str(schema.get("name", "")), schema.get("namespace")
    return f"{namespace}.{name}" if namespace and "." not in name else name


def _types_without_bytes(schema: object) -> Iterator[object]:
    """Records without fields, fixed of size 0, and null where it is not a branch of a union."""
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
def _parsed(schema: str) -> Schema:
    return fastavro.parse_schema(json.loads(schema))


def _long(value: int) -> bytes:
    """Avro's form of a number >= 0: zigzag puts the sign into bit 0."""
    return varint(value << 1)
