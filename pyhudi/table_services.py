"""From the front desk to the table services: options are read, and an engine is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pyhudi.actions.services.compaction_result import CompactionResult
from pyhudi.engine.base import Engine
from pyhudi.engine.local import LocalEngine
from pyhudi.model.options import WriteOptions
from pyhudi.storage.base import Storage
from pyhudi.timeline.table_properties import load_table_config
from pyhudi.writing import compact_table, log_compact_table

__all__ = ["compact", "log_compact", "with_engine"]

Result = TypeVar("Result")


def compact(
    storage: Storage,
    options: Mapping[str, Any],
    spark: Any,
    dry_run: bool,
    schedule_only: bool,
    instant_time: str | None,
) -> CompactionResult:
    """`HudiTable.compact`."""
    return _call(compact_table, storage, options, spark, dry_run, schedule_only, instant_time)


def log_compact(
    storage: Storage,
    options: Mapping[str, Any],
    spark: Any,
    dry_run: bool,
    schedule_only: bool,
    instant_time: str | None,
) -> CompactionResult:
    """`HudiTable.log_compact`."""
    return _call(log_compact_table, storage, options, spark, dry_run, schedule_only, instant_time)


def _call(
    service: Callable[..., CompactionResult],
    storage: Storage,
    options: Mapping[str, Any],
    spark: Any,
    dry_run: bool,
    schedule_only: bool,
    instant_time: str | None,
) -> CompactionResult:
    parsed = WriteOptions.parse(options, _session(spark), load_table_config(storage))
    asked = {"dry_run": dry_run, "schedule_only": schedule_only, "instant_time": instant_time}
    return with_engine(spark, parsed, lambda engine: service(storage, parsed, engine, **asked))


def with_engine(spark: Any, options: WriteOptions, call: Callable[[Engine], Result]) -> Result:
    """Call with the engine that does work without input rows: Spark's when the session has more machines than this."""
    if spark is None or options.engine == "local":
        return call(LocalEngine())
    from pyhudi.spark.failures import translated  # pyspark is loaded only when it is used

    with translated():
        return call(_engine(spark, options))


def _engine(spark: Any, options: WriteOptions) -> Engine:
    """On a local master this process has the same cores as the executors, and needs no workers to start."""
    from pyhudi.spark.engine import SparkEngine

    engine = SparkEngine(spark)
    return engine if options.engine == "spark" or not engine.is_local_master else LocalEngine()


def _session(spark: Any) -> dict[str, str]:
    if spark is None:
        return {}
    from pyhudi.spark.session import hudi_options

    return hudi_options(spark)
