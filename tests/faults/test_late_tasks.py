"""Tasks of a cluster that go on when their write is over: their files are never in the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.actions import runner
from pyhudi.actions.undo import rollback
from pyhudi.engine.base import TaskContext
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import WriteConflict
from pyhudi.filegroup.write.base_file import NewBaseFile
from pyhudi.filegroup.write.markers import CREATE, create_marker
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.model.filenames import TEMPORARY_FOLDER, BaseFileName, LogFileName
from pyhudi.model.instant import Instant
from pyhudi.services import planned
from pyhudi.storage.clock import SystemClock
from pyhudi.storage.local import LocalStorage

ROWS = pa.table({"id": ["a", "b"], "v": [1, 2]})
LATE = TaskContext(9, 9, 9)


@pytest.fixture(autouse=True)
def _outlived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalEngine, "shares_memory", False)  # as an engine on a cluster


@pytest.fixture(params=["8", "6"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HudiTable:
    options = {"hoodie.write.table.version": request.param, "hoodie.write.auto.upgrade": "false"}
    table = HudiTable.create(tmp_path / "t", ROWS.schema, record_key="id", table_type="MERGE_ON_READ", options=options)
    table.insert(ROWS)
    table.upsert(ROWS.slice(1))
    return table


def storage_of(table: HudiTable) -> LocalStorage:
    return LocalStorage(str(table.path))


def data_files(table: HudiTable) -> set[str]:
    return {file.path for file in storage_of(table).walk("") if not file.path.startswith(".hoodie")}


def late_name(table: HudiTable, instant_time: str) -> str:
    """A base file of a file group of the table."""
    names = [BaseFileName.parse(path) or LogFileName.parse(path) for path in sorted(data_files(table))]
    file_id = next(name.file_id for name in names if name is not None)
    return str(BaseFileName(file_id, LATE.write_token, instant_time, ".parquet"))


def check_nothing_late(table: HudiTable) -> None:
    assert not [path for path in data_files(table) if LATE.write_token in path]
    assert not storage_of(table).list(TEMPORARY_FOLDER)
    assert sorted(table.to_arrow(["id", "v"]).to_pylist(), key=lambda row: row["id"]) == ROWS.to_pylist()


CALLS: dict[str, Callable[[HudiTable], object]] = {
    "upsert": lambda table: table.upsert(ROWS),
    "compaction": lambda table: table.compact(),
    "clustering": lambda table: table.cluster(sort_columns=["v"]),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_file_that_a_late_task_makes_before_the_commit_goes(
    table: HudiTable, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def late(commit: Callable[..., Any]) -> Callable[..., Any]:
        def run(inflight: Instant, *rest: Any, **more: Any) -> Any:
            time = inflight.requested_time
            made.append(late_name(table, time))
            create_marker(storage_of(table), time, made[-1], CREATE)
            storage_of(table).write(made[-1], b"late")
            return commit(inflight, *rest, **more)

        return run

    for module in (runner, planned):
        monkeypatch.setattr(module, "commit", late(module.commit))

    CALLS[call](table)

    assert made
    check_nothing_late(HudiTable.open(table.path))


@pytest.mark.thorough
@pytest.mark.parametrize("call", CALLS)
def test_a_task_makes_no_file_when_its_write_is_complete(
    table: HudiTable, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs: list[WriteSpec] = []
    opened: list[NewBaseFile] = []
    announce = WriteSpec.announce

    def announced(self: WriteSpec, path: str, io_type: str) -> None:
        announce(self, path, io_type)
        if not specs:
            specs.append(self)
            file_id = late_name(table, self.instant_time).partition("_")[0]
            opened.append(NewBaseFile(self, LATE, "", file_id, CREATE, SystemClock()))

    monkeypatch.setattr(WriteSpec, "announce", announced)
    CALLS[call](table)

    with pytest.raises(WriteConflict, match="is complete, so this task makes no more files"):
        opened[0].close()
    with pytest.raises(WriteConflict, match="is complete"):
        announce(specs[0], late_name(table, specs[0].instant_time), CREATE)
    check_nothing_late(HudiTable.open(table.path))


@pytest.mark.thorough
def test_a_task_makes_no_file_when_its_write_is_undone(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    specs: list[WriteSpec] = []
    announce, roll_back = WriteSpec.announce, rollback._roll_back_dead

    def failing(self: WriteSpec, path: str, io_type: str) -> None:
        announce(self, path, io_type)
        specs.append(self)
        raise RuntimeError("another task failed")

    def rolled_back(instant: Instant, context: Any) -> Any:
        done = roll_back(instant, context)
        path = late_name(table, instant.requested_time)
        create_marker(storage_of(table), instant.requested_time, path, CREATE)
        storage_of(table).write(path, b"late")
        return done

    monkeypatch.setattr(WriteSpec, "announce", failing)
    monkeypatch.setattr(rollback, "_roll_back_dead", rolled_back)
    with pytest.raises(RuntimeError, match="another task"):
        table.upsert(ROWS)

    with pytest.raises(WriteConflict, match="is undone"):
        announce(specs[0], late_name(table, specs[0].instant_time), CREATE)
    check_nothing_late(HudiTable.open(table.path))


@pytest.mark.thorough
def test_the_next_writer_deletes_what_a_late_task_left_when_it_was_killed(table: HudiTable) -> None:
    time = max(entry.instant_time for entry in table.history())
    path = late_name(table, time)
    create_marker(storage_of(table), time, path, CREATE)
    storage_of(table).write(path, b"late")

    table.upsert(ROWS)

    check_nothing_late(HudiTable.open(table.path))
