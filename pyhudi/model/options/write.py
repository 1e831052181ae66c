"""WriteOptions: what one write asks for, typed, with the table it meets taken into account.

What a table is (keys, partitioning, type, version, formats, merge mode) is the table's to say: for an existing table
those fields come from its config, an option of the call that says otherwise is an error with both values, and a
session-wide one is passed over, because it was not said of this table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyhudi.errors import ConfigError
from pyhudi.model.merge_mode import mode_of_payload_name, mode_of_strategy
from pyhudi.model.options.agreement import keep_to_table
from pyhudi.model.options.archiving import ArchivingOptions, archiving_options
from pyhudi.model.options.buckets import BucketOptions, bucket_options, is_consistent
from pyhudi.model.options.cleaning import CleaningOptions, cleaning_options
from pyhudi.model.options.clustering import ClusteringOptions, clustering_options
from pyhudi.model.options.commits import CommitOptions, commit_options
from pyhudi.model.options.compaction import CompactionOptions, compaction_options
from pyhudi.model.options.concurrency import ConcurrencyOptions, concurrency_options, failed_writes_policy
from pyhudi.model.options.locks import LockOptions, lock_options
from pyhudi.model.options.memory import MemoryOptions, memory_options
from pyhudi.model.options.replacing import ReplacingOptions, replacing_options
from pyhudi.model.options.spec import Door
from pyhudi.model.options.table import canonical_keys, resolve, text_of
from pyhudi.model.options.ttl import TtlOptions, ttl_options
from pyhudi.model.options.values import Values
from pyhudi.model.options.versions import VersionOptions, version_options

if TYPE_CHECKING:
    from pyhudi.model.table_config import TableConfig

__all__ = ["WriteOptions"]

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a write. Build it with `parse`; docs/options.md says what each one does.

    `partition_fields` stand as given, with ":TYPE" behind fields of the custom key generator. `explicit` are the keys
    (in their one spelling) that the call itself gave.
    """

    # What the table is
    table_name: str | None = None
    database_name: str | None = None
    table_type: str = "COPY_ON_WRITE"
    table_version: int = 9
    base_file_format: str = "PARQUET"
    populate_meta_fields: bool = True
    timezone: str = "LOCAL"
    record_key_fields: tuple[str, ...] = ()
    partition_fields: tuple[str, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    key_generator: str | None = None
    hive_style_partitioning: bool = False
    url_encode_partitioning: bool = False
    slash_separated_dates: bool = False
    drop_partition_columns: bool = False
    merge_mode: str | None = None
    payload_class: str | None = None
    merge_strategy_id: str | None = None
    merger_classes: tuple[str, ...] = ()
    delete_field: str | None = None
    delete_marker: str | None = None
    # Keys
    consistent_logical_timestamp: bool = False
    keygen_options: Mapping[str, str] = field(default_factory=dict)
    complex_key_new_encoding: bool | None = None
    # The write
    operation: str = "upsert"
    combine_before_upsert: bool = True
    combine_before_insert: bool = False
    combine_before_bulk_insert: bool = False
    insert_dup_policy: str = "none"
    bulk_insert_sort_mode: str = "NONE"
    bulk_insert_sort_columns: tuple[str, ...] = ()
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    # Index
    index_type: str = "SIMPLE"
    update_partition_path: Mapping[str, bool] = field(default_factory=dict)
    bucket_num: int = 256
    bucket_hash_fields: tuple[str, ...] = ()
    bloom_enabled: bool = True
    bloom_num_entries: int = 60000
    bloom_fpp: float = 1e-9
    bloom_kind: str = "DYNAMIC_V0"
    bloom_max_entries: int = 100000
    # Files
    codec: str = "zstd"
    compression_level: int = 1
    max_file_size_bytes: int = 125829120
    small_file_limit_bytes: int = 104857600
    record_size_estimate_bytes: int = 1024
    insert_auto_split: bool = True
    insert_split_rows: int = 500000
    small_file_candidates_max: int = 1
    log_block_format: str = "parquet"
    log_file_max_bytes: int = 1073741824
    log_block_max_bytes: int = 268435456
    record_positions: bool | None = None
    partial_updates: bool = True
    memory: MemoryOptions = field(default_factory=MemoryOptions)
    # Compaction
    compaction: CompactionOptions = field(default_factory=CompactionOptions)
    archiving: ArchivingOptions = field(default_factory=ArchivingOptions)
    versions: VersionOptions = field(default_factory=VersionOptions)
    clustering: ClusteringOptions = field(default_factory=ClusteringOptions)
    buckets: BucketOptions = field(default_factory=BucketOptions)
    # Cleaning
    cleaning: CleaningOptions = field(default_factory=CleaningOptions)
    # Overwriting and deleting partitions
    replacing: ReplacingOptions = field(default_factory=ReplacingOptions)
    ttl: TtlOptions = field(default_factory=TtlOptions)
    # What commits say
    commits: CommitOptions = field(default_factory=CommitOptions)
    # Schema
    null_for_missing_columns: bool = False
    reconcile_schema: bool = False
    allow_column_drop: bool = False
    allow_kind_change: bool = False
    # Safety
    concurrency: ConcurrencyOptions = field(default_factory=ConcurrencyOptions)
    lock: LockOptions = field(default_factory=LockOptions)
    max_clock_skew_ms: int = 200
    failed_writes_policy: str = "EAGER"
    heartbeat_interval_ms: int = 60000
    heartbeat_misses: int = 2
    # PyHudi's own
    engine: str = "auto"
    local_max_rows: int = 100000
    local_max_bytes: int = 33554432
    explicit: frozenset[str] = frozenset()

    @classmethod
    def parse(
        cls,
        options: Mapping[str, object],
        session: Mapping[str, object] | None = None,
        table: TableConfig | None = None,
    ) -> WriteOptions:
        """From option text.

        Args:    options: what the call gave, any spelling. session: session-wide options (`spark.` cut off).
                 table: the config of the table that is written, None when the write creates it.
        Raises:  ConfigError for wrong, contradictory, refused options and for those that contradict the table.
        """
        given = resolve(options, session, Door.WRITE)
        explicit = canonical_keys(options) & frozenset(given)
        if table is not None:
            given = keep_to_table(given, explicit, table)
        values = Values(given)
        if values.flag("hoodie.schema.on.read.enable"):
            raise ConfigError(
                "hoodie.schema.on.read.enable=true: this release reads tables with a schema history and does not write "
                "them. Leave the option out; nothing was written."
            )
        return cls(
            **_table_fields(values),
            **_key_fields(values),
            **_write_fields(values, options),
            **_index_fields(values),
            **_file_fields(values),
            compaction=compaction_options(values),
            archiving=archiving_options(values),
            versions=version_options(values),
            clustering=clustering_options(values),
            buckets=bucket_options(values),
            cleaning=cleaning_options(values),
            replacing=replacing_options(values),
            ttl=ttl_options(values),
            commits=commit_options(values),
            **_safety_fields(values),
            explicit=explicit,
        )


def _table_fields(values: Values) -> dict[str, Any]:
    merge_mode, payload, strategy = _merging(values)
    return {
        "table_name": values.text("hoodie.table.name"),
        "database_name": values.text("hoodie.database.name"),
        "table_type": values.must("hoodie.datasource.write.table.type"),
        "table_version": values.integer("hoodie.write.table.version"),
        "base_file_format": values.must("hoodie.table.base.file.format"),
        "populate_meta_fields": values.flag("hoodie.populate.meta.fields"),
        "timezone": values.must("hoodie.table.timeline.timezone"),
        "ordering_fields": values.names("hoodie.table.ordering.fields"),
        "merge_mode": merge_mode,
        "payload_class": payload,
        "merge_strategy_id": strategy,
        "merger_classes": values.names("hoodie.write.record.merge.custom.implementation.classes"),
        **_delete_marker(values),
        "null_for_missing_columns": values.flag("hoodie.write.set.null.for.missing.columns"),
        "reconcile_schema": values.flag("hoodie.datasource.write.reconcile.schema"),
        "allow_column_drop": values.flag("hoodie.datasource.write.schema.allow.auto.evolution.column.drop"),
        "allow_kind_change": values.flag("hoodie.pyhudi.schema.allow.kind.change"),
    }


def _delete_marker(values: Values) -> dict[str, str | None]:
    keys = ("hoodie.payload.delete.field", "hoodie.payload.delete.marker")
    field_, marker = (values.text(key) for key in keys)
    if (field_ is None) != (marker is None):
        raise ConfigError(f"{keys[0]}={field_} and {keys[1]}={marker}: give both, or none of them.")
    return {"delete_field": field_, "delete_marker": marker}


def _merging(values: Values) -> tuple[str | None, str | None, str | None]:
    """Merge mode (by whichever of the three names it), payload class, strategy id; ConfigError when they disagree."""
    mode = values.text("hoodie.write.record.merge.mode")
    payload = values.text("hoodie.datasource.write.payload.class")
    strategy = values.text("hoodie.write.record.merge.strategy.id")
    named = {
        "hoodie.write.record.merge.mode": mode,
        "hoodie.datasource.write.payload.class": mode_of_payload_name(payload or ""),
        "hoodie.write.record.merge.strategy.id": mode_of_strategy(strategy or ""),
    }
    said = {key: value for key, value in named.items() if value is not None}
    if len(set(said.values())) > 1:
        raise ConfigError(
            f"The options name different merge modes: {', '.join(f'{k} → {v}' for k, v in said.items())}. Keep one."
        )
    if strategy is not None and not _UUID.fullmatch(strategy):
        raise ConfigError(
            f"hoodie.write.record.merge.strategy.id={strategy}: expected a UUID, as in "
            f"5c2d9a3e-8f1b-4c6d-9e0f-1a2b3c4d5e6f."
        )
    return next(iter(said.values()), None), payload, strategy


def _key_fields(values: Values) -> dict[str, Any]:
    return {
        "record_key_fields": values.names("hoodie.datasource.write.recordkey.field"),
        "partition_fields": values.names("hoodie.datasource.write.partitionpath.field"),
        "key_generator": values.text("hoodie.datasource.write.keygenerator.class")
        or values.text("hoodie.datasource.write.keygenerator.type"),
        "hive_style_partitioning": values.flag("hoodie.datasource.write.hive_style_partitioning"),
        "url_encode_partitioning": values.flag("hoodie.datasource.write.partitionpath.urlencode"),
        "slash_separated_dates": values.flag("hoodie.datasource.write.slash.separated.date.partitioning"),
        "drop_partition_columns": values.flag("hoodie.datasource.write.drop.partition.columns"),
        "consistent_logical_timestamp": values.flag(
            "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
        ),
        "keygen_options": {key: text for key, text in values.given.items() if key.startswith("hoodie.keygen.")},
        "complex_key_new_encoding": values.flag("hoodie.write.complex.keygen.new.encoding")
        if "hoodie.write.complex.keygen.new.encoding" in values.given
        else None,
    }


def _write_fields(values: Values, options: Mapping[str, object]) -> dict[str, Any]:
    keyless = not values.names("hoodie.datasource.write.recordkey.field")
    operation = values.must("hoodie.datasource.write.operation")
    if keyless and "hoodie.datasource.write.operation" not in values.given:
        operation = "bulk_insert"
    drops = values.flag("hoodie.datasource.write.insert.drop.duplicates")
    prefix = values.given.get("hoodie.datasource.write.commitmeta.key.prefix", "_")
    return {
        "operation": operation,
        "combine_before_upsert": values.flag("hoodie.combine.before.upsert"),
        "combine_before_insert": values.flag("hoodie.combine.before.insert"),
        "combine_before_bulk_insert": values.flag("hoodie.combine.before.insert"),
        "insert_dup_policy": "drop" if drops else values.must("hoodie.datasource.insert.dup.policy"),
        "bulk_insert_sort_mode": values.must("hoodie.bulkinsert.sort.mode"),
        "bulk_insert_sort_columns": values.names("hoodie.bulkinsert.user.defined.partitioner.sort.columns"),
        "extra_metadata": {
            key: text_of(value)
            for key, value in options.items()
            if prefix and key.startswith(prefix) and value is not None
        },
        "engine": values.must("hoodie.pyhudi.engine"),
        "local_max_rows": values.integer("hoodie.pyhudi.local.max.rows", minimum=0),
        "local_max_bytes": values.integer("hoodie.pyhudi.local.max.bytes", minimum=0),
    }


def _index_fields(values: Values) -> dict[str, Any]:
    return {
        "index_type": "BUCKET" if is_consistent(values) else values.must("hoodie.index.type"),
        "update_partition_path": {
            "GLOBAL_SIMPLE": values.flag("hoodie.simple.index.update.partition.path"),
            "GLOBAL_BLOOM": values.flag("hoodie.bloom.index.update.partition.path"),
        },
        "bucket_num": values.integer("hoodie.bucket.index.num.buckets", minimum=1),
        "bucket_hash_fields": values.names("hoodie.bucket.index.hash.field"),
        "bloom_enabled": values.flag("hoodie.parquet.bloom.filter.enabled"),
        "bloom_num_entries": values.integer("hoodie.index.bloom.num_entries", minimum=1),
        "bloom_fpp": values.number("hoodie.index.bloom.fpp"),
        "bloom_kind": values.must("hoodie.bloom.index.filter.type"),
        "bloom_max_entries": values.integer("hoodie.bloom.index.filter.dynamic.max.entries", minimum=1),
    }


def _file_fields(values: Values) -> dict[str, Any]:
    orc = values.must("hoodie.table.base.file.format") == "ORC"
    codec, orc_codec = values.must("hoodie.parquet.compression.codec"), values.must("hoodie.orc.compression.codec")
    full = values.integer("hoodie.parquet.max.file.size", minimum=1)
    full_orc = values.integer("hoodie.orc.max.file.size", minimum=1)
    positions = "hoodie.write.record.positions"
    return {
        "codec": orc_codec.lower() if orc else codec,
        "compression_level": values.integer("hoodie.pyhudi.compression.level", minimum=0),
        "max_file_size_bytes": full_orc if orc else full,
        "small_file_limit_bytes": values.integer("hoodie.parquet.small.file.limit"),
        "record_size_estimate_bytes": values.integer("hoodie.copyonwrite.record.size.estimate", minimum=1),
        "insert_auto_split": values.flag("hoodie.copyonwrite.insert.auto.split"),
        "insert_split_rows": values.integer("hoodie.copyonwrite.insert.split.size", minimum=1),
        "small_file_candidates_max": values.integer("hoodie.merge.small.file.group.candidates.limit", minimum=0),
        "log_block_format": values.must("hoodie.logfile.data.block.format"),
        "log_file_max_bytes": values.integer("hoodie.logfile.max.size", minimum=1),
        "record_positions": values.flag(positions) if values.text(positions) else None,
        "partial_updates": values.flag("hoodie.spark.sql.merge.into.partial.updates"),
        "memory": memory_options(values),
        "log_block_max_bytes": values.integer("hoodie.logfile.data.block.max.size", minimum=1),
    }


def _safety_fields(values: Values) -> dict[str, Any]:
    return {
        "concurrency": concurrency_options(values),
        "lock": lock_options(values),
        "max_clock_skew_ms": values.integer("hoodie.time.generator.max_expected_clock_skew_ms", minimum=0),
        "failed_writes_policy": failed_writes_policy(values),
        "heartbeat_interval_ms": values.integer("hoodie.client.heartbeat.interval_in_ms", minimum=1000),
        "heartbeat_misses": values.integer("hoodie.client.heartbeat.tolerable.misses", minimum=0),
    }
