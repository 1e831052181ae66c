"""The sources by their names: Hudi's classes, bare or with their package, and `module:Class` of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyhudi.errors import ConfigError
from pyhudi.registry import Registry
from pyhudi.streamer.sources.own import OwnSource
from pyhudi.streamer.sources.source import RowSource, SourceSetting

__all__ = ["NOT_YET", "SOURCES", "open_source"]

_HERE = "pyhudi.streamer.sources"
_ROWS = {
    "JsonDFSSource": f"{_HERE}.files.source:JsonFiles",
    "CsvDFSSource": f"{_HERE}.files.source:CsvFiles",
    "AvroDFSSource": f"{_HERE}.files.source:AvroFiles",
    "ParquetDFSSource": f"{_HERE}.files.source:ParquetFiles",
    "ORCDFSSource": f"{_HERE}.files.source:OrcFiles",
    "HoodieIncrSource": f"{_HERE}.hudi:HudiSource",
    "JsonKafkaSource": f"{_HERE}.kafka.source:JsonKafka",
    "AvroKafkaSource": f"{_HERE}.kafka.source:AvroKafka",
    "TextKafkaSource": f"{_HERE}.kafka.source:TextKafka",
    "JsonKinesisSource": f"{_HERE}.kinesis.source:JsonKinesis",
    "ProtoKafkaSource": f"{_HERE}.kafka.protobuf:ProtoKafka",
    "JdbcSource": f"{_HERE}.jdbc.source:JdbcSource",
    "SqlSource": f"{_HERE}.sql:SqlQuery",
    "SqlFileBasedSource": f"{_HERE}.sql:SqlFileQuery",
    "PostgresDebeziumSource": f"{_HERE}.debezium.source:PostgresDebezium",
    "MysqlDebeziumSource": f"{_HERE}.debezium.source:MysqlDebezium",
    "S3EventsSource": f"{_HERE}.cloud_events.s3_queue:S3Events",
    "S3EventsHoodieIncrSource": f"{_HERE}.cloud_events.files:S3Files",
    "GcsEventsHoodieIncrSource": f"{_HERE}.cloud_events.files:GcsFiles",
}
NOT_YET = (
    "PulsarSource", "HiveIncrPullSource", "GcsEventsSource",
)  # fmt: skip
_PACKAGE = "org.apache.hudi.utilities.sources."
SOURCES: Registry[Callable[..., Any]] = Registry(
    kind="source",
    entries=_ROWS,
    aliases={f"{_PACKAGE}{'debezium.' if 'Debezium' in name else ''}{name}": name for name in _ROWS},
)


def open_source(setting: SourceSetting) -> RowSource:
    """The source that the configuration names. Raises ConfigError for an unknown one, and for one to come."""
    name = setting.settings.options.source
    if name.rpartition(".")[2] in NOT_YET:
        raise ConfigError(
            f"{setting.settings.place}: source-class={name}: Hudi has this source, this release of PyHudi reads "
            f"{', '.join(_ROWS)}, and a class of your own (docs/streamer/own-source.md)."
        )
    made = SOURCES.load(name)
    source: RowSource = OwnSource(made, setting) if ":" in SOURCES.canonical(name) else made(setting)
    return source
