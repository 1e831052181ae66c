"""Overwriting the rows that pass a filter, in one commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import ConfigError, HudiTable, SchemaMismatch, write_hudi
from tests.support.arguments import arguments

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("fare", pa.float64()), ("ts", pa.int64())])
ROWS = [
    {"id": 1, "city": "oslo", "fare": 1.0, "ts": 5},
    {"id": 2, "city": "oslo", "fare": 20.0, "ts": 5},
    {"id": 3, "city": "rome", "fare": 3.0, "ts": 5},
    {"id": 4, "city": "rome", "fare": 40.0, "ts": 5},
    {"id": 5, "city": "bonn", "fare": 5.0, "ts": 5},
]
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]


def made(tmp_path: Path, kind: str, **more: Any) -> HudiTable:
    table = HudiTable.create(
        tmp_path / "t", SCHEMA, **arguments({"record_key": "id", "partition_by": "city", "table_type": kind}, more)
    )
    table.upsert(ROWS[:4]) if more.get("record_key", "id") else table.insert(ROWS[:4])
    table.upsert(ROWS[4:]) if more.get("record_key", "id") else table.insert(ROWS[4:])
    return table


def rows(table: HudiTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow(["id", "city", "fare"]).to_pylist())


def row(id: int, city: str, fare: float, ts: int = 9) -> dict[str, object]:
    return {"id": id, "city": city, "fare": fare, "ts": ts}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hive", [False, True])
def test_a_filter_of_partitions_overwrites_these_partitions_whole(tmp_path: Path, kind: str, hive: bool) -> None:
    table = made(tmp_path, kind, ordering="ts", options={"hoodie.datasource.write.hive_style_partitioning": hive})
    table.overwrite([row(3, "rome", 0.5, ts=1)], where="city = 'rome' OR city = 'bonn'")

    assert rows(table) == [(1, "oslo", 1.0), (2, "oslo", 20.0), (3, "rome", 0.5)]
    newest = table.history()[0]
    assert newest.action == "replacecommit"
    assert len(table.history()) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_term_beside_that_of_the_partition_chooses_among_its_rows(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind)
    table.overwrite([row(7, "rome", 70.0)], where="city = 'rome' AND fare + 1 > 10")

    assert rows(table) == [
        (1, "oslo", 1.0), (2, "oslo", 20.0), (3, "rome", 3.0), (5, "bonn", 5.0), (7, "rome", 70.0)
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_pass_are_replaced_and_the_others_stay(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind)
    table.overwrite([row(2, "oslo", 11.0), row(7, "lima", 70.0)], where="fare >= 10")

    assert rows(table) == [(1, "oslo", 1.0), (2, "oslo", 11.0), (3, "rome", 3.0), (5, "bonn", 5.0), (7, "lima", 70.0)]
    assert len(table.history()) == 3
    assert rows(HudiTable.open(table.path)) == rows(table)


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_row_takes_the_place_of_its_key_though_that_does_not_pass(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind)
    table.overwrite([row(1, "oslo", 99.0)], where="fare >= 10")
    assert rows(table) == [(1, "oslo", 99.0), (3, "rome", 3.0), (5, "bonn", 5.0)]


def test_ordering_values_don_t_keep_old_rows(tmp_path: Path) -> None:
    table = made(tmp_path, "COPY_ON_WRITE", ordering="ts")
    table.overwrite([row(2, "oslo", 11.0, ts=1), row(1, "oslo", 12.0, ts=1)], where="fare >= 10")
    assert rows(table) == [(1, "oslo", 12.0), (2, "oslo", 11.0), (3, "rome", 3.0), (5, "bonn", 5.0)]


@pytest.mark.thorough
def test_in_log_files_a_row_with_a_lower_ordering_value_is_refused(tmp_path: Path) -> None:
    table = made(tmp_path, "MERGE_ON_READ", ordering="ts")
    before = rows(table)
    with pytest.raises(ConfigError, match="lower value of ts than the stored one"):
        table.overwrite([row(2, "oslo", 11.0, ts=1)], where="fare >= 10")
    assert rows(table) == before
    table.overwrite([row(2, "oslo", 11.0, ts=6)], where="fare >= 10")
    assert rows(table) == [(1, "oslo", 1.0), (2, "oslo", 11.0), (3, "rome", 3.0), (5, "bonn", 5.0)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["fare >= 10", "city IN ('oslo', 'rome') AND fare >= 10", "city = 'rome'"])
def test_tables_without_record_keys_are_overwritten_too(tmp_path: Path, kind: str, where: str) -> None:
    table = made(tmp_path, kind, record_key=None)
    new = [row(8, "rome", 80.0), row(8, "rome", 80.0)]
    table.overwrite(new, where=where)

    kept = [r for r in ROWS if not (r["city"] == "rome" if "fare" not in where else r["fare"] >= 10)]  # type: ignore[operator]
    assert rows(table) == sorted((r["id"], r["city"], r["fare"]) for r in [*kept, *new])
    assert len(table.history()) == 3


def test_rows_that_do_not_pass_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    table = made(tmp_path, "COPY_ON_WRITE")
    before = len(table.history())
    with pytest.raises(ConfigError, match=r"2 of the new rows don't pass the filter, such as \{'id': 8"):
        table.overwrite([row(8, "oslo", 1.0), row(9, "rome", 1.0), row(6, "oslo", 2.0)], where="city = 'rome'")
    with pytest.raises(ConfigError, match="don't pass"):  # unknown is not true
        table.overwrite([{"id": 8, "city": "rome", "fare": None, "ts": 1}], where="fare > 1")
    with pytest.raises(SchemaMismatch, match="the columns tip"):
        table.overwrite([{**row(8, "rome", 1.0), "tip": 1}], where="city = 'rome'")
    assert len(table.history()) == before


def test_write_hudi_with_a_filter_makes_the_table_or_replaces_rows(tmp_path: Path) -> None:
    new = pa.Table.from_pylist(ROWS[2:4], SCHEMA)
    for _ in range(2):
        write_hudi(tmp_path / "t", new, mode="overwrite", where="city = 'rome'", record_key="id", partition_by="city")
    write_hudi(tmp_path / "t", ROWS[4:], record_key="id", partition_by="city")
    write_hudi(tmp_path / "t", new.slice(0, 1).to_reader(), mode="overwrite", where="city = 'rome'")
    table = HudiTable.open(tmp_path / "t")
    assert rows(table) == [(3, "rome", 3.0), (5, "bonn", 5.0)]
    with pytest.raises(ConfigError, match="found mode='append'"):
        write_hudi(tmp_path / "t", new, where="city = 'rome'")
    with pytest.raises(ConfigError, match="don't pass"):
        write_hudi(tmp_path / "u", new, mode="overwrite", where="city = 'oslo'", record_key="id")
    assert not HudiTable.exists(tmp_path / "u")


def test_without_a_filter_all_rows_are_replaced(tmp_path: Path) -> None:
    table = made(tmp_path, "COPY_ON_WRITE")
    table.overwrite([row(9, "lima", 1.0)])
    assert rows(table) == [(9, "lima", 1.0)]


def test_an_overwrite_with_a_filter_can_be_undone(tmp_path: Path) -> None:
    table = made(tmp_path, "MERGE_ON_READ")
    before = rows(table)
    table.overwrite([row(2, "oslo", 11.0)], where="fare >= 10")
    table.rollback()
    assert rows(table) == before
