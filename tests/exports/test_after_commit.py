"""An export at the end of a call that committed, two exports at once, and exports that die."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pyhudi import HudiTable, write_hudi
from pyhudi.cli.main import main
from pyhudi.errors import StorageError, WriteConflict
from pyhudi.exports import delta
from pyhudi.exports.commits import ExportCommit
from pyhudi.exports.target import Overtaken
from pyhudi.schema.changes import AddColumn, DropColumn
from pyhudi.storage.local import LocalStorage
from tests.support.exports.delta import assert_equal, by_delta, instants
from tests.support.exports.small import OFF, commits, export_beside_a_writer, row, written
from tests.support.pages import run_examples

ON = {**OFF, "hoodie.pyhudi.export.formats": "delta"}


# ---- after a commit


def test_each_call_that_commits_exports_when_the_option_asks_for_it(tmp_path: Path) -> None:
    table = written(tmp_path, **ON)
    assert_equal(table)
    for call in (
        lambda: table.upsert([row(1, v=2)], options=ON),
        lambda: table.delete(where="id = 2", options=ON),
        lambda: table.cluster(options=ON),
        lambda: table.alter(AddColumn("note", pa.string()), options=ON),
        lambda: table.rollback(options=ON),
    ):
        call()
        assert instants(tmp_path)[-1] == commits(table)[-1]
        assert_equal(table)


def test_no_call_exports_otherwise(tmp_path: Path) -> None:
    written(tmp_path)

    assert not (tmp_path / "_delta_log").exists()


def test_an_export_that_fails_is_a_warning_and_the_next_one_catches_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = written(tmp_path, **ON)
    with monkeypatch.context() as broken:
        broken.setattr(delta.DeltaTarget, "apply", lambda self, commit: 1 / 0)
        with pytest.warns(UserWarning, match=r"commit is complete, but its delta export is not yet.*ZeroDivisionError"):
            table.upsert([row(1, v=2)], options=ON)
    assert len(commits(table)) == 2
    assert len(instants(tmp_path)) == 1

    table.upsert([row(1, v=3)], options=ON)
    assert instants(tmp_path) == commits(table)
    assert_equal(table)


def test_the_command_exports_and_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = written(tmp_path / "t")

    assert main(["export", "delta", str(tmp_path / "t"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["format"], told["commits"], told["instant_time"]) == ("delta", 1, commits(table)[-1])

    assert main(["export", str(tmp_path / "t"), str(tmp_path / "rows.csv")]) == 0  # as before: rows to a file
    assert (tmp_path / "rows.csv").read_text().count("\n") == 4


def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    path = str(tmp_path / "rides")
    write_hudi(path, [{"id": "r1", "city": "oslo", "fare": 7.0}], record_key="id", partition_by="city", options=OFF)

    assert run_examples("docs/exports", {"/data/rides": path}, {})
    assert len(instants(path)) == 2


# ---- two at once


def test_of_two_exports_at_once_one_finds_it_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = written(tmp_path)
    table.export_metadata("delta")
    table.upsert([row(1, v=2)], options=OFF)
    apply = delta.DeltaTarget.apply

    def outrun(target: delta.DeltaTarget, commit: ExportCommit) -> None:
        monkeypatch.setattr(delta.DeltaTarget, "apply", apply)
        HudiTable.open(tmp_path).export_metadata("delta")
        apply(target, commit)

    monkeypatch.setattr(delta.DeltaTarget, "apply", outrun)
    result = table.export_metadata("delta")

    assert result.commits == 0
    assert instants(tmp_path) == commits(table)
    assert_equal(table)


def test_of_two_first_exports_at_once_one_finds_it_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = written(tmp_path)
    create = delta.DeltaTarget._create

    def outrun(target: delta.DeltaTarget, commit: ExportCommit, columns: Any) -> None:
        monkeypatch.setattr(delta.DeltaTarget, "_create", create)
        HudiTable.open(tmp_path).export_metadata("delta")
        create(target, commit, columns)

    monkeypatch.setattr(delta.DeltaTarget, "_create", outrun)

    assert table.export_metadata("delta").commits == 0
    assert DeltaTable(tmp_path).version() == 0
    assert_equal(table)


def test_an_export_that_is_outrun_each_time_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = written(tmp_path)

    def outrun(target: delta.DeltaTarget, commit: ExportCommit) -> None:
        raise Overtaken("faster")

    monkeypatch.setattr(delta.DeltaTarget, "apply", outrun)

    with pytest.raises(WriteConflict, match=r"overtaken by other exports.*export again") as raised:
        table.export_metadata("delta")
    assert raised.value.retryable


def test_many_exports_beside_a_writer_end_with_its_rows(tmp_path: Path) -> None:
    table = written(tmp_path)

    def export(mine: HudiTable) -> None:
        mine.export_metadata("delta")
        by_delta(tmp_path)

    export_beside_a_writer(table, export, 6)

    table.export_metadata("delta")
    assert_equal(table)
    assert set(instants(tmp_path)) <= set(commits(table))


# ---- deaths


class Died(BaseException):
    """The process is gone."""


_STORAGE = ("read", "write", "list", "delete", "stat", "walk")


class Deaths:
    """Dies at the call of the given number: before it, or after it. `calls`: so many were made."""

    def __init__(self, at: int, after: bool) -> None:
        self.at, self.after, self.calls = at, after, 0

    def wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def dying(*args: Any, **kwargs: Any) -> Any:
            number, self.calls = self.calls, self.calls + 1
            if number == self.at and not self.after:
                raise Died
            result = call(*args, **kwargs)
            if number == self.at:
                raise Died
            return result

        return dying

    def installed(self, patch: pytest.MonkeyPatch, storage: bool) -> None:
        calls: list[tuple[Any, str]] = [
            (DeltaTable, "create_write_transaction"),
            (DeltaTable, "update_incremental"),
            (deltalake.table.TableAlterer, "add_columns"),
            (deltalake.transaction, "create_table_with_add_actions"),
            *((LocalStorage, name) for name in (_STORAGE if storage else ("write", "delete"))),
        ]
        for owner, name in calls:
            patch.setattr(owner, name, self.wrapped(getattr(owner, name)))


def deaths(path: Path, monkeypatch: pytest.MonkeyPatch, storage: bool, made: Callable[[Path], None]) -> Iterator[int]:
    """Lets the export of a table die at each call, exports again, and compares. Yields the number of each death."""
    number, after = 0, False
    made(path / "made")
    while True:
        folder = path / f"{number}-{after}"
        shutil.copytree(path / "made", folder)
        table, death = HudiTable.open(folder), Deaths(number, after)
        with monkeypatch.context() as patch:
            death.installed(patch, storage)
            try:
                table.export_metadata("delta")
            except Died:
                pass
            else:
                return
        if DeltaTable.is_deltatable(str(folder)):
            by_delta(folder)  # whatever there is can be read
        table.export_metadata("delta")
        assert_equal(table)
        assert instants(folder)[-1] == commits(table)[-1]
        yield number
        number, after = (number + 1, False) if after else (number, True)


def first(path: Path) -> None:
    written(path)


def several(path: Path) -> None:
    table = written(path, **ON)
    table.upsert([row(1, v=2)], options=OFF)
    table.alter(AddColumn("note", pa.string()))
    table.delete_partitions(["b"], options=OFF)


def replaced(path: Path) -> None:
    table = written(path, **ON)
    table.upsert([row(1, v=2)], options=ON)
    table.alter(DropColumn("v"))


@pytest.mark.parametrize("made", [first, several, replaced])
@pytest.mark.parametrize("storage", [False, pytest.param(True, marks=pytest.mark.thorough)], ids=["writes", "all"])
def test_the_next_export_goes_on_where_one_died(
    storage: bool, made: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        died = list(deaths(tmp_path, monkeypatch, storage, made))

    assert len(died) >= 4


def test_a_full_disk_is_an_error_that_leaves_the_version_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = written(tmp_path, **ON)
    had = by_delta(tmp_path)
    table.upsert([row(1, v=2)], options=OFF)

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(DeltaTable, "create_write_transaction", full)
        with pytest.raises(StorageError, match=r"deltalake can't do its part.*No space left"):
            table.export_metadata("delta")
    assert by_delta(tmp_path) == had
    table.export_metadata("delta")
    assert_equal(table)
