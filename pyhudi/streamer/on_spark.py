"""A batch by Spark's tasks: each fetches a part of the source with its own client, and decodes it as a single process
would. The driver plans, and combines the answers: columns, checkpoint, rows that don't fit.

    plan → splits → tasks: fetch, decode, pack → cached → driver: columns of all parts, checkpoint
        without transformers: → rows in these columns → write
        with transformers:    → DataFrame → transformers → tasks: finish, pack → cached → rows → write

Rows are fetched once per round: later steps read the cached ones. A small batch comes to the driver, which writes it as
it writes small DataFrames; the columns have Spark's types all the same. A Hudi table is read by an incremental query of
the session. Rows of a source without parts are read by the driver and sent to the tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.model.options import WriteOptions, canonical_keys
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.frame_input import FrameInput, collected, is_written_here
from pyhudi.spark.session import hudi_options, store_options
from pyhudi.spark.types import travelling_schema
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.json_messages import RowColumns
from pyhudi.streamer.reading import Finish, ReadBatch, RowTarget
from pyhudi.streamer.schemas import ProvidedColumns
from pyhudi.streamer.settings import PipelineSettings
from pyhudi.streamer.sources.hudi import HudiSource
from pyhudi.streamer.sources.source import Batch, Rejected, RowSource, SourceSetting, SplitSource
from pyhudi.streamer.spark_tasks import (
    ANSWER,
    NUMBER,
    PACKED,
    ROWS,
    FetchSplits,
    PackRows,
    SplitReply,
    UnpackSplits,
    answers_of,
)
from pyhudi.streamer.transforms import frame_transforms_of

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkDataFrame, SparkSession

__all__ = ["SparkReader", "with_session_store"]

_TASKS_PER_CORE = 4  # as in the engine


def with_session_store(settings: PipelineSettings, spark: SparkSession) -> PipelineSettings:
    """The settings with the session's keys for remote stores, which the pipeline's own override."""
    return replace(settings, store=store_options(spark, settings.store))


class SparkReader:
    """Reads batches by the tasks of a session."""

    def __init__(
        self, spark: SparkSession, setting: SourceSetting, source: RowSource, provided: ProvidedColumns
    ) -> None:
        self._spark, self._setting, self._source, self._provided = spark, setting, source, provided
        self._engine = SparkEngine(spark)
        self._transforms = frame_transforms_of(setting.settings)
        if self._transforms and isinstance(source, SplitSource) and not source.is_cut:
            raise ConfigError(
                f"{setting.settings.place}: {setting.settings.options.source} with transformers does not run on Spark: "
                "they come before values of the table that the source did not send. Run it without Spark."
            )
        self._cached: list[SparkDataFrame] = []

    def read(self, start: Start, limit: int | None, target: RowTarget) -> ReadBatch | None:
        """The rows as a DataFrame."""
        self.release()
        source = self._setting.settings.options.source
        finish = Finish(self._provided.target, target.table, tuple(target.keys), source)
        if isinstance(self._source, SplitSource) and self._source.is_cut:
            return self._by_splits(self._source, start, limit, target.columns, finish)
        if isinstance(self._source, HudiSource):
            changes = self._source.changes(start, self._spark)
            if changes is None:
                return None
            frame = changes[0].to_spark()
            schema = self._engine.schema(frame)
            return self._transformed(start, Batch(schema.empty_table(), changes[1]), frame, finish)
        batch = self._source.read(start, limit, target.columns)
        if batch is None:
            return None
        rows, said = target.fill(batch.rows)
        batch = replace(batch, rows=rows, said=(*batch.said, *said))
        if not batch.rows.num_rows:
            return self._without_rows(start, batch, finish)
        return self._transformed(start, batch, self._engine.from_arrow(batch.rows, in_batches=True), finish)

    def release(self) -> None:
        """Release the cached rows."""
        while self._cached:
            self._engine.release(self._cached.pop())

    def _by_splits(
        self, source: SplitSource[Any, Any], start: Start, limit: int | None, columns: RowColumns, finish: Finish
    ) -> ReadBatch | None:
        plan = source.plan(start, limit)
        if plan is None:
            return None
        cores = self._engine.parallelism
        splits = source.splits(plan, max(2, cores))
        # Rows keep the order of the source: neighbouring splits go to one task, and tasks are in order.
        tasks_max = _TASKS_PER_CORE * cores
        numbered = list(enumerate(splits))
        groups = [tuple(group) for _, group in groupby(numbered, lambda one: one[0] * tasks_max // len(splits))]
        if len(splits) <= tasks_max:
            groups = [(one,) for one in numbered]
        fetch = FetchSplits(self._setting, columns, None if self._transforms else replace(finish, is_part=True))
        packed, answers = self._packed(self._engine.fan_out(groups, fetch, PACKED))
        batch = source.batch(plan, [(splits[answer.number], answer.fetched) for answer in answers], columns)
        answers = [answer for answer in answers if answer.number in batch.splits]
        missing = finish.missing(batch.rows.schema)
        if missing and any(answer.keyless for answer in answers):
            raise SchemaMismatch(f"No row of the batch has the key column {missing[0]}. Nothing was written.")
        if not any(answer.rows for answer in answers):
            return self._without_rows(start, batch, finish)
        if self._transforms:
            return self._transformed(start, batch, self._frame(packed, answers, batch.rows.schema), finish)
        return self._read(start, batch, packed, answers, batch.rows.schema, batch.rejected)

    def _transformed(self, start: Start, batch: Batch, frame: SparkDataFrame, finish: Finish) -> ReadBatch:
        """The rows of a DataFrame after the transformers, which are evaluated once."""
        for transform in self._transforms:
            frame = transform.frame(frame)
        FrameInput(frame).column_names(None)
        target = finish.columns(self._engine.schema(frame))
        packed, answers = self._packed(self._engine.map(frame, PackRows(replace(finish, target=target)), PACKED))
        keyless = [one for answer in answers for one in answer.fetched.rejected]
        return self._read(start, batch, packed, answers, target, [*batch.rejected, *keyless])

    def _read(
        self,
        start: Start,
        batch: Batch,
        packed: SparkDataFrame,
        answers: Sequence[SplitReply],
        schema: pa.Schema,
        rejected: Sequence[Rejected],
    ) -> ReadBatch:
        count, size_bytes = sum(answer.rows for answer in answers), sum(answer.size_bytes for answer in answers)
        given, session = self._setting.settings.write, hudi_options(self._spark)
        options = WriteOptions.parse(given, session)
        is_small = is_written_here(self._engine, options, canonical_keys([*given, *session]), count, size_bytes)
        found = collected(self._engine.select(packed, [NUMBER, ROWS])) if is_small else None
        if found is not None:
            unpack = _unpacking(answers, schema)
            rows = pa.Table.from_batches(unpack.unpacked(found.to_batches()), unpack.schema)
            return ReadBatch(start, batch, rows, schema, count, rejected, lambda n: rows.slice(0, n))
        frame = self._frame(packed, answers, schema)

        def head(rows: int) -> pa.Table:
            # A limit would not keep the order of all rows.
            return self._engine.collect(frame.limit(rows) if rows < count else frame)

        return ReadBatch(start, batch, frame, schema, count, rejected, head)

    def _without_rows(self, start: Start, batch: Batch, finish: Finish) -> ReadBatch:
        rows, _ = finish(pa.table({}) if self._transforms else batch.rows)
        return ReadBatch(start, batch, rows, rows.schema, 0, batch.rejected, lambda n: rows)

    def _packed(self, frame: SparkDataFrame) -> tuple[SparkDataFrame, list[SplitReply]]:
        """The packed rows, computed once, and their answers."""
        packed = self._engine.cache(frame)
        self._cached.append(packed)
        return packed, answers_of(self._engine.collect(self._engine.select(packed, [NUMBER, ANSWER])))

    def _frame(self, packed: SparkDataFrame, answers: Sequence[SplitReply], schema: pa.Schema) -> SparkDataFrame:
        unpack = _unpacking(answers, schema)
        return self._engine.map(self._engine.select(packed, [NUMBER, ROWS]), unpack, unpack.schema)


def _unpacking(answers: Sequence[SplitReply], schema: pa.Schema) -> UnpackSplits:
    """Unpack the rows that were answered for, in Spark's types."""
    counts: dict[int, int] = {}
    for answer in answers:
        counts[answer.number] = counts.get(answer.number, 0) + answer.rows
    return UnpackSplits(counts, travelling_schema(schema))
