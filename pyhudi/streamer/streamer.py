"""`Streamer`: a pipeline by its configuration, round after round.

streamer = pyhudi.Streamer("orders.toml")
print(streamer.check())                 # five rows as they would be written
streamer.run()                          # one round; `continuous` in the configuration: until SIGTERM
"""

from __future__ import annotations

import logging
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from pyhudi.display import text_table
from pyhudi.errors import HudiError, StorageError, WriteConflict
from pyhudi.result import Json, Result, plain
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.streamer.pipeline import Pipeline, Round
from pyhudi.streamer.settings import Config, PipelineSettings, load_settings

__all__ = ["Streamer", "StreamerCheck", "StreamerRun"]

_log = logging.getLogger("pyhudi.streamer")
_CONFLICTS_MAX = 50  # one after the other
_NAP_S = 0.2
_SHOWN_ROWS = 5
_CHECKED = 1000  # bytes of files, which is a file at least; events of Kafka
_SYSTEM_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, repr=False)
class StreamerRun(Result):
    """What a run did. `rows`: brought into the table; `rejected`: set aside, or left out; `lost`: that the source had
    no longer. `checkpoint`: where the next run begins.
    """

    rounds: int = 0
    commits: int = 0
    rows: int = 0
    rejected: int = 0
    lost: int = 0
    checkpoint: str | None = None

    def __str__(self) -> str:
        aside = f", {self.rejected:,} did not fit" if self.rejected else ""
        lost = f", {self.lost:,} were lost at the source" if self.lost else ""
        at = f"; the next run begins at {self.checkpoint}" if self.checkpoint else ""
        return f"{self.rows:,} rows in {self.commits} commits{aside}{lost}{at}"

    def _and(self, done: Round) -> StreamerRun:
        return StreamerRun(
            self.rounds + 1,
            self.commits + (done.written is not None),
            self.rows + done.rows,
            self.rejected + done.rejected,
            self.lost + done.lost,
            done.checkpoint or self.checkpoint,
        )


@dataclass(frozen=True, slots=True, repr=False)
class StreamerCheck(Result):
    """What a round would do. `rows`: the first ones, as they would be written; `columns`: name → type; `waiting`: rows
    that were read for it; `rejected`: reasons of rows that don't fit.
    """

    target: str
    source: str
    begins_at: str | None
    waiting: int
    columns: dict[str, str]
    rows: list[dict[str, Json]]
    rejected: list[str]

    def __str__(self) -> str:
        head = f"{self.source} → {self.target}, from {self.begins_at or 'the beginning'}: nothing was written"
        shown = [[str(row.get(name)) for name in self.columns] for row in self.rows]
        body = text_table(list(self.columns), shown) if self.columns else "there is nothing to read"
        return "\n".join([head, body, *self.rejected])


class Streamer:
    """A pipeline from a source into a table, each row exactly once."""

    def __init__(self, config: Config, *, clock: Clock = _SYSTEM_CLOCK) -> None:
        """
        Args:   config: the path of a TOML or properties file, or its keys and values.
        Raises: ConfigError for anything in it that is wrong, with the line and the right word.
        """
        self._settings: PipelineSettings = load_settings(config)
        self._clock = clock
        self._pipeline = Pipeline(self._settings, clock)
        self._ends = threading.Event()

    def run(self, *, until_empty: bool = False, told: Callable[[str], None] | None = None) -> StreamerRun:
        """Run a round; with `hoodie.streamer.continuous=true` rounds until SIGTERM, or `stop`.

        A batch comes into the table with its checkpoint in one commit. So a run that dies at any moment costs nothing,
        and of two runs on one table each batch is that of one of them.

        Args:    until_empty: go on until the source has nothing new. told: is told a line about each round.
        Returns: what was done.
        Raises:  HudiError; the batches before are in the table, and nothing of the one that failed is.
        """
        options = self._settings.options
        done = StreamerRun()
        with self._ending_by_sigterm():
            while True:
                began_s = self._clock.monotonic_s()
                one = self._round()
                moved = one is not None and (one.written is not None or one.rows > 0)
                if one is not None:
                    done = done._and(one)
                    self._tell(one, began_s, told)
                if self._ends.is_set() or not (options.is_continuous or (until_empty and moved)):
                    return done
                if until_empty and not moved:
                    return done
                # Without anything new, and without an interval, look again after a moment.
                self._wait(began_s + (options.interval_s or (0 if moved else 1)))
                if self._ends.is_set():
                    return done

    def stop(self) -> None:
        """Let a run in another thread end after its batch."""
        self._ends.set()

    def check(self) -> StreamerCheck:
        """Try the source, the schema and the table, and return five rows as they would be written. Writes nothing.

        Raises: HudiError, as a run would.
        """
        read = self._pipeline.check(_CHECKED)
        settings = self._settings
        if read is None:
            return StreamerCheck(settings.target, settings.options.source, None, 0, {}, [], [])
        shown = read.rows.slice(0, _SHOWN_ROWS)
        return StreamerCheck(
            settings.target,
            settings.options.source,
            read.start.text,
            read.rows.num_rows,
            {field.name: str(field.type) for field in read.rows.schema},
            [plain(row) for row in shown.to_pylist()],
            [f"{one.position}: {one.reason}" for one in read.rejected[:_SHOWN_ROWS]],
        )

    def close(self) -> None:
        """Let the source's connections go."""
        self._pipeline.close()

    def _round(self) -> Round | None:
        """A round; again when another writer came before, from its checkpoint, or when a source is away for a while."""
        options = self._settings.options
        conflicts = failures = 0
        while True:
            try:
                return self._pipeline.run()
            except WriteConflict as error:
                conflicts += 1
                if conflicts > _CONFLICTS_MAX or self._ends.is_set():
                    raise
                _log.info("again, from the newest checkpoint: %s", error)
                self._clock.sleep_s(min(2.0, 0.05 * 2**conflicts) * (0.5 + random.random()))
            except HudiError as error:
                passes = error.retryable or isinstance(error, StorageError)
                if not (options.retries_source and passes) or failures >= options.max_retries or self._ends.is_set():
                    raise
                wait_s = options.retry_interval_s * 2**failures
                failures += 1
                _log.warning("try %d of %d in %d s: %s", failures, options.max_retries, wait_s, error)
                self._wait(self._clock.monotonic_s() + wait_s)

    def _wait(self, until_s: float) -> None:
        """Wait, but no longer than until SIGTERM."""
        while not self._ends.is_set() and (left_s := until_s - self._clock.monotonic_s()) > 0:
            self._clock.sleep_s(min(_NAP_S, left_s))

    def _tell(self, one: Round, began_s: float, told: Callable[[str], None] | None) -> None:
        for line in one.said:
            _log.warning("%s", line)
        seconds = self._clock.monotonic_s() - began_s
        if one.written is None and not one.rows:
            return
        speed = f"{one.rows / seconds:,.0f} rows/s" if seconds else ""
        aside = f", {one.rejected:,} did not fit" if one.rejected else ""
        lost = f", {one.lost:,} lost at the source" if one.lost else ""
        line = f"{self._settings.target}: {one.rows:,} rows, {seconds:.1f} s, {speed}{aside}{lost}, at {one.checkpoint}"
        _log.info("%s", line)
        for tell in [told] if told is not None else []:
            for said in (*one.said, line):
                tell(said)

    @contextmanager
    def _ending_by_sigterm(self) -> Iterator[None]:
        """SIGTERM lets the batch end that is being written. Only a main thread has signals."""
        self._ends.clear()
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def end(number: int, frame: FrameType | None) -> None:
            self._ends.set()

        before = signal.signal(signal.SIGTERM, end)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)
