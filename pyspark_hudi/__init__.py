"""Spark's door to PyHudi without a line of code: `spark.read.format("hudi").load(path)`.

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

if TYPE_CHECKING:
    import pyarrow as pa

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
except ModuleNotFoundError:  # Spark 3.5, which looks for no module of this kind either; `DefaultSource` says so
    from pyhudi.spark.no_data_sources import (  # type: ignore[assignment]
        DataSource,
        DataSourceReader,
        InputPartition,
    )

__all__ = ["DefaultSource", "HudiReader"]

_ENABLE = (
    "Spark's Python data source can't write a Hudi table: it has no save modes, no partitionBy and brings no rows "
    "together. Call pyhudi.enable(spark) once, and df.write.format('hudi') is PyHudi's own writer."
)


class DefaultSource(DataSource):  # type: ignore[misc]
    """The data source `hudi`."""

    @classmethod
    def name(cls) -> str:
        return "hudi"

    def schema(self) -> StructType:
        from pyhudi.session.source import source_schema

        return source_schema(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        return HudiReader(dict(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:
        from pyhudi.errors import ConfigError

        raise ConfigError(_ENABLE)


class HudiReader(DataSourceReader):  # type: ignore[misc]
    """Plans on the driver's machine, reads groups of files in tasks."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self.options = options
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        from pyhudi.session.source import source_tasks

        return [InputPartition(task) for task in source_tasks(self.options, self.schema)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from pyhudi.session.source import read_task

        # Spark hands over one partition without a value when the plan is empty.
        value = getattr(partition, "value", None)
        return iter(()) if value is None else read_task(value, self.schema)
