"""A scan's rows as what other libraries have: frames of polars and Spark, relations of DuckDB.

None of these libraries is needed for anything else, so each is imported here, when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pyhudi.errors import ConfigError, MissingLibrary

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import pyarrow.dataset as ds

    from pyhudi.meta_client import MetaClient
    from pyhudi.queries.plan import ReadPlan
    from pyhudi.spark.names import SparkDataFrame, SparkSession
    from pyhudi.table.polars_source import LazyRows

__all__ = ["duckdb_relation", "pandas_frame", "polars_frame", "polars_lazy_frame", "spark_frame"]


def pandas_frame(rows: Callable[[], pa.Table], options: Mapping[str, Any]) -> pd.DataFrame:
    """`Scan.to_pandas`. `rows`: as for polars. `options`: of `pyarrow.Table.to_pandas`."""
    if find_spec("pandas") is None:
        raise _missing("to_pandas", "pandas", "pandas")
    return rows().to_pandas(**options)


def polars_frame(rows: Callable[[], pa.Table]) -> pl.DataFrame:
    """`Scan.to_polars`. `rows`: reads them, once it is known that polars is there."""
    try:
        import polars
    except ImportError as error:
        raise _missing("to_polars", "polars", "polars") from error
    frame = polars.from_arrow(rows())
    assert isinstance(frame, polars.DataFrame)
    return frame


def polars_lazy_frame(scan: LazyRows) -> pl.LazyFrame:
    """`Scan.to_polars_lazy`."""
    try:
        from pyhudi.table.polars_source import polars_source
    except ImportError as error:
        raise _missing("to_polars_lazy", "polars", "polars") from error
    return polars_source(scan)


def duckdb_relation(
    rows: Callable[[], pa.Table | ds.Dataset], connection: duckdb.DuckDBPyConnection | None
) -> duckdb.DuckDBPyRelation:
    """`Scan.to_duckdb`. `rows`: gives them, as for polars; a dataset reads what a query needs."""
    try:
        import duckdb
    except ImportError as error:
        raise _missing("to_duckdb", "DuckDB", "'pyhudi[sql]'") from error
    given = rows()
    if not given.schema.names:
        raise ConfigError(
            "to_duckdb needs a column, and columns=[] names none. `count()` says how many rows there are."
        )
    return (duckdb if connection is None else connection).from_arrow(given)


def spark_frame(spark: SparkSession | None, meta: MetaClient, plan: ReadPlan) -> SparkDataFrame:
    """`Scan.to_spark`. `spark`: None for the active session."""
    try:
        from pyhudi.spark.session import active_session

        session = active_session() if spark is None else spark
    except ImportError as error:
        raise _missing("to_spark", "PySpark", "'pyhudi[spark]'") from error
    if session is None:
        raise ConfigError(
            "to_spark needs a session, and none is active: to_spark(spark), or HudiTable.open(path, spark=spark)."
        )
    from pyhudi.spark.reader import frame_of_plan

    return frame_of_plan(session, meta, plan)


def _missing(call: str, library: str, package: str) -> MissingLibrary:
    return MissingLibrary(f"{call} needs {library}, which is not installed: pip install {package}.")
