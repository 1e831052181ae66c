"""Types of Debezium's rows: what an event says of a column, in Avro or in a schema of Kafka Connect, and its values.

    "connect.name" of Avro, "name" of Connect    the meaning: io.debezium.time.Date is a number of days
    sent    as Avro has it: decimals by precision and scale, days and microseconds as numbers, arrays as lists
    shaped  as the table gets it: dates, timestamps, arrays as texts

JSON holds bytes, and decimals as bytes, in base64. Source: Debezium's documentation, "Data type mappings"; Kafka
Connect's JsonConverter.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pyhudi.errors import SchemaMismatch
from pyhudi.formats.avro.schema import nullable_branch
from pyhudi.java.floats import float_text
from pyhudi.streamer.sources.debezium.unavailable import UNAVAILABLE

__all__ = ["SentType", "of_avro", "of_connect", "of_json", "shaped"]

_EXACT = Context(prec=200)
# What PostgreSQL's connector sends of arrays that it did not get: of texts, of numbers (one a byte), of UUIDs.
_UNAVAILABLE_ARRAYS = (
    f"[{UNAVAILABLE}]",
    f"[{', '.join(str(one) for one in UNAVAILABLE.encode())}]",
    "[b68a35a7-17ad-35b3-af2a-ae46edb4545a]",
)
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_CONNECT_TIMES: Mapping[str, pa.DataType] = {
    "org.apache.kafka.connect.data.Date": pa.date32(),
    "org.apache.kafka.connect.data.Time": pa.time32("ms"),
    "org.apache.kafka.connect.data.Timestamp": pa.timestamp("ms", "UTC"),
}
_HUDIS_DATE = "custom.debezium.DateString"
_DATES = ("io.debezium.time.Date", _HUDIS_DATE)
_INSTANT = "io.debezium.time.ZonedTimestamp"  # a text
_UNITS: Mapping[str, Literal["ms", "us"]] = {
    "io.debezium.time.Timestamp": "ms",
    "io.debezium.time.MicroTimestamp": "us",
}
_SIMPLE: Mapping[str, pa.DataType] = {
    "int8": pa.int32(),
    "int16": pa.int32(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.string(),  # in base64
}
_AVRO = {"int": "int32", "long": "int64", "float": "float", "double": "double", "enum": "string", "fixed": "bytes"}


@dataclass(frozen=True, slots=True)
class SentType:
    """What an event says of a value. `kind`: a word of Connect; `meaning`: "" without one; `parts`: the fields of a
    struct, the item of an array, the value of a map, by their names.
    """

    kind: str
    meaning: str = ""
    precision: int = 38
    scale: int = 0
    parts: Sequence[tuple[str, SentType]] = ()

    def part(self, name: str) -> SentType | None:
        """The type of a field."""
        return dict(self.parts).get(name)

    @property
    def in_json(self) -> pa.DataType:
        """As JSON has it."""
        if self.kind == "struct":
            return pa.struct([pa.field(name, kind.in_json) for name, kind in self.parts])
        if self.kind == "array":
            return pa.list_(pa.field("element", self.parts[0][1].in_json))
        if self.kind == "map":
            return pa.map_(pa.string(), pa.field("value", self.parts[0][1].in_json))
        if self.kind not in _SIMPLE:
            raise SchemaMismatch(f"The schema of an event has the type {self.kind!r:.50}, which Connect lacks.")
        return _SIMPLE[self.kind]


def of_connect(schema: Mapping[str, Any]) -> SentType:
    """The type of a schema of Connect, as JSON has it beside the payload."""
    kind = str(schema.get("type"))
    parameters = schema.get("parameters") or {}
    parts: list[tuple[str, SentType]] = []
    if kind == "struct":
        parts = [(str(field.get("field")), of_connect(field)) for field in schema.get("fields") or ()]
    elif kind in ("array", "map"):
        parts = [("", of_connect(schema.get("items" if kind == "array" else "values") or {}))]
    precision, scale = parameters.get("connect.decimal.precision", 38), parameters.get("scale", 0)
    return SentType(kind, str(schema.get("name") or ""), min(38, int(precision)), int(scale), parts)


def of_avro(avro: Any) -> SentType:
    """The type of a checked Avro schema."""
    if isinstance(avro, list):
        branch, _ = nullable_branch(avro)
        if branch is None:
            raise SchemaMismatch(f"A union of several types is no column: {avro!r:.200}.")
        return of_avro(branch)
    if isinstance(avro, str):
        return SentType(_AVRO.get(avro, avro))
    kind, meaning = avro["type"], str(avro.get("connect.name") or "")
    if kind in ("record", "error"):
        return SentType("struct", meaning, parts=[(field["name"], of_avro(field["type"])) for field in avro["fields"]])
    if kind in ("array", "map"):
        return SentType(kind, meaning, parts=[("", of_avro(avro["items" if kind == "array" else "values"]))])
    if not isinstance(kind, str):
        inner = of_avro(kind)
        return SentType(inner.kind, meaning or inner.meaning, inner.precision, inner.scale, inner.parts)
    if avro.get("logicalType") == "decimal":
        meaning = _DECIMAL
    return SentType(_AVRO.get(kind, kind), meaning, int(avro.get("precision") or 38), int(avro.get("scale") or 0))


def of_json(array: pa.Array, sent: SentType) -> pa.Array:
    """Values of JSON as Avro would have them. Raises ValueError for texts that are no base64, and too many digits."""
    if isinstance(array, pa.StructArray):
        parts = [of_json(part, kind) for part, (_, kind) in zip(array.flatten(), sent.parts, strict=True)]
        return pa.StructArray.from_arrays(parts, [name for name, _ in sent.parts], mask=array.is_null())
    if isinstance(array, pa.ListArray):
        item = of_json(array.flatten(), sent.parts[0][1])
        return _lists(array, item)
    if sent.kind != "bytes":
        return array.cast(_CONNECT_TIMES[sent.meaning]) if sent.meaning in _CONNECT_TIMES else array
    raw = [None if text is None else binascii.a2b_base64(text, strict_mode=True) for text in array.to_pylist()]
    if sent.meaning != _DECIMAL:
        return pa.array(raw, pa.binary())
    numbers = [None if one is None else int.from_bytes(one, "big", signed=True) for one in raw]
    decimals = [None if one is None else Decimal(one).scaleb(-sent.scale, _EXACT) for one in numbers]
    return pa.array(decimals, pa.decimal128(sent.precision, sent.scale))


def shaped(array: pa.Array, sent: SentType, held: pa.DataType | None, *, types_times: bool) -> pa.Array:
    """Values as the table gets them. `held`: the type of its column, which numbers and lists keep.

    Raises: errors of Arrow for a value that the type can't hold.
    """
    if isinstance(array, pa.ListArray):
        return array if held is not None and pt.is_list(held) else _texts(array)
    is_time = sent.meaning in (*_DATES, *_UNITS, _INSTANT)
    wants_time = types_times or sent.meaning == _HUDIS_DATE
    if not is_time or not (wants_time if held is None else pt.is_temporal(held)):
        return array
    if sent.meaning in _DATES:
        return array.cast(pa.date32())
    zone = held.tz if isinstance(held, pa.TimestampType) else "UTC" if sent.meaning == _INSTANT else None
    if sent.meaning in _UNITS:
        array = array.cast(pa.timestamp(_UNITS[sent.meaning], zone))
    return array.cast(pa.timestamp("us", zone))


def _lists(array: pa.ListArray, item: pa.Array) -> pa.ListArray:
    """Lists of the same lengths, with other items."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), item, mask=array.is_null())


def _texts(array: pa.ListArray) -> pa.Array:
    """Lists as Spark's cast has them, `[a, b]`; one that was not sent as UNAVAILABLE."""
    texts = _text_of_lists(array)
    return pc.if_else(pc.is_in(texts, pa.array(_UNAVAILABLE_ARRAYS)), UNAVAILABLE, texts)


def _text_of_lists(array: pa.ListArray) -> pa.Array:
    item = array.flatten()
    if isinstance(item, pa.ListArray):
        inner = _text_of_lists(item)
    else:
        inner = float_text(item) if pt.is_floating(item.type) else item.cast(pa.string())
    joined = pc.binary_join(_lists(array, pc.fill_null(inner, "null")), ", ")
    return pc.binary_join_element_wise("[", joined, "]", "")
