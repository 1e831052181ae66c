"""The switch for unchanged scripts: `pyhudi.enable(spark)`.

From then on `spark.read.format("hudi")` and `df.write.format("hudi")` are PyHudi's native plan, and `spark.sql` takes
Hudi's statements, in every session of this flavour (classic or Connect) in this process, also inside `foreachBatch` of
a classic session. It replaces public properties and methods (`SparkSession.read`, `.readStream`, `.sql` and `.table`,
`DataFrame.write`, `.writeStream` and `.writeTo`), and `disable(spark)` puts them back; every other format and statement
goes to Spark's own untouched. Source: tried on Spark 3.5 to 4.3, classic and Connect.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from pyhudi.errors import ConfigError
from pyhudi.session.batches import HudiAwareReader, HudiAwareWriter
from pyhudi.session.data_source import show_data_source
from pyhudi.session.spark_calls import FORMATS, ORIGINALS
from pyhudi.session.streams import HudiAwareStreamReader, HudiAwareStreamWriter
from pyhudi.session.table_writer import HudiAwareTableWriter
from pyhudi.spark import capabilities
from pyhudi.spark.worker_python import is_on_connect, name_own_python

__all__ = ["FORMATS", "disable", "enable"]

_lock = threading.Lock()


def enable(spark: SparkSession) -> None:
    """Let `format("hudi")` of this session's flavour mean PyHudi. Calling it again changes nothing."""
    session_class, frame_class = _classes(spark)
    name_own_python(spark)
    if capabilities.PRESENT.has_data_sources:
        show_data_source(spark)
    from pyhudi.session.sql_methods import hudi_aware_sql, hudi_aware_table

    with _lock:
        _replace(session_class, "read", HudiAwareReader)
        _replace(frame_class, "write", HudiAwareWriter)
        _replace(session_class, "readStream", HudiAwareStreamReader)
        _replace(frame_class, "writeStream", HudiAwareStreamWriter)
        _replace_method(session_class, "sql", hudi_aware_sql)
        _replace_method(session_class, "table", hudi_aware_table)
        _replace_write_to(frame_class)


def disable(spark: SparkSession) -> None:
    """Undo `enable` for this session's flavour; nothing happens when it is not enabled."""
    session_class, frame_class = _classes(spark)
    with _lock:
        for place in [place for place in ORIGINALS if place[0] in (session_class, frame_class)]:
            setattr(*place, ORIGINALS.pop(place))


def _classes(spark: SparkSession) -> tuple[type, type]:
    """The classes of this session and of its DataFrames."""
    if is_on_connect(spark):
        from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
        from pyspark.sql.connect.session import SparkSession as ConnectSession

        return ConnectSession, ConnectFrame
    if not isinstance(spark, SparkSession):
        raise ConfigError(f"enable and disable take a SparkSession, not {type(spark).__name__}.")
    if not capabilities.PRESENT.has_classic_package:
        return SparkSession, DataFrame
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    return SparkSession, ClassicFrame


def _replace(
    owner: type,
    name: str,
    wrap: type[HudiAwareReader | HudiAwareWriter | HudiAwareStreamReader | HudiAwareStreamWriter],
) -> None:
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
