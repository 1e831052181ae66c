"""Streams after `enable`: `spark.readStream.format("hudi")` and `df.writeStream.format("hudi")`.

Spark's Python data source is the only stream that Python can give to Spark, so reading stays what it is without
`enable` (`pyspark_hudi`), with the session's options as well. Writing becomes `foreachBatch` with PyHudi's own writer;
triggers, names, checkpoints and output modes stay with Spark. Source: Spark's guide to Structured Streaming.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter
from pyspark.sql.types import StructType

from pyhudi.errors import ConfigError
from pyhudi.session.recorded_calls import RecordedCalls, column_names
from pyhudi.session.stream_sink import CHECKPOINT, write_batches_to
from pyhudi.spark import capabilities
from pyhudi.spark.session import hudi_and_store_options

if TYPE_CHECKING:
    from pyspark.sql._typing import OptionalPrimitiveType

__all__ = ["HudiAwareStreamReader", "HudiAwareStreamWriter"]

_OF_SPARK = frozenset({CHECKPOINT, "asyncprogresstrackingenabled"})  # keys of writeStream that are not Hudi's


class HudiAwareStreamReader(RecordedCalls[SparkSession, DataStreamReader]):
    """`spark.readStream` after `enable`."""

    def format(self, source: str) -> HudiAwareStreamReader:
        self._format = source
        self._real.format("hudi" if self._is_hudi(None) else source)
        return self

    def schema(self, schema: StructType | str) -> HudiAwareStreamReader:
        self._real.schema(schema)
        return self

    def load(
        self,
        path: str | None = None,
        format: str | None = None,
        schema: StructType | str | None = None,
        **options: OptionalPrimitiveType,
    ) -> DataFrame:
        if not self._is_hudi(format):
            return self._real.load(path, format, schema, **options)
        return self._followed(path, schema, options)

    def table(self, tableName: str) -> DataFrame:  # noqa: N803
        from pyhudi.session.named_streams import place_of_table

        place = place_of_table(self._owner, tableName)
        if place is None:
            return self._real.table(tableName)
        self._real.format("hudi")
        return self._followed(place, None, {})

    def _followed(
        self, path: str | None, schema: StructType | str | None, options: Mapping[str, OptionalPrimitiveType]
    ) -> DataFrame:
        if not capabilities.PRESENT.has_data_sources:
            raise ConfigError(capabilities.NO_DATA_SOURCES)
        given = {key.lower() for key in (*self._options, *options)}
        session, store = hudi_and_store_options(self._owner, {})
        for key, value in {**session, **store}.items():
            if key.lower() not in given:
                self._real.option(key, value)
        return self._real.load(path, "hudi", schema, **options)


class HudiAwareStreamWriter(RecordedCalls[DataFrame, DataStreamWriter]):
    """`df.writeStream` after `enable`. What only one of the two roads may hear is kept until it is known which."""

    def __init__(self, owner: DataFrame, real: DataStreamWriter) -> None:
        super().__init__(owner, real)
        self._output_mode = "append"
        self._partition_by: tuple[str, ...] = ()
        self._cluster_by: tuple[str, ...] = ()

    def format(self, source: str) -> HudiAwareStreamWriter:
        self._format = source
        if not self._is_hudi(None):
            self._real.format(source)
        return self

    def outputMode(self, outputMode: str) -> HudiAwareStreamWriter:  # noqa: N802, N803
        self._output_mode = outputMode
        self._real.outputMode(outputMode)
        return self

    def queryName(self, queryName: str) -> HudiAwareStreamWriter:  # noqa: N802, N803
        self._real.queryName(queryName)
        return self

    def trigger(self, **when: object) -> HudiAwareStreamWriter:
        getattr(self._real, "trigger")(**when)  # noqa: B009 - its overloads take one keyword each
        return self

    def partitionBy(self, *cols: str | list[str]) -> HudiAwareStreamWriter:  # noqa: N802
        self._partition_by = column_names(cols)
        return self

    def clusterBy(self, *cols: str | list[str]) -> HudiAwareStreamWriter:  # noqa: N802
        self._cluster_by = column_names(cols)
        return self

    def foreach(self, f: object) -> DataStreamWriter:
        return cast("DataStreamWriter", getattr(self._told(), "foreach")(f))  # noqa: B009

    def foreachBatch(self, func: object) -> DataStreamWriter:  # noqa: N802
        return cast("DataStreamWriter", getattr(self._told(), "foreachBatch")(func))  # noqa: B009

    def start(
        self,
        path: str | None = None,
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803
        partitionBy: str | list[str] | None = None,  # noqa: N803
        queryName: str | None = None,  # noqa: N803
        **options: OptionalPrimitiveType,
    ) -> StreamingQuery:
        if not self._is_hudi(format):
            return self._told().start(path, format, outputMode, partitionBy, queryName, **options)
        mode, columns = self._checked(outputMode), self._columns(partitionBy)
        table, given = self._split_path(path, options, "start")
        return self._begun(table, given, columns, mode, queryName, options)

    def toTable(  # noqa: N802
        self,
        tableName: str,  # noqa: N803
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803
        partitionBy: str | list[str] | None = None,  # noqa: N803
        queryName: str | None = None,  # noqa: N803
        **options: OptionalPrimitiveType,
    ) -> StreamingQuery:
        from pyhudi.session.named_streams import table_to_stream_to
        from pyhudi.session.named_writes import is_hudi_name

        named = format or self._format
        if not self._is_hudi(format) and (named is not None or not is_hudi_name(self._owner.sparkSession, tableName)):
            return self._told().toTable(tableName, format, outputMode, partitionBy, queryName, **options)
        mode, columns = self._checked(outputMode), self._columns(partitionBy)
        hudi = _of_hudi({**self._options, **options})
        place, given, take_back = table_to_stream_to(self._owner, tableName, hudi, columns)
        try:
            return self._begun(place, given, columns, mode, queryName, options)
        except BaseException:
            take_back()
            raise

    def _checked(self, given: str | None) -> str:
        """The output mode. Raises ConfigError for one, and for calls, that mean nothing for a Hudi table."""
        mode = (given or self._output_mode).lower()
        if self._cluster_by:
            raise ConfigError("clusterBy has no meaning for format hudi; sort with hoodie.clustering.* options.")
        if mode not in ("append", "complete"):
            raise ConfigError(
                f"Output mode {mode} with format hudi: Hudi's sink would replace the table by the rows that changed. "
                "To upsert them say so: writeStream.outputMode('update').foreachBatch(pyhudi.write_batches_to(path, "
                "options))."
            )
        return mode

    def _columns(self, given: str | list[str] | None) -> tuple[str, ...]:
        return column_names((given,)) if given is not None else self._partition_by

    def _begun(
        self,
        table: str,
        hudi: Mapping[str, object],
        partition_by: tuple[str, ...],
        mode: str,
        query_name: str | None,
        more: Mapping[str, OptionalPrimitiveType],
    ) -> StreamingQuery:
        """Start the stream into the table at a path. `hudi`: options of its writes; `more`: those of the last call."""
        checkpoint = {key: value for key, value in {**self._options, **more}.items() if key.lower() == CHECKPOINT}
        given = {**_of_hudi(hudi), **checkpoint}
        write = write_batches_to(table, given, partition_by=partition_by, complete=mode == "complete")
        real = self._real.options(**more).outputMode(mode)
        return real.foreachBatch(write).start(queryName=query_name)

    def _told(self) -> DataStreamWriter:
        """Spark's own writer, told what was kept."""
        if self._partition_by:
            self._real.partitionBy(*self._partition_by)
        if self._cluster_by:
            self._real.clusterBy(*self._cluster_by)
        return self._real


def _of_hudi(options: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in options.items() if key.lower() not in _OF_SPARK}
