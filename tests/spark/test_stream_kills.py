"""kill -9 of a driver that streams from tables to tables, at random moments: nothing is lost, nothing is doubled.

`PYHUDI_STREAM_KILLS=200 pytest tests/spark/test_stream_kills.py -m slow -s` plays more rounds.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.support.source import ROOT

ROUNDS = int(os.environ.get("PYHUDI_STREAM_KILLS", "3"))
SEED = int(os.environ.get("PYHUDI_STREAM_SEED", "20130101"))
BATCHES_MAX = 2  # that a driver brings to an end before it is killed
LONGEST_WAIT_S = 120.0  # for them
LONGEST_MORE_S = 2.0  # that it has then
PAUSE_S = 0.3  # between two commits of the sources
KEEP = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}  # a dead driver may fall far behind
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("ts", pa.int64())])


class Sources:
    """What the driver follows: rows that are updated, and rows that come once."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.chance, self.written = chance, 0
        self.orders = HudiTable.create(folder / "orders", SCHEMA, record_key="id", ordering="ts")
        self.ledger = HudiTable.create(folder / "ledger", SCHEMA, record_key="id", ordering="ts")
        self.write()

    def write(self) -> None:
        """One more commit of each."""
        self.written += 1
        keys = self.chance.sample(range(40), 10)
        orders = [{"id": key, "v": self.written, "ts": self.written} for key in keys]
        self.orders.upsert(orders, options=KEEP)
        self.ledger.insert([{"id": self.written * 10 + n, "v": self.written, "ts": 1} for n in range(5)], options=KEEP)


def run_driver(folder: Path, *more: str) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.spark.stream_driver", str(folder), *more],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # its JVM and its workers die with it
    )


def rows(table: HudiTable) -> Counter[tuple[int, int]]:
    data = table.scan(["id", "v"]).to_arrow()
    return Counter(zip(data["id"].to_pylist(), data["v"].to_pylist(), strict=True))


def batches(path: Path) -> int:
    """Commits of a target, archived ones too."""
    if not HudiTable.exists(path):
        return 0
    entries = HudiTable.open(path).history()
    return sum(entry.action == "commit" and entry.completion_time is not None for entry in entries)


@pytest.mark.slow
@pytest.mark.classic
def test_targets_equal_their_sources_after_every_kill(tmp_path: Path, java: None) -> None:
    chance = random.Random(SEED)
    sources = Sources(tmp_path, chance)
    for number in range(ROUNDS):
        with run_driver(tmp_path) as driver:
            assert driver.stdout is not None
            try:
                assert driver.stdout.readline().strip() == "running"
                wanted = batches(tmp_path / "entries") + chance.randint(0, BATCHES_MAX)
                latest = time.monotonic() + LONGEST_WAIT_S
                while batches(tmp_path / "entries") < wanted and time.monotonic() < latest:
                    sources.write()
                    time.sleep(PAUSE_S)
                time.sleep(chance.uniform(0.0, LONGEST_MORE_S))
            finally:
                os.killpg(driver.pid, signal.SIGKILL)
        written = batches(tmp_path / "entries")
        print(f"kill {number + 1} of {ROUNDS}: {sources.written} commits, {written} batches", flush=True)
        if written:
            entries = rows(HudiTable.open(tmp_path / "entries"))
            assert max(entries.values(), default=1) == 1, f"doubled after kill {number + 1}"
            assert set(entries) <= set(rows(sources.ledger))
    with run_driver(tmp_path, "finish") as driver:
        assert driver.wait(600) == 0
    assert rows(HudiTable.open(tmp_path / "copy")) == rows(sources.orders)
    assert rows(HudiTable.open(tmp_path / "entries")) == rows(sources.ledger)
