"""The path from HudiTable's methods to actions and services: read options, choose an engine, open the table.

A table service is a function of an ActionContext. `serve` opens the table, prepares it and runs the service; it is no
writer, so it does not undo failed writes of others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from pyhudi.completed import naming_completed
from pyhudi.errors import ConfigError, StaleRead
from pyhudi.listeners import check_listeners, notify_afterwards
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import (
    OptionScope,
    ReadOptions,
    WriteOptions,
    canonical_keys,
    check_names,
    known_options,
    merged_options,
)
from pyhudi.model.options.queries import METADATA, SCHEMA_HISTORY
from pyhudi.model.options.services import LAYOUT, SORT_COLUMNS
from pyhudi.progress_line import Logged, working
from pyhudi.storage import open_storage, with_sync
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.storage.staged_table import StagedTable
from pyhudi.storage.stores.options import named_options
from pyhudi.timeline.table_properties import load_table_config

if TYPE_CHECKING:
    from pyhudi.actions.action import ActionContext
    from pyhudi.actions.undo.restore_result import RollbackResult
    from pyhudi.engine.base import Engine
    from pyhudi.queries.query import AsOf
    from pyhudi.services.versions.upgrade import VersionChange
    from pyhudi.spark.names import SparkSession

__all__ = [
    "Options",
    "PathLike",
    "TableHandle",
    "WithHandle",
    "admit_writable",
    "calling",
    "change_version",
    "engine_for",
    "in_session_zone",
    "open_place",
    "open_table",
    "ordered_by",
    "register",
    "serve",
    "session_options",
    "session_zone",
    "undo",
]


Result = TypeVar("Result")
Options: TypeAlias = Mapping[str, object]
PathLike: TypeAlias = str | os.PathLike[str]
_SYSTEM_CLOCK = SystemClock()
_NONE: Options = {}
_INSTANT_TIME = re.compile(r"\d{14}|\d{17}", re.ASCII)
_READ_ONLY = frozenset({METADATA, SCHEMA_HISTORY.key})  # in a write these options affect more than its reads


def admit_writable(context: ActionContext) -> None:
    """Raise UnsupportedTable for a table whose files this release can't write."""
    from pyhudi.actions.create_table import check_files_writable

    check_files_writable(context.meta.config)


def serve(
    table: Storage | PathLike,
    service: Callable[[ActionContext], Result],
    options: WriteOptions,
    engine: Engine,
    *,
    dry_run: bool = False,
    admit: Callable[[ActionContext], None] = admit_writable,
    clock: Clock = _SYSTEM_CLOCK,
    is_run_again: bool = True,
) -> Result:
    """Call a table service.

    Args:
        is_run_again: the service is repeated if files that it reads were cleaned; not for undoing the newest write,
            which may have changed.
        dry_run: the service changes nothing, so the table is not prepared either.
        admit: raises for a table that the service does not support, before anything is changed.
    Raises: the errors of the service, UnsupportedTable for a table that this release can't write.
    """
    from pyhudi.actions.action import ActionContext
    from pyhudi.actions.concurrency import with_retries
    from pyhudi.actions.open_table import prepare, table_lock
    from pyhudi.view.consistent_read import stale_reads

    storage = with_sync(table if isinstance(table, Storage) else open_storage(table), options.storage_sync)
    meta = MetaClient.load(storage, clock)
    action_context = ActionContext(meta, options, table_lock(options, storage, clock), clock, engine)
    admit(action_context)
    if dry_run:
        return service(action_context)

    def attempt(number: int) -> Result:
        now = meta.reload() if number else meta
        with stale_reads(now):
            context, _ = prepare(now, engine, options, clock, is_service=True)
            return service(context)

    with calling(_name_of(service), storage, options) as work:
        work.result = result = (
            with_retries(attempt, options, None, clock, after=(StaleRead,)) if is_run_again else attempt(0)
        )
    return result


@contextmanager
def calling(what: str, storage: Storage, options: WriteOptions) -> Iterator[Logged]:
    """Around a call that changes a table: show its line of progress, log its result, name completed instants in errors,
    and, after locks and heartbeats have ended, notify listeners and then catalogs.

    Raises: ConfigError for invalid listeners.
    """
    check_listeners(options)
    with naming_completed(), notify_afterwards(), working(what, storage.root) as work:
        yield work
    register(storage, options)


def register(storage: Storage, options: WriteOptions) -> None:
    """After a call: register the table in the catalogs that the options name, and export it if asked. Never raises."""
    if isinstance(storage, StagedTable):
        return
    if options.sync.catalogs:
        from pyhudi.sync.calls import sync_after_commit

        sync_after_commit(storage, options)
    if options.export.formats:
        from pyhudi.exports.export import export_after_commit

        export_after_commit(storage, options)


def _name_of(service: Callable[..., object]) -> str:
    """The name of a table service for people: `clean`, `compaction`."""
    from pyhudi.services.compact.compaction import CompactionService

    while isinstance(service, partial):
        kind = next((value.kind for value in service.args if isinstance(value, CompactionService)), None)
        if kind is not None:
            return kind.value
        service = service.func
    return getattr(service, "__name__", "table service").replace("_", " ")


@dataclass
class TableHandle:
    """The state of a HudiTable. `meta`: the table as it was last loaded. `reading`: options for every read, and
    for the reads of writes: custom mergers and memory.
    """

    meta: MetaClient
    spark: SparkSession | None
    reading: Options

    @classmethod
    def of(cls, table: MetaClient | PathLike, spark: SparkSession | None, options: Options | None) -> TableHandle:
        """The handle of a table, or of the table at a path. Raises what `open_table` raises."""
        meta = table if isinstance(table, MetaClient) else open_table(table, spark, None, options)
        return cls(meta, spark, known_options(options or {}, OptionScope.READ))

    @property
    def storage(self) -> Storage:
        return self.meta.storage

    def fresh(self) -> MetaClient:
        """The table as it is now."""
        self.meta = self.meta.reload()
        return self.meta

    def options(self, options: Options | None, arguments: Options = _NONE) -> dict[str, object]:
        """The options of a call that writes: Hudi's keys (`options`), and arguments that are options (None: unset).

        Raises: ConfigError for unknown keys.
        """
        merged = merged_options(options, arguments)
        check_names(merged, OptionScope.WRITE, self.session_options)
        canonical = canonical_keys(merged)
        reading = known_options(self.reading, OptionScope.WRITE)
        behind = {key: reading[key] for key in reading if canonical_keys((key,)).isdisjoint(canonical | _READ_ONLY)}
        return {**behind, **merged}

    def read_options(self, options: Options | None) -> ReadOptions:
        """The options of a read: the call's override the table's, which override the session's.

        Raises: ConfigError for unknown keys.
        """
        check_names(options or {}, OptionScope.READ, self.session_options)
        session = self.session_options()
        merged = canonical_keys(self.reading)
        behind = {key: text for key, text in session.items() if canonical_keys((key,)).isdisjoint(merged)}
        return ReadOptions.parse(options or {}, {**behind, **self.reading})

    def session_options(self) -> dict[str, str]:
        """The session-wide `spark.hoodie.*` options without `spark.`; none without a session."""
        return session_options(self.spark)

    def write_options(self, options: Options) -> WriteOptions:
        """Options of a call, parsed for this table; they override those of the session."""
        return WriteOptions.parse(options, session_options(self.spark), load_table_config(self.storage))

    def serve(
        self,
        service: Callable[[ActionContext], Result],
        options: Options | None,
        arguments: Options = _NONE,
        *,
        dry_run: bool = False,
        admit: Callable[[ActionContext], None] = admit_writable,
        is_run_again: bool = True,
    ) -> Result:
        """Call a table service. `options`, `arguments`: as in `options`; other arguments: as in `serve`."""
        parsed = self.write_options(self.options(options, arguments))
        with engine_for(self.spark, parsed) as engine:
            return serve(self.storage, service, parsed, engine, dry_run=dry_run, admit=admit, is_run_again=is_run_again)

    def commit_time(self, time: AsOf) -> str:
        """The instant time of the commit that a caller names by one of its times or by a moment.

        Raises: ConfigError for a value that is not a moment, TableError for a moment before the first commit.
        """
        from pyhudi.queries.query import commit_at

        meta = self.fresh()
        if not _is_instant_time(time):
            try:
                return commit_at(in_session_zone(time, self.spark), meta).requested_time
            except ConfigError as error:
                raise ConfigError(str(error).replace("as_of=", "The time ", 1)) from error
        text = str(time).strip()
        completed = [i.requested_time for i in meta.timeline.commits() if i.completion_time == text]
        return completed[0] if completed and meta.timeline.find(text) is None else text


class WithHandle(Protocol):
    """A HudiTable as the modules of this room see it."""

    @property
    def _handle(self) -> TableHandle: ...


def open_table(
    path: PathLike,
    spark: SparkSession | None,
    storage_options: Mapping[str, object] | None,
    options: Options | None,
) -> MetaClient:
    """`HudiTable.open`."""
    reading = options or {}
    check_names(reading, OptionScope.READ, lambda: session_options(spark))
    others = sorted(set(reading) - set(known_options(reading, OptionScope.READ)))
    if others:
        raise ConfigError(f"open takes options for reading; {', '.join(others)} belongs to the call that writes.")
    ReadOptions.parse(reading)
    return MetaClient.load(open_place(path, storage_options, spark))


def ordered_by(sort_columns: str | Sequence[str] | None, layout: str | None) -> dict[str, object]:
    """The options for the order of rows that `HudiTable.cluster` takes as arguments."""
    order = {SORT_COLUMNS: sort_columns, LAYOUT: layout}
    return {key: value for key, value in order.items() if value is not None}


def undo(
    handle: TableHandle,
    instant_time: AsOf | None,
    to: AsOf | None,
    options: Options | None,
    dry_run: bool = False,
) -> RollbackResult:
    """`HudiTable.rollback`."""
    from pyhudi.actions.undo.restore import roll_back

    if instant_time is not None and to is not None:
        raise ConfigError("rollback takes an instant to undo, or to= for the one to return to; give one of them.")
    if instant_time is not None and not _is_instant_time(instant_time):
        raise ConfigError(
            f"rollback undoes one write, which a moment can't name: found {instant_time!r}. Give its instant "
            f"time (see `history()`), or the moment to return to as rollback(to=...) or restore(...)."
        )
    undone = None if instant_time is None else handle.commit_time(instant_time)
    target = None if to is None else handle.commit_time(to)
    call = partial(roll_back, instant_time=undone, to=target, dry_run=dry_run)
    return handle.serve(call, options, dry_run=dry_run, is_run_again=False)


def change_version(
    handle: TableHandle, to: int, upwards: bool, options: Options | None, dry_run: bool
) -> VersionChange:
    """`HudiTable.maintenance.upgrade` and `downgrade`."""
    from pyhudi.services.versions import upgrade

    change = partial(upgrade.change_version, target=to, upwards=upwards, dry_run=dry_run)
    return handle.serve(
        change, options, dry_run=dry_run, admit=partial(upgrade.admit_version, target=to, upwards=upwards)
    )


def _is_instant_time(time: object) -> bool:
    """True for an instant time in digits, which means exactly that instant."""
    return (
        not isinstance(time, bool) and isinstance(time, str | int) and bool(_INSTANT_TIME.fullmatch(str(time).strip()))
    )


def in_session_zone(moment: AsOf, spark: SparkSession | None) -> AsOf:
    """Add the session's zone to a moment without one; without a session the moment is unchanged."""
    if spark is None:
        return moment
    from pyhudi.queries.query import in_zone

    return in_zone(moment, session_zone(spark))


@contextmanager
def engine_for(spark: SparkSession | None, options: WriteOptions) -> Iterator[Engine]:
    """The engine for work without input rows: Spark's if the session has more machines than this one.

    On a local master this process has the same cores as the executors, and needs no workers to start.
    """
    from pyhudi.engine.base import as_engine
    from pyhudi.engine.local import LocalEngine

    if spark is None or options.engine == "local":
        yield as_engine(LocalEngine())
        return
    from pyhudi.spark.engine import SparkEngine  # pyspark is loaded only when it is used
    from pyhudi.spark.failures import translated

    with translated():
        engine = SparkEngine(spark)
        is_spark = options.engine == "spark" or not engine.is_local_master
        yield as_engine(engine) if is_spark else as_engine(LocalEngine())


def session_zone(spark: SparkSession | None) -> tzinfo | None:
    """The zone of times without one, in filters and values to set: the session's; None without a session."""
    if spark is None:
        return None
    from pyhudi.spark.session import zone_of  # pyspark is loaded only when it is used

    return zone_of(spark)


def open_place(
    path: PathLike | Storage, storage_options: Mapping[str, object] | None, spark: SparkSession | None
) -> Storage:
    """The storage of a path, by these of Hadoop's keys, which override the session's `spark.hadoop.fs.*`.

    Raises: ConfigError for options beside a storage, which has its own.
    """
    if isinstance(path, Storage):
        if storage_options:
            raise ConfigError(
                f"{path.root} is given as a storage, which has its own options, together with storage_options "
                f"({', '.join(sorted(map(str, storage_options)))}). Leave them out, or give the path as text."
            )
        return path
    options = storage_options or {}
    if spark is None:
        return open_storage(path, options)
    from pyhudi.spark.session import store_options

    named_by_scheme = named_options(str(path).partition(":")[0].lower(), options)
    return open_storage(path, store_options(spark, named_by_scheme))


def session_options(spark: SparkSession | None) -> dict[str, str]:
    """The session-wide `spark.hoodie.*` options without `spark.`; none without a session."""
    if spark is None:
        return {}
    from pyhudi.spark.session import hudi_options

    return hudi_options(spark)
