"""Hudi's Spark SQL on top of `HudiTable`: a door, not an engine.

tokens → statement (which of our statements is it?) → its own module (clauses) → calls of `pyhudi.table`; expressions
and queries are handed, as they were written, to the session's engine: Spark, or DuckDB without Spark.
"""

import sys
from collections.abc import Callable
from types import ModuleType


class _Callable(ModuleType):
    """`pyhudi.sql(...)`: the package's name is also that of the function for one statement."""

    def __call__(self, *arguments: object, **options: object) -> object:
        from pyhudi.sql.duckdb_session import sql

        call: Callable[..., object] = sql
        return call(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
