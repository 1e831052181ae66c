"""The line about long work, and the log record after it."""

from __future__ import annotations

import io
import logging
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, progress_line, write_hudi
from pyhudi.engine.local import LocalEngine

_LOAD = """
import sys, pyarrow as pa, pyhudi
from pyhudi import progress_line
progress_line._AFTER_S = 0.0
ids = pa.array(map(str, range(200_000)))
pyhudi.write_hudi(sys.argv[1], pa.table({"id": ids}), "bulk_insert", record_key="id")
"""


def _on_a_terminal(path: Path, **environment: str) -> str:
    """What a load shows on a terminal."""
    above, below = pty.openpty()
    names = {"COLUMNS": "160", "TERM": "xterm", **environment}
    command = [sys.executable, "-c", _LOAD, str(path)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=below, env={**os.environ, **names})
    os.close(below)
    shown = b""
    while True:
        try:
            text = os.read(above, 4096)
        except OSError:  # the other end is closed
            break
        if not text:
            break
        shown += text
    os.close(above)
    assert child.communicate()[0] == b""
    assert child.returncode == 0, shown
    return shown.decode()


@pytest.mark.thorough
def test_a_load_shows_its_rows_on_a_terminal(tmp_path: Path) -> None:
    assert "200,000 rows" in _on_a_terminal(tmp_path / "lake")


@pytest.mark.thorough
def test_a_load_shows_nothing_where_the_environment_says_so(tmp_path: Path) -> None:
    assert _on_a_terminal(tmp_path / "lake", PYHUDI_PROGRESS="0") == ""


def test_nothing_is_shown_where_standard_error_is_no_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_line, "_AFTER_S", 0.0)
    write_hudi(tmp_path / "lake", pa.table({"id": ["a"]}), record_key="id")
    assert capfd.readouterr() == ("", "")


def test_a_line_that_can_not_be_shown_fails_no_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def display() -> object:
        tried.append(1)
        raise OSError("the terminal is gone")

    monkeypatch.setattr(progress_line, "_AFTER_S", 0.0)
    monkeypatch.setattr(progress_line, "_display", display)
    pyhudi.show_progress()
    try:
        ids = pa.array(map(str, range(50_000)))
        assert write_hudi(tmp_path / "lake", pa.table({"id": ids}), record_key="id").inserted == 50_000
    finally:
        pyhudi.show_progress(None)
    assert tried


def test_a_closed_standard_error_fails_no_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    assert write_hudi(tmp_path / "lake", pa.table({"id": ["a"]}), record_key="id").inserted == 1


def test_a_log_says_what_writes_and_services_did(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "lake"
    with caplog.at_level(logging.INFO, "pyhudi"):
        write_hudi(path, pa.table({"id": ["a"], "n": [1]}), record_key="id")
        table = HudiTable.open(path)
        table.update(set={"n": 2})
        table.clean()
    first, second, third = [record.getMessage() for record in caplog.records if record.name.startswith("pyhudi")]
    assert first.startswith(f"{path}: upsert ")
    assert "1 inserted" in first
    assert "1 updated" in second
    assert third.startswith(f"{path}: clean")


def test_a_thread_that_works_on_a_table_says_what_it_is_doing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    write = LocalEngine.map_groups

    def spied(self: LocalEngine, *args: Any, **more: Any) -> Any:
        said.append(progress_line.description())
        return write(self, *args, **more)

    monkeypatch.setattr(LocalEngine, "map_groups", spied)
    rows = pa.table({"id": ["a"], "n": [1]})
    write_hudi(tmp_path / "lake", rows, record_key="id", options={"hoodie.table.name": "trips"})
    HudiTable.open(tmp_path / "lake").upsert(rows)
    assert said == ["hudi upsert trips: write files"] * 2
    assert progress_line.description() == ""
    with progress_line.describing("INSERT_OVERWRITE", "s3://lake/rides/"):
        assert progress_line.description() == "hudi insert overwrite rides: read input"
        with progress_line.in_phase("prepare"):
            assert progress_line.description() == "hudi insert overwrite rides: find rows"
        assert progress_line.description() == "hudi insert overwrite rides: read input"
