"""Hudi's Spark SQL on top of `HudiTable`: a door, not an engine.

tokens → statement (which of our statements is it?) → its own module (clauses) → calls of `pyhudi.table`; expressions
and queries are handed, as they were written, to the session's engine: Spark, or DuckDB without Spark.
"""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """`pyhudi.sql(...)`: the package's name is also that of the function for one statement."""

    def __call__(self, *arguments: Any, **named: Any) -> object:
        from pyhudi.sql.duckdb_session import sql

        return sql(*arguments, **named)


sys.modules[__name__].__class__ = _Callable
