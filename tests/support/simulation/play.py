"""A play: some actions side by side on a small table, by a schedule; and what must be true of it, now and in the end.

each snapshot          is what the completed writes give, one after the other in the order of their completion
what returned          is on the timeline, or was undone by an undo that the timeline has
what was undone        is nowhere: no row has its instant
in the end             the next write finds nothing that stops it, nothing pending stays but plans, the metadata
                       table is valid
nobody waits for ever  (scheduler.py)
"""

from __future__ import annotations

import itertools
import random
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import pyarrow as pa

from pyhudi import HudiTable
from pyhudi.actions.result import WriteResult
from pyhudi.engine.local import in_this_process
from pyhudi.errors import ConfigError, HudiError, StaleRead, TableError
from pyhudi.formats.timeline.instant_files import decode_rollback_metadata
from pyhudi.formats.timeline.savepoints import decode_restore_metadata
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.options import WriteOptions
from pyhudi.queries.plan import _plan
from pyhudi.queries.query import ALL_ROWS
from pyhudi.queries.snapshot import read_batches
from pyhudi.queries.validation import validate
from pyhudi.services.cluster.clustering import StalePlan
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.write import write_table
from pyhudi.timeline.archived_timeline import load_archived_timeline
from pyhudi.view.consistent_read import read_consistently
from pyhudi.view.pending_plans import pending_clusterings
from tests.support.simulation.actions import ACTIONS, OPTIONS, SAVED, Rows, effect, open_rows
from tests.support.simulation.scheduler import Died, Event, Process, Scheduler, Task
from tests.support.simulation.world import STORES, SimulatedStorage, World, simulated

__all__ = ["Fault", "Play", "by_seed", "chosen", "plays", "run", "shrunk"]

_START_MS = 1_800_000_000_000
_BATCH = "_batch"
_HOUR_MS = 3_600_000
_NAMES = itertools.count()
_LATE_MS = (50, 2_000, 20_000, 200_000)
_READS = 20
_LAST = "upsert 99"
_UNDOES = (ActionKind.ROLLBACK, ActionKind.RESTORE)
_NEVER_LEFT = frozenset(kind for kind in ActionKind if kind.is_commit) | {ActionKind.ROLLBACK, ActionKind.RESTORE}


@dataclass(frozen=True)
class Play:
    """`events`: the schedule; `first`: the task that begins."""

    actions: tuple[str, ...]
    version: int = 9
    merge_on_read: bool = False
    store: str = "disk"
    dies: bool = False
    indexed: bool = False
    first: int = 0
    events: tuple[tuple[int, Event], ...] = ()
    seed: int = 0

    def __str__(self) -> str:
        kind = "merge on read" if self.merge_on_read else "copy on write"
        index = ", record index" if self.indexed else ""
        return f"seed {self.seed}: {' | '.join(self.actions)}; version {self.version}, {kind}{index}, {self.store}"


class Fault(AssertionError):
    """A play that ended wrongly."""


@lru_cache
def plays(width: int) -> list[Play]:
    """The matrix: every action beside every other, `width` at a time, on each table that all of them are for."""
    return [
        Play(names, version, merge_on_read, dies=dies)
        for names in itertools.combinations_with_replacement(ACTIONS, width)
        for version in (6, 8, 9)
        for merge_on_read in (False, True)
        if all(_is_for(ACTIONS[name].merge_on_read, merge_on_read) for name in names)
        if all(version in ACTIONS[name].versions for name in names)
        for dies in (False, True)
    ]


def by_seed(seed: int) -> Play:
    """The play of a seed: which of the matrix, of two actions or three, and its schedule."""
    choice = random.Random(f"play {seed}")
    matrix = plays(choice.choice((2, 2, 3)))
    return chosen(choice.choice(matrix), seed)


def _is_for(wanted: bool | None, merge_on_read: bool) -> bool:
    return wanted is None or wanted == merge_on_read


def chosen(play: Play, seed: int) -> Play:
    """The play with what the seed says: who begins, on which store, and the events of the schedule."""
    choice = random.Random(f"{seed} {play.actions} {play.version} {play.merge_on_read} {play.dies}")
    length = 260 * len(play.actions)
    events: dict[int, Event] = {}
    for _ in range(choice.choice((1, 2, 2, 3, 4, 6))):
        events[choice.randrange(1, length)] = Event("switch", choice.randrange(4))
    for _ in range(choice.choice((0, 0, 0, 1, 2))):
        is_stall = choice.random() < 0.3
        events[choice.randrange(1, length)] = Event("stall" if is_stall else "late", choice.choice(_LATE_MS))
    if play.dies:
        events[choice.randrange(1, length)] = Event("die")
    return replace(
        play,
        store=choice.choice(STORES),
        indexed=play.version >= 8 and choice.random() < 0.3,
        first=choice.randrange(len(play.actions)),
        events=tuple(sorted(events.items())),
        seed=seed,
    )


@lru_cache(maxsize=16)
def _prepared(version: int, merge_on_read: bool, indexed: bool) -> MemoryStorage:
    """A table with a history: three commits, the second of which has a savepoint."""
    storage = SimulatedStorage(f"simulated-base-{next(_NAMES)}")
    world = World(Scheduler({}, _START_MS), "base")
    index = {
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
    }

    def make() -> None:
        made = {
            **OPTIONS,
            **(index if indexed else {}),
            "hoodie.write.table.version": str(version),
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "p",
            "hoodie.datasource.write.operation": "upsert",
            "hoodie.table.name": "simulated",
        }
        rows = [{"id": key, "p": p, "v": v, "n": n} for key, (p, v, n) in open_rows().items()]
        frame, engine = in_this_process(pa.Table.from_pylist(rows))
        write_table(storage, frame, engine, WriteOptions.parse({**made, _BATCH: "base s0"}, table=None))
        table = HudiTable(MetaClient.load(storage))
        for name in (SAVED, "s2"):
            table.upsert(rows[:3], options={**OPTIONS, _BATCH: f"base {name}"})
            if name == SAVED:
                table.savepoints.create(options=dict(OPTIONS))

    with simulated(world):
        make()
    return storage.clone()


def _table(storage: SimulatedStorage) -> HudiTable:
    return HudiTable(MetaClient.load(storage))


def run(play: Play) -> Scheduler:
    """Run a play. Raises Fault, with its story."""
    base = _prepared(play.version, play.merge_on_read, play.indexed)
    storage = SimulatedStorage(f"simulated-{next(_NAMES)}", play.store)
    history = _History(storage)
    storage._content.files = dict(base._content.files)
    storage._content.folders = set(base._content.folders)
    names = [f"{action} {number}" for number, action in enumerate(play.actions)]
    mortal = frozenset(name for name in names if play.dies)
    scheduler = Scheduler(dict(play.events), _START_MS + _HOUR_MS, mortal)
    world = World(scheduler, f"play {play.seed}")
    with warnings.catch_warnings(), simulated(world):
        warnings.simplefilter("ignore")
        tasks = [
            scheduler.spawn(Task(name, Process(name), partial(_act, storage, action, name)))
            for name, action in zip(names, play.actions, strict=True)
        ]
        scheduler.spawn(Task("reader", Process("reader"), partial(_read, history)))
        try:
            scheduler.run(play.first)
            for task in tasks:
                _check_end(task)
            _check_snapshot(history)
            _check_returned(history, tasks)
            scheduler.now_ms += _HOUR_MS
            _heal(history)
        except Exception as error:
            said = "\n  ".join(scheduler.story)
            raise Fault(f"{play}\n  {said}\n{_ends(tasks)}\n{type(error).__name__}: {error}") from error
        finally:
            storage._content.files.clear()
    return scheduler


def _act(storage: SimulatedStorage, action: str, name: str) -> object:
    return ACTIONS[action].call(_table(storage), name, {**OPTIONS, _BATCH: name})


def _read(history: _History) -> None:
    for _ in range(3):
        _check_snapshot(history)


def _ends(tasks: list[Task]) -> str:
    return "\n".join(f"  {task.name} ended with {(task.error or task.result)!r:.300}" for task in tasks)


def _check_end(task: Task) -> None:
    """An action returns, or refuses: a write only because another one is there, and what can't be done is said so."""
    error, action = task.error, ACTIONS[task.name.rpartition(" ")[0]]
    if error is None or isinstance(error, Died):
        return
    refused = isinstance(error, HudiError) and error.retryable
    if action.means is None:  # nothing to do, or not now
        refused = refused or (isinstance(error, TableError | ConfigError))
    if not refused:
        raise error


class _History:
    """The batches that a table has, in the order of their completion; those that were archived are remembered."""

    def __init__(self, storage: SimulatedStorage) -> None:
        self.storage = storage
        self.known: dict[str, tuple[str, str]] = {}  # requested time → completion time, batch

    def of(self, meta: MetaClient) -> dict[str, str]:
        """Requested time → batch of the visible writes."""
        for instant in meta.timeline.commits():
            self._note(instant, meta.commits.metadata(instant))
        since = meta.timeline.active_since or ""
        for archived in load_archived_timeline(self.storage, meta.config).instants(until=since):
            time = archived.instant.requested_time
            body = None if time in self.known or time >= since else archived.commit()
            if body is not None:
                self._note(archived.instant, body)
        visible = {instant.requested_time for instant in meta.timeline.commits()}
        order = sorted((done, time) for time, (done, _) in self.known.items() if time in visible or time < since)
        return {time: self.known[time][1] for _, time in order}

    def _note(self, instant: Instant, body: CommitMetadata) -> None:
        self.known[instant.requested_time] = instant.completion_time or "", body.extra_metadata.get(_BATCH) or ""


def _check_snapshot(history: _History) -> None:
    """Read the newest snapshot, and compare it with the rows of its own timeline's batches."""
    storage = history.storage
    for _ in range(_READS):
        try:
            meta, plan = read_consistently(MetaClient.load(storage), lambda now: (now, _plan(ALL_ROWS, None, now)))
            rows = pa.Table.from_batches(list(read_batches(plan, storage)), plan.schema).to_pylist()
            break
        except StaleRead:
            continue
    else:
        raise Fault(f"{_READS} reads in a row were stale")
    batches = history.of(meta)
    found: Rows = {}
    for row in rows:
        assert row["id"] not in found, f"{row['id']} is there twice"
        assert row["_hoodie_commit_time"] in batches, f"{row} is of a write that is on no timeline"
        found[row["id"]] = (row["p"], row["v"], row["n"])
    expected: Rows = {}
    for batch in filter(None, batches.values()):
        expected = effect(expected, batch)
    assert len(set(filter(None, batches.values()))) == len(list(filter(None, batches.values()))), f"twice: {batches}"
    wrong = {key: (found.get(key), expected.get(key)) for key in found.keys() | expected.keys()}
    wrong = {key: both for key, both in wrong.items() if both[0] != both[1]}
    assert not wrong, f"no serial history: found, expected {wrong} after {list(batches.values())}"


def _check_returned(history: _History, tasks: list[Task]) -> None:
    """What returned is there, unless an undo took it."""
    meta = MetaClient.load(history.storage)
    batches = history.of(meta)
    undone = _undone(meta)
    # An undo that died has a plan: what it took before it died is nowhere else on the timeline.
    undoing = max((one.requested_time for one in meta.timeline.pending() if one.action in _UNDOES), default="")
    for task in tasks:
        if isinstance(task.result, WriteResult) and task.result.instant_time:
            time = task.result.instant_time
            if time not in batches and time < undoing:
                continue
            assert (time in batches) != (time in undone), f"{task.name} returned as {time}, on the timeline {batches}"
            assert time in undone or batches[time] == task.name


def _undone(meta: MetaClient) -> set[str]:
    times: set[str] = set()
    for instant in meta.timeline.completed():
        if instant.action is ActionKind.ROLLBACK:
            times.update(decode_rollback_metadata(meta.reader.read_body(instant, State.COMPLETED)).commits_rollback)
        elif instant.action is ActionKind.RESTORE:
            body = decode_restore_metadata(meta.reader.read_body(instant, State.COMPLETED))
            times.update(one.commit_time for one in body.instants)
    return times


def _heal(history: _History) -> None:
    """An hour later, plans that wait are run, and the next write mends what deaths have left."""
    table = _table(history.storage)
    if any(pending_clusterings(table.state())):
        with suppress(StalePlan):  # another task changed its file groups; the plan is dropped now
            table.cluster(options=dict(OPTIONS))
    ACTIONS["upsert"].call(table, _LAST, {**OPTIONS, _BATCH: _LAST})
    _check_snapshot(history)
    meta = MetaClient.load(history.storage)
    assert _LAST in history.of(meta).values()
    left = [one for one in meta.timeline.pending() if one.action in _NEVER_LEFT]
    assert not left, f"left pending: {left}"
    assert (wrong := validate(meta)) == (), f"the metadata table: {wrong}"


def shrunk(play: Play) -> tuple[Play, str]:
    """The failing play with as few events as its failure needs, and what it says then."""
    said = _failure(play)
    assert said is not None, f"{play} does not fail"
    shorter = True
    while shorter:
        shorter = False
        for event in play.events:
            fewer = replace(play, events=tuple(one for one in play.events if one != event))
            now = _failure(fewer)
            if now is not None:
                play, said, shorter = fewer, now, True
                break
    return play, said


def _failure(play: Play) -> str | None:
    try:
        run(play)
    except Fault as error:
        return str(error)
    return None
