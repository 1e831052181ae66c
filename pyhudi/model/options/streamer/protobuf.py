"""Options of Protobuf values of Kafka."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.declare import option
from pyhudi.model.options.spec import Kind, OptionScope

__all__ = ["ProtobufOptions"]

_STREAM = frozenset({OptionScope.STREAM})
_PROTO = "hoodie.streamer.schemaprovider.proto."
_OLD_PROTO = "hoodie.deltastreamer.schemaprovider.proto."


@dataclass(frozen=True, slots=True)
class ProtobufOptions:
    """Options of ProtoKafkaSource and ProtoClassBasedSchemaProvider."""

    class_name: str | None = option(
        f"{_PROTO}class.name",
        None,
        "The message: its full name, its class in Java where a registry or a descriptor file has it, or "
        "`module:Message` of a module that protoc made.",
        Kind.TEXT,
        aliases=(f"{_OLD_PROTO}class.name",),
        scopes=_STREAM,
    )
    wrappers_as_records: bool = option(
        f"{_PROTO}flatten.wrappers",
        False,
        "Wrapped values (`Int64Value`) are structs with a field `value`. false: nullable values.",
        aliases=(f"{_OLD_PROTO}flatten.wrappers",),
        scopes=_STREAM,
    )
    timestamps_as_records: bool = option(
        f"{_PROTO}timestamps.as.records",
        False,
        "Timestamps are structs with `seconds` and `nanos`. false: times in UTC, in microseconds.",
        aliases=(f"{_OLD_PROTO}timestamps.as.records",),
        scopes=_STREAM,
    )
    recursion_max: int = option(
        f"{_PROTO}max.recursion.depth",
        5,
        "How often a message may be inside itself; what is deeper stays bytes.",
        minimum=1,
        aliases=(f"{_OLD_PROTO}max.recursion.depth",),
        scopes=_STREAM,
    )
    deserializer: str | None = option(
        "hoodie.streamer.source.kafka.proto.value.deserializer.class",
        None,
        "KafkaProtobufDeserializer: values begin with the id of their schema in a registry; ByteArrayDeserializer: "
        "they are the message alone. Unset: by whether `schema.registry.url` is set.",
        Kind.TEXT,
        choices=(
            "io.confluent.kafka.serializers.protobuf.KafkaProtobufDeserializer",
            "org.apache.kafka.common.serialization.ByteArrayDeserializer",
        ),
        scopes=_STREAM,
    )
    descriptor_file: str | None = option(
        "hoodie.pyhudi.streamer.proto.descriptor.file",
        None,
        "A file that has the message, by `protoc --include_imports --descriptor_set_out=FILE`.",
        Kind.TEXT,
        scopes=_STREAM,
    )
