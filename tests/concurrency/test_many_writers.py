"""Many processes write to one table, one serves it, all is read meanwhile: every snapshot has a serial history."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pyhudi.errors import WriteConflict
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import HEARTBEAT_FOLDER
from pyhudi.model.instant import Instant
from pyhudi.queries.validation import validate
from pyhudi.storage.local import LocalStorage
from tests.support.sweeps import SAMPLED
from tests.support.writers.player import call_service
from tests.support.writers.plays import PLAYS, SEED, Reader, attempt, write

_SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
_ENDS = (None, 0, -signal.SIGKILL, -signal.SIGINT, 143)  # still running, through, or ended by one of them
PROJECT = Path(__file__).parents[2]


def hear_ctrl_c() -> None:
    """A shell's background job inherits that SIGINT is ignored, and it may come before a player sets its handler."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass
class Player:
    """A process, and what it has said so far (in a file, so that nobody waits for a reader)."""

    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(cls, log: Path, *arguments: object) -> Player:
        command = [sys.executable, "-m", "tests.support.writers.player", *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
        with log.open("ab") as out:
            process = subprocess.Popen(
                command, cwd=PROJECT, env=environment, stdout=out, stderr=out, preexec_fn=hear_ctrl_c
            )
            return cls(process, log)

    def batches(self, word: str) -> list[str]:
        lines = self.log.read_text().splitlines()
        return [line.partition(" ")[2] for line in lines if line.startswith(f"{word} ")]

    def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        self.process.send_signal(how)
        self.process.wait(timeout=120)


@dataclass
class Stage:
    """A table with its writers and its server."""

    folder: Path
    play: str
    commits: int
    writers: dict[str, Player] = field(default_factory=dict)
    server: Player | None = None
    begun: dict[str, int] = field(default_factory=dict)  # batches that writers had begun when they were killed

    def open(self, names: list[str]) -> None:
        write(LocalStorage(self.table), PLAYS[self.play], SEED)
        self.server = Player.start(self.folder / "server.log", "services", self.table, self.play)
        for name in names:
            self.start(name, 0)

    def start(self, name: str, first: int) -> None:
        log = self.folder / f"{name}.log"
        self.writers[name] = Player.start(log, "writer", self.table, self.play, name, first, self.commits)

    @property
    def table(self) -> str:
        return str(self.folder / "table")

    def running(self) -> list[str]:
        """Names of the writers that are not through. Fails when a process ended with an error."""
        assert self.server is not None
        assert self.server.process.poll() is None, self.server.log.read_text()[-3000:]
        for player in self.writers.values():
            assert player.process.poll() in _ENDS, player.log.read_text()[-3000:]
        return [name for name, player in self.writers.items() if player.process.poll() is None]

    def kill_one(self, chance: random.Random) -> None:
        """kill -9, Ctrl-C or SIGTERM a writer, and let another go on with the batch after the one it was at."""
        at_work = [
            name for name in self.running() if len(self.writers[name].batches("begin")) > self.begun.get(name, 0)
        ]
        if at_work:
            name = chance.choice(at_work)
            self.writers[name].end(chance.choice(_SIGNALS))
            begun = self.writers[name].batches("begin")
            self.begun[name] = len(begun)
            self.start(name, int(begun[-1].rpartition("-")[2]) + 1)

    def close(self) -> None:
        for player in [*self.writers.values(), self.server]:
            if player is not None:
                player.end()


def perform(folder: Path, play: str, writers: int, commits: int, kills_every_s: float | None = None) -> Stage:
    stage = Stage(folder, play, commits)
    reader, chance, killed_s = Reader(LocalStorage(stage.table)), random.Random(play), time.monotonic() + 2
    try:
        stage.open([f"w{n}" for n in range(writers)])
        reads = 0
        while stage.running():
            reader.check()
            reads += 1
            if kills_every_s is not None and time.monotonic() - killed_s > kills_every_s:
                stage.kill_one(chance)
                killed_s = time.monotonic()
            time.sleep(0.1)
        assert stage.server is not None
        print(f"{reads} snapshots were right; the server said:\n{stage.server.log.read_text()[-1500:]}")
    finally:
        stage.close()

    # Plans of the server, which was killed, are carried out; the next writer cleans up after everybody.
    last = finish(stage.table, play)
    order = reader.check()
    done = [batch for player in stage.writers.values() for batch in player.batches("done")]
    assert set(done) <= set(order), "a committed batch is lost"
    begun = [batch for player in stage.writers.values() for batch in player.batches("begin")]
    assert set(order) <= {*begun, SEED, *last}
    assert validate(MetaClient.load(LocalStorage(stage.table))) == ()
    if kills_every_s is None:
        assert len(set(order) - set(last)) == writers * commits + 1
    return stage


def finish(table: str, play: str, longest_s: float = 600) -> list[str]:
    """Carry out plans that wait and undo dead writers. All processes were killed, so that no heartbeat need expire.

    Returns: the batches that were written for it.
    """
    LocalStorage(table).delete_tree(HEARTBEAT_FOLDER)
    started_s = time.monotonic()
    for number in itertools.count():
        batch = f"last-{number}"
        gave_way = 0
        for step in (*PLAYS[play].services, "write"):
            try:
                if step == "write":
                    attempt(LocalStorage(table), PLAYS[play], batch)
                else:
                    call_service(table, play, step)
            except WriteConflict:
                gave_way += 1
        if not gave_way and not pending_writes(table):
            break
        assert time.monotonic() - started_s < longest_s
    return [f"last-{n}" for n in range(number + 1)]


def pending_writes(table: str) -> list[Instant]:
    timeline = MetaClient.load(LocalStorage(table)).timeline
    return [instant for instant in timeline.pending() if instant.action.is_write]


def plays() -> list[object]:
    """Those with a metadata table that holds indexes are slow: a writer that is killed plays one in any case."""
    marks = {
        play: [pytest.mark.slow] if any("metadata" in key for key in PLAYS[play].options) else [] for play in PLAYS
    }
    return [pytest.param(play, marks=marks[play]) for play in PLAYS]


@pytest.mark.parametrize("play", plays())
def test_every_committed_batch_is_there_once_and_every_snapshot_has_a_serial_history(play: str, tmp_path: Path) -> None:
    perform(tmp_path, play, writers=3, commits=2 if SAMPLED else 3)


@pytest.mark.thorough
def test_writers_that_are_killed_leave_nothing_behind_but_what_they_committed(tmp_path: Path) -> None:
    writers = 2 if SAMPLED else 3
    perform(tmp_path, "by default, merge on read with a record index", writers, commits=2, kills_every_s=1.0)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("play", PLAYS)
def test_eight_writers_of_twenty_five_commits(play: str, tmp_path: Path) -> None:
    perform(tmp_path, play, writers=8, commits=25)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("play", PLAYS)
def test_eight_writers_that_are_killed(play: str, tmp_path: Path) -> None:
    perform(tmp_path, play, writers=8, commits=25, kills_every_s=0.7)
