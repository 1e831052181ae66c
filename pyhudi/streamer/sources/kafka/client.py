"""The client of Kafka: its settings from those of the Java client, and its errors in the HudiError family."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyhudi.errors import ConfigError, MissingLibrary, StorageError
from pyhudi.streamer.settings import PipelineSettings

__all__ = ["ClientSettings", "client_settings", "kafka_errors", "kafka_library"]

_RESET = "auto.offset.reset"
# Settings of the Java client with other equivalents, or that the source sets itself.
_OF_JAVA = ("key.deserializer", "value.deserializer", "specific.avro.reader", "enable.auto.commit")
_REGISTRY = ("schema.registry.", "basic.auth.")
_JAVA_STORES = {
    "ssl.truststore.location": "ssl.ca.location, a PEM file",
    "ssl.keystore.location": "ssl.keystore.location of PKCS#12, or ssl.certificate.location and ssl.key.location",
    "ssl.truststore.password": "ssl.ca.location, which needs none",
}
_FETCH_WAIT_MS = "50"
_JAAS = "sasl.jaas.config"
_JAAS_FORM = re.compile(r'(?:Plain|Scram)LoginModule\b.*?username="([^"]*)".*?password="([^"]*)"', re.DOTALL)
_OURS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    _RESET: "error",
}


@dataclass(frozen=True, slots=True, repr=False)
class ClientSettings:
    """Settings of librdkafka. `registry`: keys of the schema registry's client."""

    settings: Mapping[str, Any]
    begins_latest: bool
    registry: Mapping[str, str]


def kafka_library() -> Any:
    """The module `confluent_kafka`. Raises MissingLibrary."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise MissingLibrary(
            'A source of Kafka needs confluent-kafka, which is not installed: pip install "pyhudi[kafka]".'
        ) from error
    return confluent_kafka


def client_settings(settings: PipelineSettings) -> ClientSettings:
    """The settings of the consumer. Raises ConfigError for those that only Java's client has."""
    java_settings = dict(settings.client)
    reset = java_settings.pop(_RESET, "latest").lower()
    if reset not in ("latest", "earliest"):
        raise ConfigError(
            f"{settings.place}: {_RESET}={reset}: expected earliest or latest; a group's offsets are not read."
        )
    registry = {key: java_settings.pop(key) for key in list(java_settings) if key.startswith(_REGISTRY)}
    for key in _OF_JAVA:
        java_settings.pop(key, None)
    for key, instead in _JAVA_STORES.items():
        if key in java_settings and (key != "ssl.keystore.location" or java_settings[key].endswith(".jks")):
            raise ConfigError(f"{settings.place}: {key} is of the Java client; give {instead}.")
    jaas = java_settings.pop(_JAAS, None)
    if jaas is not None:
        matched = _JAAS_FORM.search(jaas)
        if matched is None:
            raise ConfigError(
                f"{settings.place}: {_JAAS} is of the Java client; give sasl.username and sasl.password instead."
            )
        java_settings |= {"sasl.username": matched[1], "sasl.password": matched[2]}
    if not (java_settings.get("bootstrap.servers") or java_settings.get("test.mock.num.brokers")):
        raise ConfigError(f'{settings.place}: bootstrap.servers is missing: "bootstrap.servers" = "host:9092".')
    java_settings.setdefault("group.id", "pyhudi-streamer")  # the client requires one; nothing is committed to it
    # The first fetch of a round waits behind the last one of the round before, which finds nothing.
    java_settings.setdefault("fetch.wait.max.ms", _FETCH_WAIT_MS)
    return ClientSettings({**java_settings, **_OURS}, reset == "latest", registry)


@contextmanager
def kafka_errors(where: str) -> Iterator[None]:
    """Turn errors of the client into ConfigError for settings, and StorageError for unavailable brokers."""
    library = kafka_library()
    try:
        yield
    except library.KafkaException as error:
        reason = error.args[0]
        text = reason.str() if hasattr(reason, "str") else str(reason)
        if hasattr(reason, "code") and reason.code() in (
            library.KafkaError._INVALID_ARG,
            library.KafkaError._UNKNOWN_TOPIC,
            library.KafkaError.UNKNOWN_TOPIC_OR_PART,
            library.KafkaError.TOPIC_AUTHORIZATION_FAILED,
        ):
            raise ConfigError(f"{where}: {text}. Nothing was written.") from error
        raise StorageError(f"{where} can't be read: {text}. Nothing was written.") from error
