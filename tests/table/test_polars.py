"""A scan as a lazy frame of polars: the same rows as a frame that is filtered in memory, from fewer files."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import date, datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.table import scan as scan_module

pl = pytest.importorskip("polars")

N = 120
MOMENT = datetime(2024, 1, 1, tzinfo=timezone.utc)


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def trips(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    """Three partitions, nulls and not-a-numbers; the row 5 was changed."""
    rows = {
        "id": list(range(N)),
        "city": ["bern", "oslo", "rome"] * (N // 3),
        "n": pa.array([None if i % 10 == 0 else i * 2 for i in range(N)], pa.int32()),
        "x": [float("nan") if i % 11 == 0 else i / 2 for i in range(N)],
        "ok": [None if i % 7 == 0 else i % 2 == 0 for i in range(N)],
        "day": [date(2024, 1, 1 + i % 28) for i in range(N)],
        "at": pa.array([MOMENT.replace(hour=i % 24) for i in range(N)], pa.timestamp("us", "UTC")),
    }
    path = tmp_path_factory.mktemp("polars") / "trips"
    write_hudi(path, pa.table(rows), record_key="id", partition_by="city", table_type=request.param)
    HudiTable.open(path).update("id = 5", set={"n": -1})
    return HudiTable.open(path)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], int, int | None]]:
    """Of each read: columns, those of the filter too, the number of files, and the limit."""
    seen: list[tuple[list[str], int, int | None]] = []
    batches = scan_module.read_batches

    def spied(plan: Any, *arguments: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        seen.append((plan.read_schema.names, len(plan.slices), options["limit"]))
        return batches(plan, *arguments, **options)

    monkeypatch.setattr(scan_module, "read_batches", spied)
    return seen


c = pl.col
PREDICATES = {
    "equal": c("city") == "oslo",
    "not equal, nulls": c("n") != 4,
    "wider number": c("n") > 30.5,
    "turned": pl.lit(30) < c("n"),
    "in": c("city").is_in(["oslo", "rome", "nowhere"]),
    "in numbers": c("id").is_in([1, 5, 500]),
    "in with null": c("n").is_in([2, None]),
    "between": c("n").is_between(10, 40),
    "between, open": c("n").is_between(10, 40, closed="none"),
    "null": c("n").is_null(),
    "not null": c("n").is_not_null(),
    "nan is greatest": c("x") > 20,
    "nan": c("x") == float("nan"),
    "not greater": ~(c("x") > 20),
    "or": (c("n") < 10) | (c("city") == "rome"),
    "or, half unknown": (c("n") % 7 == 0) | (c("city") == "rome"),
    "and, half unknown": (c("n") % 7 == 0) & (c("city") == "rome"),
    "boolean": c("ok"),
    "not boolean": ~c("ok"),
    "missing is equal": c("n").eq_missing(None),
    "text": c("city").str.starts_with("o"),
    "date": c("day") >= date(2024, 1, 20),
    "moment": c("at") < MOMENT.replace(hour=5),
    "columns": c("n") > c("id"),
    "constant": pl.lit(value=True),
    "changed row": c("n") < 0,
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", PREDICATES)
def test_a_filter_keeps_the_rows_that_polars_keeps_in_memory(trips: HudiTable, name: str) -> None:
    predicate = PREDICATES[name]
    in_memory = trips.to_polars().filter(predicate).sort("id")
    assert trips.to_polars(lazy=True).filter(predicate).collect().sort("id").equals(in_memory)
    in_columns = trips.to_polars(lazy=True).filter(predicate).select("id").collect()
    assert sorted(in_columns["id"]) == sorted(in_memory["id"])


def test_columns_filters_and_limits_reach_the_files(
    trips: HudiTable, read: list[tuple[list[str], int, int | None]]
) -> None:
    frame = trips.to_polars(lazy=True)
    assert frame.filter(c("city") == "oslo", c("n") > 10).select("id").collect().height > 0
    assert read.pop() == (["id", "city", "n"], 1, None)
    assert frame.select("id").head(3).collect().height == 3
    assert read.pop() == (["id"], 3, 3)
    assert frame.select(pl.len()).collect().item() == N


@pytest.mark.thorough
def test_a_limit_counts_before_a_later_filter_and_after_an_earlier_one(trips: HudiTable) -> None:
    frame = trips.to_polars(lazy=True)
    assert frame.head(10).filter(c("id") >= 0).collect().height == 10
    assert frame.filter(c("city") == "rome").head(10).collect()["city"].to_list() == ["rome"] * 10
    assert frame.head(40).filter(c("city") != "bern").collect().height == 0


def test_a_lazy_frame_can_be_pickled(trips: HudiTable) -> None:
    pytest.importorskip("cloudpickle", reason="polars pickles functions by cloudpickle")
    frame = pickle.loads(pickle.dumps(trips.to_polars(lazy=True)))
    assert frame.select(c("id").sum()).collect().item() == N * (N - 1) // 2


def test_a_limited_scan_is_a_lazy_frame_too(trips: HudiTable) -> None:
    assert trips.scan(limit=7).to_polars(lazy=True).select("id").collect().height == 7
