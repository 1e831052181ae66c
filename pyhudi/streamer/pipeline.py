"""One round: from the checkpoint in the table to the commit that brings rows and the next checkpoint.

    newest checkpoint → rows as they would be written (`reading.py`) → those that don't fit aside → write

The write is refused when another checkpoint came into the table since the first step (`CheckpointMoved`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.actions.create_table import check_fields
from pyhudi.actions.result import WriteResult
from pyhudi.actions.streamer_checkpoints import NO_CHECKPOINT, SET_ASIDE, newest_checkpoint
from pyhudi.errors import ConfigError
from pyhudi.formats.avro.schema import without_meta
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.schema.evolution import evolve
from pyhudi.storage import open_storage
from pyhudi.storage.clock import Clock
from pyhudi.streamer.change_events import flow_of, with_all_columns
from pyhudi.streamer.checkpoints import Start, batch_options, start_of
from pyhudi.streamer.first_checkpoints import first_start
from pyhudi.streamer.json_messages import RowColumns
from pyhudi.streamer.quarantine import check_share, set_aside
from pyhudi.streamer.reading import BatchReader, LocalReader, ReadBatch, RowTarget, TableColumns
from pyhudi.streamer.schemas import provided_columns
from pyhudi.streamer.settings import PipelineSettings
from pyhudi.streamer.sources.debezium.source import check_table, settings_of_changes
from pyhudi.streamer.sources.debezium.unavailable import filled_by_table
from pyhudi.streamer.sources.registry import open_source
from pyhudi.streamer.sources.source import RowSource, SourceSetting
from pyhudi.table.change_events.apply_changes import apply_events
from pyhudi.table.change_events.flow import ChangeFlow
from pyhudi.table.save import write
from pyhudi.timeline.table_properties import table_exists

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession

__all__ = ["Pipeline", "Round"]

_RECORD_KEY = "hoodie.datasource.write.recordkey.field"
_OPERATION = "hoodie.datasource.write.operation"
# A column that a batch lacks is null in its rows, however batches are cut; a new one comes in under any name.
_BY_DEFAULT = {"hoodie.write.set.null.for.missing.columns": "true", "hoodie.pyhudi.schema.mode": "merge"}
_SAID_MAX = 5
_REPLACING = ("insert_overwrite", "insert_overwrite_table", "delete_partition")


@dataclass(frozen=True, slots=True)
class Round:
    """What a round did. `written`: None where there was nothing to commit. `lag`, `gauges`: as the source says."""

    rows: int
    rejected: int
    lost: int
    checkpoint: str | None
    written: WriteResult | None
    said: Sequence[str]
    lag: Mapping[str, int]
    gauges: Mapping[str, float]


class Pipeline:
    """The parts of a configuration, opened once. Raises ConfigError for parts that don't go together."""

    def __init__(self, settings: PipelineSettings, clock: Clock, spark: SparkSession | None = None) -> None:
        if spark is not None:
            from pyhudi.streamer.on_spark import SparkReader, with_session_store

            settings = with_session_store(settings, spark)
        self._flow = flow_of(settings)
        settings = settings_of_changes(settings)
        self._settings, self._spark = settings, spark
        self._storage = open_storage(settings.target, settings.store)
        self._provided = provided_columns(settings)
        setting = SourceSetting(settings, clock)
        self._source: RowSource = open_source(setting)
        self._reader: BatchReader = (
            LocalReader(settings, self._source, self._provided)
            if spark is None
            else SparkReader(spark, setting, self._source, self._provided)
        )
        self._meta: MetaClient | None = None
        # Asked once: what the provider reads may go on before a commit of ours has the checkpoint.
        is_asked = settings.options.runs.first_checkpoint is not None
        self._first = cache(lambda: first_start(settings)) if is_asked else None
        self._held: Start | None = None  # where to go on as long as there is no table to note it
        if self.reads_all and (settings.options.checkpoint or settings.options.ignore_checkpoint):
            raise ConfigError(
                f"{settings.place}: checkpoint and ignore-checkpoint: {settings.options.source} reads all rows in each "
                "round. Leave them out."
            )
        quarantine = settings.options.quarantine
        if quarantine.is_on and quarantine.path is None:
            raise ConfigError(
                f"{settings.place}: hoodie.errortable.base.path is missing: the place of the quarantine table."
            )

    @property
    def table_name(self) -> str:
        """The name of the table, also of one that is to be made."""
        if self._meta is not None:
            return self._meta.config.table_name
        return self._settings.write.get("hoodie.table.name") or self._storage.root.rstrip("/").rpartition("/")[2]

    @property
    def reads_all(self) -> bool:
        """Does each round read all rows, wherever the last one ended?"""
        return self._source.reads_all

    def close(self) -> None:
        """Let the source go, and what was read."""
        self._reader.release()
        self._source.close()

    def read(self, limit: int | None = None) -> ReadBatch | None:
        """The next rows as they would be written; None when there is nothing new."""
        start = self._start()
        limit = limit or self._settings.options.source_limit
        target = RowTarget(self._columns(), self._keys(), self._table_columns(), self._filled)
        return self._reader.read(start, limit, target)

    def run(self) -> Round | None:
        """Read and write a batch; None when there is nothing new.

        Raises: HudiError; nothing of the batch is visible then. CheckpointMoved: read again.
        """
        try:
            read = self.read()
            return None if read is None else self._written(read)
        finally:
            self._reader.release()

    def _written(self, read: ReadBatch) -> Round:
        batch, options = read.batch, self._settings.options
        check_share(self._settings, read.rejected, read.num_rows)
        set_aside(self._settings, read.rejected)
        is_new = batch.checkpoint != read.start.text or any(
            (read.start.notes or {}).get(key) != text for key, text in batch.notes.items()
        )
        written = None
        if read.num_rows or is_new or options.commits_empty:
            written = self._write(read)
        if written is None and self._meta is None:
            is_v2 = self._source.writes_v2
            self._held = replace(read.start, text=batch.checkpoint, is_v2=is_v2, notes=batch.notes, is_given=False)
        said = [*batch.said, *(batch.done() if batch.done is not None else ())]
        if not options.quarantine.is_on:
            said += [f"left out: {one.position}: {one.reason}" for one in read.rejected[:_SAID_MAX]]
        numbers = (read.num_rows, len(read.rejected), batch.lost)
        return Round(*numbers, batch.checkpoint, written, said, batch.lag, batch.gauges)

    def check(self, limit: int) -> ReadBatch | None:
        """Like `read`, and what can be refused of the write is refused. Nothing is written."""
        read = self.read(limit)
        if read is None or not read.num_rows:
            return read
        options = WriteOptions.parse(self._settings.write)
        if self._flow is not None:
            events, flow = self._events(read, self._flow)
            if self._meta is None:
                flow.check_new(flow.options(self._settings.write), self._storage.root)
            flow.events(events, self._meta, options)
        elif self._meta is None:
            check_fields(options, read.schema.names)
        else:
            evolve(_data_columns(self._meta), read.schema, null_for_missing=True, schema_mode="merge")
        return read

    def _write(self, read: ReadBatch) -> WriteResult | None:
        settings, rows = self._settings, read.data
        aside = {SET_ASIDE: str(len(read.rejected))} if read.rejected else {}
        notes = batch_options(
            settings.options,
            read.start,
            read.batch.checkpoint,
            {**read.batch.notes, **aside},
            is_v2=self._source.writes_v2,
        )
        options: dict[str, object] = {**_BY_DEFAULT, **settings.write, **notes}
        if self._flow is not None:
            if read.num_rows:
                events, flow = self._events(read, self._flow)
                return apply_events(self._storage, events, flow, options)
            if self._meta is None:
                return None
            options = self._flow.options(options)
        if settings.options.filters_dupes:
            options["hoodie.datasource.insert.dup.policy"] = "drop"
        if not read.num_rows:
            # No rows: the checkpoint alone goes on, and an overwrite replaces nothing.
            if self._meta is None and not read.schema.names:
                return None
            rows = (read.schema if self._meta is None else _data_columns(self._meta)).empty_table()
            if settings.operation in _REPLACING:
                options[_OPERATION] = "bulk_insert"
        return write(self._storage, rows, options, "append", self._spark)

    def _events(self, read: ReadBatch, flow: ChangeFlow) -> tuple[pa.Table, ChangeFlow]:
        table = pa.schema([]) if self._meta is None else _data_columns(self._meta)
        return with_all_columns(read.head(read.num_rows), flow, table)

    def _start(self) -> Start:
        if self._meta is not None:
            self._meta = self._meta.reload()
        elif table_exists(self._storage):
            self._meta = MetaClient.load(self._storage)
        if self._meta is None:
            return self._held or start_of(self._settings.options, None, self._first, has_commits=False)
        check_table(self._settings, self._meta)
        newest = newest_checkpoint(self._meta)
        if self.reads_all:
            return Start(None, after=NO_CHECKPOINT if newest is None else newest.instant_time)
        has_commits = bool(self._meta.timeline.commits().instants)
        try:
            return start_of(self._settings.options, newest, self._first, has_commits=has_commits)
        except ConfigError as error:
            raise ConfigError(f"{self._storage.root}: {error}") from error

    def _columns(self) -> RowColumns:
        """The columns of what is read: the provider's; the table's where rows come into it as they are."""
        keys = tuple(self._keys())
        if self._provided.source is not None:
            return RowColumns(self._provided.source, is_whole=True, keys=keys)
        if self._meta is None or self._settings.options.transformer_names:
            return RowColumns(pa.schema([]), keys=keys)
        times = () if self._flow is None else self._flow.times
        fields = [one for one in _data_columns(self._meta) if one.name not in times]
        return RowColumns(pa.schema(fields), keys=keys)

    def _table_columns(self) -> TableColumns:
        """The columns of the table, whose types the rows get."""
        if self._meta is None:
            return TableColumns(pa.schema([]))
        config = self._meta.config
        protected = (*config.record_key_fields, *config.partition_fields)
        ordering = tuple(config.ordering_fields)
        return TableColumns(_data_columns(self._meta), protected, ordering, self._settings.allows_kinds)

    def _filled(self, rows: pa.Table) -> tuple[pa.Table, Sequence[str]]:
        """Rows with values that their source did not send, and what has to be said."""
        return filled_by_table(rows, self._meta, self._settings)

    def _keys(self) -> list[str]:
        """The key columns of the table, or of the one that will be made; of events the sequence, too."""
        if self._flow is not None:
            return [*self._flow.keys, self._flow.sequence]
        if self._meta is not None:
            return list(self._meta.config.record_key_fields)
        return [name.strip() for name in self._settings.write.get(_RECORD_KEY, "").split(",") if name.strip()]


def _data_columns(meta: MetaClient) -> pa.Schema:
    """The columns of a table, without its meta columns."""
    return without_meta(meta.table_schema())
