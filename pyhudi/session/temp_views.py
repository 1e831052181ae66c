"""Spark's own methods behind those of `enable`, and frames in SQL texts on Spark Connect 3.5.

`spark_sql`, `spark_table` and `spark_reader` call Spark's own methods, past those that `enable` puts in their place.

Spark Connect 3.5 has no `spark.sql("… {df}", df=df)`: there `sql_with_views` gives each frame a view of its own. The
server reads the text anew at every use of the resulting frame. So a view stays until nobody holds that frame's plan any
more. It goes at the session's next such statement, or with the session.
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
    """A frame of Spark Connect 3.5. Frames that are made of it hold its plan."""

    _plan: object


def sql_with_views(
    spark: SparkSession, sql: Callable[..., DataFrame], text: str, args: object, frames: Mapping[str, object]
) -> DataFrame:
    """`sql(spark, text, args)` with a view in the place of each `{frame}`.

    Args: sql: Spark's own `SparkSession.sql`; text: a template, in which doubled braces stand for themselves.
    Raises: ConfigError for a value that is not a frame, Spark's errors, and KeyError for a missing name in braces.
    """
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    others = [key for key, value in frames.items() if not isinstance(value, ConnectFrame)]
    if others:
        raise ConfigError(
            f"spark.sql on this Spark Connect takes frames in braces, and {others[0]!r:.200} is none. Give values as "
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
    # No call to the server here: this runs in whatever thread lets the plan go.
    weakref.finalize(cast("_PlannedFrame", result)._plan, unused.extend, tuple(views.values())).atexit = False
    return result


FORMATS = frozenset({"hudi", "org.apache.hudi"})
Original = property | Callable[..., object]
ORIGINALS: dict[tuple[type, str], Original] = {}


def spark_sql(spark: SparkSession, text: str, args: object = None, **frames: object) -> DataFrame:
    """`SparkSession.sql` as in Spark. `frames`: the frames named in braces, which make the text a template."""
    original = cast("Callable[..., DataFrame]", _original(spark, "sql"))
    if frames and is_on_connect(spark) and not capabilities.PRESENT.connect_takes_frames:
        return sql_with_views(spark, original, text, args, frames)
    return original(spark, text, args, **frames)


def spark_table(spark: SparkSession, name: str) -> DataFrame:
    """`SparkSession.table` as Spark has it."""
    return cast("Callable[..., DataFrame]", _original(spark, "table"))(spark, name)


def spark_reader(spark: SparkSession) -> DataFrameReader:
    """`SparkSession.read` as Spark has it."""
    return cast("DataFrameReader", cast("property", _original(spark, "read")).__get__(spark))


def original_method(owner: object, name: str) -> Callable[..., object]:
    """A method of an object's class as Spark has it."""
    return cast("Callable[..., object]", _original(owner, name))


def _original(instance: object, name: str) -> Original:
    for owner in type(instance).__mro__:
        original = ORIGINALS.get((owner, name))
        if original is not None:
            return original
        if name in owner.__dict__:
            return cast("Original", owner.__dict__[name])
    raise AttributeError(name)
