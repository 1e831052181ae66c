"""The switch for unchanged scripts: `pyhudi.enable(spark)`.

From then on `spark.read.format("hudi")` and `df.write.format("hudi")` are PyHudi's native plan, and `spark.sql` takes
Hudi's statements, in every session of this flavour (classic or Connect) in this process, also inside `foreachBatch` of
a classic session. It replaces public properties and methods (`SparkSession.read`, `.sql` and `.table`,
`DataFrame.write`), and `disable(spark)` puts them back; every other format and statement goes to Spark's own
untouched. Source: tried on Spark 4.3, classic and Connect.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, SparkSession
from pyspark.sql.types import StructType

from pyhudi.errors import ConfigError
from pyhudi.session.spark_calls import FORMATS, ORIGINALS
from pyhudi.session.table_writer import HudiAwareTableWriter
from pyhudi.spark.worker_python import name_own_python

if TYPE_CHECKING:
    from pyspark.sql._typing import OptionalPrimitiveType

__all__ = ["FORMATS", "disable", "enable"]

OwnerT = TypeVar("OwnerT", SparkSession, DataFrame)
RealT = TypeVar("RealT", DataFrameReader, DataFrameWriter)
RecorderT = TypeVar(
    "RecorderT", bound="_Recorder[SparkSession, DataFrameReader] | _Recorder[DataFrame, DataFrameWriter]"
)
_lock = threading.Lock()


def enable(spark: SparkSession) -> None:
    """Let `format("hudi")` of this session's flavour mean PyHudi. Calling it again changes nothing."""
    session_class, frame_class = _classes(spark)
    name_own_python(spark)
    from pyhudi.session.sql_methods import hudi_aware_sql, hudi_aware_table

    with _lock:
        _replace(session_class, "read", HudiAwareReader)
        _replace(frame_class, "write", HudiAwareWriter)
        _replace_method(session_class, "sql", hudi_aware_sql)
        _replace_method(session_class, "table", hudi_aware_table)
        _replace_write_to(frame_class)


def disable(spark: SparkSession) -> None:
    """Undo `enable` for this session's flavour; nothing happens when it is not enabled."""
    session_class, frame_class = _classes(spark)
    with _lock:
        for place in [place for place in ORIGINALS if place[0] in (session_class, frame_class)]:
            original = ORIGINALS.pop(place, None)
            if original is not None:
                setattr(*place, original)


def _classes(spark: object) -> tuple[type, type]:
    """The classes of this session and of its DataFrames."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
        from pyspark.sql.connect.session import SparkSession as ConnectSession

        return ConnectSession, ConnectFrame
    if not isinstance(spark, SparkSession):
        raise ConfigError(f"enable and disable take a SparkSession, not {type(spark).__name__}.")
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    return SparkSession, ClassicFrame


def _replace(owner: type, name: str, wrap: type[HudiAwareReader] | type[HudiAwareWriter]) -> None:
    if (owner, name) in ORIGINALS:
        return
    original = owner.__dict__[name]
    ORIGINALS[owner, name] = original
    setattr(owner, name, property(lambda self: wrap(self, original.__get__(self)), doc=original.__doc__))


def _replace_method(owner: type, name: str, ours: Callable[..., DataFrame]) -> None:
    if (owner, name) in ORIGINALS:
        return
    original = owner.__dict__[name]
    ORIGINALS[owner, name] = original

    @functools.wraps(original)
    def method(self: object, *args: object, **more: object) -> DataFrame:
        return ours(self, *args, **more)

    setattr(owner, name, method)


def _replace_write_to(owner: type, name: str = "writeTo") -> None:
    if (owner, name) in ORIGINALS:
        return
    original = owner.__dict__[name]
    ORIGINALS[owner, name] = original

    @functools.wraps(original)
    def method(self: DataFrame, table: str) -> HudiAwareTableWriter:
        return HudiAwareTableWriter(self, original(self, table), table)

    setattr(owner, name, method)


class _Recorder(Generic[OwnerT, RealT]):
    """A stand-in for Spark's reader or writer: passes every call on, and remembers what it needs for `format("hudi")`.

    It says to be of Spark's own class, so that `isinstance` holds.
    """

    def __init__(self, owner: OwnerT, real: RealT) -> None:
        self._owner: OwnerT = owner
        self._real: RealT = real
        self._format: str | None = None
        self._options: dict[str, OptionalPrimitiveType] = {}

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._real)

    def __getattr__(self, name: str) -> object:
        if name == "_real":  # read before it is set, as copying does
            raise AttributeError(name)
        return getattr(self._real, name)

    def __dir__(self) -> list[str]:
        return dir(self._real)

    def format(self: RecorderT, source: str) -> RecorderT:
        self._format = source
        self._real.format(source)
        return self

    def option(self: RecorderT, key: str, value: OptionalPrimitiveType) -> RecorderT:
        self._options[key] = value
        self._real.option(key, value)
        return self

    def options(self: RecorderT, **options: OptionalPrimitiveType) -> RecorderT:
        self._options.update(options)
        self._real.options(**options)
        return self

    def _is_hudi(self, given: str | None) -> bool:
        name = given or self._format
        return isinstance(name, str) and name.lower() in FORMATS

    def _split_path(
        self, path: object, more: Mapping[str, OptionalPrimitiveType], call: str
    ) -> tuple[str, dict[str, OptionalPrimitiveType]]:
        """The one path of the call, and the options without it."""
        options = {**self._options, **more}
        named = [options.pop(key) for key in list(options) if key.lower() == "path"]
        path = path if path is not None else (named[-1] if named else None)
        if isinstance(path, (list, tuple)) and len(path) == 1:
            path = path[0]
        if not isinstance(path, str) or not path.strip():
            raise ConfigError(f"{call} of format hudi takes the path of one table, found {path!r}.")
        return path, options


class HudiAwareReader(_Recorder[SparkSession, DataFrameReader]):
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

        table, given = self._split_path(path, options, "load")
        return read_frame(self._owner, table, given, schema=schema if schema is not None else self._schema)

    def table(self, tableName: str) -> DataFrame:  # noqa: N803
        from pyhudi.session.sql_methods import frame_of_name

        frame = frame_of_name(self._owner, tableName)
        return self._real.table(tableName) if frame is None else frame


class HudiAwareWriter(_Recorder[DataFrame, DataFrameWriter]):
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
        self._partition_by = _names(cols)
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

        table, given = self._split_path(path, options, "save")
        columns = _names((partitionBy,)) if partitionBy is not None else self._partition_by
        write_frame(self._owner, table, given, mode=mode or self._mode or "error", partition_by=columns)

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

        named = format or self._format
        if not self._is_hudi(format) and (named is not None or not is_hudi_name(self._owner.sparkSession, name)):
            self._real.saveAsTable(name, format, mode, partitionBy, **options)
            return
        self._check_no_layout()
        columns = _names((partitionBy,)) if partitionBy is not None else self._partition_by
        save_frame(self._owner, name, mode or self._mode or "error", {**self._options, **options}, columns)

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:  # noqa: N802, N803
        from pyhudi.session.named_writes import insert_frame, is_hudi_name

        if not is_hudi_name(self._owner.sparkSession, tableName):
            self._real.insertInto(tableName, overwrite)
            return
        replaces = overwrite if overwrite is not None else self._mode == "overwrite"
        insert_frame(self._owner, tableName, overwrites=replaces)


def _names(cols: Sequence[object]) -> tuple[str, ...]:
    if len(cols) == 1 and isinstance(cols[0], (list, tuple)):
        cols = cols[0]
    return tuple(str(name) for name in cols)
