"""The active Spark session as the engine of validators (`actions/validation.py`): a query of tables in states that are
not committed yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException

from pyhudi.errors import ConfigError, MissingLibrary
from pyhudi.queries.query import ALL_ROWS
from pyhudi.spark.engine import collect_arrow
from pyhudi.spark.reader import frame_of_plan
from pyhudi.spark.session import active_session

if TYPE_CHECKING:
    from pyhudi.actions.validation import TableState

__all__ = ["rows"]


def rows(text: str, states: Mapping[str, TableState]) -> pa.Table:
    """The rows of a query in Spark's SQL. `states`: the tables that it names, as temporary views during the query.

    Raises: MissingLibrary when no session is active, ConfigError with Spark's message for a query that it can't
            evaluate.
    """
    session = active_session()
    if session is None:
        raise MissingLibrary("No Spark session is active in this thread.")
    try:
        for name, state in states.items():
            frame = frame_of_plan(session, state.meta, state.plan_with(state.meta, ALL_ROWS))
            frame.createOrReplaceTempView(name)
        return collect_arrow(session.sql(text))
    except PySparkException as error:
        raise ConfigError(f"Spark can't evaluate the validator's {text!r:.500}: {error}") from error
    finally:
        for name in states:
            session.catalog.dropTempView(name)
