"""Ctrl-C and SIGTERM while the process lives on, as in a notebook: what was begun is undone, heartbeats and locks end,
and the next write, of this process or another, goes on at once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from linecache import getline
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.actions import runner
from pyhudi.completed import completed_instants, completed_note
from pyhudi.engine.local import LocalEngine
from pyhudi.interrupts import uninterrupted
from pyhudi.locks import hold
from pyhudi.locks.base import LockOptions
from pyhudi.locks.in_process import InProcessLock
from pyhudi.model.instant import ActionKind
from pyhudi.services.after_write import AFTER_WRITE
from pyhudi.storage.clock import SystemClock
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from tests.support.sweeps import SAMPLED
from tests.support.tables.small import DEFAULTS, Row, TestTable, rows_of
from tests.support.writers.dying import on_clone, places_to_die
from tests.support.writers.interrupted_calls import AT_ONCE, MANY_WRITERS, assert_stopped, interruptions

START: list[Row] = [("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 1, 30)]
CHANGE: Row = ("a", "x", 2, 11)
CHANGED: list[Row] = [CHANGE, *START[1:]]
NEXT: Row = ("next", "y", 1, 99)
PROJECT = Path(__file__).parents[2]
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
INDEXED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "1",
    "hoodie.metadata.global.record.level.index.max.filegroup.count": "1",
}


def made(*writes: Row, **options: str) -> TestTable:
    given = {**MANY_WRITERS, **{"hoodie." + name.replace("_", "."): text for name, text in options.items()}}
    table = TestTable(MemoryStorage(), given, engine=LocalEngine(1))
    table.bulk_insert(*START)
    for row in writes:
        table.upsert(row)
    return table


def merge_on_read(*writes: Row) -> TestTable:
    table = TestTable(MemoryStorage(), {**MANY_WRITERS, **MERGE_ON_READ}, engine=LocalEngine(1))
    table.bulk_insert(*START)
    for row in writes:
        table.upsert(row)
    return table


def indexed() -> TestTable:
    table = TestTable(MemoryStorage(), {**MANY_WRITERS, **INDEXED}, engine=LocalEngine(1))
    table.bulk_insert(*START)
    return table


def handle(table: TestTable) -> HudiTable:
    return HudiTable(table.meta)


def times(table: TestTable) -> list[str]:
    return [instant.requested_time for instant in table.meta.timeline.commits()]


def assert_goes_on(table: TestTable, where: str, *before_or_after: list[Row]) -> None:
    rows = table.rows()
    assert rows in [sorted(found, key=repr) for found in before_or_after], where
    table.upsert(NEXT)
    assert table.rows() == sorted([*rows, NEXT], key=repr), where
    for folder in (".hoodie/.temp", ".hoodie/.heartbeat"):
        assert not list(table.storage.walk(folder)), where


WRITES: dict[str, tuple[Callable[[], TestTable], Callable[[TestTable], object], list[Row]]] = {
    "upsert": (made, lambda t: t.upsert(CHANGE), CHANGED),
    "upsert, merge on read": (merge_on_read, lambda t: t.upsert(CHANGE), CHANGED),
    "upsert with a record index": (indexed, lambda t: t.upsert(CHANGE), CHANGED),
    "insert overwrite": (made, lambda t: t.write("insert_overwrite", rows_of(CHANGE)), [CHANGE, START[2]]),
    "delete": (made, lambda t: t.delete(("b", "x")), [START[0], START[2]]),
}


@pytest.mark.parametrize("name", WRITES)
def test_an_interrupted_write_is_undone_before_the_interrupt_reaches_the_caller(name: str) -> None:
    make, act, after = WRITES[name]
    for attempt, where in interruptions(make(), act):
        assert not attempt.meta.timeline.pending().instants, where
        assert not list(attempt.storage.walk(".hoodie/.temp")) or "delete_tree .hoodie/.temp" in where, where
        assert_goes_on(attempt, where, START, after)


def completed(table: TestTable) -> list[tuple[str, ActionKind]]:
    """The instants that are complete, without those of rollbacks of failed writes."""
    instants = table.meta.timeline.completed().instants
    return [(i.requested_time, i.action) for i in instants if i.action is not ActionKind.ROLLBACK]


def errors_of_interruptions(
    table: TestTable, act: Callable[[TestTable], object], error: type[BaseException]
) -> Iterator[tuple[BaseException, list[str], str]]:
    """For each storage call at which an action is interrupted: the error, what the action completed, which call."""
    before = set(completed(table))
    counted = on_clone(table)
    act(counted)
    calls = counted.memory.log
    for kind, n in places_to_die(calls):
        attempt = on_clone(table)
        attempt.memory.fail_at(n, kind, error)
        with pytest.raises(error) as caught:
            act(attempt)
        attempt.memory.reset_faults()
        right = [one[0] for one in completed(attempt) if one not in before]
        yield caught.value, right, f"{kind} {n}: {' '.join(calls[n - 1])}"


CLEANS = {**MANY_WRITERS, **ONE_VERSION, "hoodie.clean.automatic": "true", "hoodie.clean.max.commits": "1"}


@pytest.mark.filterwarnings("ignore:The lock file")
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_names_the_instants_that_are_complete_and_no_others(error: type[BaseException]) -> None:
    table = TestTable(MemoryStorage(), {**CLEANS, "hoodie.metadata.enable": "false"}, engine=LocalEngine(1))
    table.bulk_insert(*START)
    table.upsert(CHANGE)
    table.upsert(("a", "x", 3, 12))
    numbers = set()
    for raised, right, where in errors_of_interruptions(table, lambda t: t.upsert(("a", "x", 4, 13)), error):
        assert list(completed_instants(raised)) == right, where
        notes = " ".join(getattr(raised, "__notes__", [completed_note(raised)]))
        assert all(time in notes for time in right), where
        assert ("complete, and readers see" in notes) == bool(right), where
        numbers.add(len(right))
    assert numbers == {0, 1, 2}  # nothing, the write, the write and the clean after it


@pytest.mark.filterwarnings("ignore:The lock file")
def test_an_interrupted_service_names_what_it_completed() -> None:
    acts: list[tuple[TestTable, Callable[[HudiTable], object]]] = [
        (merge_on_read(CHANGE), lambda t: t.compact(options=MANY_WRITERS)),
        (made(CHANGE), lambda t: t.savepoints.create(options=MANY_WRITERS)),
    ]
    for table, act in acts:
        numbers = set()
        on_table = partial(lambda act, table: act(handle(table)), act)
        for raised, right, where in errors_of_interruptions(table, on_table, KeyboardInterrupt):
            assert list(completed_instants(raised)) == right, where
            numbers.add(len(right))
        assert numbers == {0, 1}


def test_an_error_that_comes_after_the_commit_names_it_too() -> None:
    table = made()

    def failing(context: object) -> tuple[str, ...]:
        warnings.warn("the disk is old", stacklevel=1)
        raise ValueError("no service")

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setitem(AFTER_WRITE, "clean", failing)  # type: ignore[call-overload]
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="the write is complete") as caught:
            table.upsert(CHANGE)

    assert completed_instants(caught.value) == (times(table)[-1],)
    assert table.rows() == sorted(CHANGED, key=repr)


@pytest.mark.thorough
def test_a_single_writer_goes_on_after_an_interrupt() -> None:
    table = TestTable(MemoryStorage(), AT_ONCE, engine=LocalEngine(1))
    table.bulk_insert(*START)
    for attempt, where in interruptions(table, lambda t: t.upsert(CHANGE), SystemExit):
        assert_goes_on(attempt, where, START, CHANGED)


@pytest.mark.thorough
def test_an_interrupted_first_write_leaves_no_table_or_a_whole_one() -> None:
    table = TestTable(MemoryStorage(), MANY_WRITERS, engine=LocalEngine(1))
    for attempt, where in interruptions(table, lambda t: t.bulk_insert(*START)):
        attempt.upsert(NEXT)
        assert attempt.rows() in (sorted([*START, NEXT], key=repr), [NEXT]), where


SERVICES: dict[str, tuple[Callable[[], TestTable], Callable[[HudiTable], object], list[Row]]] = {
    "compaction": (lambda: merge_on_read(CHANGE), lambda t: t.compact(options=MANY_WRITERS), CHANGED),
    "clustering": (
        lambda: made(CHANGE, parquet_small_file_limit="0"),
        lambda t: t.cluster(options=MANY_WRITERS),
        CHANGED,
    ),
    "clean": (
        lambda: made(CHANGE, ("a", "x", 3, 12), clean_automatic="false"),
        lambda t: t.clean(options={**MANY_WRITERS, **ONE_VERSION}),
        [("a", "x", 3, 12), *START[1:]],
    ),
    "savepoint": (made, lambda t: t.savepoints.create(options=MANY_WRITERS), START),
    "index": (
        indexed,
        lambda t: t.indexes.create("by_v", columns="v", options={**MANY_WRITERS, **INDEXED}),
        START,
    ),
}


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*rebuilt.*")
@pytest.mark.parametrize("name", SERVICES)
def test_an_interrupted_service_lets_the_next_one_and_the_next_write_go_on(name: str) -> None:
    make, act, found = SERVICES[name]
    for attempt, where in interruptions(make(), lambda table: act(handle(table))):
        with suppress(Exception):  # it may have been complete
            act(handle(attempt))
        assert_goes_on(attempt, where, found)
        waiting = [i for i in attempt.meta.timeline.pending() if i.action.value not in ("savepoint",)]
        assert not waiting, where


@pytest.mark.thorough
def test_an_interrupted_rollback_or_restore_is_finished_by_the_next_write() -> None:
    table = made(CHANGE)
    acts: list[Callable[[TestTable], object]] = [
        lambda t: handle(t).rollback(times(t)[-1], options=MANY_WRITERS),
        lambda t: handle(t).restore(times(t)[0], options=MANY_WRITERS),
    ]
    for act in acts:
        for attempt, where in interruptions(table, act):
            attempt.upsert(NEXT)
            found = attempt.rows()
            assert found in (sorted([*START, NEXT], key=repr), sorted([*CHANGED, NEXT], key=repr)), where
            assert not attempt.meta.timeline.pending().instants, where


@pytest.mark.thorough
def test_an_interrupt_while_it_is_undone_ends_the_heartbeat_too(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    attempt = on_clone(table)
    with monkeypatch.context() as patch:
        patch.setattr(runner, "undo", interrupted)
        patch.setattr(runner, "sweep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            attempt.upsert(CHANGE)
    assert attempt.meta.timeline.pending().instants
    assert_stopped(attempt, "undo")
    assert_goes_on(attempt, "undo", START)


# ---- signals ---------------------------------------------------------------------------------------------------------


@contextmanager
def signal_at_line(number: int, signals: int = 1, text: str = "") -> Iterator[list[int]]:
    """A real SIGINT when the main thread comes to that line of ours, and so many more at the lines behind it. `text`:
    only lines that hold it count.
    """
    lines, ours = [0], str(PROJECT / "pyhudi") + os.sep

    def trace(frame: FrameType, event: str, _: object) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(ours) or file.endswith("storage/memory.py"):  # a store outlives its clients
            return None
        if event == "line" and text in getline(file, frame.f_lineno):
            lines[0] += 1
            if number <= lines[0] < number + signals:
                signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lines
    finally:
        sys.settrace(before)


@pytest.mark.thorough
def test_a_signal_before_and_behind_a_block_under_the_lock_leaves_no_lock() -> None:
    table = made()
    with signal_at_line(0, 0, "with context.locked()") as lines:
        on_clone(table).upsert(CHANGE)
    assert lines[0] == 4  # Python comes to the line of a `with` once more when its block has ended
    for number in range(1, 5):
        attempt = on_clone(table)
        with pytest.raises(KeyboardInterrupt), signal_at_line(number, 1, "with context.locked()"):
            attempt.upsert(CHANGE)
        assert_stopped(attempt, f"line {number}")
        assert_goes_on(attempt, f"line {number}", START, CHANGED)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("signals", [1, 2])
def test_a_signal_at_any_line_leaves_no_lock_and_no_heartbeat(signals: int) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background begins with an ignored one
    table = made()
    with signal_at_line(0, 0) as lines:
        on_clone(table).upsert(CHANGE)
    step = max(1, lines[0] // (5 if SAMPLED else 1000))
    interrupted = 0
    for number in range(1, lines[0], step):
        attempt = on_clone(table)
        where = f"line {number} of {lines[0]}"
        try:
            with signal_at_line(number, signals):
                attempt.upsert(CHANGE)
        except KeyboardInterrupt:
            interrupted += 1
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, where
        assert_stopped(attempt, where)
        assert_goes_on(attempt, where, START, CHANGED)
    assert interrupted


@pytest.mark.thorough
def test_signals_wait_for_the_end_of_a_block_that_must_not_be_interrupted() -> None:
    done: list[int] = []

    def raise_signals(count: int) -> None:
        with uninterrupted(), uninterrupted():
            for _ in range(count):
                signal.raise_signal(signal.SIGINT)
            done.append(count)

    for count in (1, 2, 3):  # the third goes through at once
        with pytest.raises(KeyboardInterrupt):
            raise_signals(count)
    assert done == [1, 2]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.thorough
def test_a_signal_at_any_line_of_such_a_block_arrives_and_the_handlers_are_as_they_were() -> None:
    def block(number: int) -> int:
        with signal_at_line(number, 1) as lines, uninterrupted():
            pass
        return lines[0]

    lines = block(-1)
    assert lines > 10
    for number in range(1, lines + 1):
        with pytest.raises(KeyboardInterrupt):
            block(number)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, f"line {number}"


@pytest.mark.thorough
def test_waiting_for_a_lock_ends_at_ctrl_c() -> None:
    storage, clock = MemoryStorage(), SystemClock()
    held, waiting = (InProcessLock(LockOptions(), storage, clock) for _ in range(2))
    with hold(held, 0):
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        started_s = time.monotonic()
        with pytest.raises(KeyboardInterrupt), hold(waiting, 20):
            pytest.fail("it was not free")
        assert time.monotonic() - started_s < 5
    with hold(waiting, 0):
        pass


PROGRAM = """
import signal, sys
from pyhudi import HudiTable, write_hudi
import pyarrow as pa
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
path, options = sys.argv[1], {options!r}
write_hudi(path, pa.table({{"id": ["a"], "v": [1]}}), record_key="id", options=options)
rows = pa.table({{"id": [str(n) for n in range(200_000)], "v": list(range(200_000))}})
print("ready", flush=True)
try:
    while True:
        HudiTable.open(path).upsert(rows, options=options)
except (KeyboardInterrupt, SystemExit) as error:
    found = HudiTable.open(path)
    print(type(error).__name__, len(found.state().timeline.pending().instants), flush=True)
    found.upsert(pa.table({{"id": ["after"], "v": [2]}}), options=options)
    print("went on", flush=True)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_goes_on_after_a_signal_and_so_does_another(number: signal.Signals, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    options = {**MANY_WRITERS, "hoodie.metadata.enable": "false"}
    command = [sys.executable, "-c", PROGRAM.format(options=options), path]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.4)
        process.send_signal(number)
        told, went_on = process.stdout.readline(), process.stdout.readline()
    assert told == ("KeyboardInterrupt 0\n" if number is signal.SIGINT else "SystemExit 0\n")
    assert went_on == "went on\n"
    table = TestTable(LocalStorage(path), {**DEFAULTS, **options})
    assert not list(table.storage.walk(".hoodie/.heartbeat"))
    assert not table.meta.timeline.pending().instants
