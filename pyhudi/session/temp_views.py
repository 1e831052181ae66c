"""Spark's original methods after `enable`, and frames in SQL texts on Spark Connect 3.5.

`spark_sql`, `spark_table` and `spark_reader` call Spark's own methods, bypassing the replacements of `enable`.

Spark Connect 3.5 has no `spark.sql("… {df}", df=df)`: there `sql_with_views` creates a view for each frame. The server
parses the text again at every use of the resulting frame. So a view has to exist as long as that frame's plan is
referenced. It is dropped by the session's next such statement, or with the session.
Source: tried on Spark Connect 3.5; Spark's documentation of `SparkSession.sql`.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol, cast
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from pyhudi.errors import ConfigError
from pyhudi.spark import capabilities
from pyhudi.spark.worker_python import is_on_connect
from pyhudi.storage.clock import SystemClock

__all__ = [
    "FORMATS",
    "ORIGINALS",
    "Original",
    "original_method",
    "spark_reader",
    "spark_sql",
    "spark_table",
    "sql_with_views",
]


_CLOCK = SystemClock()
_UNUSED: WeakKeyDictionary[SparkSession, deque[str]] = WeakKeyDictionary()


class _PlannedFrame(Protocol):
    """A frame of Spark Connect 3.5. Frames derived from it reference its plan."""

    _plan: object


def sql_with_views(
    spark: SparkSession, sql: Callable[..., DataFrame], text: str, args: object, frames: Mapping[str, object]
) -> DataFrame:
    """Run `sql(spark, text, args)` with a view in place of each `{frame}`.

    Args: sql: Spark's own `SparkSession.sql`; text: a template, in which doubled braces are literal braces.
    Raises: ConfigError for a value that is not a frame, Spark's errors, and KeyError for a missing name in braces.
    """
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    invalid = [key for key, value in frames.items() if not isinstance(value, ConnectFrame)]
    if invalid:
        raise ConfigError(
            f"spark.sql on this Spark Connect takes frames in braces, and {invalid[0]!r:.200} is none. Give values as "
            "parameters: spark.sql(text, {'name': value}) for :name in the text."
        )
    unused = _UNUSED.setdefault(spark, deque())
    while unused:
        spark.catalog.dropTempView(unused.popleft())
    views = {key: f"pyhudi_{_CLOCK.new_uuid().replace('-', '')}" for key in frames}
    try:
        for key, frame in frames.items():
            cast("DataFrame", frame).createOrReplaceTempView(views[key])
        result = sql(spark, text.format(**views), args)
    except BaseException:
        unused.extend(views.values())
        raise
    # The finalizer must not call the server: it runs in any thread that drops the last reference to the plan.
    weakref.finalize(cast("_PlannedFrame", result)._plan, unused.extend, tuple(views.values())).atexit = False
    return result


FORMATS = frozenset({"hudi", "org.apache.hudi"})
Original = property | Callable[..., object]
ORIGINALS: dict[tuple[type, str], Original] = {}


def spark_sql(spark: SparkSession, text: str, args: object = None, **frames: object) -> DataFrame:
    """Spark's own `SparkSession.sql`. `frames`: the frames named in braces, which make the text a template."""
    original = cast("Callable[..., DataFrame]", _original(spark, "sql"))
    if frames and is_on_connect(spark) and not capabilities.PRESENT.connect_takes_frames:
        return sql_with_views(spark, original, text, args, frames)
    return original(spark, text, args, **frames)


def spark_table(spark: SparkSession, name: str) -> DataFrame:
    """Spark's own `SparkSession.table`."""
    return cast("Callable[..., DataFrame]", _original(spark, "table"))(spark, name)


def spark_reader(spark: SparkSession) -> DataFrameReader:
    """Spark's own `SparkSession.read`."""
    return cast("DataFrameReader", cast("property", _original(spark, "read")).__get__(spark))


def original_method(owner: object, name: str) -> Callable[..., object]:
    """Spark's own version of a method of an object's class."""
    return cast("Callable[..., object]", _original(owner, name))


def _original(instance: object, name: str) -> Original:
    for owner in type(instance).__mro__:
        original = ORIGINALS.get((owner, name))
        if original is not None:
            return original
        if name in owner.__dict__:
            return cast("Original", owner.__dict__[name])
    raise AttributeError(name)
