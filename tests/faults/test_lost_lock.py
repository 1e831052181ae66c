"""The lock runs out when an instant is about to complete: of whatever kind it is, it
does not complete, the table reads as before, and the next process goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from pyhudi.actions.undo.restore import restore, roll_back
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import WriteConflict
from pyhudi.locks.in_process import InProcessLock
from pyhudi.metadata.build import build
from pyhudi.model.filenames import HEARTBEAT_FOLDER, METADATA_TABLE_FOLDER, InstantFileName
from pyhudi.model.instant import ActionKind, State
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.metadata import DEFAULT_METADATA
from pyhudi.queries.validation import validate
from pyhudi.services.clean.cleaning import clean
from pyhudi.services.cluster.calls import cluster
from pyhudi.services.compact.compaction import COMPACTION, LOG_COMPACTION
from pyhudi.services.planned import call
from pyhudi.services.savepoint import savepoint
from pyhudi.storage.clock import FixedClock
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.calls import serve
from tests.support.tables.small import Row, TestTable, rows_of, sorted_rows
from tests.support.writers.dying import READING, dies, on_clone

START: list[Row] = [("a", "x", 1, 10), ("b", "y", 1, 20)]
UPDATE: Row = ("a", "x", 2, 11)
NEXT: Row = ("next", "y", 1, 99)
COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"


def made(version: str, table_type: str) -> TestTable:
    clock = FixedClock(1_760_000_000_000)
    options = {
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.compact.inline": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.parquet.small.file.limit": "0",
    }
    table = TestTable(MemoryStorage(clock=clock), options, clock, LocalEngine(1))
    table.bulk_insert(*START)
    return table


def updated(version: str, table_type: str) -> TestTable:
    table = made(version, table_type)
    table.upsert(UPDATE)
    table.upsert(("b", "y", 2, 21), ("a", "x", 3, 12))
    return table


def with_deserted_partition(version: str, table_type: str) -> TestTable:
    table = made(version, table_type)
    table.write("delete_partition", rows_of(START[1]))
    table.upsert(UPDATE)
    table.upsert(("a", "x", 3, 12))
    return table


def with_dead_writer(version: str, table_type: str) -> TestTable:
    table = made(version, table_type)
    counted = on_clone(table)
    counted.upsert(UPDATE)
    assert dies(table, partial(table.upsert, UPDATE), "before", completing_call(counted, ActionKind.COMMIT))
    return table


def served(service: Callable[..., Any], **options: str) -> Callable[[TestTable], object]:
    def act(table: TestTable) -> object:
        parsed = WriteOptions.parse({f"hoodie.{name}": text for name, text in options.items()}, table=table.meta.config)
        return serve(table.storage, service, parsed, table.engine, clock=table.clock)

    return act


def restore_first(table: TestTable) -> object:
    first = table.meta.timeline.commits().first_time
    return served(partial(restore, to=first))(table)


@dataclass(frozen=True)
class Case:
    """`goes_on`: what was begun is finished by the next process, whatever it does. `once`: it can't be called again."""

    kind: ActionKind
    act: Callable[[TestTable], object]
    make: Callable[[str, str], TestTable] = made
    table_type: str = COPY_ON_WRITE
    goes_on: bool = False
    once: bool = False


CASES = {
    "commit": Case(ActionKind.COMMIT, lambda table: table.upsert(UPDATE)),
    "deltacommit": Case(ActionKind.DELTACOMMIT, lambda table: table.upsert(UPDATE), table_type=MERGE_ON_READ),
    "replacecommit": Case(
        ActionKind.REPLACECOMMIT, lambda table: table.write("insert_overwrite", rows_of(("c", "x", 1, 1)))
    ),
    "compaction": Case(ActionKind.COMPACTION, served(partial(call, COMPACTION)), updated, MERGE_ON_READ),
    "logcompaction": Case(
        ActionKind.LOGCOMPACTION,
        served(partial(call, LOG_COMPACTION), **{"log.compaction.blocks.threshold": "2"}),
        updated,
        MERGE_ON_READ,
    ),
    "clustering": Case(ActionKind.CLUSTERING, served(cluster, **{"index.type": "BLOOM"})),
    "clean": Case(ActionKind.CLEAN, served(clean, **{"clean.commits.retained": "1"}), with_deserted_partition),
    "rollback of a dead writer": Case(
        ActionKind.ROLLBACK, lambda table: table.insert(("late", "x", 1, 1)), with_dead_writer
    ),
    "rollback of a completed write": Case(ActionKind.ROLLBACK, served(roll_back), updated, goes_on=True, once=True),
    "restore": Case(ActionKind.RESTORE, restore_first, updated, goes_on=True, once=True),
    "savepoint": Case(ActionKind.SAVEPOINT, served(savepoint)),
}


def completing_call(table: TestTable, kind: ActionKind) -> int:
    """The number, from 1 on, of the storage call that made the completed file of an action of that kind."""
    layout = table.meta.config.layout_version
    calls = table.memory.log
    for number, (verb, path) in enumerate(calls, start=1):
        name = InstantFileName.parse(path.rpartition("/")[2], layout) if verb == "create_new" else None
        if name is not None and (name.action, name.state) == (kind.completed_as, State.COMPLETED):
            return number
    raise AssertionError(f"nothing completed a {kind.value}")


@dataclass
class Holds:
    """The holds of all in-process locks from now on; in one of them something happens: the n-th.

    `starts`: how many storage calls there were before each of them.
    """

    table: TestTable
    happens: Callable[[Holds], None] | None = None
    in_hold: int = 0
    at_draw: bool = False
    starts: list[int] = field(default_factory=list)
    is_lost: bool = False

    def changes(self) -> list[str]:
        """Paths that were changed from the beginning of that hold to that of the next."""
        start, *later = [*self.starts, len(self.table.memory.log)][self.in_hold - 1 :]
        return [path for verb, path in self.table.memory.log[start : later[0]] if verb not in READING]

    def began(self) -> None:
        self.starts.append(len(self.table.memory.log))
        self.is_lost = False
        if not self.at_draw:
            self._happen()

    def drew(self) -> None:
        if self.at_draw:
            self._happen()

    def _happen(self) -> None:
        if self.happens is not None and len(self.starts) == self.in_hold:
            self.happens(self)


def lose(holds: Holds) -> None:
    holds.is_lost = True


def make_metadata_table(holds: Holds) -> None:
    build(holds.table.meta, ("files",), DEFAULT_METADATA)


MOMENTS: dict[str, tuple[Callable[[Holds], None], bool]] = {
    "the lock is lost at once": (lose, False),
    "the lock is lost while the time is drawn": (lose, True),
}


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Callable[[Holds], None]:
    """Begin to watch the holds; those watched before are watched no more."""
    acquire, sleep = InProcessLock.try_acquire, FixedClock.sleep_s

    def begin(holds: Holds) -> None:
        def try_acquire(lock: InProcessLock, timeout_s: float) -> bool:
            got = acquire(lock, min(timeout_s, 1))
            holds.began()
            return got

        def sleep_s(clock: FixedClock, seconds: float) -> None:
            sleep(clock, seconds)
            holds.drew()

        monkeypatch.setattr(InProcessLock, "try_acquire", try_acquire)
        monkeypatch.setattr(InProcessLock, "is_held", property(lambda lock: lock._held and not holds.is_lost))
        monkeypatch.setattr(FixedClock, "sleep_s", sleep_s)

    return begin


def completed(table: TestTable, kind: ActionKind) -> set[str]:
    return {i.requested_time for i in table.meta.timeline.completed().of([kind.completed_as])}


@pytest.mark.filterwarnings("ignore:.*after it failed.*")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_completes_and_the_next_process_goes_on(
    name: str, version: str, moment: str, watch: Callable[[Holds], None]
) -> None:
    case, (happens, at_draw) = CASES[name], MOMENTS[moment]
    table = case.make(version, case.table_type)
    counted = on_clone(table)
    holds = Holds(counted)
    watch(holds)
    case.act(counted)
    completing = completing_call(counted, case.kind)
    in_hold = sum(start < completing for start in holds.starts)
    expected = counted.rows() if case.goes_on else table.rows()
    done = completed(table, case.kind)
    attempt = on_clone(table)
    holds = Holds(attempt, happens, in_hold, at_draw)
    watch(holds)
    with pytest.raises(WriteConflict, match="lock ran out"):
        case.act(attempt)
    changed = holds.changes()

    if not at_draw and case.kind is not ActionKind.SAVEPOINT:  # whose instant begins in the same hold
        own = {path for verb, path in attempt.memory.log if verb == "open_output"}  # which a failed write deletes
        others = [path for path in changed if path not in own]
        assert [path for path in others if not path.startswith((METADATA_TABLE_FOLDER, HEARTBEAT_FOLDER))] == []
    assert completed(attempt, case.kind) <= done
    assert attempt.rows() == expected
    watch(Holds(attempt))
    attempt.upsert(NEXT)
    assert attempt.rows() == sorted_rows([*expected, NEXT])
    if not case.once:
        case.act(attempt)
    assert not attempt.meta.timeline.pending().instants
    assert completed(attempt, case.kind) - done or case.once


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*after it failed.*")
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("name", CASES)
def test_a_metadata_table_that_was_made_meanwhile_has_the_instant(
    name: str, version: str, watch: Callable[[Holds], None]
) -> None:
    case = CASES[name]
    table = case.make(version, case.table_type)
    counted = on_clone(table)
    holds = Holds(counted)
    watch(holds)
    case.act(counted)
    in_hold = sum(start < completing_call(counted, case.kind) for start in holds.starts)
    expected = counted.rows()

    watch(Holds(table, make_metadata_table, in_hold, False))
    case.act(table)
    assert table.rows() == expected
    assert table.meta.config.metadata_partitions == ("files",)
    assert validate(table.meta) == ()
