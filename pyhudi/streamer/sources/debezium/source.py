"""Change events of Debezium in Kafka as a source: the table follows the database's. Source: Hudi's DebeziumSource.

    events → rows with Hudi's columns of the event (`events.py`) → upsert, by the database's order of changes

Deletes are rows whose `_change_operation_type` is `d`, which the merge rules of the table know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyhudi.errors import ConfigError
from pyhudi.index.chosen import index_class, index_name
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.merging import MERGE_MODE, ORDERING_FIELDS, PAYLOAD_CLASS, STRATEGY_ID
from pyhudi.streamer.json_messages import Decoded, RowColumns
from pyhudi.streamer.settings import PipelineSettings
from pyhudi.streamer.sources.debezium.events import MYSQL, POSTGRES, event_values
from pyhudi.streamer.sources.debezium.unavailable import filled_by_batch
from pyhudi.streamer.sources.kafka.formats import Events, EventValues
from pyhudi.streamer.sources.kafka.source import KafkaSource
from pyhudi.streamer.sources.source import SourceSetting

if TYPE_CHECKING:
    from confluent_kafka import Message

__all__ = ["MysqlDebezium", "PostgresDebezium", "check_table", "settings_of_changes"]

_PAYLOADS = "org.apache.hudi.common.model.debezium."
# Class of the source → the payload class, and the ordering fields, of its tables.
_TABLES = {
    "PostgresDebeziumSource": (f"{_PAYLOADS}PostgresDebeziumAvroPayload", "_event_lsn"),
    "MysqlDebeziumSource": (f"{_PAYLOADS}MySqlDebeziumAvroPayload", "_event_seq"),
}
_DELETES = {"hoodie.payload.delete.field": "_change_operation_type", "hoodie.payload.delete.marker": "d"}
_PARTITION_FIELDS, _KEY_FIELDS = (
    "hoodie.datasource.write.partitionpath.field",
    "hoodie.datasource.write.recordkey.field",
)


_NEW_KEY = "__debezium.newkey"
_ROW_COMES_MS = 10_000


class PostgresDebezium(KafkaSource):
    """Changes of PostgreSQL. Values that it did not send are in other events of the batch."""

    is_cut = False

    @staticmethod
    def values(setting: SourceSetting) -> EventValues:
        """Their format."""
        return _FilledValues(event_values(POSTGRES, setting))

    def of_batch(self, messages: list[Message], ends: dict[int, int]) -> tuple[list[Message], dict[int, int]]:
        """A changed key is a delete and a row, which may have values of the deleted one: they are of one batch."""
        partitions: set[Any] = {message.partition() for message in messages}
        first = len(messages)
        while first and _has_header(messages[first - 1], _NEW_KEY):
            first -= 1
        if first == len(messages) or len(partitions) != 1:
            return messages, ends
        waits_ms = self._clock.now_ms() - messages[first].timestamp()[1]
        if not first and waits_ms > _ROW_COMES_MS:  # it is gone, or the limit of a batch is less than both
            return messages, ends
        offset: Any = messages[first].offset()
        return messages[:first], {**ends, partitions.pop(): offset}


class MysqlDebezium(KafkaSource):
    """Changes of MySQL and MariaDB."""

    @staticmethod
    def values(setting: SourceSetting) -> EventValues:
        """Their format."""
        return event_values(MYSQL, setting)


@dataclass(frozen=True, slots=True)
class _FilledValues:
    """Values that were not sent are those of earlier events of the batch."""

    sent: EventValues

    def decode(self, events: Events, columns: RowColumns) -> Decoded:
        """The rows of all events, in their order."""
        decoded = self.sent.decode(events, columns)
        if not decoded.rows.num_rows:
            return decoded
        return replace(decoded, rows=filled_by_batch(decoded.rows, events.at(decoded.numbers).messages))


def _has_header(message: Message, name: str) -> bool:
    headers: Any = message.headers() or ()
    return any(one == name for one, _ in headers)


def settings_of_changes(settings: PipelineSettings) -> PipelineSettings:
    """The settings with what the writes of changes need, where the source is one of Debezium.

    Raises: ConfigError for a write by which changes would not reach the table.
    """
    table = _TABLES.get(settings.options.source.rpartition(".")[2])
    if table is None:
        return settings
    provider = settings.options.schema_provider
    if settings.options.schemas.source_file or (provider and not provider.endswith("SchemaRegistryProvider")):
        raise ConfigError(
            f"{settings.place}: schemaprovider-class={provider or 'FilebasedSchemaProvider'}: events of Debezium have "
            "their schemas with them. Leave it out, or name the registry's schema of the topic for plain JSON: "
            "hoodie.streamer.schemaprovider.registry.url."
        )
    deserializer = settings.options.debezium.deserializer
    if deserializer.endswith(".ByteArrayDeserializer"):
        raise ConfigError(
            f"{settings.place}: hoodie.streamer.source.kafka.value.deserializer.class={deserializer}: events of "
            "Debezium are Avro (KafkaAvroDeserializer) or JSON (StringDeserializer)."
        )
    if settings.operation != "upsert":
        raise ConfigError(
            f"{settings.place}: op={settings.operation}: changes and deletes reach rows by an upsert. Leave op out."
        )
    payload, ordering = table
    write = {ORDERING_FIELDS: ordering, **settings.write}
    if not any(key in write for key in (PAYLOAD_CLASS, MERGE_MODE, STRATEGY_ID)):
        write[PAYLOAD_CLASS] = payload
    elif write.get(PAYLOAD_CLASS) not in (payload, payload.rpartition(".")[2]):
        write = {**_DELETES, **write}
    fields = [name.strip().partition(":")[0] for name in write.get(_PARTITION_FIELDS, "").split(",") if name.strip()]
    _check_partitions(settings.place, fields, write.get(_KEY_FIELDS, "").split(","), write)
    return replace(settings, write=write, options=replace(settings.options, schema_provider=None))


def check_table(settings: PipelineSettings, meta: MetaClient) -> None:
    """Raise ConfigError for a table that changes of Debezium would not reach."""
    if settings.options.source.rpartition(".")[2] in _TABLES:
        config = meta.config
        _check_partitions(meta.storage.root, config.partition_fields, config.record_key_fields, settings.write)


def _check_partitions(place: str, fields: Sequence[str], keys: Sequence[str], write: Mapping[str, str]) -> None:
    """A delete has the key alone, so its row is found in its partition only if the key says it."""
    beside = sorted(set(fields) - {name.strip() for name in keys})
    options = WriteOptions.parse(write)
    if beside and not index_class(options).is_global:
        raise ConfigError(
            f"{place}: partitions of {', '.join(beside)}, which may change and is not in the key: the index "
            f"{index_name(options)} would not find the row of a change. Say hoodie.index.type=GLOBAL_SIMPLE, "
            "GLOBAL_BLOOM or GLOBAL_RECORD_LEVEL_INDEX, or partition by columns of the key."
        )
