"""dbt with Hudi tables: `python -m pyhudi.session.dbt run`, with the arguments of `dbt`.

dbt's adapter for Spark, with `method: session`, asks Spark's builder for a session at each statement and gets the
existing one. So a session is made and enabled before dbt begins. Source: docs/dbt.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from pyspark.sql import SparkSession

from pyhudi.errors import ConfigError
from pyhudi.session.enable import enable

__all__ = ["main"]


class _Result(Protocol):
    success: bool
    exception: BaseException | None


class _Runner(Protocol):
    def invoke(self, args: list[str]) -> _Result: ...


def main(arguments: Sequence[str]) -> int:
    """Run dbt in this process.

    Args: arguments: what follows `dbt` on its command line.
    Returns: dbt's exit code: 0, 1 if a model failed, 2 if dbt failed.
    Raises: ConfigError if dbt and its adapter for Spark are not installed.
    """
    try:
        import_module("dbt.adapters.spark.session")
        runner = cast("_Runner", import_module("dbt.cli.main").dbtRunner())
    except ImportError as error:
        raise ConfigError(f"dbt needs its adapter for Spark: pip install dbt-spark ({error}).") from error
    # Like dbt, use Hive's catalog: names have to outlast the process.
    enable(SparkSession.builder.enableHiveSupport().getOrCreate())
    result = runner.invoke(list(arguments))
    if result.success:
        return 0
    return 1 if result.exception is None else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
