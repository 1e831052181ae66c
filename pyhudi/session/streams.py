"""Streams after `enable`, by path and by name: `spark.readStream` and `df.writeStream` with format `hudi`.

A Python data source is the only stream that Python can provide to Spark. So reading is the same as without `enable`
(`pyspark_hudi`), with the session's options added. Writing becomes `foreachBatch` with PyHudi's own writer; Spark still
handles triggers, names, checkpoints and output modes.

Streams read and write tables by name with `readStream.table` and `writeStream.toTable`. The name is looked up when the
query starts; from then on the stream uses the table's path.
Source: Spark's guide to Structured Streaming, "Streaming Table APIs".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter
from pyspark.sql.types import StructType

from pyhudi.errors import ConfigError, TableExists
from pyhudi.session.named_writes import definition, split_path
from pyhudi.session.proxy import RecordedCalls, column_names
from pyhudi.session.sql import SparkSqlSession, name_of
from pyhudi.session.stream_sink import CHECKPOINT, BatchWriter, write_batches_to
from pyhudi.spark import capabilities
from pyhudi.spark.session import hudi_and_store_options
from pyhudi.spark.types import arrow_from_spark
from pyhudi.spark.worker_python import is_on_connect
from pyhudi.sql.columns import columns_text
from pyhudi.sql.session import TableName

if TYPE_CHECKING:
    from pyspark.sql._typing import OptionalPrimitiveType

__all__ = ["HudiAwareStreamReader", "HudiAwareStreamWriter", "place_of_table", "table_to_stream_to"]


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
        keys = {key.lower() for key in (*self._options, *options)}
        session, store = hudi_and_store_options(self._owner, {})
        for key, value in {**session, **store}.items():
            if key.lower() not in keys:
                self._real.option(key, value)
        return self._real.load(path, "hudi", schema, **options)


class HudiAwareStreamWriter(RecordedCalls[DataFrame, DataStreamWriter]):
    """`df.writeStream` after `enable`. Calls for only one of the two writers are held back until it is known."""

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
        return cast("DataStreamWriter", getattr(self._with_held_calls(), "foreach")(f))  # noqa: B009

    def foreachBatch(self, func: object) -> DataStreamWriter:  # noqa: N802
        function = _with_enable(func) if is_on_connect(self._owner.sparkSession) else func
        return cast("DataStreamWriter", getattr(self._with_held_calls(), "foreachBatch")(function))  # noqa: B009

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
            return self._with_held_calls().start(path, format, outputMode, partitionBy, queryName, **options)
        mode, columns = self._checked(outputMode), self._columns(partitionBy)
        table, remaining = self._split_path(path, options, "start")
        return self._start(table, remaining, columns, mode, queryName, options)

    def toTable(  # noqa: N802
        self,
        tableName: str,  # noqa: N803
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803
        partitionBy: str | list[str] | None = None,  # noqa: N803
        queryName: str | None = None,  # noqa: N803
        **options: OptionalPrimitiveType,
    ) -> StreamingQuery:
        from pyhudi.session.named_writes import is_hudi_name

        source = format or self._format
        if not self._is_hudi(format) and (source is not None or not is_hudi_name(self._owner.sparkSession, tableName)):
            return self._with_held_calls().toTable(tableName, format, outputMode, partitionBy, queryName, **options)
        mode, columns = self._checked(outputMode), self._columns(partitionBy)
        hudi = _of_hudi({**self._options, **options})
        place, remaining, take_back = table_to_stream_to(self._owner, tableName, hudi, columns)
        try:
            return self._start(place, remaining, columns, mode, queryName, options)
        except BaseException:
            take_back()
            raise

    def _checked(self, output_mode: str | None) -> str:
        """The output mode. Raises ConfigError for modes and calls that have no meaning for a Hudi table."""
        mode = (output_mode or self._output_mode).lower()
        if self._cluster_by:
            raise ConfigError("clusterBy has no meaning for format hudi; sort with hoodie.clustering.* options.")
        if mode not in ("append", "complete"):
            raise ConfigError(
                f"Output mode {mode} with format hudi: Hudi's sink would replace the table by the rows that changed. "
                "To upsert them say so: writeStream.outputMode('update').foreachBatch(pyhudi.write_batches_to(path, "
                "options))."
            )
        return mode

    def _columns(self, columns: str | list[str] | None) -> tuple[str, ...]:
        return column_names((columns,)) if columns is not None else self._partition_by

    def _start(
        self,
        table: str,
        hudi: Mapping[str, object],
        partition_by: tuple[str, ...],
        mode: str,
        query_name: str | None,
        more: Mapping[str, OptionalPrimitiveType],
    ) -> StreamingQuery:
        """Start a stream into the table at a path. `hudi`: options of its writes; `more`: those of the last call."""
        checkpoint = {key: value for key, value in {**self._options, **more}.items() if key.lower() == CHECKPOINT}
        write_options = {**_of_hudi(hudi), **checkpoint}
        write = write_batches_to(table, write_options, partition_by=partition_by, complete=mode == "complete")
        real = self._real.options(**more).outputMode(mode)
        return real.foreachBatch(write).start(queryName=query_name)

    def _with_held_calls(self) -> DataStreamWriter:
        """Spark's writer, after the calls that were held back."""
        if self._partition_by:
            self._real.partitionBy(*self._partition_by)
        if self._cluster_by:
            self._real.clusterBy(*self._cluster_by)
        return self._real


def _with_enable(func: object) -> object:
    """Wrap a function of `foreachBatch` so that it calls `enable` first. A Connect server calls it in its own Python
    process, in which `batch.write.format("hudi")` would otherwise mean the data source, which can't write.
    """
    if not callable(func) or isinstance(func, BatchWriter):
        return func

    def enabled(batch: DataFrame, batch_id: int) -> None:  # pickled by value: that Python may lack pyhudi
        try:
            from pyhudi import enable
        except ImportError:  # the function may not need it
            func(batch, batch_id)
            return
        enable(batch.sparkSession)
        func(batch, batch_id)

    return enabled


def _of_hudi(options: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in options.items() if key.lower() not in _OF_SPARK}


_OF_THE_STREAM = "hoodie.datasource.write.streaming."  # these options differ between two streams into one table


def place_of_table(spark: SparkSession, text: str) -> str | None:
    """The folder of a named Hudi table; None for any other table. Raises TableNotFound if the folder has no table."""
    name = name_of(text)
    entry = None if name is None else SparkSqlSession(spark).find_table(name)
    return None if entry is None else entry.location


def table_to_stream_to(
    df: DataFrame, text: str, options: Mapping[str, object], partition_by: Sequence[str]
) -> tuple[str, dict[str, object], Callable[[], None]]:
    """Resolve a stream's target: the table's folder, the options of the stream's writes, and a callback that removes a
    newly created table if the stream fails to start.

    A missing table is created without rows and registered like `saveAsTable` does, but without the options that belong
    to the stream.

    Args:
        df: the stream, which defines the columns of a new table.
        options: Hudi's, and `path` for the folder of a new table.
    Raises: ConfigError; TableExists for a name of another format's table. Nothing is created then.
    """
    name = name_of(text)
    if name is None:
        raise ConfigError(f"{text!r:.200} is no name of a table.")
    session = SparkSqlSession(df.sparkSession)
    path, remaining = split_path(options)
    if name.path is not None:
        return name.path, remaining, _do_nothing
    entry = session.catalog.find(name)
    take_back = _do_nothing
    if entry is None:
        is_new = session.open(path or session.catalog.place_of(name)) is None
        take_back = partial(_remove_created, session, name, is_new)
        lasting = {key: value for key, value in remaining.items() if not key.startswith(_OF_THE_STREAM)}
        columns = columns_text(arrow_from_spark(df.schema))
        replace(definition(name, lasting, path, partition_by), columns=columns, if_not_exists=True).run(session)
        entry = session.catalog.find(name)
    if entry is None or not entry.is_hudi:
        raise TableExists(f"{name} is no Hudi table; drop it, or choose another name.")
    if entry.location is None:
        raise ConfigError(f"The catalog has no location for the Hudi table {name}. Drop it and create it again.")
    of_table = {key: value for key, value in entry.properties.items() if key.startswith("hoodie.")}
    return entry.location, {**of_table, **remaining}, take_back


def _remove_created(session: SparkSqlSession, name: TableName, is_new: bool) -> None:
    entry = session.catalog.find(name)
    table = None if entry is None or entry.location is None or not is_new else session.open(entry.location)
    if table is not None and not table.state().timeline.instants:
        table.drop()
    session.catalog.remove(name)


def _do_nothing() -> None:
    """Remove nothing, as no table was created."""
