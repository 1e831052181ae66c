"""Spark's door to PyHudi without a line of code: `spark.read.format("hudi").load(path)`, and `spark.readStream`.

Spark imports every module named `pyspark_*` and registers its `DefaultSource`, so this module is light: pyarrow and
pyhudi are imported when a table is read. A Python data source reads all columns of its schema. Give `.schema(...)` or
`.option("columns", "a,b")` to read fewer, or call `pyhudi.enable(spark)`, which turns the same call into Spark's
native Parquet scan with column pruning and filter push-down, and writes too.
Source: Spark's Python data source API.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

from pyspark.sql.types import StructType

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2
    ReadAllAvailable = ReadLimit = ReadMaxFiles = SupportsTriggerAvailableNow = object  # type: ignore[misc,assignment]

if TYPE_CHECKING:
    import pyarrow as pa

    from pyhudi.session.stream_source import FollowedTable, Offset

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
except ModuleNotFoundError:  # Spark 3.5, which looks for no module of this kind either; `DefaultSource` says so
    from pyhudi.spark.capabilities import (  # type: ignore[assignment]
        DataSource,
        DataSourceReader,
        DataSourceStreamReader,
        InputPartition,
    )

__all__ = ["DefaultSource", "HudiReader", "HudiStreamReader"]

_ENABLE = (
    "Spark's Python data source can't write a Hudi table: it has no save modes, no partitionBy and brings no rows "
    "together. Call pyhudi.enable(spark) once, and df.write.format('hudi') is PyHudi's own writer."
)

_ENABLE_STREAMS = (
    "Spark's Python data source can't write a stream to a Hudi table: it brings no rows together. Call "
    "pyhudi.enable(spark) once, or use writeStream.foreachBatch(pyhudi.write_batches_to(path, options))."
)


class DefaultSource(DataSource):  # type: ignore[misc]
    """The data source `hudi`."""

    @classmethod
    def name(cls) -> str:
        return "hudi"

    def schema(self) -> StructType:
        from pyhudi.session.data_source import source_schema

        return source_schema(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        return HudiReader(dict(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return HudiStreamReader(dict(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: N802
        from pyhudi.errors import ConfigError

        raise ConfigError(_ENABLE_STREAMS)

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:
        from pyhudi.errors import ConfigError

        raise ConfigError(_ENABLE)


class HudiReader(DataSourceReader):  # type: ignore[misc]
    """Plans on the driver's machine, reads groups of files in tasks."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self.options = options
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        from pyhudi.session.data_source import source_tasks

        return [InputPartition(task) for task in source_tasks(self.options, self.schema)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from pyhudi.session.data_source import read_task

        # Spark hands over one partition without a value when the plan is empty.
        value = getattr(partition, "value", None)
        return iter(()) if value is None else read_task(value, self.schema)


class HudiStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Follows a table: offsets and plans on the driver's machine, reads groups of files in tasks."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self._followed: FollowedTable | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_followed": None}  # tasks need no table

    @property
    def _table(self) -> FollowedTable:
        if self._followed is None:
            from pyhudi.session.stream_source import FollowedTable

            self._followed = FollowedTable(self.options, self.schema)
        return self._followed

    def initialOffset(self) -> Offset:  # noqa: N802
        return self._table.first_offset()

    def latestOffset(self, start: Offset | None = None, limit: ReadLimit | None = None) -> Offset:  # noqa: N802
        return self._table.next_offset(start, limited=limit is not None and not isinstance(limit, ReadAllAvailable))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        # The limits are those of the options; this only lets Spark say when they don't count, as with trigger(once).
        return ReadMaxFiles(1) if self._table.is_limited else ReadAllAvailable()

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        return self._table.newest_known_offset()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._table.stop_at_newest()

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        return [InputPartition(task) for task in self._table.tasks(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from pyhudi.session.data_source import read_task

        value = getattr(partition, "value", None)
        return iter(()) if value is None else read_task(value, self.schema)
