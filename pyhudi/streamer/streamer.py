"""`Streamer`: pipelines by a configuration, round after round.

streamer = pyhudi.Streamer("orders.toml")
print(streamer.check())                 # five rows as they would be written
streamer.run()                          # one round; `continuous` in the configuration: until SIGTERM
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from pyhudi.completed import unnamed
from pyhudi.errors import HudiError
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.streamer.results import StreamerCheck, StreamerRun, TablesFailed, sum_of
from pyhudi.streamer.rounds import TableRounds, wait_until
from pyhudi.streamer.settings import Config
from pyhudi.streamer.tables import load_tables

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession

__all__ = ["Streamer"]

_log = logging.getLogger("pyhudi.streamer")
_SYSTEM_CLOCK = SystemClock()


class Streamer:
    """Pipelines from sources into tables, each row exactly once."""

    def __init__(self, config: Config, *, spark: SparkSession | None = None, clock: Clock = _SYSTEM_CLOCK) -> None:
        """
        Args:   config: the path of a TOML or properties file, or its keys and values. spark: a session, classic or
                    Connect, whose tasks read the source, transform and write; None: this process does. Either goes on
                    from the checkpoint of the other.
        Raises: ConfigError for anything in it that is wrong, with the line and the right word.
        """
        self._clock = clock
        self._tables = {name: TableRounds(settings, clock, spark) for name, settings in load_tables(config).items()}
        self._ends = threading.Event()
        try:
            for table in self._tables.values():
                table.open(is_alone=self._is_one)
        except HudiError:
            self.close()
            raise

    def run(self, *, until_empty: bool = False, told: Callable[[str], None] | None = None) -> StreamerRun:
        """Run a round; with `hoodie.streamer.continuous=true` rounds until SIGTERM, or `stop`.

        A batch comes into the table with its checkpoint in one commit. So a run that dies at any moment costs nothing,
        and of two runs on one table each batch is that of one of them. Several tables have their rounds in turn. One
        that fails does not stop the others; a continuous run tries it again, and ends when all have failed.

        SIGTERM lets the batch end that is being written. It is the end of a continuous run; another run with rounds to
        come hands it on to the handler that the program had before, by default to the process's end.

        Args:    until_empty: go on until the source has nothing new. told: is told a line about each round.
        Returns: what was done.
        Raises:  HudiError; the batches before are in the table, and nothing of the one that failed is. TablesFailed:
                 of several tables, whose last rounds failed.
        """
        for table in self._tables.values():
            table.begin()
        # No error says "don't run the call again": another run goes on from the newest checkpoint.
        with unnamed(), self._ending_by_sigterm(until_empty):
            try:
                self._turns(told, until_empty)
            finally:
                for table in self._tables.values():
                    table.end(told)
        if self._is_one:
            return self._tables[""].run
        done = sum_of({name: table.run for name, table in self._tables.items()})
        self._raise_failed(done)
        return done

    def stop(self) -> None:
        """Let a run in another thread end after its batch."""
        self._ends.set()

    def check(self) -> StreamerCheck:
        """Try the source, the schema and the table, and return five rows as they would be written. Writes nothing.

        Raises: HudiError, as a run would. TablesFailed: of several tables, after all were tried.
        """
        if self._is_one:
            return self._tables[""].check()
        checked: dict[str, StreamerCheck] = {}
        for name, table in self._tables.items():
            try:
                checked[name] = table.check()
            except Exception as error:
                failed = f"{type(error).__name__}: {error}"
                settings = table.settings
                checked[name] = StreamerCheck(settings.target, settings.options.source, None, 0, {}, [], [], {}, failed)
        waiting = sum(one.waiting for one in checked.values())
        done = StreamerCheck("", "", None, waiting, {}, [], [], checked)
        self._raise_failed(done)
        return done

    def close(self) -> None:
        """Let the sources' connections go."""
        for table in self._tables.values():
            table.close()

    @property
    def _is_one(self) -> bool:
        """The configuration is that of one table, whose errors are the run's own."""
        return "" in self._tables

    def _turns(self, told: Callable[[str], None] | None, until_empty: bool) -> None:
        """Rounds in turn, until the run ends."""
        while not self._ends.is_set() and (left := self._left()):
            for table in left:
                if table.due_s <= self._clock.monotonic_s() and not self._ends.is_set():
                    self._step(table, told, until_empty)
            wait_until(min((one.due_s for one in self._left()), default=0.0), self._clock, self._ends)

    def _left(self) -> list[TableRounds]:
        """The tables with rounds to come; none where the last rounds of all of them failed."""
        left = [one for one in self._tables.values() if not one.is_done]
        return [] if all(one.failures for one in left) else left

    def _step(self, table: TableRounds, told: Callable[[str], None] | None, until_empty: bool) -> None:
        """A round of a table; beside others its error is noted."""
        try:
            table.round(self._ends, told, until_empty=until_empty)
        except Exception as error:  # of any class: a user's transformer, too, must not stop the other tables
            if self._is_one:
                raise
            table.fail(error)
            line = f"{table.settings.target}: failed: {table.run.error}"
            _log.error("%s", line)
            if told is not None:
                told(line)

    def _raise_failed(self, done: StreamerRun | StreamerCheck) -> None:
        if not done.failed:
            return
        reasons = "; ".join(f"{name}: {done.tables[name].error}" for name in done.failed)
        error = TablesFailed(f"{len(done.failed)} of {len(done.tables)} tables failed: {reasons}")
        error.result = done
        raise error

    @contextmanager
    def _ending_by_sigterm(self, until_empty: bool) -> Iterator[None]:
        """SIGTERM lets the batch end that is being written. Only a main thread has signals.

        It is the end of a continuous run. Another run with rounds to come is not complete, and the program must not go
        on as if it were: the signal goes to the handler that was there before.
        """
        self._ends.clear()
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        is_signalled = False

        def end(number: int, frame: FrameType | None) -> None:
            nonlocal is_signalled
            is_signalled = True
            self._ends.set()

        before = signal.signal(signal.SIGTERM, end)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)
        if is_signalled and any(until_empty or not one.settings.options.is_continuous for one in self._left()):
            signal.raise_signal(signal.SIGTERM)
