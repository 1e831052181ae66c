"""Queries for some keys open the parts of a file that may have them, and return what a read of everything has."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.formats.base.parquet import ParquetReader
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import key_filter
from tests.support.tables.clustered import Clustered
from tests.support.tables.small import rows_of

KEYS = [f"k{number:02d}" for number in range(20)]
LISTS = [[], ["k00"], ["k03", "k17"], ["k05", "k19", "nobody"], ["new"], ["k07", "new", "k01"], KEYS]
TABLES = [
    (version, kind, fields)
    for version in ("6", "9")
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")
    for fields in ("true", "false")
]


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "kind", "fields"), TABLES)
def test_a_query_for_keys_has_the_rows_of_a_read_of_everything(version: str, kind: str, fields: str) -> None:
    table = Clustered(version, kind, populate_meta_fields=fields)
    table.insert(*((key, "x", 1, number) for number, key in enumerate(KEYS)))
    table.upsert(("k03", "x", 2, 103), ("k05", "x", 2, 105), ("new", "x", 1, 7))
    table.delete(("k17", "x"), ("k01", "x"))
    every = HudiTable(table.meta).scan(columns=["id", "v", "ts"]).to_arrow().to_pylist()
    for keys in LISTS:
        texts = ", ".join(f"'{key}'" for key in keys)
        where = f"id IN ({texts})" if keys else "id = 'a' AND id = 'b'"
        found = HudiTable(table.meta).scan(columns=["id", "v", "ts"], where=where).to_arrow().to_pylist()
        wanted = [row for row in every if row["id"] in keys]
        assert sorted(found, key=str) == sorted(wanted, key=str), keys
    few = HudiTable(table.meta).scan(columns=["v"], where="id IN ('k03', 'k02') AND v > 100").to_arrow()
    assert few.to_pylist() == [{"v": 103}]


def _opened(table: Clustered, where: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were read by their numbers, file by file."""
    counts: list[int] = []
    original = ParquetReader.rows_at

    def rows_at(self: ParquetReader, columns: Any, rows: Any) -> Any:
        counts.append(len(rows))
        return original(self, columns, rows)

    with monkeypatch.context() as patch:
        patch.setattr(ParquetReader, "rows_at", rows_at)
        HudiTable(table.meta).scan(where=where).to_arrow()
    return counts


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_other_columns_are_read_for_the_rows_with_these_keys_only(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Clustered("9", kind)
    table.insert(*((key, "x", 1, number) for number, key in enumerate(KEYS)))
    table.upsert(("k03", "x", 2, 103))
    assert _opened(table, "id = 'k04'", monkeypatch) == [1]
    assert _opened(table, "id IN ('k03', 'k04') AND v > 0", monkeypatch) == [2]
    assert _opened(table, "id = 'nobody'", monkeypatch) == []
    assert _opened(table, "id = 'k04' OR v = 3", monkeypatch) == []  # other keys can pass


def test_what_does_not_make_keys_says_nothing_of_rows() -> None:
    table = Clustered("9", "MERGE_ON_READ", datasource_write_recordkey_field="id,v")
    table.write("insert", rows_of(("a", "x", 1, 1)))
    plan = plan_snapshot(table.meta, Query(where="id = 'a' AND v = 1"))
    assert plan.key_field is None
    single = Clustered("9", "MERGE_ON_READ")
    single.insert(("a", "x", 1, 1))
    plan = plan_snapshot(single.meta, Query(where="id = 'a'"))
    assert (plan.key_field, key_filter(plan, plan.slices[0]).values) == ("id", ("a",))  # type: ignore[union-attr]
    plan = plan_snapshot(single.meta, Query(where="v = 1"))
    assert key_filter(plan, plan.slices[0]) is None


def test_keys_of_numbers_are_wanted_by_their_value() -> None:
    table = Clustered("9", "MERGE_ON_READ")
    numbers = pa.table({"id": pa.array([1, 2, 30], pa.int32()), "p": ["x"] * 3, "ts": [1, 1, 1], "v": [1, 2, 3]})
    table.write("insert", numbers)
    table.write("upsert", numbers.slice(1, 1))
    found = HudiTable(table.meta)
    assert found.scan(columns=["v"], where="id = 30").to_arrow().to_pylist() == [{"v": 3}]
    assert found.scan(columns=["v"], where="id = 2.0").to_arrow().to_pylist() == [{"v": 2}]
    assert found.scan(columns=["v"], where="id = 5000000000").to_arrow().num_rows == 0
