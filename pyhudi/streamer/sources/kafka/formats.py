"""Events of Kafka as rows: JSON, text, and Avro of a Confluent registry. Each decodes a whole batch at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from pyhudi.errors import ConfigError, HudiError, SchemaMismatch, StorageError
from pyhudi.formats.avro.decode import AvroDecoder
from pyhudi.streamer.json_messages import Decoded, RowColumns, decode_json, read_in_parts, typed_columns
from pyhudi.streamer.schemas import fetched_schema
from pyhudi.streamer.sources.kafka.client import client_settings
from pyhudi.streamer.sources.source import Rejected, SourceSetting

if TYPE_CHECKING:
    from confluent_kafka import Message

__all__ = ["AvroValues", "EventValues", "Events", "JsonValues", "TextValues", "decode_by_schema"]

SchemaT = TypeVar("SchemaT")
DecodeValues: TypeAlias = "Callable[[Sequence[int]], pa.Table]"  # the rows of the values of some numbers

_OFFSETS = "_hoodie_kafka_source_"  # Hudi's names
_HEAD_BYTES = 5  # of a value: 0, and four bytes of its schema's id


@dataclass(frozen=True, slots=True)
class Events:
    """The events with a value; those without are marks of deleted keys, which bring no row."""

    topic: str
    messages: Sequence[Message]
    values: Sequence[bytes]

    @classmethod
    def of(cls, topic: str, messages: Sequence[Message]) -> Events:
        """The events of messages."""
        values = [message.value() for message in messages]
        if None in values:
            messages = [message for message, value in zip(messages, values, strict=True) if value is not None]
        return cls(topic, messages, [value for value in values if value is not None])

    def at(self, numbers: Sequence[int] | None) -> Events:
        """Some of them."""
        if numbers is None:
            return self
        return Events(self.topic, [self.messages[at] for at in numbers], [self.values[at] for at in numbers])

    def with_offsets(self, rows: pa.Table) -> pa.Table:
        """The rows with the columns that say where they were. Raises SchemaMismatch for rows that have them."""
        messages = self.messages
        own = next((name for name in rows.schema.names if name.startswith(_OFFSETS)), None)
        if own is not None:
            raise SchemaMismatch(
                f"Events of {self.topic} have the column {own} themselves, which "
                "hoodie.streamer.source.kafka.append.offsets adds. Leave the option out. Nothing was written."
            )
        keys = [message.key() for message in messages]
        columns = {
            "offset": pa.array([message.offset() for message in messages], pa.int64()),
            "partition": pa.array([message.partition() for message in messages], pa.int32()),
            "timestamp": pa.array([message.timestamp()[1] for message in messages], pa.int64()),
            "key": pa.array([None if key is None else key.decode("utf-8", "replace") for key in keys], pa.string()),
        }
        for name, array in columns.items():
            rows = rows.append_column(f"{_OFFSETS}{name}", array)
        return rows

    def rejected(self, refused: Sequence[tuple[int, str]]) -> list[Rejected]:
        """Those that are no rows."""
        return [
            Rejected(
                f"{self.topic}/{self.messages[at].partition()}@{self.messages[at].offset()}",
                self.values[at].decode("utf-8", "backslashreplace"),
                reason,
            )
            for at, reason in refused
        ]


class EventValues(Protocol):
    """A format of values."""

    def __init__(self, setting: SourceSetting) -> None: ...

    def decode(self, events: Events, columns: RowColumns) -> Decoded:
        """The rows of all events, in their order."""
        ...


class JsonValues:
    """A JSON object each."""

    def __init__(self, setting: SourceSetting) -> None:
        pass

    def decode(self, events: Events, columns: RowColumns) -> Decoded:
        """By Arrow's parser."""
        return decode_json(events.values, columns.without(_OFFSETS))


class TextValues:
    """Text: a row is a column `value`."""

    def __init__(self, setting: SourceSetting) -> None:
        pass

    def decode(self, events: Events, columns: RowColumns) -> Decoded:
        """EventValues that are no UTF-8 are refused."""
        binary = pa.array(events.values, pa.binary())
        try:
            return Decoded(pa.table({"value": binary.cast(pa.string())}), None, ())
        except pa.ArrowInvalid:
            pass
        refused: dict[int, str] = {}
        numbers = range(len(binary))
        parts, kept = read_in_parts(
            lambda at: pa.table({"value": binary.take(pa.array(at)).cast(pa.string())}), len(binary), refused, numbers
        )
        rows = typed_columns(parts) if parts else pa.table({"value": pa.array([], pa.string())})
        return Decoded(rows, kept, sorted(refused.items()))


def decode_by_schema(
    by_schema: Mapping[SchemaT, Sequence[int]],
    names: Mapping[SchemaT, str],
    decoder_of: Callable[[SchemaT], DecodeValues],
    refused: dict[int, str],
    columns: RowColumns,
) -> Decoded:
    """The rows of values of several schemas, in the order of the values, with the columns of all schemas.

    Args:    by_schema: the numbers of the values of each schema. names: of schemas, for reasons. decoder_of: decodes
                 the values of some numbers. refused: value → reason, to which values that can't be decoded are added.
    Raises:  StorageError when a registry is away. A schema that can't be used refuses its values.
    """
    tables: list[pa.Table] = []
    order: list[int] = []
    for schema, numbers in by_schema.items():
        try:
            decode = decoder_of(schema)
        except StorageError:
            raise
        except HudiError as error:
            refused.update(dict.fromkeys(numbers, f"{names[schema]}: {error}"))
            continue

        def read(at: Sequence[int], decode: DecodeValues = decode, numbers: Sequence[int] = numbers) -> pa.Table:
            return decode([numbers[one] for one in at])

        parts, decoded = read_in_parts(read, len(numbers), refused, numbers)
        tables += parts
        order += decoded
    if not tables:
        return Decoded(columns.schema.empty_table(), [], sorted(refused.items()))
    rows = typed_columns(tables)
    positions = sorted(order)
    if order != positions:
        rows = rows.take(pa.array(np.argsort(np.array(order), kind="stable")))
    return Decoded(rows, positions if refused else None, sorted(refused.items()))


class AvroValues:
    """Avro behind the id of its schema. A batch may have several schemas; all of one are decoded at once."""

    fields: Collection[str] | None = None  # those that are read; None: all

    def __init__(self, setting: SourceSetting) -> None:
        registry = client_settings(setting.settings).registry
        url = registry.get("schema.registry.url")
        if url is None:
            raise ConfigError(f'{setting.settings.place}: schema.registry.url is missing: "http://host:8081".')
        self._url = url.rstrip("/")
        self._user = registry.get("schema.registry.basic.auth.user.info") or registry.get("basic.auth.user.info")
        self._decoders: dict[int, tuple[AvroDecoder, str]] = {}

    def rows_of(self, decoded: pa.Table, schema: str, columns: RowColumns) -> pa.Table:
        """The rows of values of one schema."""
        return decoded

    def decode(self, events: Events, columns: RowColumns) -> Decoded:
        """The rows of all schemas, with the columns of all."""
        refused: dict[int, str] = {}
        by_id: dict[int, list[int]] = {}
        for number, value in enumerate(events.values):
            if len(value) < _HEAD_BYTES or value[0] != 0:
                refused[number] = "no Avro of a Confluent registry: expected a zero byte and the id of a schema"
            else:
                by_id.setdefault(int.from_bytes(value[1:_HEAD_BYTES], "big"), []).append(number)

        def decoder_of(schema_id: int) -> DecodeValues:
            decoder, schema = self._decoder(schema_id)

            def decode(numbers: Sequence[int]) -> pa.Table:
                values = [events.values[number] for number in numbers]
                ends = np.cumsum([len(value) for value in values], dtype=np.int64)
                starts = np.concatenate(([0], ends[:-1])).astype(np.int64) + _HEAD_BYTES
                decoded = decoder.decode(b"".join(values), starts, ends, f"schema {schema_id}")
                return self.rows_of(decoded, schema, columns)

            return decode

        named = {schema_id: f"schema {schema_id}" for schema_id in by_id}
        return decode_by_schema(by_id, named, decoder_of, refused, columns)

    def _decoder(self, schema_id: int) -> tuple[AvroDecoder, str]:
        if schema_id not in self._decoders:
            text = fetched_schema(f"{self._url}/schemas/ids/{schema_id}", self._user)
            self._decoders[schema_id] = (AvroDecoder(text, self.fields), text)
        return self._decoders[schema_id]
