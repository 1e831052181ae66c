"""Several tables followed with one checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import ConfigError, CorruptFile, HudiTable, WriteConflict
from pyhudi.meta_client import MetaClient
from pyhudi.table.follow import ChangeFeed, ChangeStep
from tests.support.sweeps import SAMPLED

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("ts", pa.int64())])


@pytest.fixture(params=["9", "6"])
def tables(tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, HudiTable]:
    options = {"hoodie.write.table.version": request.param}
    return {
        name: HudiTable.create(tmp_path / name, SCHEMA, record_key="id", ordering="ts", options=options)
        for name in ("orders", "items")
    }


def upsert(table: HudiTable, *rows: tuple[int, int], ts: int = 1) -> None:
    table.upsert([{"id": key, "v": value, "ts": ts} for key, value in rows])


def feed(tables: dict[str, HudiTable], tmp_path: Path, **more: Any) -> ChangeFeed:
    paths = {name: table.path for name, table in tables.items()}
    return pyhudi.follow(paths, checkpoint=tmp_path / "checkpoint", **more)


def rows(step: ChangeStep | None) -> dict[str, list[int]]:
    assert step is not None
    return {name: sorted(scan.to_arrow()["v"].to_pylist()) for name, scan in step.items()}


def test_a_step_has_what_changed_in_all_tables_and_is_given_again_until_it_is_committed(
    tables: dict[str, HudiTable], tmp_path: Path
) -> None:
    assert feed(tables, tmp_path).next() is None, "empty tables"
    upsert(tables["orders"], (1, 1), (2, 2))
    upsert(tables["items"], (7, 7))
    step = feed(tables, tmp_path).next()
    assert rows(step) == {"orders": [1, 2], "items": [7]}

    upsert(tables["orders"], (1, 10), ts=2)
    again = feed(tables, tmp_path).next()
    assert again is not None
    assert again.number == 0
    assert rows(again) == {"orders": [1, 2], "items": [7]}
    again.commit()
    second = feed(tables, tmp_path).next()
    assert rows(second) == {"orders": [10]}, "items have nothing new"
    assert second is not None
    second.commit()
    assert feed(tables, tmp_path).next() is None


def test_the_iteration_ends_when_nothing_is_new_and_wants_each_step_committed(
    tables: dict[str, HudiTable], tmp_path: Path
) -> None:
    upsert(tables["orders"], (1, 1))
    found = []
    for step in feed(tables, tmp_path):
        found.append(rows(step))
        step.commit()
    assert found == [{"orders": [1]}]

    upsert(tables["items"], (2, 2))
    with pytest.raises(ConfigError, match=r"step\.commit\(\)"):
        list(feed(tables, tmp_path))


def test_a_step_is_committed_once(tables: dict[str, HudiTable], tmp_path: Path) -> None:
    upsert(tables["orders"], (1, 1))
    one, other = feed(tables, tmp_path).next(), feed(tables, tmp_path).next()
    assert one is not None
    assert other is not None
    one.commit()
    with pytest.raises(WriteConflict, match="another process follows"):
        other.commit()


@pytest.mark.thorough
def test_old_steps_are_deleted(tables: dict[str, HudiTable], tmp_path: Path) -> None:
    for number in range(14):
        upsert(tables["orders"], (number, number))
        for step in feed(tables, tmp_path):
            step.commit()
    left = sorted(int(file.stem) for file in (tmp_path / "checkpoint").glob("*.step"))
    assert left == list(range(3, 14))


def test_a_table_that_joins_later_begins_where_its_option_says(tables: dict[str, HudiTable], tmp_path: Path) -> None:
    upsert(tables["orders"], (1, 1))
    upsert(tables["items"], (7, 7))
    for step in feed({"orders": tables["orders"]}, tmp_path):
        step.commit()
    upsert(tables["orders"], (2, 2))
    step = feed(tables, tmp_path, since="latest").next()
    assert rows(step) == {"orders": [2]}
    assert step is not None
    step.commit()
    upsert(tables["items"], (8, 8))
    pending = feed(tables, tmp_path).next()
    assert rows(pending) == {"items": [8]}
    with pytest.raises(ConfigError, match="'items', which is not among orders"):
        feed({"orders": tables["orders"]}, tmp_path).next()


@pytest.mark.thorough
def test_a_step_is_one_moment_while_others_write(
    tables: dict[str, HudiTable], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer makes an order, and then its items. No step has items without their order."""
    load, written = MetaClient.load, [0]

    def load_while_others_write(storage: Any, *more: Any) -> MetaClient:
        found = load(storage, *more)
        if storage.root.endswith("orders") and written[0] < (12 if SAMPLED else 30) and following[0]:
            following[0] = False
            written[0] += 1
            upsert(tables["orders"], (written[0], written[0]))
            upsert(tables["items"], (written[0], written[0]))
            following[0] = True
        return found

    following = [False]
    monkeypatch.setattr(MetaClient, "load", staticmethod(load_while_others_write))
    known: dict[str, set[int]] = {"orders": set(), "items": set()}
    for _ in range(3):
        following[0] = True
        step = feed(tables, tmp_path).next()
        following[0] = False
        if step is not None:
            for name, values in rows(step).items():
                known[name].update(values)
            step.commit()
        assert known["items"] <= known["orders"]
    assert written[0] > 3


def test_changes_of_tables_that_log_them_have_deletes_too(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", SCHEMA, record_key="id", ordering="ts", cdc=True)
    upsert(table, (1, 1))
    table.delete([{"id": 1}])
    step = feed({"t": table}, tmp_path, format="cdc").next()
    assert step is not None
    assert step["t"].to_arrow()["op"].to_pylist() == ["i", "d"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"orders": ["1"]}', '{"orders": ["1", "../x"]}'])
def test_a_damaged_checkpoint_is_an_error(tables: dict[str, HudiTable], tmp_path: Path, text: str) -> None:
    upsert(tables["orders"], (1, 1))
    assert feed(tables, tmp_path).next() is not None
    file = tmp_path / "checkpoint" / "0.step"
    assert json.loads(file.read_text())["orders"][0] == ""
    file.write_text(text)
    with pytest.raises(CorruptFile, match=r"0\.step"):
        feed(tables, tmp_path).next()
