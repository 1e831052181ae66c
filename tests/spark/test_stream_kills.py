"""kill -9 under streams from tables to tables, at random moments: of the driver, of its JVM, of a Python process below
that. Nothing is lost, nothing is doubled.

`PYHUDI_STREAM_KILLS=200 pytest tests/spark/test_stream_kills.py -m slow -s` plays more rounds. A JVM takes long to
start, so one life of it has several kills of Python processes before it ends by a kill itself.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable
from tests.support.source import ROOT

KILLS = int(os.environ.get("PYHUDI_STREAM_KILLS", "3"))
SEED = int(os.environ.get("PYHUDI_STREAM_SEED", "20130101"))
WORKERS_MAX = 8  # Python processes that are killed before the driver or the JVM is
BATCHES_MAX = 1  # that are brought to an end before a kill
EQUAL_EVERY = 50  # kills after which the targets are compared with the sources, as they are at the end
LONGEST_WAIT_S = 180.0  # for a JVM with streams, and for these batches
LONGEST_MORE_S = 2.0  # that the streams have then
PAUSE_S = 0.3  # between two commits of the sources
AHEAD_MAX = 12  # commits of the sources that the targets don't have yet
# The targets are never farther behind than AHEAD_MAX; the sources' timelines stay short, however many rounds there are.
KEEP = {
    "hoodie.clean.commits.retained": "40",
    "hoodie.keep.min.commits": "50",
    "hoodie.keep.max.commits": "60",
}
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("ts", pa.int64())])
ORDERS, ENTRIES = 10, 5  # rows of a commit


class Sources:
    """What the driver follows: rows that are updated, and rows that come once."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance, self.written = folder, chance, 0
        self.orders = HudiTable.create(folder / "orders", SCHEMA, record_key="id", ordering="ts")
        self.ledger = HudiTable.create(folder / "ledger", SCHEMA, record_key="id", ordering="ts")
        self.write()

    def write(self) -> None:
        """One more commit of each, unless the targets are far behind."""
        if self.written - min(newest(self.folder / "copy"), newest(self.folder / "entries")) >= AHEAD_MAX:
            return
        self.written += 1
        keys = self.chance.sample(range(40), ORDERS)
        orders = [{"id": key, "v": self.written, "ts": self.written} for key in keys]
        self.orders.upsert(orders, options=KEEP)
        first = self.written * ENTRIES
        self.ledger.insert([{"id": first + n, "v": self.written, "ts": 1} for n in range(ENTRIES)], options=KEEP)


def newest(path: Path) -> int:
    """The last commit of the sources that a target has."""
    if not batches(path):
        return 0
    return pc.max(HudiTable.open(path).scan(["v"]).to_arrow()["v"]).as_py() or 0


def rows(table: HudiTable) -> Counter[tuple[int, int]]:
    data = table.scan(["id", "v"]).to_arrow()
    return Counter(zip(data["id"].to_pylist(), data["v"].to_pylist(), strict=True))


def batches(path: Path) -> int:
    """Commits of a target, archived ones too."""
    if not HudiTable.exists(path):
        return 0
    entries = HudiTable.open(path).history()
    return sum(entry.action in ("commit", "deltacommit") and entry.completion_time is not None for entry in entries)


@dataclass(frozen=True)
class Driver:
    """A process that runs the streams. Its JVM is its child, Python workers are below that."""

    process: subprocess.Popen[str]

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def jvm(self) -> list[int]:
        return [pid for pid in children().get(self.process.pid, []) if "java" in command(pid)]

    def workers(self) -> list[int]:
        """Python processes of the JVM: the daemon, the workers it forked, those that run a source or a sink."""
        known, found, waiting = children(), list[int](), self.jvm()
        while waiting:
            below = known.get(waiting.pop(), [])
            found += [pid for pid in below if "python" in command(pid)]
            waiting += below
        return sorted(found)

    def kill(self, whom: str, chance: random.Random) -> str:
        """kill -9; what was killed."""
        if whom == "driver":
            os.killpg(self.process.pid, signal.SIGKILL)
            return whom
        found = self.jvm() if whom == "jvm" else self.workers()
        if not found:
            return "nobody"
        pid = chance.choice(found)
        name = "jvm" if whom == "jvm" else command(pid).rpartition("pyspark.")[2].split("\0")[0] or "python"
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return name


def children() -> dict[int, list[int]]:
    """Process → its children."""
    found: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            found.setdefault(parent, []).append(int(stat.parent.name))
    return found


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""  # it ended


@contextmanager
def run_driver(folder: Path, *more: str) -> Iterator[Driver]:
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.spark.stream_driver", str(folder), *more],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # its JVM and its workers die with it
    ) as process:
        driver = Driver(process)
        try:
            yield driver
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.classic
def test_targets_equal_their_sources_after_every_kill(tmp_path: Path, java: None) -> None:
    chance = random.Random(SEED)
    sources = Sources(tmp_path, chance)
    killed: Counter[str] = Counter()
    while killed.total() < KILLS:
        checked = killed.total() // EQUAL_EVERY
        with run_driver(tmp_path) as driver:
            assert driver.process.stdout is not None
            assert driver.process.stdout.readline().strip() == "running"
            last = chance.choice(["driver", "driver", "jvm"])
            for whom in [*["worker"] * chance.randint(0, WORKERS_MAX), last]:
                begun = time.monotonic()
                let_it_work(driver, sources, tmp_path, chance)
                assert driver.is_alive, f"the driver has ended by itself after {dict(killed)}"
                name = driver.kill(whom, chance)
                killed += Counter([name] if name != "nobody" else [])
                check(tmp_path, sources, f"kill {killed.total()}")
                print(
                    f"kill {killed.total()} of {KILLS}, {name}: {sources.written} commits, "
                    f"{batches(tmp_path / 'entries')} batches, {time.monotonic() - begun:.0f} s",
                    flush=True,
                )
        if killed.total() // EQUAL_EVERY > checked:
            finish(tmp_path, sources)
    finish(tmp_path, sources)
    print(f"killed: {dict(killed)}, seed {SEED}")


def let_it_work(driver: Driver, sources: Sources, folder: Path, chance: random.Random) -> None:
    """Go on with the sources until some batches more are written, and a moment longer."""
    wanted = batches(folder / "entries") + chance.randint(0, BATCHES_MAX)
    latest = time.monotonic() + LONGEST_WAIT_S
    while batches(folder / "entries") < wanted and time.monotonic() < latest and driver.is_alive:
        sources.write()
        time.sleep(PAUSE_S)
    sources.write()
    time.sleep(chance.uniform(0.0, LONGEST_MORE_S))


def check(folder: Path, sources: Sources, when: str) -> None:
    """What must hold whatever was killed: no row twice, none that the source does not have."""
    if batches(folder / "entries"):
        entries = rows(HudiTable.open(folder / "entries"))
        assert max(entries.values(), default=1) == 1, f"doubled after {when}"
        assert set(entries) <= set(rows(sources.ledger)), when
    if batches(folder / "copy"):
        keys = Counter(key for key, _ in rows(HudiTable.open(folder / "copy")).elements())
        assert max(keys.values(), default=1) == 1, f"doubled after {when}"
        assert keys.keys() <= {key for key, _ in rows(sources.orders)}, when


def finish(folder: Path, sources: Sources) -> None:
    """Bring the targets to where the sources are; they are equal then."""
    with run_driver(folder, "finish") as driver:
        assert driver.process.wait(600) == 0
    assert rows(HudiTable.open(folder / "copy")) == rows(sources.orders)
    assert rows(HudiTable.open(folder / "entries")) == rows(sources.ledger)
