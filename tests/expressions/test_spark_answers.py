"""Expressions, conditions and queries without Spark: each has the answer that Spark 4.3 gave, or is refused."""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import ConfigError, DuckDbSession, HudiTable, write_hudi

pytest.importorskip("duckdb")
FOLDER = Path("golden") / "expressions"
# Of the list in its present state; a change may raise them.
LEAST_RIGHT, LEAST_RIGHT_CONDITIONS = 625, 79


def answers(shared: Path) -> list[dict[str, Any]]:
    with (shared / FOLDER / "answers.jsonl").open() as lines:
        return [json.loads(line) for line in lines]


def is_query(text: str) -> bool:
    return text.upper().startswith(("SELECT", "FROM T"))


def plain(value: object) -> Any:
    """A value as the list of answers writes it."""
    match value:
        case float():
            return {"float": repr(value)}
        case Decimal():
            return {"decimal": f"{value:f}"}
        case datetime():
            return {"timestamp": value.replace(tzinfo=None).isoformat(), "zone": value.tzinfo is not None}
        case date():
            return {"date": value.isoformat()}
        case bytes():
            return {"hex": value.hex()}
        case dict():
            return {"struct": {name: plain(part) for name, part in value.items()}}
        case list() | tuple():
            return [plain(part) for part in value]
    return value


def is_same(one: Any, other: Any) -> bool:
    """Equal, floating-point numbers up to the last of their 53 bits."""
    if isinstance(one, dict) and isinstance(other, dict):
        if "float" in one and "float" in other:
            left, right = float(one["float"]), float(other["float"])
            return left == right or (left != left and right != right) or math.isclose(left, right, rel_tol=1e-15)
        return one.keys() == other.keys() and all(is_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return type(one) is type(other) and bool(one == other)


def shown_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"list<element: {shown_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name}: {shown_type(field.type)}' for field in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{shown_type(kind.key_type)}, {shown_type(kind.item_type)}>"
    return str(kind)


def by_name(names: list[str], values: Any) -> list[Any]:
    """The list has one value of columns of one name."""
    return list(dict(zip(names, values, strict=True)).values())


@pytest.mark.thorough
def test_every_expression_and_query_has_sparks_answer_and_type_or_is_refused(shared: Path) -> None:
    session = DuckDbSession()
    t = pq.read_table(shared / FOLDER / "rows.parquet")  # the queries name this variable
    right, wrong = 0, []
    for answer in answers(shared):
        text = answer["text"]
        query = text if is_query(text) else f"SELECT id, {text} AS r FROM t ORDER BY id"
        try:
            rows = session.sql(query).to_arrow()
        except ConfigError:
            right += "error" in answer
            continue
        columns = zip(*map(pa.ChunkedArray.to_pylist, rows.columns), strict=True)
        found = [by_name(rows.column_names, map(plain, row)) for row in columns]
        types = by_name(rows.column_names, map(shown_type, rows.schema.types))
        expected = [kind.replace(" not null", "") for kind in answer.get("types", [])]
        if "error" in answer or not is_same(found, answer["rows"]) or len(types) > len(expected):
            wrong.append((text, found, answer))
        elif types != expected[: len(types)] and types != by_name(rows.column_names, expected):
            wrong.append((text, types, answer["types"]))
        else:
            right += 1
    assert t.num_rows == 5
    assert wrong == []
    assert right >= LEAST_RIGHT


@pytest.mark.thorough
def test_every_condition_chooses_sparks_rows_or_is_refused(tmp_path: Path, shared: Path) -> None:
    write_hudi(tmp_path / "t", pq.read_table(shared / FOLDER / "rows.parquet"), record_key="id", table_name="t")
    table = HudiTable.open(tmp_path / "t")
    right, wrong = 0, []
    for answer in answers(shared):
        text = answer["text"]
        if is_query(text) or ("error" not in answer and answer["types"][1:] != ["bool"]):
            continue
        try:
            ids = sorted(table.to_arrow(["id"], text)["id"].to_pylist())
        except ConfigError:
            continue
        if "error" in answer or ids != [key for key, value in answer["rows"] if value is True]:
            wrong.append((text, ids, answer))
        else:
            right += 1
    assert wrong == []
    assert right >= LEAST_RIGHT_CONDITIONS
