"""Bodies as no writer makes them: cut, flipped, and of other types than their schema says."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import cast

import fastavro
from hypothesis import strategies as st

from pyhudi.formats.timeline.bodies import AvroObject, AvroType

__all__ = ["avro_body", "damaged_bytes", "with_other_values"]

# What takes the place of a value: other types, and numbers and texts that are too much of something.
_STRANGE = (
    None,
    True,
    -1,
    2**63 - 1,
    1.5,
    "",
    "..",
    "99999999999999999",
    "\u00b2",
    "x" * 5000,
    [],
    [None],
    [[1]],
    {},
    {"a": {"b": 1}},
)
_STRANGE_IN_JSON = (*_STRANGE, 2**64, 10**4000, 1e300, "\ud800")
_STRANGE_IN_AVRO = (*_STRANGE, b"\xff", uuid.UUID(int=1), datetime(2024, 1, 1, tzinfo=timezone.utc))


@st.composite
def damaged_bytes(draw: st.DrawFn, valid: bytes) -> bytes:
    """Any bytes, or valid ones with a few changes: cut off, bytes set, a piece taken out or repeated."""
    if draw(st.booleans()):
        return draw(st.binary(max_size=80))
    data = bytearray(valid)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, max(0, len(data) - 1)))
        kind = draw(st.sampled_from(("cut", "set", "drop", "repeat")))
        if kind == "cut":
            del data[start:]
        elif kind == "set" and data:
            data[start] = draw(st.integers(0, 255))
        elif kind == "drop":
            del data[start : start + draw(st.integers(1, 20))]
        else:
            data[start:start] = data[start : start + draw(st.integers(1, 20))]
    return bytes(data)


@st.composite
def with_other_values(draw: st.DrawFn, body: object, *, in_json: bool) -> object:
    """A body in which a few values, keys or whole branches are others."""
    for _ in range(draw(st.integers(1, 2))):
        places = list(_places(body, ()))
        place = draw(st.sampled_from(places))
        strange = draw(st.sampled_from((*(_STRANGE_IN_JSON if in_json else _STRANGE_IN_AVRO), KeyError)))
        body = _changed(body, place, strange)
    return body


def _places(value: object, at: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    yield at
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*at, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _places(inner, (*at, number))


def _changed(value: object, at: tuple[str | int, ...], strange: object) -> object:
    """`strange` KeyError: the value is left out."""
    if not at:
        return {} if strange is KeyError else strange
    if isinstance(value, dict):
        if len(at) == 1 and strange is KeyError:
            return {key: inner for key, inner in value.items() if key != at[0]}
        return {key: _changed(inner, at[1:], strange) if key == at[0] else inner for key, inner in value.items()}
    assert isinstance(value, list)
    return [_changed(inner, at[1:], strange) if n == at[0] else inner for n, inner in enumerate(value)]


def avro_body(record: str, body: object) -> bytes:
    """A container of one record of this name, with the schema that its values have, not the one that they should."""
    fields = body if isinstance(body, Mapping) else {"body": body}
    names = iter(range(10**6))
    schema = {**cast("AvroObject", _schema(fields, names)), "name": record, "namespace": "org.apache.hudi.avro.model"}
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), [_plain(fields)])
    return out.getvalue()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()} if value else {"none": None}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def _schema(value: object, names: Iterator[int]) -> AvroType:
    if isinstance(value, Mapping):
        inner: Sequence[tuple[str, object]] = [*value.items()] or [("none", None)]
        fields = [{"name": key, "type": _schema(found, names)} for key, found in inner]
        return {"type": "record", "name": f"R{next(names)}", "fields": fields}
    if isinstance(value, list):
        kinds = {json.dumps(found): found for found in (_schema(item, names) for item in value if item is not None)}
        return {"type": "array", "items": ["null", *kinds.values()]}
    if value is None:
        return ["null", "string"]
    if isinstance(value, datetime):
        return {"type": "long", "logicalType": "timestamp-millis"}
    if isinstance(value, uuid.UUID):
        return {"type": "string", "logicalType": "uuid"}
    words = {bool: "boolean", int: "long", float: "double", str: "string", bytes: "bytes"}
    return words[type(value)]
