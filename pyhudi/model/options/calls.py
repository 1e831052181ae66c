"""WriteOptions and ReadOptions: the typed options of one call. Those of a write are checked against its table.

The table's own settings (keys, partitioning, type, version, formats, merge mode) win: for an existing table those
fields come from its config. A different option of the call is an error with both values. A session-wide option is
ignored, because it was not set for this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyhudi.errors import ConfigError
from pyhudi.model.options.agreement import keep_to_table
from pyhudi.model.options.catalogs.exporting import ExportOptions, export_options
from pyhudi.model.options.catalogs.syncing import SyncOptions, sync_options
from pyhudi.model.options.concurrency import (
    ConcurrencyOptions,
    LivenessOptions,
    LockOptions,
    concurrency_options,
    liveness_options,
    lock_options,
)
from pyhudi.model.options.declare import Values, parse, part
from pyhudi.model.options.files import DamageOptions, FileOptions, file_options
from pyhudi.model.options.index import BucketOptions, IndexOptions, bucket_options, index_options
from pyhudi.model.options.known_keys import canonical_keys, resolve
from pyhudi.model.options.merging import MemoryOptions, MergerOptions, MergingOptions, merging_options
from pyhudi.model.options.metadata import MetadataOptions, metadata_options
from pyhudi.model.options.operation import (
    CommitOptions,
    OperationOptions,
    OwnOptions,
    ReplacingOptions,
    SchemaOptions,
    StatementOptions,
    operation_options,
)
from pyhudi.model.options.queries import SCHEMA_HISTORY, QueryOptions
from pyhudi.model.options.reporting import CallbackOptions, MetricsOptions, callback_options, metrics_options
from pyhudi.model.options.retention import (
    ArchivingOptions,
    CleaningOptions,
    TtlOptions,
    archiving_options,
    cleaning_options,
    ttl_options,
)
from pyhudi.model.options.services import ClusteringOptions, CompactionOptions, clustering_options, compaction_options
from pyhudi.model.options.spec import HudiOptionWarning, OptionScope
from pyhudi.model.options.streamer.streamer import StreamerOptions
from pyhudi.model.options.streaming import SourceOptions, StreamOptions
from pyhudi.model.options.table import KeyOptions, TableOptions, VersionOptions, key_options
from pyhudi.model.options.validation import ValidationOptions, validation_options
from pyhudi.warnings import warn_caller

if TYPE_CHECKING:
    from pyhudi.model.table_config import TableConfig

__all__ = [
    "ReadOptions",
    "WriteOptions",
    "streamer_options",
]


@dataclass(frozen=True)
class WriteOptions(
    TableOptions,
    KeyOptions,
    MergingOptions,
    MergerOptions,
    OperationOptions,
    SchemaOptions,
    IndexOptions,
    FileOptions,
    LivenessOptions,
    OwnOptions,
):
    """The options of a write: those of its bases and, by topic, those of table services and the lock.

    Build it with `parse`; docs/options.md describes the options. `explicit`: the canonical keys that the call set.
    """

    memory: MemoryOptions = part(MemoryOptions)
    damage: DamageOptions = part(DamageOptions)
    compaction: CompactionOptions = part(CompactionOptions, compaction_options)
    archiving: ArchivingOptions = part(ArchivingOptions, archiving_options)
    versions: VersionOptions = part(VersionOptions)
    clustering: ClusteringOptions = part(ClusteringOptions, clustering_options)
    buckets: BucketOptions = part(BucketOptions, bucket_options)
    cleaning: CleaningOptions = part(CleaningOptions, cleaning_options)
    replacing: ReplacingOptions = part(ReplacingOptions)
    ttl: TtlOptions = part(TtlOptions, ttl_options)
    commits: CommitOptions = part(CommitOptions)
    concurrency: ConcurrencyOptions = part(ConcurrencyOptions, concurrency_options)
    lock: LockOptions = part(LockOptions, lock_options)
    metadata: MetadataOptions = part(MetadataOptions, metadata_options)
    statements: StatementOptions = part(StatementOptions)
    stream: StreamOptions = part(StreamOptions)
    metrics: MetricsOptions = part(MetricsOptions, metrics_options)
    callback: CallbackOptions = part(CallbackOptions)
    validation: ValidationOptions = part(ValidationOptions)
    sync: SyncOptions = part(SyncOptions, sync_options)
    export: ExportOptions = part(ExportOptions, export_options)
    explicit: frozenset[str] = frozenset()

    @classmethod
    def parse(
        cls,
        options: Mapping[str, object],
        session: Mapping[str, object] | None = None,
        table: TableConfig | None = None,
    ) -> WriteOptions:
        """The options from text.

        Args:    options: of the call, in any spelling. session: session-wide options (without `spark.`).
                 table: the config of the written table, None when the write creates it.
        Raises:  ConfigError for wrong, contradictory or refused options and for those that contradict the table.
        """
        resolved = resolve(options, session, OptionScope.WRITE)
        explicit = canonical_keys(options) & frozenset(resolved)
        if table is not None:
            resolved = keep_to_table(resolved, explicit, table)
        values = Values(resolved)
        if values.flag(SCHEMA_HISTORY):
            raise ConfigError(
                f"{SCHEMA_HISTORY.key}=true: this release makes no schema history. A table that has one is "
                "written without the option; leave it out. Nothing was written."
            )
        # A topic whose options have rules between them is parsed by its own function and inserted as a whole.
        return replace(
            parse(cls, values),
            **vars(key_options(values)),
            **vars(merging_options(values)),
            **vars(operation_options(values, options)),
            **vars(index_options(values)),
            **vars(file_options(values)),
            **vars(liveness_options(values)),
            callback=callback_options(values, options),
            validation=validation_options(values, options),
            explicit=explicit,
        )


@dataclass(frozen=True)  # no slots: it has several bases
class ReadOptions(QueryOptions, MergerOptions):
    """The options of a read: those of its bases, its memory limit, and its reaction to damaged log files."""

    memory: MemoryOptions = part(MemoryOptions)
    damage: DamageOptions = part(DamageOptions)
    source: SourceOptions = part(SourceOptions)

    @classmethod
    def parse(cls, options: Mapping[str, object], session: Mapping[str, object] | None = None) -> ReadOptions:
        """The options from text; see `resolve` for spellings, warnings and errors."""
        values = Values(resolve(options, session, OptionScope.READ))
        if values.texts.get(SCHEMA_HISTORY.key) == "false":
            warn_caller(
                f"No effect in this release: {SCHEMA_HISTORY.key}=false. Columns of a table that has a schema history "
                "are matched by it.",
                HudiOptionWarning,
            )
        return parse(cls, values)


def streamer_options(options: Mapping[str, object]) -> StreamerOptions:
    """The options of a pipeline from text; see `resolve` for spellings, warnings and errors."""
    return parse(StreamerOptions, Values(resolve(options, None, OptionScope.STREAM)))
