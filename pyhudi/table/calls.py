"""How the methods of HudiTable reach an action: options are read, an engine is chosen, the table is opened.

How table services are called: open the table, prepare it, run the service.

A service is a function of an ActionContext; it is no writer, so it undoes nobody else's failed writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from pyhudi.actions.action import ActionContext
from pyhudi.actions.create_table import check_files_writable
from pyhudi.actions.opening import ready, table_lock
from pyhudi.engine.base import Engine, as_engine
from pyhudi.engine.local import LocalEngine
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions, merged_options
from pyhudi.queries.query import AsOf, in_zone
from pyhudi.storage import open_storage, with_sync
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.storage.store_options import named_options
from pyhudi.timeline.table_properties import load_table_config

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession

__all__ = [
    "Options",
    "TableCalls",
    "admit_writable",
    "in_session_zone",
    "open_place",
    "serve",
    "session_options",
    "session_zone",
    "with_engine",
]


Result = TypeVar("Result")
_SYSTEM_CLOCK = SystemClock()


def admit_writable(context: ActionContext) -> None:
    """Raises UnsupportedTable for a table whose files this release can't write."""
    check_files_writable(context.meta.config)


def serve(
    table: Storage | str | os.PathLike[str],
    service: Callable[[ActionContext], Result],
    options: WriteOptions,
    engine: Engine,
    *,
    dry_run: bool = False,
    admit: Callable[[ActionContext], None] = admit_writable,
    clock: Clock = _SYSTEM_CLOCK,
) -> Result:
    """Call a table service.

    Args:
        dry_run: the service only looks, so nothing is done to make the table ready.
        admit: raises for a table that the service is not for, before anything is done to it.
    Raises: what the service raises, UnsupportedTable for a table that this release can't write.
    """
    storage = with_sync(table if isinstance(table, Storage) else open_storage(table), options.storage_sync)
    meta = MetaClient.load(storage, clock)
    found = ActionContext(meta, options, table_lock(options, storage, clock), clock, engine)
    admit(found)
    if dry_run:
        return service(found)
    context, _ = ready(meta, engine, options, clock, "NEVER")
    return service(context)


Options: TypeAlias = Mapping[str, object]


class TableCalls:
    """What HudiTable's parts share: the table, the session, and options that go with every call."""

    _meta: MetaClient
    _spark: SparkSession | None
    _mergers: Options

    def _serve(
        self,
        service: Callable[[ActionContext], Result],
        options: Options | None,
        more: Options,
        *,
        dry_run: bool = False,
        admit: Callable[[ActionContext], None] = admit_writable,
    ) -> Result:
        """Call a table service with Hudi's keys (`options`) and options by their Python names (`more`)."""
        storage = self._meta.storage
        given = self._options(options, more)
        parsed = WriteOptions.parse(given, session_options(self._spark), load_table_config(storage))
        return with_engine(
            self._spark,
            parsed,
            lambda engine: serve(storage, service, parsed, engine, dry_run=dry_run, admit=admit),
        )

    def _options(self, options: Options | None, more: Options) -> dict[str, object]:
        return {**self._mergers, **merged_options(options, more)}


def in_session_zone(moment: AsOf, spark: SparkSession | None) -> AsOf:
    """A moment that names no zone in the session's zone; without a session as it is."""
    return moment if spark is None else in_zone(moment, session_zone(spark))


def with_engine(spark: SparkSession | None, options: WriteOptions, call: Callable[[Engine], Result]) -> Result:
    """Call with the engine that does work without input rows: Spark's when the session has more machines than this."""
    if spark is None or options.engine == "local":
        return call(as_engine(LocalEngine()))
    from pyhudi.spark.failures import translated  # pyspark is loaded only when it is used

    with translated():
        return call(_engine(spark, options))


def session_zone(spark: SparkSession | None) -> tzinfo | None:
    """The zone of times that name none, in filters and values to set: the session's; None without a session."""
    if spark is None:
        return None
    from pyhudi.spark.session import zone_of  # pyspark is loaded only when it is used

    return zone_of(spark)


def _engine(spark: SparkSession, options: WriteOptions) -> Engine:
    """On a local master this process has the same cores as the executors, and needs no workers to start."""
    from pyhudi.spark.engine import SparkEngine

    engine = SparkEngine(spark)
    if options.engine == "spark" or not engine.is_local_master:
        return as_engine(engine)
    return as_engine(LocalEngine())


def open_place(
    path: str | os.PathLike[str], storage_options: Mapping[str, str] | None, spark: SparkSession | None
) -> Storage:
    """The storage of a path, by these of Hadoop's keys and behind them the session's `spark.hadoop.fs.*`."""
    given = storage_options or {}
    if spark is None:
        return open_storage(path, given)
    from pyhudi.spark.session import store_options

    named = named_options(str(path).partition(":")[0].lower(), given)
    return open_storage(path, store_options(spark, named))


def session_options(spark: SparkSession | None) -> dict[str, str]:
    """The session-wide `spark.hoodie.*` options without `spark.`; none without a session."""
    if spark is None:
        return {}
    from pyhudi.spark.session import hudi_options

    return hudi_options(spark)
