"""Options of the Streamer: Hudi's keys of its HoodieStreamer, and its command-line flags as `hoodie.streamer.<flag>`.

Source: Hudi's documented keys; docs/streamer.md. Sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.declare import option, part
from pyhudi.model.options.spec import Kind, OptionScope
from pyhudi.model.options.streamer.aws import EventFilesOptions, KinesisOptions, S3QueueOptions
from pyhudi.model.options.streamer.changes import ApplyOptions
from pyhudi.model.options.streamer.debezium import DebeziumOptions
from pyhudi.model.options.streamer.protobuf import ProtobufOptions
from pyhudi.model.options.streamer.runs import RunOptions, SchemaChangeOptions
from pyhudi.model.options.streamer.sql import JdbcOptions, SqlSourceOptions
from pyhudi.model.options.streamer.tables import RegistryPartsOptions, TablesOptions

__all__ = [
    "STREAMER_PREFIX",
    "FilesOptions",
    "HudiSourceOptions",
    "KafkaOptions",
    "QuarantineOptions",
    "SchemaProviderOptions",
    "StreamerOptions",
    "TransformerOptions",
]

STREAMER_PREFIX = "hoodie.streamer."
_STREAM = frozenset({OptionScope.STREAM})
_FILES = "hoodie.streamer.source.dfs."
_KAFKA = "hoodie.streamer.source.kafka."
_INCREMENTAL = "hoodie.streamer.source.hoodieincr."
_SCHEMA = "hoodie.streamer.schemaprovider."


@dataclass(frozen=True, slots=True)
class FilesOptions:
    """Options of files as a source."""

    root: str | None = option(f"{_FILES}root", None, "The folder whose files are read.", Kind.TEXT, scopes=_STREAM)
    settle_s: int = option(
        "hoodie.pyhudi.streamer.source.dfs.settle.seconds",
        60,
        "A file that can't be read waits for the next round while it is younger: somebody may be writing it.",
        minimum=0,
        scopes=_STREAM,
    )
    has_csv_header: bool = option(
        "hoodie.streamer.csv.header", False, "CSV files have their columns in the first line.", scopes=_STREAM
    )
    selector: str = option(
        "hoodie.streamer.source.input.selector",
        "DFSPathSelector",
        "Which folders are listed: DFSPathSelector, all; DatePartitionPathSelector, those of the last days.",
        scopes=_STREAM,
    )
    date_format: str = option(
        f"{_FILES}datepartitioned.date.format",
        "yyyy-MM-dd",
        "DatePartitionPathSelector: the form of the dates in the names of folders.",
        scopes=_STREAM,
    )
    date_depth: int = option(
        f"{_FILES}datepartitioned.selector.depth",
        0,
        "DatePartitionPathSelector: the level of the folders with dates; 0: all folders are listed.",
        minimum=0,
        scopes=_STREAM,
    )
    lookback_days: int = option(
        f"{_FILES}datepartitioned.selector.lookback.days",
        2,
        "DatePartitionPathSelector: how many days before today are listed.",
        minimum=0,
        scopes=_STREAM,
    )
    current_date: str | None = option(
        f"{_FILES}datepartitioned.selector.currentdate",
        None,
        "DatePartitionPathSelector: today, such as 2026-08-10. Unset: that of the machine.",
        Kind.TEXT,
        scopes=_STREAM,
    )


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """Options of Kafka as a source."""

    topic: str | None = option(f"{_KAFKA}topic", None, "The topic that is read.", Kind.TEXT, scopes=_STREAM)
    max_events: int = option(
        "hoodie.streamer.kafka.source.maxEvents",
        5_000_000,
        "The most events of a batch; `source-limit` counts events, too, and the smaller one holds.",
        minimum=1,
        scopes=_STREAM,
    )
    checkpoint_type: str = option(
        f"{_KAFKA}checkpoint.type",
        "string",
        "What a checkpoint that is given by hand says: `topic,0:12,1:34`; timestamp: milliseconds of the first event; "
        "single_offset: the offset in a topic of one partition.",
        choices=("string", "timestamp", "single_offset"),
        scopes=_STREAM,
    )
    appends_offsets: bool = option(
        f"{_KAFKA}append.offsets",
        False,
        "Rows get `_hoodie_kafka_source_offset`, `_hoodie_kafka_source_partition`, `_hoodie_kafka_source_timestamp` "
        "and `_hoodie_kafka_source_key`.",
        scopes=_STREAM,
    )
    fails_on_loss: bool = option(
        f"{_KAFKA}enable.failOnDataLoss",
        False,
        "Offsets that the broker has no longer are an error. false: the partition goes on with its first event, and "
        "the loss is counted and said.",
        scopes=_STREAM,
    )


@dataclass(frozen=True, slots=True)
class HudiSourceOptions:
    """Options of a Hudi table as a source."""

    path: str | None = option(f"{_INCREMENTAL}path", None, "The table that is read.", Kind.TEXT, scopes=_STREAM)
    num_instants: int = option(
        f"{_INCREMENTAL}num_instants", 5, "The most commits of a batch.", minimum=1, scopes=_STREAM
    )
    missing_checkpoint: str | None = option(
        f"{_INCREMENTAL}missing.checkpoint.strategy",
        None,
        "Where a run without a checkpoint begins: READ_LATEST, with the newest commit; READ_UPTO_LATEST_COMMIT, with "
        "the first. Unset, a run without a checkpoint is refused.",
        Kind.TEXT,
        choices=("READ_LATEST", "READ_UPTO_LATEST_COMMIT"),
        scopes=_STREAM,
    )


@dataclass(frozen=True, slots=True)
class SchemaProviderOptions:
    """Options of schema providers."""

    source_file: str | None = option(
        f"{_SCHEMA}source.schema.file", None, "An Avro schema, of what is read.", Kind.TEXT, scopes=_STREAM
    )
    target_file: str | None = option(
        f"{_SCHEMA}target.schema.file",
        None,
        "An Avro schema, of what is written; that of the source without it.",
        Kind.TEXT,
        scopes=_STREAM,
    )
    registry_url: str | None = option(
        f"{_SCHEMA}registry.url",
        None,
        "The schema's whole URL, such as http://registry:8081/subjects/orders-value/versions/latest.",
        Kind.TEXT,
        scopes=_STREAM,
    )
    registry_parts: RegistryPartsOptions = part(RegistryPartsOptions)


@dataclass(frozen=True, slots=True)
class TransformerOptions:
    """Options of transformers."""

    sql: str | None = option(
        "hoodie.streamer.transformer.sql",
        None,
        "A query in Spark's words; `<SRC>` is the batch.",
        Kind.TEXT,
        scopes=_STREAM,
    )
    sql_file: str | None = option(
        "hoodie.streamer.transformer.sql.file", None, "A file that has such a query.", Kind.TEXT, scopes=_STREAM
    )


@dataclass(frozen=True, slots=True)
class QuarantineOptions:
    """Options of the table for rows that don't fit."""

    is_on: bool = option(
        "hoodie.errortable.enable",
        False,
        "Rows that don't fit go into a table of their own, and the batch goes on; else they are an error.",
        scopes=_STREAM,
    )
    path: str | None = option(
        "hoodie.errortable.base.path", None, "The place of that table.", Kind.TEXT, scopes=_STREAM
    )
    table: str | None = option(
        "hoodie.errortable.target.table.name",
        None,
        "Its name. Unset: its folder's.",
        Kind.TEXT,
        scopes=_STREAM,
    )
    max_share: float = option(
        "hoodie.pyhudi.streamer.quarantine.max.share",
        0.1,
        "A batch of which a greater share doesn't fit is an error, and nothing of it is written.",
        scopes=_STREAM,
    )


@dataclass(frozen=True, slots=True)
class StreamerOptions:
    """Options of a pipeline, but for those of its writes."""

    target: str | None = option(
        "hoodie.streamer.target-base-path",
        None,
        "The table that is written.",
        Kind.TEXT,
        aliases=("hoodie.streamer.ingestion.targetBasePath",),
        scopes=_STREAM,
    )
    source: str = option(
        "hoodie.streamer.source-class",
        "JsonDFSSource",
        "What is read: Hudi's class, by its bare name, too, or `module:Class` of one's own.",
        scopes=_STREAM,
    )
    source_limit: int | None = option(
        "hoodie.streamer.source-limit",
        None,
        "The most of a batch: bytes of files (512 MiB without it), events of Kafka, rows of a database.",
        Kind.INTEGER,
        minimum=1,
        scopes=_STREAM,
    )
    schema_provider: str | None = option(
        "hoodie.streamer.schemaprovider-class",
        None,
        "Where the columns come from: FilebasedSchemaProvider, SchemaRegistryProvider, RowBasedSchemaProvider or "
        "ProtoClassBasedSchemaProvider. Unset: the table's, and those that the rows bring.",
        Kind.TEXT,
        scopes=_STREAM,
    )
    transformer_names: tuple[str, ...] = option(
        "hoodie.streamer.transformer-class",
        (),
        "What happens to a batch, one after the other: SqlQueryBasedTransformer, SqlFileBasedTransformer, "
        "FlatteningTransformer, or `module:function` of one's own from an Arrow table to another, on Spark "
        "from a DataFrame to another.",
        aliases=("hoodie.streamer.transformer.class",),
        scopes=_STREAM,
    )
    filters_dupes: bool = option(
        "hoodie.streamer.filter-dupes",
        False,
        "Rows whose keys the table has are left out. Not with the operation upsert.",
        scopes=_STREAM,
    )
    is_continuous: bool = option(
        "hoodie.streamer.continuous", False, "Go on with round after round until SIGTERM.", scopes=_STREAM
    )
    interval_s: int = option(
        "hoodie.streamer.min-sync-interval-seconds",
        0,
        "A round of a continuous run begins so many seconds after the one before, or later.",
        minimum=0,
        scopes=_STREAM,
    )
    commit_on_errors: bool = option(
        "hoodie.streamer.commit-on-errors",
        False,
        "Rows that don't fit are left out with a warning where there is no quarantine table.",
        scopes=_STREAM,
    )
    checkpoint: str | None = option(
        "hoodie.streamer.checkpoint",
        None,
        "Start here. The same text is not applied twice: the commit notes it.",
        Kind.TEXT,
        scopes=_STREAM,
    )
    ignore_checkpoint: str | None = option(
        "hoodie.streamer.ignore-checkpoint",
        None,
        "Any new text: the stored checkpoint is forgotten once.",
        Kind.TEXT,
        scopes=_STREAM,
    )
    skips_checkpoint: bool = option(
        "hoodie.streamer.checkpoint.force.skip",
        False,
        "Neither look for a checkpoint nor write one: each run reads all that the source has.",
        scopes=_STREAM,
    )
    retries_source: bool = option(
        "hoodie.streamer.retry-on-source-failures",
        False,
        "Errors that may pass (a broker or a store away) are tried again.",
        scopes=_STREAM,
    )
    retry_interval_s: int = option(
        "hoodie.streamer.retry-interval-seconds",
        30,
        "Seconds before the first further try; they double from try to try.",
        minimum=0,
        scopes=_STREAM,
    )
    max_retries: int = option(
        "hoodie.streamer.max-retry-count", 3, "The most further tries of a round.", minimum=0, scopes=_STREAM
    )
    commits_empty: bool = option(
        "hoodie.streamer.allow-commit-on-no-checkpoint-change",
        False,
        "A round that finds nothing commits all the same.",
        scopes=_STREAM,
    )
    files: FilesOptions = part(FilesOptions)
    kafka: KafkaOptions = part(KafkaOptions)
    debezium: DebeziumOptions = part(DebeziumOptions)
    hudi: HudiSourceOptions = part(HudiSourceOptions)
    kinesis: KinesisOptions = part(KinesisOptions)
    jdbc: JdbcOptions = part(JdbcOptions)
    protobuf: ProtobufOptions = part(ProtobufOptions)
    sql: SqlSourceOptions = part(SqlSourceOptions)
    s3_queue: S3QueueOptions = part(S3QueueOptions)
    event_files: EventFilesOptions = part(EventFilesOptions)
    schemas: SchemaProviderOptions = part(SchemaProviderOptions)
    transformers: TransformerOptions = part(TransformerOptions)
    quarantine: QuarantineOptions = part(QuarantineOptions)
    tables: TablesOptions = part(TablesOptions)
    runs: RunOptions = part(RunOptions)
    schema_changes: SchemaChangeOptions = part(SchemaChangeOptions)
    apply: ApplyOptions = part(ApplyOptions)
