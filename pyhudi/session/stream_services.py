"""Table services next to a stream: compactions and clusterings that its batches have planned, and cleaning.

Plans are made at the end of a batch, while no write is running; a thread executes them while the next batches are
written. There is one thread per table in this process, so that no plan is run twice. It ends when its work is done: a
stopped stream requests no more services, and the process waits for running ones. As in Hudi, an error in a service
fails the next batch before anything is written; the plan remains on the timeline, and the batch is written when the
stream is restarted. Source: docs/streaming.md, "Table services"; docs/formats/table-services.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

from pyspark.sql import SparkSession

from pyhudi.errors import TableError, WriteConflict
from pyhudi.model.options import WriteOptions
from pyhudi.services.beside import Service, services_beside
from pyhudi.spark.session import hudi_options
from pyhudi.storage.base import Storage
from pyhudi.table.calls import engine_for, serve
from pyhudi.timeline.table_properties import load_table_config
from pyhudi.warnings import collected_warnings, warn_caller

__all__ = ["check_services", "serve_beside", "wait_for_services"]


class _Running:
    """The services of one table. `warnings`: the thread's warnings for the caller."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="hudi-stream-services")
        self.future: Future[None] | None = None
        self.warnings: list[tuple[str, type[Warning]]] = []
        self.is_requested = False  # another run, after the current one


_TABLES: dict[str, _Running] = {}
_LOCK = Lock()


def check_services(storage: Storage) -> None:
    """Raise TableError if the services next to the last batch have failed. Their warnings go to the caller."""
    with _LOCK:
        running = _TABLES.get(storage.full_path(""))
        if running is None or running.future is None or not running.future.done():
            return
        future, running.future = running.future, None
        messages, running.warnings = running.warnings, []
    for message, category in messages:
        warn_caller(message, category)
    error = future.exception()
    if error is None:
        return
    raise TableError(
        f"{storage.root}: a table service next to the stream has failed, so the stream stops before it writes the next "
        f"batch, which waits for it. Start it again, with hoodie.datasource.compaction.async.enable=false if this is "
        f"a compaction that fails each time. {type(error).__name__}: {error}"
    ) from error


def serve_beside(spark: SparkSession, storage: Storage, options: Mapping[str, object]) -> None:
    """Start the services that a stream's options ask for. If they are already running, they are run once more."""
    parsed = WriteOptions.parse(options, hudi_options(spark), load_table_config(storage))
    services = services_beside(parsed)
    if not services:
        return
    with _LOCK:
        running = _TABLES.setdefault(storage.full_path(""), _Running())
        if running.future is not None and not running.future.done():
            running.is_requested = True
            return
        if running.future is not None and running.future.exception() is not None:
            return  # the next batch reports it
        running.future = running.pool.submit(_serve, running, spark, storage, parsed, services)


def wait_for_services(storage: Storage, timeout_s: float) -> None:
    """Wait until no service of the table is running next to a stream, or for `timeout_s` seconds."""
    with _LOCK:
        running = _TABLES.get(storage.full_path(""))
        future = None if running is None else running.future
    if future is not None:
        future.exception(timeout_s)


def _serve(
    running: _Running,
    spark: SparkSession,
    storage: Storage,
    options: WriteOptions,
    services: tuple[Service, ...],
) -> None:
    """Run the services in turn. Raises HudiError."""
    with collected_warnings(running.warnings):
        while True:
            for service in services:
                _once(service, spark, storage, options)
            with _LOCK:
                if not running.is_requested:
                    return
                running.is_requested = False


def _once(service: Service, spark: SparkSession, storage: Storage, options: WriteOptions) -> None:
    try:
        with engine_for(spark, options) as engine:
            serve(storage, service, options, engine)
    except WriteConflict:
        return  # others are working on the table; the service is retried after the next batch
