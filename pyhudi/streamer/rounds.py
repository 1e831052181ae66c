"""The rounds of one table: which is due, what it did, and what another try can help."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyhudi.actions.streamer_checkpoints import CheckpointMoved
from pyhudi.errors import ConfigError, HudiError, StorageError, WriteConflict
from pyhudi.model.options.spec import text_of
from pyhudi.result import plain
from pyhudi.storage.clock import Clock
from pyhudi.streamer.metrics import RoundMetrics
from pyhudi.streamer.pipeline import Pipeline, Round
from pyhudi.streamer.results import StreamerCheck, StreamerRun, text_of_lag
from pyhudi.streamer.services import ServicesBeside
from pyhudi.streamer.settings import PipelineSettings
from pyhudi.streamer.termination import Termination, termination_of

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession

__all__ = ["TableRounds", "wait_until"]

_log = logging.getLogger("pyhudi.streamer")
_CONFLICTS_MAX = 50  # one after the other
_NAP_S = 0.2
_SHOWN_ROWS = 5
_CHECKED = 1000  # bytes of files, which is a file at least; events of Kafka
_LONGEST_S = 3600  # from a failed round to the next one


class TableRounds:
    """A table's pipeline, round after round. `due_s`: when the next one may begin. `failures`: one after the other."""

    def __init__(self, settings: PipelineSettings, clock: Clock, spark: SparkSession | None = None) -> None:
        self.settings, self._clock, self._spark = settings, clock, spark
        self._pipeline: Pipeline | None = None
        self._services = ServicesBeside(settings, clock, spark) if settings.options.is_continuous else None
        left = {} if self._services is None else self._services.left_by_batches()
        self._of_batches = replace(
            settings, write={**settings.write, **{key: text_of(one) for key, one in left.items()}}
        )
        self._termination: Termination | None = None
        self._metrics = RoundMetrics(settings, clock, spark)
        self.run = StreamerRun()
        self.due_s = 0.0
        self.failures = 0
        self.is_done = False

    def open(self, *, is_alone: bool) -> None:
        """Open the parts of the pipeline. Beside others, one whose store or registry is away is opened by its round.

        Raises: ConfigError; HudiError where it is alone.
        """
        try:
            termination_of(self.settings)
            self._opened()
        except ConfigError:
            raise
        except HudiError as error:
            if is_alone:
                raise
            _log.warning("%s: %s", self.settings.target, error)

    def close(self) -> None:
        """Let the source's connections go."""
        if self._pipeline is not None:
            self._pipeline.close()

    def begin(self) -> None:
        """Begin a run."""
        self.run, self.due_s, self.failures, self.is_done = StreamerRun(), 0.0, 0, False
        self._termination = termination_of(self.settings)

    def round(self, ends: threading.Event, told: Callable[[str], None] | None, *, until_empty: bool) -> None:
        """Run a round. Raises HudiError."""
        options = self.settings.options
        if self._services is not None:
            self._services.wait_for_room(ends)
        began_s = self._clock.monotonic_s()
        try:
            one = self._tried(ends)
        except Exception:
            self._metrics.failed(self._table_name)
            raise
        self._metrics.succeeded(self._table_name, one, self._clock.monotonic_s() - began_s)
        moved = one is not None and (one.written is not None or one.rows > 0)
        self.failures = 0
        self.run = replace(self.run, error=None)
        if one is None:
            self.run = replace(self.run, lag=dict.fromkeys(self.run.lag, 0))
        else:
            self.run = self.run._and(one)
            self._tell(one, began_s, told)
        if self._services is not None:
            if one is not None and one.written is not None:
                self._services.request()
            self.say(told, self._services.said())
        is_empty = (not moved and not ends.is_set()) or self._opened().reads_all or options.skips_checkpoint
        self.is_done = is_empty if until_empty else not options.is_continuous
        if options.is_continuous and self._termination is not None and self._termination.should_shutdown(moved):
            _log.info("%s: %s ends the run", self.settings.target, options.runs.termination)
            self.is_done = True
        # Without anything new, and without an interval, look again after a moment.
        self.due_s = began_s + (options.interval_s or (0 if moved else 1))

    def end(self, told: Callable[[str], None] | None) -> None:
        """End a run: wait for the service that is running, and say what it did."""
        if self._services is not None:
            self._services.wait()
            self.say(told, self._services.said())

    def say(self, told: Callable[[str], None] | None, lines: Sequence[str]) -> None:
        """Say what went wrong, and go on."""
        for line in lines:
            _log.warning("%s", line)
            if told is not None:
                told(line)

    def fail(self, error: Exception) -> None:
        """Note that a round failed. A continuous run tries again: after the retry interval, then twice as long."""
        options = self.settings.options
        self.run = replace(self.run, error=f"{type(error).__name__}: {error}")
        self.is_done = not options.is_continuous
        wait_s = min(_LONGEST_S, max(1, options.retry_interval_s) * 2.0 ** min(self.failures, 20))
        self.due_s = self._clock.monotonic_s() + wait_s
        self.failures += 1

    def check(self) -> StreamerCheck:
        """What a round would do. Raises HudiError."""
        read = self._opened().check(_CHECKED)
        settings = self.settings
        if read is None:
            return StreamerCheck(settings.target, settings.options.source, None, 0, {}, [], [])
        shown = read.head(_SHOWN_ROWS)
        return StreamerCheck(
            settings.target,
            settings.options.source,
            read.start.text,
            read.num_rows,
            {field.name: str(field.type) for field in read.schema},
            [plain(row) for row in shown.to_pylist()],
            [f"{one.position}: {one.reason}" for one in read.rejected[:_SHOWN_ROWS]],
        )

    @property
    def _table_name(self) -> str:
        return self.settings.target if self._pipeline is None else self._pipeline.table_name

    def _opened(self) -> Pipeline:
        if self._pipeline is None:
            self._pipeline = Pipeline(self._of_batches, self._clock, self._spark)
        return self._pipeline

    def _tried(self, ends: threading.Event) -> Round | None:
        """A round; again when another writer came before, from its checkpoint, or when a source is away for a while."""
        options = self.settings.options
        conflicts = failures = 0
        while True:
            try:
                return self._opened().run()
            except WriteConflict as error:
                if ends.is_set():
                    return None  # the batch is another run's, or the next one's
                if self._services is not None and not isinstance(error, CheckpointMoved) and self._services.is_running:
                    self._services.wait_until_idle(ends)  # it may hold the files that the batch changes
                    continue
                conflicts += 1
                if conflicts > _CONFLICTS_MAX:
                    raise
                _log.info("again, from the newest checkpoint: %s", error)
                self._clock.sleep_s(min(2.0, 0.05 * 2**conflicts) * (0.5 + random.random()))
            except HudiError as error:
                passes = error.retryable or isinstance(error, StorageError)
                if not (options.retries_source and passes) or failures >= options.max_retries or ends.is_set():
                    raise
                wait_s = options.retry_interval_s * 2**failures
                failures += 1
                _log.warning("try %d of %d in %d s: %s", failures, options.max_retries, wait_s, error)
                wait_until(self._clock.monotonic_s() + wait_s, self._clock, ends)

    def _tell(self, one: Round, began_s: float, told: Callable[[str], None] | None) -> None:
        self.say(told if one.written is not None or one.rows else None, one.said)
        seconds = self._clock.monotonic_s() - began_s
        if one.written is None and not one.rows:
            return
        speed = f"{one.rows / seconds:,.0f} rows/s" if seconds else ""
        aside = f", {one.rejected:,} did not fit" if one.rejected else ""
        lost = f", {one.lost:,} lost at the source" if one.lost else ""
        at = "" if one.checkpoint is None else f", at {one.checkpoint}"
        lag = text_of_lag(one.lag)
        line = f"{self.settings.target}: {one.rows:,} rows, {seconds:.1f} s, {speed}{aside}{lost}{lag}{at}"
        _log.info("%s", line)
        if told is not None:
            told(line)


def wait_until(until_s: float, clock: Clock, ends: threading.Event) -> None:
    """Wait, but no longer than until the run ends."""
    while not ends.is_set() and (left_s := until_s - clock.monotonic_s()) > 0:
        clock.sleep_s(min(_NAP_S, left_s))
