"""CHECK constraints: kept as properties, checked by every write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import ConfigError, HudiTable, SchemaMismatch
from pyhudi.schema.changes import AddColumn, DropColumn

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("fare", pa.float64()), ("tip", pa.float64())])
ROWS = [{"id": 1, "city": "oslo", "fare": 1.0, "tip": 0.5}, {"id": 2, "city": "rome", "fare": 20.0, "tip": None}]
BAD = [{"id": 7, "city": "oslo", "fare": 5.0, "tip": 1.0}, {"id": 8, "city": "rome", "fare": -1.0, "tip": None}]


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> HudiTable:
    made = HudiTable.create(
        tmp_path / "t", SCHEMA, record_key="id", partition_by="city", table_type=request.param, ordering="id"
    )
    made.upsert(ROWS)
    made.constraints.add("fare_positive", "fare > 0")
    made.constraints.add("tip-small", "tip <= fare / 2 AND upper(city) <> 'LIMA'")
    return made


def rows(table: HudiTable) -> list[Any]:
    return sorted(map(str, table.to_arrow(SCHEMA.names).to_pylist()))


def as_stream(bad: list[dict[str, Any]]) -> pa.RecordBatchReader:
    data = pa.Table.from_pylist(bad, SCHEMA)
    return pa.RecordBatchReader.from_batches(SCHEMA, iter(data.to_batches(max_chunksize=1)))


WRITES: dict[str, Callable[[HudiTable], object]] = {
    "upsert": lambda table: table.upsert(BAD),
    "upsert of a stream": lambda table: table.upsert(as_stream(BAD)),
    "insert": lambda table: table.insert(BAD),
    "bulk insert": lambda table: table.bulk_insert(BAD),
    "bulk insert of a stream": lambda table: table.bulk_insert(as_stream(BAD)),
    "overwrite": lambda table: table.overwrite(BAD),
    "overwrite of a partition": lambda table: table.overwrite(BAD[1:], where="city = 'rome'"),
    "insert overwrite": lambda table: table.insert_overwrite(BAD),
    "update": lambda table: table.update("id = 1", set={"fare": "-fare"}),
    "update of another column": lambda table: table.update("id = 1", set={"tip": 0.75}),
    "merge": lambda table: table.merge(BAD).when_not_matched_insert_all().execute(),
}


def test_constraints_are_kept_and_listed(table: HudiTable) -> None:
    again = HudiTable.open(table.path)
    assert again.constraints.list() == {
        "fare_positive": "fare > 0",
        "tip-small": "tip <= fare / 2 AND upper(city) <> 'LIMA'",
    }


@pytest.mark.thorough
@pytest.mark.parametrize("write", WRITES)
def test_no_write_brings_rows_that_break_a_constraint(table: HudiTable, write: str) -> None:
    before, commits = rows(table), len(table.state().timeline.commits())
    with pytest.raises(SchemaMismatch, match=r"break the constraint '(fare_positive|tip-small)'.*such as .'id': "):
        WRITES[write](table)
    assert rows(table) == before
    assert len(table.state().timeline.commits()) == commits


def test_the_error_says_how_many_rows_and_shows_one(table: HudiTable) -> None:
    with pytest.raises(SchemaMismatch, match=r"1 rows break the constraint 'fare_positive'.*'fare > 0'.*'fare': -1\.0"):
        table.upsert(BAD)


@pytest.mark.thorough
def test_rows_that_keep_the_constraints_are_written(table: HudiTable) -> None:
    table.upsert([{"id": 3, "city": "bonn", "fare": 4.0, "tip": 2.0}])
    table.update("id = 3", set={"tip": "tip / 2"})
    table.upsert([{"id": 4, "city": "bonn", "fare": None, "tip": None}])  # unknown passes
    table.delete(where="id = 1")
    table.merge([{"id": 2, "city": "rome", "fare": 3.0}]).when_matched_update({"fare": "source.fare"}).execute()
    assert table.to_arrow(["id", "fare", "tip"]).sort_by("id").to_pylist() == [
        {"id": 2, "fare": 3.0, "tip": None},
        {"id": 3, "fare": 4.0, "tip": 1.0},
        {"id": 4, "fare": None, "tip": None},
    ]


def test_rows_of_the_table_must_keep_a_new_constraint(table: HudiTable) -> None:
    with pytest.raises(SchemaMismatch, match=r"1 rows of the table break the constraint 'cheap'.*'fare': 20\.0"):
        table.constraints.add("cheap", "fare < 10")
    assert "cheap" not in table.constraints.list()


def test_a_constraint_that_is_dropped_holds_no_more(table: HudiTable) -> None:
    table.constraints.drop("fare_positive")
    table.upsert(BAD)
    assert list(table.constraints.list()) == ["tip-small"]
    assert table.scan().count() == 4


def test_a_column_of_a_constraint_can_t_go(table: HudiTable) -> None:
    with pytest.raises(ConfigError, match="The constraint 'tip-small'"):
        table.alter(DropColumn("tip"))
    table.alter(AddColumn("note", pa.string()))
    table.upsert([{"id": 5, "city": "oslo", "fare": 2.0, "tip": None, "note": "x"}])
    assert table.scan().count() == 3


@pytest.mark.parametrize(
    ("name", "condition", "says"),
    [
        ("fare_positive", "fare > 1", "there is a constraint 'fare_positive' already"),
        ("a b", "fare > 1", "is no name of a constraint"),
        ("new", "fee > 1", "fee"),
        ("new", "fare + 1", "expected true or false"),
        ("new", "fare >", "The constraint 'new'"),
        ("new", "_hoodie_record_key = 'x'", "_hoodie_record_key"),
    ],
)
def test_what_is_no_constraint_is_refused(table: HudiTable, name: str, condition: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        table.constraints.add(name, condition)
    assert len(table.constraints.list()) == 2


def test_an_unknown_constraint_can_t_be_dropped(table: HudiTable) -> None:
    with pytest.raises(ConfigError, match="there is no constraint 'nope'; there are: fare_positive, tip-small"):
        table.constraints.drop("nope")


def test_rows_that_delete_keys_are_not_checked(tmp_path: Path) -> None:
    schema = pa.schema([*SCHEMA, ("_hoodie_is_deleted", pa.bool_())])
    table = HudiTable.create(tmp_path / "t", schema, record_key="id")
    table.upsert([{**row, "_hoodie_is_deleted": False} for row in ROWS])
    table.constraints.add("fare_positive", "fare > 0")
    table.upsert([{"id": 1, "city": "", "fare": -1.0, "tip": None, "_hoodie_is_deleted": True}])
    assert table.scan().count() == 1


def test_a_write_that_a_constraint_overtakes_is_checked_by_it(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("fare", pa.float64())])
    table = HudiTable.create(tmp_path / "t", schema, record_key="id")
    table.upsert([{"id": 1, "fare": 1.0}])

    def batches() -> Iterator[pa.RecordBatch]:
        HudiTable.open(table.path).constraints.add("fare_positive", "fare > 0")
        yield pa.RecordBatch.from_pylist([{"id": 2, "fare": -1.0}], schema)

    with pytest.raises(SchemaMismatch, match="'fare_positive'"):
        table.upsert(pa.RecordBatchReader.from_batches(schema, batches()))
    assert table.to_arrow(["id"]).to_pylist() == [{"id": 1}]
