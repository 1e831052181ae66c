"""MERGE INTO against the same change row by row: clauses, conditions and rows are random, by the test's seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from tests.support.sweeps import SAMPLED

pytest.importorskip("duckdb")

SCHEMA = pa.schema([("id", pa.int32()), ("a", pa.int64()), ("b", pa.string()), ("dt", pa.string())])
Row = Mapping[str, Any]
Truth = Callable[[Row, Row], bool]

# What is written, and what it means for a row of the table and one of the source.
MATCHED: list[tuple[str, Truth]] = [
    ("t.a < s.a", lambda t, s: t["a"] < s["a"]),
    ("s.b = 'x'", lambda t, s: s["b"] == "x"),
    ("t.b = s.b OR t.id % 3 = 0", lambda t, s: t["b"] == s["b"] or t["id"] % 3 == 0),
    ("s.a % 2 = 0", lambda t, s: s["a"] % 2 == 0),
]
NEW: list[tuple[str, Truth]] = [
    ("s.a > 50", lambda t, s: s["a"] > 50),
    ("b <> 'y'", lambda t, s: s["b"] != "y"),
]
ALONE: list[tuple[str, Truth]] = [
    ("t.a % 3 = 1", lambda t, s: t["a"] % 3 == 1),
    ("b = 'z'", lambda t, s: t["b"] == "z"),
]
UPDATES: list[tuple[str, Callable[[Row, Row], Row]]] = [
    ("UPDATE SET *", lambda t, s: {**s}),
    ("UPDATE SET a = t.a + s.a", lambda t, s: {**t, "a": t["a"] + s["a"]}),
    ("UPDATE SET t.b = concat(s.b, t.b), a = 7", lambda t, s: {**t, "b": s["b"] + t["b"], "a": 7}),
    ("UPDATE SET b = s.b", lambda t, s: {**t, "b": s["b"]}),
]
INSERTS: list[tuple[str, Callable[[Row, Row], Row]]] = [
    ("INSERT *", lambda t, s: {**s}),
    ("INSERT (dt, id, b, a) VALUES (s.dt, id, upper(s.b), a + 1)",
     lambda t, s: {"id": s["id"], "a": s["a"] + 1, "b": s["b"].upper(), "dt": s["dt"]}),
]  # fmt: skip
LEFT: list[tuple[str, Callable[[Row, Row], Row]]] = [
    ("UPDATE SET b = 'gone'", lambda t, s: {**t, "b": "gone"}),
    ("UPDATE SET a = a * 2 + id", lambda t, s: {**t, "a": t["a"] * 2 + t["id"]}),
]


@dataclass(frozen=True)
class Chosen:
    """A clause: `makes` None deletes."""

    text: str
    holds: Truth
    makes: Callable[[Row, Row], Row] | None


def choose(dice: random.Random, when: str, conditions: Any, makes: Any, may_delete: bool) -> list[Chosen]:
    """Some clauses of a kind; only the last may have no condition."""
    count = dice.randint(0, 2)
    found = []
    for number in range(count):
        condition, holds = dice.choice(conditions)
        if number == count - 1 and dice.random() < 0.5:
            condition, holds = None, lambda t, s: True
        texts = f"WHEN {when}" + (f" AND {condition}" if condition else "")
        if may_delete and dice.random() < 0.3:
            found.append(Chosen(f"{texts} THEN DELETE", holds, None))
        else:
            text, made = dice.choice(makes)
            found.append(Chosen(f"{texts} THEN {text}", holds, made))
    return found


def expected(
    table: list[Row], source: list[Row], by_partition: bool, clauses: dict[str, list[Chosen]]
) -> list[Row]:  # fmt: skip
    """The table after the merge, row by row."""

    def key(row: Row) -> tuple[Any, ...]:
        return (row["id"], row["dt"]) if by_partition else (row["id"],)

    def after(kind: str, t: Row, s: Row, stays: list[Row]) -> list[Row]:
        for clause in clauses[kind]:
            if clause.holds(t, s):
                return [] if clause.makes is None else [clause.makes(t, s)]
        return stays

    sources = {key(row): row for row in source}
    here = {key(row) for row in table}
    result: list[Row] = []
    for row in table:
        other = sources.get(key(row))
        result += after("by source", row, {}, [row]) if other is None else after("matched", row, other, [row])
    for row in source:
        if key(row) not in here:
            result += after("not matched", {}, row, [])
    return result


def rows(dice: random.Random, ids: list[int], partitioned: bool) -> list[Row]:
    """A row for each of these ids."""
    return [
        {"id": i, "a": dice.randint(0, 99), "b": dice.choice("xyz"), "dt": dice.choice("pqr") if partitioned else "p"}
        for i in ids
    ]


def in_order(found: list[Row]) -> list[Row]:
    return sorted(found, key=lambda row: (row["id"], row["dt"]))


@pytest.mark.parametrize("seed", range(12 if SAMPLED else 24))  # twelve have every kind of table
def test_a_merge_does_what_its_clauses_say_row_by_row(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    partitioned, by_partition = seed % 2 == 0, seed % 4 == 0
    options = {"hoodie.datasource.write.recordkey.field": "id"}
    if partitioned:
        options["hoodie.datasource.write.partitionpath.field"] = "dt"
    if seed % 3 == 0:
        options["hoodie.datasource.write.table.type"] = "MERGE_ON_READ"
    if seed % 6 == 5:
        options["hoodie.index.type"] = "BUCKET"
        options["hoodie.bucket.index.num.buckets"] = "3"
    place = str(tmp_path / "t")
    table = rows(dice, dice.sample(range(30), 12), partitioned)
    pyhudi.write_hudi(place, pa.Table.from_pylist(table, SCHEMA), "upsert", options=options)
    index = {k: v for k, v in options.items() if "index" in k}
    for _ in range(2):
        source = rows(dice, dice.sample(range(30), 10), partitioned)
        clauses = {
            "matched": choose(dice, "MATCHED", MATCHED, UPDATES, True),
            "not matched": choose(dice, dice.choice(["NOT MATCHED", "NOT MATCHED BY TARGET"]), NEW, INSERTS, False),
            "by source": choose(dice, "NOT MATCHED BY SOURCE", ALONE, LEFT, True),
        }
        texts = [clause.text for kind in clauses.values() for clause in kind]
        if not texts:
            continue
        pyhudi.write_hudi(
            str(tmp_path / "s"), pa.Table.from_pylist(source, SCHEMA), "insert_overwrite_table",
            options={"hoodie.datasource.write.recordkey.field": "id"},
        )  # fmt: skip
        condition = "t.id = s.id AND t.dt = s.dt" if by_partition else "s.id = t.id"
        session = pyhudi.DuckDbSession({"t": place, "src": str(tmp_path / "s")}, options=index)
        statement = f"MERGE INTO t USING src AS s ON {condition} {' '.join(texts)}"
        session.sql(statement)
        table = expected(table, source, by_partition, clauses)
        found = session.sql("SELECT id, a, b, dt FROM t").to_arrow().to_pylist()
        assert in_order(found) == in_order(table), statement
