"""update and merge with SQL text for values and conditions."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import ConfigError, HudiTable

SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("n", pa.int64()), ("fare", pa.float64()), ("day", pa.date32())]
)
ROWS = [
    {"id": "a", "city": "Oslo", "n": 1, "fare": 1.5, "day": None},
    {"id": "b", "city": "Rome", "n": 2, "fare": 2.5, "day": None},
    {"id": "c", "city": "Rome", "n": None, "fare": 4.0, "day": None},
]


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> HudiTable:
    made = HudiTable.create(tmp_path / "t", SCHEMA, record_key="id", table_type=request.param)
    made.insert(pa.Table.from_pylist(ROWS, SCHEMA))
    return made


def rows(table: HudiTable, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_arrow(["id", *columns]).sort_by("id").to_pylist()]


def test_update_takes_sql_text(table: HudiTable) -> None:
    result = table.update("n >= 1", set={"n": "n + 1", "fare": "fare * 2 - n", "city": "upper(city)"})

    assert result.updated == 2
    assert rows(table, "n", "fare", "city") == [
        ("a", 2, 2.0, "OSLO"), ("b", 3, 3.0, "ROME"), ("c", None, 4.0, "Rome"),
    ]  # fmt: skip


@pytest.mark.thorough
def test_update_takes_sql_text_that_only_duckdb_computes(table: HudiTable) -> None:
    pytest.importorskip("duckdb")
    table.update(
        "id = 'a'", set={"city": "concat(substring(city, 1, 1), '-', n % 2)", "day": "last_day(DATE '2024-02-03')"}
    )
    assert table.to_arrow(["city", "day"], "id = 'a'").to_pylist() == [
        {"city": "O-1", "day": pa.scalar(19782, pa.date32()).as_py()}
    ]


def test_numbers_with_a_point_are_values_of_every_column_of_numbers(table: HudiTable) -> None:
    table.update("id = 'a'", set={"fare": "0.1", "n": "2.0"})
    table.update("id = 'b'", set={"fare": "-12.5e-1", "n": Decimal("3")})
    assert rows(table, "fare", "n")[:2] == [("a", 0.1, 2), ("b", -1.25, 3)]
    with pytest.raises(ConfigError, match="can't be set to Decimal"):
        table.update("id = 'a'", set={"n": "2.5"})


def test_texts_are_quoted_or_given_as_values(table: HudiTable) -> None:
    table.update("id = 'a'", set={"city": "'rome'", "day": "DATE '2024-01-05'"})
    table.update("id = 'b'", values={"city": "upper(city)"}, set={"n": 7})
    assert rows(table, "city", "n")[:2] == [("a", "rome", 1), ("b", "upper(city)", 7)]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"set": {"city": "rome"}}, "The text itself is a value as \"'rome'\""),
        ({"set": {"city": "in progress"}}, "is no SQL expression"),
        ({"set": {"city": "2024-01-05"}}, "with quotes inside"),
        ({"set": {"city": "5"}}, "CAST"),
        ({"set": {"day": "2024-01-05"}}, "is a number"),
        ({"set": {"city": "n > 1"}}, "is true or false"),
        ({"set": {"n": "count(*)"}}, "expected an expression of one row"),
        ({"set": {"n": 1}, "values": {"n": 2}}, "in set= and in values="),
        ({}, "update changes columns"),
    ],
)
def test_what_can_be_misunderstood_is_refused(table: HudiTable, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        table.update(**arguments)
    assert says in str(caught.value)
    assert len(table.history()) == 1


@pytest.mark.thorough
def test_clauses_of_a_merge_take_sql_text(table: HudiTable) -> None:
    source = [
        {"id": "a", "n": 10, "city": "x"},
        {"id": "b", "n": 20, "city": "y"},
        {"id": "d", "n": 30, "city": "z"},
    ]
    merge = table.merge(source).when_matched_update(
        {"n": "target.n + source.n", "city": "concat(target.city, '/', source.city)"}, "source.n + target.n > 20"
    )
    merge.when_not_matched_insert({"n": "-n", "city": "'new'", "fare": "n / 4"}).execute()

    assert rows(table, "n", "city", "fare") == [
        ("a", 1, "Oslo", 1.5), ("b", 22, "Rome/y", 2.5), ("c", None, "Rome", 4.0), ("d", -30, "new", 7.5),
    ]  # fmt: skip
