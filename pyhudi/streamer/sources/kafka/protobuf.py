"""Protobuf values of Kafka: messages alone, or behind the id of their schema in a Confluent registry.

    0 │ id, four bytes │ place of the message in its file: a count and so many numbers, zigzag; a single 0 is the first

A class of Python reads all values itself. Without one, a registry's values are read by the schema of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.streamer.json_messages import Decoded, RowColumns
from pyhudi.streamer.schemas import ProvidedColumns
from pyhudi.streamer.settings import PipelineSettings
from pyhudi.streamer.sources.kafka.client import client_settings
from pyhudi.streamer.sources.kafka.formats import Events, decode_by_schema
from pyhudi.streamer.sources.kafka.protobuf_columns import MessageColumns
from pyhudi.streamer.sources.kafka.protobuf_messages import (
    CLASS_NAME,
    configured_message,
    is_named,
    protobuf_library,
    registered_message,
)
from pyhudi.streamer.sources.kafka.source import KafkaSource
from pyhudi.streamer.sources.source import SourceSetting

__all__ = ["ProtoKafka", "ProtobufValues", "columns_of_class"]

_HEAD_BYTES = 5
_NO_FRAME = "no Protobuf of a Confluent registry: expected a zero byte, the id of a schema, and a place in it"
_Key = tuple[int, tuple[int, ...]]  # the schema's id, the message's place


class ProtobufValues:
    """A batch may have several schemas; all values of one are decoded at once."""

    def __init__(self, setting: SourceSetting) -> None:
        protobuf_library()
        settings = setting.settings
        self._options = settings.options.protobuf
        registry = client_settings(settings).registry
        url = registry.get("schema.registry.url")
        self._user = registry.get("schema.registry.basic.auth.user.info") or registry.get("basic.auth.user.info")
        self._is_framed = url is not None
        if self._options.deserializer is not None:
            self._is_framed = self._options.deserializer.endswith("KafkaProtobufDeserializer")
        message = configured_message(settings)
        if message is None and not self._is_framed:
            raise ConfigError(
                f"{settings.place}: {CLASS_NAME}={self._options.class_name}: a class of Java can't be loaded. Name "
                "module:Message of a module that protoc made, or give hoodie.pyhudi.streamer.proto.descriptor.file, or "
                "schema.registry.url where values begin with the id of their schema."
            )
        if message is None and url is None:
            raise ConfigError(f'{settings.place}: schema.registry.url is missing: "http://host:8081".')
        self._url = "" if url is None else url.rstrip("/")
        self._own = None if message is None else MessageColumns(message, self._options)
        self._columns: dict[_Key, MessageColumns] = {}

    def decode(self, events: Events, columns: RowColumns) -> Decoded:
        """The rows of all messages, with the columns of all of their schemas."""
        refused: dict[int, str] = {}
        by_key: dict[_Key, list[int]] = {}
        begins = [0] * len(events.values)
        if self._is_framed:
            for number, value in enumerate(events.values):
                framed = _frame(value)
                if framed is None:
                    refused[number] = _NO_FRAME
                    continue
                key, begins[number] = framed
                by_key.setdefault(key if self._own is None else (0, ()), []).append(number)
        elif events.values:
            by_key[0, ()] = list(range(len(events.values)))

        def decoder_of(key: _Key) -> Callable[[Sequence[int]], pa.Table]:
            message = self._columns_of(key)
            return lambda numbers: message.decode([events.values[number][begins[number] :] for number in numbers])

        names = {key: f"schema {key[0]}" for key in by_key}
        return decode_by_schema(by_key, names, decoder_of, refused, columns)

    def _columns_of(self, key: _Key) -> MessageColumns:
        if self._own is not None:
            return self._own
        if key not in self._columns:
            message = registered_message(self._url, self._user, *key)
            name = self._options.class_name
            assert name is not None
            if not is_named(message, name):
                raise ConfigError(f"the message is {message.full_name}, and {CLASS_NAME} is {name}.")
            self._columns[key] = MessageColumns(message, self._options)
        return self._columns[key]


class ProtoKafka(KafkaSource):
    """Protobuf messages."""

    values = ProtobufValues


def columns_of_class(settings: PipelineSettings) -> ProvidedColumns:
    """A schema provider: the columns of the class; those of the values' own schemas where only a registry has it."""
    message = configured_message(settings)
    if message is None:
        return ProvidedColumns()
    schema = MessageColumns(message, settings.options.protobuf).schema
    return ProvidedColumns(schema, schema if not settings.options.transformer_names else None)


def _frame(value: bytes) -> tuple[_Key, int] | None:
    """The schema and place of a value's message, and where it begins; None for another value."""
    if len(value) <= _HEAD_BYTES or value[0]:
        return None
    schema_id = int.from_bytes(value[1:_HEAD_BYTES], "big")
    if not value[_HEAD_BYTES]:
        return (schema_id, (0,)), _HEAD_BYTES + 1
    numbers: list[int] = []
    at, count = _HEAD_BYTES, 1
    while len(numbers) < count:
        number = shift = 0
        while True:
            if at >= len(value) or shift > 28:
                return None
            byte = value[at]
            number |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                break
        numbers.append((number >> 1) ^ -(number & 1))
        count = 1 + numbers[0]
    return ((schema_id, tuple(numbers[1:])), at) if count > 1 else None
