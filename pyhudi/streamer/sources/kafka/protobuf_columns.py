"""Protobuf messages as columns, in the types of Hudi's ProtoConversionUtil: a column of all messages at once.

bool, float, double, string, bytes      as they are; the default where a message has no value
int32, sint32, sfixed32, fixed32        int32
int64, sint64, sfixed64, fixed64        int64; so is uint32
uint64                                  decimal(21, 0)
an enumeration                          the name of its value
Timestamp, Int64Value, …                a nullable time in UTC, a nullable value; or structs, by the options
a message                               a nullable struct
repeated fields, and maps               lists; of a map's entries as structs of `key` and `value`
members of a oneof, optional fields     nullable
a message too often inside itself       struct of `descriptor_full_name` and `proto_bytes`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.model.options.streamer.protobuf import ProtobufOptions

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

__all__ = ["MessageColumns"]

Values: TypeAlias = Sequence[Any]  # None among them is null

_WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("String", "Int32", "UInt32", "Int64", "UInt64", "Bool", "Bytes", "Double", "Float")
)
_TIMESTAMP = "google.protobuf.Timestamp"
# FieldDescriptor.TYPE_… → the type of the column
_SCALARS: dict[int, pa.DataType] = {
    1: pa.float64(), 2: pa.float32(), 3: pa.int64(), 4: pa.decimal128(21, 0), 5: pa.int32(), 6: pa.int64(),
    7: pa.int32(), 8: pa.bool_(), 9: pa.string(), 12: pa.binary(), 13: pa.int64(), 15: pa.int32(), 16: pa.int64(),
    17: pa.int32(), 18: pa.int64(),
}  # fmt: skip
_ENUM, _MESSAGE = 14, 11
_OVERFLOW_TYPE = pa.struct([("descriptor_full_name", pa.string()), ("proto_bytes", pa.binary())])


@dataclass(frozen=True, slots=True)
class _Kind:
    """How values become an array."""

    type: pa.DataType
    array: Callable[[Values], pa.Array]


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a message: its values in all messages, and how they become a column."""

    name: str
    kind: _Kind
    values: Callable[[Values], Values]


class MessageColumns:
    """The columns of a message."""

    def __init__(self, descriptor: Descriptor, options: ProtobufOptions) -> None:
        """Raises: ConfigError for a message that Hudi has no columns for."""
        from google.protobuf.message import DecodeError
        from google.protobuf.message_factory import GetMessageClass

        self._options, self._class_of, self._error = options, GetMessageClass, DecodeError
        self._parse = GetMessageClass(descriptor).FromString
        self._fields = self._fields_of(descriptor, Counter())
        self.schema = pa.schema([pa.field(field.name, field.kind.type) for field in self._fields])

    def decode(self, values: Sequence[bytes]) -> pa.Table:
        """The rows of serialised messages. Raises ValueError for bytes that are none."""
        try:
            messages = [self._parse(value) for value in values]
        except self._error as error:
            raise ValueError(f"no such message: {error}") from error
        arrays = [field.kind.array(field.values(messages)) for field in self._fields]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _fields_of(self, descriptor: Descriptor, depths: Counter[str]) -> list[_Field]:
        if not descriptor.fields:
            raise ConfigError(
                f"The message {descriptor.full_name} has no fields, and Parquet has no struct without any. "
                "Take another one as the class of the source."
            )
        deeper = depths + Counter([descriptor.full_name])
        return [self._field(field, deeper) for field in descriptor.fields]

    def _field(self, field: FieldDescriptor, depths: Counter[str]) -> _Field:
        name, get = field.name, attrgetter(field.name)
        if field.is_repeated:
            is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
            items = self._entries(field, depths) if is_map else self._kind(field, depths)
            return _Field(
                name, _list_of(items, _entries_of if is_map else list), lambda rows: [get(row) for row in rows]
            )
        kind = self._kind(field, depths)
        if field.containing_oneof is None and field.message_type is None:
            return _Field(name, kind, lambda rows: list(map(get, rows)))
        return _Field(name, kind, lambda rows: [get(row) if row.HasField(name) else None for row in rows])

    def _kind(self, field: FieldDescriptor, depths: Counter[str]) -> _Kind:
        if field.type == _ENUM:
            return _names_of(field)
        if field.type in _SCALARS:
            scalar = _SCALARS[field.type]
            return _Kind(scalar, lambda values: pa.array(values, scalar))
        message = field.message_type
        if field.type != _MESSAGE or message is None:
            raise ConfigError(f"The field {field.full_name} is a group of Protobuf 1, which Hudi refuses, too.")
        if message.full_name in _WRAPPERS and not self._options.wrappers_as_records:
            inner = self._kind(message.fields[0], depths)
            return _Kind(inner.type, lambda values: inner.array([None if one is None else one.value for one in values]))
        if message.full_name == _TIMESTAMP and not self._options.timestamps_as_records:
            return _Kind(pa.timestamp("us", "UTC"), _times)
        if depths[message.full_name] >= self._options.recursion_max:
            return _OVERFLOW
        return _struct(self._fields_of(message, depths), self._class_of(message)())

    def _entries(self, field: FieldDescriptor, depths: Counter[str]) -> _Kind:
        """The entries of a map, each as a pair."""
        key, value = (self._kind(one, depths) for one in field.message_type.fields)
        fields = [pa.field("key", key.type), pa.field("value", value.type)]

        def array(entries: Values) -> pa.Array:
            keys, values = [one[0] for one in entries], [one[1] for one in entries]
            return pa.StructArray.from_arrays([key.array(keys), value.array(values)], fields=fields)

        return _Kind(pa.struct(fields), array)


def _entries_of(one: Any) -> list[tuple[Any, Any]]:
    """A map's entries in the order of their keys: the client has none."""
    return sorted(one.items(), key=lambda entry: entry[0])  # type: ignore[no-any-return]


def _list_of(items: _Kind, listed: Callable[[Any], list[Any]]) -> _Kind:
    kind = pa.list_(items.type)

    def array(values: Values) -> pa.Array:
        lists = [listed(one) for one in values]
        ends = np.cumsum([0, *map(len, lists)], dtype=np.int32)
        return pa.ListArray.from_arrays(pa.array(ends), items.array(list(chain.from_iterable(lists))), type=kind)

    return _Kind(kind, array)


def _struct(fields: Sequence[_Field], empty: Any) -> _Kind:
    kind = pa.struct([pa.field(field.name, field.kind.type) for field in fields])

    def array(values: Values) -> pa.Array:
        is_null = [one is None for one in values]
        mask = pa.array(is_null, pa.bool_()) if any(is_null) else None
        rows = values if mask is None else [empty if one is None else one for one in values]
        arrays = [field.kind.array(field.values(rows)) for field in fields]
        return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=mask)

    return _Kind(kind, array)


def _names_of(field: FieldDescriptor) -> _Kind:
    """An enumeration. A number without a name is called as Java's client calls it."""
    kind = field.enum_type
    names = {one.number: one.name for one in reversed(kind.values)}

    def name_of(number: int | None) -> str | None:
        if number is None:
            return None
        return names.get(number) or f"UNKNOWN_ENUM_VALUE_{kind.name}_{number}"

    return _Kind(pa.string(), lambda values: pa.array(list(map(name_of, values)), pa.string()))


def _times(values: Values) -> pa.Array:
    micros = [None if one is None else one.seconds * 1_000_000 + one.nanos // 1000 for one in values]
    return pa.array(micros, pa.int64()).cast(pa.timestamp("us", "UTC"))


def _overflown(values: Values) -> pa.Array:
    names = [None if one is None else one.DESCRIPTOR.full_name for one in values]
    data = [None if one is None else one.SerializeToString(deterministic=True) for one in values]
    is_null = pa.array([one is None for one in values], pa.bool_())
    arrays = [pa.array(names, pa.string()), pa.array(data, pa.binary())]
    return pa.StructArray.from_arrays(arrays, fields=list(_OVERFLOW_TYPE), mask=is_null)


_OVERFLOW = _Kind(_OVERFLOW_TYPE, _overflown)
