"""`spark.read` and `df.write` after `enable`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, SparkSession
from pyspark.sql.types import StructType

from pyhudi.errors import ConfigError
from pyhudi.session.proxy import RecordedCalls, column_names

if TYPE_CHECKING:
    from pyspark.sql._typing import OptionalPrimitiveType

__all__ = ["HudiAwareReader", "HudiAwareWriter"]


class HudiAwareReader(RecordedCalls[SparkSession, DataFrameReader]):
    """`spark.read` after `enable`."""

    _schema: StructType | str | None = None

    def schema(self, schema: StructType | str) -> HudiAwareReader:
        self._schema = schema
        self._real.schema(schema)
        return self

    def load(
        self,
        path: str | list[str] | None = None,
        format: str | None = None,
        schema: StructType | str | None = None,
        **options: OptionalPrimitiveType,
    ) -> DataFrame:
        if not self._is_hudi(format):
            return self._real.load(path, format, schema, **options)
        from pyhudi.spark.reader import read_frame

        table, remaining = self._split_path(path, options, "load")
        return read_frame(self._owner, table, remaining, schema=schema if schema is not None else self._schema)

    def table(self, tableName: str) -> DataFrame:  # noqa: N803
        from pyhudi.session.sql import frame_of_name

        frame = frame_of_name(self._owner, tableName)
        return self._real.table(tableName) if frame is None else frame


class HudiAwareWriter(RecordedCalls[DataFrame, DataFrameWriter]):
    """`df.write` after `enable`."""

    def __init__(self, owner: DataFrame, real: DataFrameWriter) -> None:
        super().__init__(owner, real)
        self._mode: str | None = None
        self._partition_by: tuple[str, ...] = ()
        self._layout_calls: list[str] = []

    def mode(self, saveMode: str | None) -> HudiAwareWriter:  # noqa: N803
        if saveMode:
            self._mode = saveMode
        self._real.mode(saveMode)
        return self

    def partitionBy(self, *cols: str | list[str]) -> HudiAwareWriter:  # noqa: N802
        self._partition_by = column_names(cols)
        self._real.partitionBy(*cast("tuple[str, ...]", cols))
        return self

    def bucketBy(self, *args: object) -> HudiAwareWriter:  # noqa: N802
        return self._layout("bucketBy", *args)

    def sortBy(self, *args: object) -> HudiAwareWriter:  # noqa: N802
        return self._layout("sortBy", *args)

    def clusterBy(self, *args: object) -> HudiAwareWriter:  # noqa: N802
        return self._layout("clusterBy", *args)

    def _layout(self, name: str, *args: object) -> HudiAwareWriter:
        self._layout_calls.append(name)
        getattr(self._real, name)(*args)
        return self

    def save(
        self,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: str | list[str] | None = None,  # noqa: N803
        **options: OptionalPrimitiveType,
    ) -> None:
        if not self._is_hudi(format):
            self._real.save(path, format, mode, partitionBy, **options)
            return
        self._check_no_layout()
        from pyhudi.session.writer import write_frame

        table, remaining = self._split_path(path, options, "save")
        columns = column_names((partitionBy,)) if partitionBy is not None else self._partition_by
        write_frame(self._owner, table, remaining, mode=mode or self._mode or "error", partition_by=columns)

    def _check_no_layout(self) -> None:
        if self._layout_calls:
            raise ConfigError(
                f"{self._layout_calls[0]} has no meaning for format hudi; file layout is set by options such as "
                "hoodie.index.type=BUCKET or hoodie.bulkinsert.sort.mode."
            )

    def saveAsTable(  # noqa: N802
        self,
        name: str,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: str | list[str] | None = None,  # noqa: N803
        **options: OptionalPrimitiveType,
    ) -> None:
        from pyhudi.session.named_writes import is_hudi_name, save_frame

        source = format or self._format
        if not self._is_hudi(format) and (source is not None or not is_hudi_name(self._owner.sparkSession, name)):
            self._real.saveAsTable(name, format, mode, partitionBy, **options)
            return
        self._check_no_layout()
        columns = column_names((partitionBy,)) if partitionBy is not None else self._partition_by
        save_frame(self._owner, name, mode or self._mode or "error", {**self._options, **options}, columns)

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:  # noqa: N802, N803
        from pyhudi.session.named_writes import insert_frame, is_hudi_name

        if not is_hudi_name(self._owner.sparkSession, tableName):
            self._real.insertInto(tableName, overwrite)
            return
        replaces = overwrite if overwrite is not None else self._mode == "overwrite"
        insert_frame(self._owner, tableName, self._options, overwrites=replaces)
