"""Iceberg exports that die at any call of a store or of the catalog, and several at once beside a writer."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from pyhudi import HudiTable
from pyhudi.schema.changes import AddColumn, ChangeType
from pyhudi.storage.local import LocalStorage
from tests.support.exports.iceberg import ICEBERG, Lake
from tests.support.exports.small import OFF, commits, export_beside_a_writer, row, written

_COMMITS: list[tuple[Any, str]] = [(SqlCatalog, "commit_table"), (SqlCatalog, "create_namespace")]
_ALL = [
    *_COMMITS,
    (SqlCatalog, "load_table"),
    (PyArrowFile, "create"),
    (PyArrowFile, "open"),
    (PyArrowFileIO, "delete"),
    *((LocalStorage, name) for name in ("read", "write", "list", "delete", "stat", "walk", "open_input")),
]


class Died(BaseException):
    """The process is gone."""


class Deaths:
    """Dies at the call of the given number, before it or after it; a dead process calls nothing any more."""

    def __init__(self, at: int, after: bool) -> None:
        self.at, self.after, self.calls, self.is_dead = at, after, 0, False

    def wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def dying(*args: Any, **kwargs: Any) -> Any:
            number, self.calls = self.calls, self.calls + 1
            self.is_dead = self.is_dead or (number == self.at and not self.after)
            if self.is_dead:
                raise Died
            result = call(*args, **kwargs)
            if number == self.at:
                self.is_dead = True
                raise Died
            return result

        return dying


def deaths(
    path: Path, monkeypatch: pytest.MonkeyPatch, calls: list[tuple[Any, str]], made: Callable[[Path, Lake], None]
) -> Iterator[int]:
    """Lets the export of a table die at each call, exports again, and compares. Yields the number of each death."""
    work, kept, number, after = path / "work", path / "kept", 0, False
    work.mkdir()
    lake = Lake(work, more={f"{ICEBERG}snapshots.retained": "2"})
    made(work / "t", lake)
    shutil.copytree(work, kept)
    while True:
        shutil.rmtree(work)
        shutil.copytree(kept, work)
        table, death = HudiTable.open(work / "t"), Deaths(number, after)
        with monkeypatch.context() as patch:
            for owner, name in calls:
                patch.setattr(owner, name, death.wrapped(getattr(owner, name)))
            with suppress(Died):
                lake.export(table)
            if not death.is_dead:
                return
        if lake.exists():
            lake.read()  # whatever there is can be read
        lake.export(table)
        lake.assert_equal(table)
        named = lake.instants()
        assert named[-1] == commits(table)[-1]
        assert len(named) == len(set(named))
        yield number
        number, after = (number + 1, False) if after else (number, True)


def first(path: Path, lake: Lake) -> None:
    written(path)


def several(path: Path, lake: Lake) -> None:
    table = written(path)
    lake.export(table)
    table.upsert([row(1, v=2)], options=OFF)
    table.alter(AddColumn("note", pa.string()), options=OFF)
    table.delete_partitions(["b"], options=OFF)


def replaced(path: Path, lake: Lake) -> None:
    table = written(path)
    lake.export(table)
    table.alter(ChangeType("v", pa.string()), options=OFF)
    table.cluster(options=OFF)


@pytest.mark.parametrize("made", [first, several, replaced])
@pytest.mark.parametrize("calls", [_COMMITS, pytest.param(_ALL, marks=pytest.mark.thorough)], ids=["commits", "all"])
def test_the_next_export_goes_on_where_one_died(
    calls: list[tuple[Any, str]],
    made: Callable[[Path, Lake], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        died = list(deaths(tmp_path, monkeypatch, calls, made))

    assert len(died) >= 2


def test_many_exports_beside_a_writer_end_with_its_rows(tmp_path: Path) -> None:
    table, lake = written(tmp_path / "t"), Lake(tmp_path)

    export_beside_a_writer(table, lake.export, 3)

    lake.export(table)
    lake.assert_equal(table)
    named = lake.instants()
    assert set(named) <= set(commits(table))
    assert len(named) == len(set(named))
