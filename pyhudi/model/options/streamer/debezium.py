"""Options of Debezium's change events as a source of the Streamer. Source: docs/streamer/debezium.md."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.declare import option
from pyhudi.model.options.spec import OptionScope

__all__ = ["DebeziumOptions"]

_STREAM = frozenset({OptionScope.STREAM})


@dataclass(frozen=True, slots=True)
class DebeziumOptions:
    """Options of PostgresDebeziumSource and MysqlDebeziumSource."""

    deserializer: str = option(
        "hoodie.streamer.source.kafka.value.deserializer.class",
        "io.confluent.kafka.serializers.KafkaAvroDeserializer",
        "What the values of Debezium's topics are: Avro of a Confluent registry, or JSON by "
        "`org.apache.kafka.common.serialization.StringDeserializer`. The classes of other sources say it themselves.",
        choices=(
            "io.confluent.kafka.serializers.KafkaAvroDeserializer",
            "org.apache.kafka.common.serialization.StringDeserializer",
            "org.apache.kafka.common.serialization.ByteArrayDeserializer",
            "org.apache.hudi.utilities.deser.KafkaAvroSchemaDeserializer",
        ),
        scopes=_STREAM,
    )
    types_times: bool = option(
        "hoodie.pyhudi.streamer.source.debezium.typed.times",
        True,
        "Debezium's dates and timestamps become dates and timestamps. false: new columns hold the numbers and texts of "
        "the events, as HoodieStreamer's do.",
        scopes=_STREAM,
    )

    @property
    def is_json(self) -> bool:
        """Are the values JSON?"""
        return self.deserializer.endswith(".StringDeserializer")
