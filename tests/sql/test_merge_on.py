"""`HudiTable.merge` on a condition: rows meet by it, and not by the key."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import ConfigError, HudiTable

pytest.importorskip("duckdb")

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("n", pa.int64()), ("ts", pa.int64())])
ROWS = [
    {"id": 1, "city": "oslo", "n": 1, "ts": 5},
    {"id": 2, "city": "oslo", "n": 2, "ts": 5},
    {"id": 3, "city": "rome", "n": 3, "ts": 5},
]
CHANGES = [{"ref": 1, "n": 10, "ts": 9}, {"ref": 2, "n": 20, "ts": 1}, {"ref": 7, "n": 70, "ts": 9}]


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> HudiTable:
    made = HudiTable.create(tmp_path / "t", SCHEMA, record_key="id", partition_by="city", table_type=request.param)
    made.upsert(ROWS)
    return made


def rows(table: HudiTable) -> list[Any]:
    return [tuple(row.values()) for row in table.to_arrow(["id", "city", "n"]).sort_by("id").to_pylist()]


@pytest.mark.parametrize(
    "on",
    ["t.id = s.ref and s.ts > t.ts", "target.id = source.ref AND source.ts > target.ts", "id = ref AND s.ts > t.ts"],
)
def test_rows_meet_by_a_condition(table: HudiTable, on: str) -> None:
    merge = table.merge(CHANGES, on=on).when_matched_update({"n": "target.n + s.n", "ts": "source.ts"})
    result = merge.execute()

    assert (result.operation, result.updated, result.inserted) == ("MERGE", 1, 0)
    assert rows(table) == [(1, "oslo", 11), (2, "oslo", 2), (3, "rome", 3)]
    assert len(table.state().timeline.commits()) == 2


@pytest.mark.thorough
def test_new_rows_are_inserted_and_others_deleted_by_a_condition(table: HudiTable) -> None:
    merge = table.merge(CHANGES, on="t.id = s.ref")
    merge = merge.when_matched_delete("source.n >= 20").when_matched_update({"n": 5, "city": "city"}, "n < 3")
    merge = merge.when_not_matched_insert({"id": "ref", "city": pa.scalar("it's"), "n": "n / 2"})
    merge.when_not_matched_by_source_update({"n": "n * 100"}, "city = 'rome'").execute()
    assert rows(table) == [(1, "oslo", 5), (3, "rome", 300), (7, "it's", 35)]


@pytest.mark.thorough
def test_all_columns_are_taken_from_the_source(table: HudiTable) -> None:
    source = [{"id": 2, "city": "oslo", "n": 22, "ts": 9}, {"id": 9, "city": "bonn", "n": 9, "ts": 9}]
    table.merge(source, on="target.id = source.id AND target.city = 'oslo'").when_matched_update_all(
    ).when_not_matched_insert_all().execute()  # fmt: skip
    assert rows(table) == [(1, "oslo", 1), (2, "oslo", 22), (3, "rome", 3), (9, "bonn", 9)]


def test_a_row_that_meets_several_is_refused(table: HudiTable) -> None:
    merge = table.merge([{"ref": 1, "n": 1}, {"ref": 1, "n": 2}], on="t.id = s.ref").when_matched_update({"n": "s.n"})
    with pytest.raises(ConfigError, match="Several rows of the source"):
        merge.execute()
    assert rows(table)[0] == (1, "oslo", 1)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("on", "set", "says"),
    [
        ("t.id = s.nope", {"n": 1}, "the source has no column 'nope'"),
        ("t.id = ref and n > 1", {"n": 1}, "'n', which both sides have"),
        ("t.id = s.ref", {"n": pc.field("n")}, "SQL text or a constant"),
        ("t.id = s.ref", {"n": "nope + 1"}, "which is not there"),
        ("t.id =", {"n": 1}, "is no SQL expression"),
    ],
)
def test_what_is_not_understood_is_refused(table: HudiTable, on: str, set: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        table.merge(CHANGES, on=on).when_matched_update(set).execute()
    assert says in str(caught.value)


@pytest.mark.parametrize("on", ["(source.id = target.id) AND target.city = source.city", "id", ["id", "city"]])
def test_a_condition_that_is_the_key_needs_no_duckdb(
    table: HudiTable, on: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    source = [{"id": 2, "city": "oslo", "n": 22}]
    table.merge(source, on=on).when_matched_update({"n": "target.n + source.n"}).execute()
    assert rows(table) == [(1, "oslo", 1), (2, "oslo", 24), (3, "rome", 3)]
    with pytest.raises(ConfigError, match=r"pip install \"pyhudi\[sql\]\""):
        table.merge(source, on="target.n = source.n").when_matched_delete().execute()


@pytest.mark.thorough
def test_a_condition_on_the_key_alone_looks_in_every_partition(table: HudiTable) -> None:
    source = [{"id": 2, "city": "lima", "n": 22}, {"id": 3, "city": "lima", "n": 33}]
    table.merge(source, on="target.id = source.id").when_matched_update({"n": "source.n"}).execute()
    assert rows(table) == [(1, "oslo", 1), (2, "oslo", 22), (3, "rome", 33)]
    table.merge(source, on="target.id = source.id AND target.n <> source.n").when_matched_delete().execute()
    assert len(rows(table)) == 3
