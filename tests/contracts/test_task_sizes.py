"""What every task of a cluster gets does not grow with the table: each gets its own part."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.actions import rows as rows_
from pyhudi.engine.local import LocalEngine

FEW, MANY = 10, 30  # file groups
MEASURED_GROUPS, MOST_BYTES = 20_000, 1 << 20


class Sizes:
    """The pickled size of each work that an engine is given: by verb and kind, in order."""

    def __init__(self) -> None:
        self.of_calls: list[tuple[str, int]] = []

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for verb, place in {"extend": 2, "map": 1, "map_groups": 3, "fan_out": 1}.items():
            monkeypatch.setattr(LocalEngine, verb, self._watched(verb, place, getattr(LocalEngine, verb)))

    def _watched(self, verb: str, place: int, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(engine: LocalEngine, *arguments: Any, **more: Any) -> Any:
            work = arguments[place]
            kind = type(getattr(work, "__self__", work)).__name__
            self.of_calls.append((f"{verb} {kind}", len(pickle.dumps(work, protocol=5))))
            return call(engine, *arguments, **more)

        return run


def grouped(groups: int, v: int) -> pa.Table:
    """A row for each file group: a partition has one."""
    return pa.table(
        {
            "id": [f"key-{n:06}" for n in range(groups)],
            "p": [f"day={n:06}" for n in range(groups)],
            "v": pa.array([v] * groups, pa.int64()),
        }
    )


def sizes_of_life(path: Path, groups: int, table_type: str, sizes: Sizes) -> list[tuple[str, int]]:
    table = HudiTable.create(path, grouped(1, 0).schema, record_key="id", partition_by="p", table_type=table_type)
    table.insert(grouped(groups, 1))
    sizes.of_calls.clear()
    table.upsert(grouped(groups, 2))
    table.update(set={"v": 3})
    table.merge(grouped(groups, 4)).when_matched_update_all().execute()
    table.delete(grouped(groups // 2, 4).select(["id", "p"]))
    if table_type == "MERGE_ON_READ":
        table.compact()
    table.cluster(sort_columns=["v"])
    assert sum(table.to_arrow(["v"]).column("v").to_pylist()) == 4 * (groups - groups // 2)
    return list(sizes.of_calls)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_work_of_20_000_file_groups_is_below_a_megabyte(
    table_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalEngine, "shares_memory", False)  # as an engine on a cluster
    monkeypatch.setattr(rows_, "_SENT_GROUPS", FEW // 2)
    sizes = Sizes()
    sizes.watch(monkeypatch)
    few = sizes_of_life(tmp_path / "few", FEW, table_type, sizes)
    many = sizes_of_life(tmp_path / "many", MANY, table_type, sizes)

    assert [name for name, _ in few] == [name for name, _ in many]
    grown = {
        name: size + (size - size_of_few) * (MEASURED_GROUPS - MANY) // (MANY - FEW)
        for (name, size_of_few), (_, size) in zip(few, many, strict=True)
        if name != "fan_out FindKeys"  # has the keys of the batch, up to a limit
    }
    assert {name: size for name, size in grown.items() if size >= MOST_BYTES} == {}
