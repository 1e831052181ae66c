"""The active Spark session as the engine of SQL (`expressions/engines.py`): an expression over Arrow rows, in order."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from pyhudi.errors import ConfigError, MissingLibrary
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.session import active_session

__all__ = ["evaluate"]

_ROW, _VALUE = "__hudi_row", "__hudi_value"


def evaluate(text: str, rows: pa.Table, zone: str) -> pa.ChunkedArray:
    """The values of a Spark expression for these rows. `zone`: the session's own, which Spark uses anyway.

    Raises: MissingLibrary when no session is active, ConfigError with Spark's message for an invalid expression.
    """
    session = active_session()
    if session is None:
        raise MissingLibrary(
            f"{text!r:.200} needs an engine of SQL: DuckDB (pip install 'pyhudi[sql]'), or a Spark session that is "
            "active in this thread."
        )
    engine = SparkEngine(session)
    try:
        numbered = rows.append_column(_ROW, pa.array(range(len(rows)), pa.int64()))
        frame = engine.from_arrow(numbered).select(_ROW, F.expr(text).alias(_VALUE))
        answers = engine.collect(frame).sort_by(_ROW)
    except PySparkException as error:
        raise ConfigError(f"Spark can't evaluate {text!r:.200}: {error}") from error
    return answers.column(_VALUE)
