"""SIGTERM ends a command with exit code 143, and nothing of its write stays; after the commit with code 5. Source:
docs/cli.md, "Exit codes".
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.cli import reply
from pyhudi.cli.main import main
from pyhudi.services.after_write import AFTER_WRITE
from tests.support.source import ROOT

ROWS = 1_500_000


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stopped_write_leaves_the_table_as_it_was(tmp_path: Path, number: signal.Signals, code: int) -> None:
    path = tmp_path / "rides"
    write_hudi(path, pa.table({"id": ["a"], "fare": [1.0]}), record_key="id")
    keys = pa.array(np.arange(ROWS)).cast(pa.string())
    pq.write_table(pa.table({"id": keys, "fare": np.random.default_rng(1).random(ROWS)}), tmp_path / "rows.parquet")
    command = [sys.executable, "-m", "pyhudi.cli", "write", str(path), str(tmp_path / "rows.parquet")]

    with subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until = time.monotonic() + 120
        while not list(path.glob(".hoodie/timeline/*.inflight")) or len(HudiTable.open(path).state().timeline) < 2:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)

    assert process.returncode == code, err
    assert out == ""
    assert err.startswith("pyhudi: ")
    assert err.count("\n") == 1
    table = HudiTable.open(path)
    assert table.count() == 1
    assert len(table.state().timeline.pending()) == 0
    assert len(list(path.rglob("*.parquet"))) - len(list(path.glob(".hoodie/**/*.parquet"))) == 1


@pytest.mark.parametrize(("number", "how"), [(signal.SIGTERM, "ended by SIGTERM"), (signal.SIGINT, "interrupted")])
@pytest.mark.parametrize("place", ["service", "answer"])
def test_a_signal_after_the_commit_ends_with_a_code_of_its_own_and_names_the_instant(
    tmp_path: Path,
    number: signal.Signals,
    how: str,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "rides"
    write_hudi(path, pa.table({"id": ["a"], "fare": [1.0]}), record_key="id")
    pq.write_table(pa.table({"id": ["b"], "fare": [2.0]}), tmp_path / "rows.parquet")

    def stopped(*_: object) -> NoReturn:
        signal.raise_signal(number)
        raise AssertionError("the handler raises")

    if place == "service":
        monkeypatch.setitem(AFTER_WRITE, "clean", stopped)  # type: ignore[call-overload]
    else:
        monkeypatch.setattr(reply, "show", stopped)
    handlers = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = main(["write", str(path), str(tmp_path / "rows.parquet")])
    finally:
        for one, handler in handlers.items():
            signal.signal(one, handler)

    (newest,) = HudiTable.open(path).state().timeline.commits().instants[1:]
    out, err = capsys.readouterr()
    assert (code, out) == (5, "")
    assert err == (
        f"pyhudi: {how} after its commit. {path}: commit {newest.requested_time} is complete, and readers see it; "
        "don't run the call again\n"
    )
    assert HudiTable.open(path).count() == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_while_python_defines_a_class_has_the_same_code(
    number: signal.Signals, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Field:
        def __set_name__(self, owner: type, name: str) -> None:
            signal.raise_signal(number)

    def imported(*_: object) -> NoReturn:
        type("Imported", (), {"field": Field()})
        raise AssertionError("the handler raises")

    monkeypatch.setattr("pyhudi.cli.main._answered", imported)
    handlers = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main(["table", "health", "x"]) == code
    finally:
        for one, handler in handlers.items():
            signal.signal(one, handler)
    assert "unexpected" not in capsys.readouterr().err
