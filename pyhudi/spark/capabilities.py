"""The abilities of the installed PySpark: the only module that checks them, and the only one where versions matter.

It checks attributes, not version numbers. If PySpark lacks one, these modules have an alternative: `tasks.py` (rows to
the task of their slot), `arrow_transfer.py` (Arrow tables to frames and back), `engine.py` (columns that Python
computes), `merged.py` (small log files, rows to drop from a scan), `session.py` (the settings of a session),
`session/temp_views.py` (frames in SQL of Connect), `session/catalog.py` (names of tables). All but the last also run on
the newest PySpark if `PRESENT` lacks everything, which the tests check.

Spark 3.5 has no Python data sources. `DataSource` and the classes after it stand in for Spark's own there: `DataSource`
raises ConfigError when it is instantiated.
Source: PySpark's own "versionadded" notes; docs/decisions/0013-spark-3.5-is-the-floor.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from inspect import signature

import pyspark.sql
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.pandas.types import to_arrow_schema

from pyhudi.errors import ConfigError

__all__ = [
    "NO_DATA_SOURCES",
    "NO_VIEWS",
    "PRESENT",
    "Capabilities",
    "DataSource",
    "DataSourceReader",
    "DataSourceStreamReader",
    "InputPartition",
]


NO_DATA_SOURCES = (
    'This Spark has no Python data sources (they came with 4.0), so format("hudi") needs pyhudi.enable(spark), called '
    "once in this process; for a stream write with foreachBatch, and read incrementally again and again instead of "
    "readStream."
)

NO_VIEWS = (
    "This Spark opens the tables of a view's text, and knows no format of Python's (they came with 4.0): no view can "
    "name Hudi tables. spark.sql('SELECT …').createOrReplaceTempView(name) makes a view for this session, of the rows "
    "as they are now."
)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Attributes:
    routes_by_id: `DataFrame.repartitionById`, since 4.1.
    has_arrow_udfs: `functions.arrow_udf`, since 4.1.
    takes_arrow: `createDataFrame` of an Arrow table, since 4.0. A method's accepted types can't be checked, so its
    counterpart `toArrow` of the same version is.
    gives_arrow: `DataFrame.toArrow`, since 4.0.
    lists_settings: `spark.conf.getAll`, since 4.0.
    has_classic_package: the classes of classic sessions are in `pyspark.sql.classic`, and `pyspark.sql.DataFrame`
        is their parent, since 4.0.
    has_data_sources: formats in Python, since 4.0.
    connect_takes_frames: `spark.sql("… {df}", df=df)` on Spark Connect, since 4.0.
    limits_streams: a stream's Python source gets the start of a batch and its limits, since 4.2.
    has_scalar_frames: `DataFrame.scalar`, a frame of one value as a column of another, since 4.0.
    tells_progress: a Connect session reports a query's progress to a handler, since 4.0.
    zones_schemas: the parameter `timezone` of `to_arrow_schema`, since 4.2; before that the zone is UTC.
    """

    routes_by_id: bool
    has_arrow_udfs: bool
    takes_arrow: bool
    gives_arrow: bool
    lists_settings: bool
    has_classic_package: bool
    has_data_sources: bool
    connect_takes_frames: bool
    limits_streams: bool
    has_scalar_frames: bool
    tells_progress: bool
    zones_schemas: bool


def _has_module(name: str) -> bool:
    """True if `pyspark.sql` has a module of this name. Checked without importing the packages around it.

    `importlib.util.find_spec` imports those, and `pyspark.sql.connect` fails without gRPC: under `python -c` it ends
    the process silently.
    """
    folders: Sequence[str] | None = pyspark.sql.__path__
    package = "pyspark.sql"
    for part in name.split("."):
        package = f"{package}.{part}"
        spec = PathFinder.find_spec(package, folders)
        if spec is None:
            return False
        folders = spec.submodule_search_locations
    return True


def _of_this_spark() -> Capabilities:
    gives_arrow = hasattr(DataFrame, "toArrow")
    return Capabilities(
        routes_by_id=hasattr(DataFrame, "repartitionById"),
        has_arrow_udfs=hasattr(functions, "arrow_udf"),
        takes_arrow=gives_arrow,
        gives_arrow=gives_arrow,
        lists_settings=gives_arrow,
        has_classic_package=_has_module("classic"),
        has_data_sources=_has_module("datasource"),
        connect_takes_frames=_has_module("connect.sql_formatter"),
        limits_streams=_has_module("streaming.datasource"),
        has_scalar_frames=hasattr(DataFrame, "scalar"),
        tells_progress=hasattr(SparkSession, "registerProgressHandler"),
        zones_schemas="timezone" in signature(to_arrow_schema).parameters,
    )


PRESENT = _of_this_spark()  # always read as `capabilities.PRESENT`, so that tests can replace it


class DataSource:
    """Raises ConfigError when it is instantiated."""

    def __init__(self, options: dict[str, str]) -> None:
        raise ConfigError(NO_DATA_SOURCES)


class DataSourceReader:
    """The parent of a reader."""


class DataSourceStreamReader:
    """The parent of a reader of streams."""


class InputPartition:
    """A part of the input."""

    def __init__(self, value: object) -> None:
        self.value = value
