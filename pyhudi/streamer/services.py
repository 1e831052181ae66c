"""Table services beside the rounds of a continuous run: compactions and clusterings that batches planned, cleaning.

One thread a table, so that no plan is run twice. An error is said and stops nothing: a plan stays on the timeline, and
is tried again after the next batch. A run that ends waits for the service that is running.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from typing import TYPE_CHECKING

from pyhudi.errors import HudiError, WriteConflict
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import ActionKind
from pyhudi.model.options import WriteOptions
from pyhudi.services.beside import Service, left_by_batches, services_beside
from pyhudi.storage import open_storage
from pyhudi.storage.clock import Clock
from pyhudi.streamer.settings import PipelineSettings
from pyhudi.table.calls import engine_for, serve
from pyhudi.timeline.table_properties import load_table_config
from pyhudi.warnings import collected_warnings

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession

__all__ = ["ServicesBeside"]

_log = logging.getLogger("pyhudi.streamer")
_NAP_S = 0.2
_CLUSTERINGS = (ActionKind.CLUSTERING, ActionKind.REPLACECOMMIT)  # the second below table version 8


class ServicesBeside:
    """The services of one table."""

    def __init__(self, settings: PipelineSettings, clock: Clock, spark: SparkSession | None = None) -> None:
        self._session: Mapping[str, object] = {}
        if spark is not None:
            from pyhudi.spark.session import hudi_options
            from pyhudi.streamer.on_spark import with_session_store

            settings, self._session = with_session_store(settings, spark), hudi_options(spark)
        self._settings, self._clock, self._spark = settings, clock, spark
        self._storage = open_storage(settings.target, settings.store)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="hudi-streamer-services")
        self._future: Future[None] | None = None
        self._lock = threading.Lock()
        self._is_busy = False
        self._is_requested = False  # once more, after the run of now
        self._said: list[str] = []

    def left_by_batches(self) -> Mapping[str, object]:
        """Options of the writes, which leave work to the services."""
        return left_by_batches(WriteOptions.parse(self._settings.write, self._session))

    @property
    def is_running(self) -> bool:
        """A service is running."""
        return self._is_busy

    def request(self) -> None:
        """Run the services that the table's options ask for, or once more after those that are running."""
        with self._lock:
            if self._is_busy:
                self._is_requested = True
            else:
                self._is_busy = True
                self._future = self._pool.submit(self._serve)

    def wait_for_room(self, ends: threading.Event) -> None:
        """Wait while services run, and as many plans wait for them as the options allow."""
        options = self._settings.options.runs
        while self.is_running and not ends.is_set():
            try:
                meta = MetaClient.load(self._storage)
            except HudiError:
                return  # what is wrong with the table, the round says
            pending = [instant.action for instant in meta.timeline.pending()]
            compactions = sum(action is ActionKind.COMPACTION for action in pending)
            clusterings = sum(action in _CLUSTERINGS for action in pending)
            if compactions < options.max_pending_compactions and clusterings < options.max_pending_clusterings:
                return
            self.wait(_NAP_S)

    def wait_until_idle(self, ends: threading.Event) -> None:
        """Wait while services run, but no longer than until the run ends."""
        while self.is_running and not ends.is_set():
            self.wait(_NAP_S)

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until no service is running, or so long."""
        if self._future is not None:
            wait_for([self._future], timeout_s)

    def said(self) -> list[str]:
        """Lines for the user since the last call: what failed, and warnings."""
        with self._lock:
            lines, self._said = self._said, []
        return lines

    def _serve(self) -> None:
        while True:
            try:
                options = WriteOptions.parse(self._settings.write, self._session, load_table_config(self._storage))
                for service in services_beside(options):
                    self._once(service, options)
            except HudiError as error:
                with self._lock:
                    self._said.append(f"{self._settings.target}: no service ran beside the pipeline: {error}")
            with self._lock:
                if not self._is_requested:
                    self._is_busy = False
                    return
                self._is_requested = False

    def _once(self, service: Service, options: WriteOptions) -> None:
        warnings: list[tuple[str, type[Warning]]] = []
        lines: list[str] = []
        try:
            with collected_warnings(warnings), engine_for(self._spark, options) as engine:
                done = serve(self._storage, service, options, engine, clock=self._clock)
            _log.info("%s: %s: %s", self._settings.target, service.__name__, ", ".join(done) or "nothing to do")
        except WriteConflict as error:
            _log.info("%s: after the next batch: %s", self._settings.target, error)  # others work on the table
        except Exception as error:  # of any class: a service never stops the pipeline
            lines.append(
                f"{self._settings.target}: {service.__name__.replace('_', ' ')} beside the pipeline failed; it is "
                f"tried again after the next batch. {type(error).__name__}: {error}"
            )
        with self._lock:
            self._said += [*(text for text, _ in warnings), *lines]
