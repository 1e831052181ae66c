"""Hudi's Spark SQL on top of `HudiTable`: a front end, not an engine.

tokens → the kind of statement → its module (clauses) → calls of `pyhudi.table`. Expressions and queries go, as they
were written, to the session's engine: Spark, or DuckDB without Spark.
"""

import sys
from collections.abc import Callable
from types import ModuleType


class _Callable(ModuleType):
    """Makes the package callable: `pyhudi.sql(...)` runs one statement."""

    def __call__(self, *arguments: object, **options: object) -> object:
        from pyhudi.sql.duckdb_session import sql

        call: Callable[..., object] = sql
        return call(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
