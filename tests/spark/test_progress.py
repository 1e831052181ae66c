"""The line about long work shows Spark's tasks while jobs run, on both kinds of session."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, progress_line, write_hudi
from pyhudi.spark import progress

BY_SPARK = {"hoodie.pyhudi.engine": "spark"}
TASKS = re.compile(r"(\w+) \S+ · ([\d,]+) of ([\d,]+) tasks")


class Display:
    """rich's display as far as the line uses it; `texts`: what it showed."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.tasks = (SimpleNamespace(id=0, elapsed=1.0),)

    def add_task(self, name: str, **fields: Any) -> None: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def update(self, task: int, *, total: int | None, completed: int, text: str) -> None:
        self.texts.append(text)

    def tasks_of(self, action: str) -> list[tuple[int, int]]:
        """(ended, all) as they were shown, for one kind of work."""
        matches = filter(None, map(TASKS.match, self.texts))
        return [(int(m[2].replace(",", "")), int(m[3].replace(",", ""))) for m in matches if m[1] == action]


@pytest.fixture
def display(monkeypatch: pytest.MonkeyPatch) -> Iterator[Display]:
    shown = Display()
    monkeypatch.setattr(progress_line, "_AFTER_S", 0.0)
    monkeypatch.setattr(progress_line, "_display", lambda: shown)
    monkeypatch.setattr(progress, "_POLL_S", 0.02)
    pyhudi.show_progress()
    yield shown
    pyhudi.show_progress(None)


def slow_rows(spark: Any, task_s: float) -> Any:
    """A frame of eight tasks, each of which takes some time."""

    def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        time.sleep(task_s)
        yield from batches

    return spark.range(0, 8, 1, 8).mapInArrow(slowly, "id long")


def test_a_load_shows_how_many_tasks_have_ended(spark: Any, display: Display, tmp_path: Path) -> None:
    # Connect tells every two seconds.
    write_hudi(tmp_path / "t", slow_rows(spark, 0.8), "bulk_insert", record_key="id", options=BY_SPARK)

    counts = display.tasks_of("bulk_insert")
    assert any(0 < ended < tasks and tasks >= 8 for ended, tasks in counts), display.texts
    assert all(ended <= tasks for ended, tasks in counts)
    assert counts == sorted(counts)


@pytest.mark.thorough
@pytest.mark.classic
def test_compaction_and_clustering_show_their_tasks(spark: Any, display: Display, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("p", pa.int64())])
    table = HudiTable.create(
        tmp_path / "t", schema, record_key="id", partition_by="p", table_type="MERGE_ON_READ", spark=spark
    )
    rows = pa.table({"id": range(60), "p": [i % 6 for i in range(60)]})
    table.upsert(rows)
    table.upsert(rows)
    table.compact(options=BY_SPARK)
    table.cluster(options=BY_SPARK)

    for service in ("compaction", "cluster"):
        counts = display.tasks_of(service)
        assert counts, display.texts
        assert max(tasks for _, tasks in counts) >= 6


@pytest.mark.thorough
def test_nothing_is_asked_where_no_line_is_shown(
    spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = []
    monkeypatch.setattr(progress, "_poll", lambda *_: asked.append(1))
    monkeypatch.setattr(progress, "_reported_by_connect", lambda *_: asked.append(1))
    write_hudi(tmp_path / "t", slow_rows(spark, 0.0), "bulk_insert", record_key="id", options=BY_SPARK)
    assert asked == []
    assert "tasks" not in capfd.readouterr().err


@pytest.mark.thorough
def test_a_job_that_fails_fails_with_its_own_error_and_leaves_no_handler(
    spark: Any, display: Display, tmp_path: Path
) -> None:
    def failing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ValueError("no rows today")
        yield from batches

    frame = spark.range(0, 8, 1, 8).mapInArrow(failing, "id long")
    with pytest.raises(pyhudi.HudiError, match="no rows today"):
        write_hudi(tmp_path / "t", frame, "bulk_insert", record_key="id", options=BY_SPARK)
    shown = len(display.texts)
    assert slow_rows(spark, 0.3).count() == 8
    assert len(display.texts) == shown
