"""kill -9 of a real writing process at random moments: no committed row is lost, none appears in part."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from pyhudi.queries.validation import validate
from pyhudi.storage.local import LocalStorage
from tests.support.sweeps import SAMPLED
from tests.support.tables.small import TestTable

ROUNDS = int(os.environ.get("PYHUDI_KILL_ROUNDS", "3" if SAMPLED else "20"))  # `make stress`: 100
PROJECT = Path(__file__).parents[2]


def kill_after(folder: Path, number: int, wait_s: float) -> list[int]:
    """Run the writer, kill it `wait_s` after its first commit; the commits that it reported."""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-m", "tests.support.writers.writer", str(folder), str(number)]
    with subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(wait_s)
        process.send_signal(signal.SIGKILL)
        reported = [first, *process.stdout.read().split("\n")]
    return [int(line) for line in reported if line.strip()]


def test_no_committed_row_is_lost_when_writers_are_killed(tmp_path: Path) -> None:
    table = TestTable(LocalStorage(str(tmp_path / "table")))
    chance = random.Random(20130101)
    committed: list[int] = []
    interrupted = 0
    for number in range(ROUNDS):
        committed += kill_after(tmp_path / "table", number, chance.uniform(0.0, 0.12))
        interrupted += bool(table.meta.timeline.pending().instants)

        found = dict(table.rows(("id", "v")))
        rows = sorted(value for key, value in found.items() if key != "counter")
        # The last commit may be complete though its writer could not say so any more.
        assert set(committed) <= set(rows)
        assert len(rows) <= len(committed) + number + 1
        assert found["counter"] == rows[-1], "both rows of a commit or none"
        committed = rows
    assert interrupted, "no kill struck within a write"
    table.upsert(("end", "x", 1, 1))
    assert not table.meta.timeline.pending().instants
    assert not list(table.storage.walk(".hoodie/.temp"))
    assert table.meta.config.metadata_partitions == ("column_stats", "files", "partition_stats")
    assert validate(table.meta) == ()
