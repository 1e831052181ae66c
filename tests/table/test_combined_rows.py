"""What results say of rows that are combined with others, and of zones."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi

COLUMNS = pa.schema([("id", pa.int64()), ("p", pa.string()), ("n", pa.int64()), ("ts", pa.int64())])
OPTIONS = {"hoodie.metadata.enable": "false"}
TWICE = [{"id": key % 3, "p": "a", "n": number, "ts": number} for number, key in enumerate(range(7))]
LAST = [{"id": 0, "n": 6}, {"id": 1, "n": 4}, {"id": 2, "n": 5}]


def made(name: str, **more: Any) -> HudiTable:
    path = f"memory://combined-{name}"
    options = {**OPTIONS, **more.pop("options", {})}
    return HudiTable.create(path, COLUMNS, record_key="id", partition_by="p", ordering="ts", options=options, **more)


def rows(table: HudiTable) -> list[dict[str, Any]]:
    return table.to_arrow(["id", "n"]).sort_by("id").to_pylist()


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE", "BUCKET"])
def test_an_upsert_counts_the_rows_that_it_combined(kind: str, index: str) -> None:
    index_options = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"}
    table = made(f"upsert-{kind}-{index}", table_type=kind, options=index_options)
    first = table.upsert(TWICE, options=index_options)
    assert (first.inserted + first.updated, first.combined) == (3, 4)
    assert "4 combined with others of their keys" in str(first)
    assert "combined with others" in first._repr_html_()
    again = table.upsert([{**row, "ts": row["ts"] + 10} for row in TWICE], options=index_options)
    assert (again.updated, again.combined) == (3, 4)
    assert rows(table) == LAST
    assert table.upsert(TWICE[:3], options=index_options).combined == 0


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_an_upsert_of_some_columns_counts_them_too(kind: str) -> None:
    table = made(f"some-{kind}", table_type=kind)
    table.upsert([{**row, "n": -1, "ts": -1} for row in TWICE[:2]])
    result = table.upsert([{key: row[key] for key in ("id", "p", "n")} for row in TWICE])
    assert (result.inserted, result.updated, result.combined) == (1, 2, 4)
    assert rows(table) == LAST


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite"])
@pytest.mark.parametrize("mode", ["NONE", "GLOBAL_SORT"])
def test_inserts_count_them_where_they_combine(operation: str, mode: str) -> None:
    table = made(f"{operation}-{mode}")
    write = getattr(table, operation)
    assert write(TWICE[3:4]).combined == 0
    result = write(TWICE, options={"hoodie.combine.before.insert": "true", "hoodie.bulkinsert.sort.mode": mode})
    assert (result.inserted, result.combined) == (3, 4)


def test_the_result_names_zones_that_are_not_stored() -> None:
    moment = dt.datetime(2024, 7, 1, 12, tzinfo=dt.timezone.utc)
    at = pa.array([moment], pa.timestamp("us", tz="Europe/Rome"))
    inner = pa.StructArray.from_arrays([at], ["at"])
    result = write_hudi("memory://zones", pa.table({"id": [1], "at": at, "s": inner}), record_key="id", options=OPTIONS)
    assert result.zones == {"at": "Europe/Rome", "s.at": "Europe/Rome"}
    assert "stored in UTC: at (Europe/Rome), s.at (Europe/Rome)" in str(result)
    assert HudiTable("memory://zones").to_arrow(["at"]).to_pylist() == [{"at": moment}]
    assert HudiTable("memory://zones").upsert(HudiTable("memory://zones").to_arrow()).zones == {}
