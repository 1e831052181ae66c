"""Tables that real Hudi wrote read as real Hudi reads them: snapshot, every time travel, meta columns included."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, TableError
from tests.support.golden.cases import NUMBERS_AS_TEXT, Query, fixture_names, golden_names, open_fixture, queries
from tests.support.golden.folder import GoldenTable, shared_folder
from tests.support.golden.rows import differences

Golden = Callable[[str, str], GoldenTable]
NOT_IN_FIXTURES = ("_hoodie_file_name", "_hoodie_commit_seqno")


def test_the_golden_tables_are_there() -> None:
    shared_folder()

    assert len(golden_names("cow")) > 90
    assert len(golden_names("mor")) > 90
    assert len(fixture_names()) > 25


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "name"), golden_names("cow"))
def test_copy_on_write_tables_return_what_real_hudi_returns(golden: Golden, version: str, name: str) -> None:
    path, description = golden(version, name)
    table = HudiTable.open(path)

    for query in queries(description):
        assert problems(table, query, NUMBERS_AS_TEXT.get(name, ())) == [], query.as_of


def problems(table: HudiTable, query: Query, as_text: tuple[str, ...]) -> list[str]:
    """Why none of the answers is ours; [] when one is."""
    if isinstance(query.answers[0], str):
        with pytest.raises(TableError, match="cleaning has removed"):
            table.scan(as_of=query.as_of).to_arrow()
        return []
    scan = table.scan(as_of=query.as_of)
    data = scan.to_arrow()
    if scan.count() != data.num_rows:
        return [f"count() says {scan.count()}, {data.num_rows} rows were read"]
    found: list[str] = []
    for answer in query.answers:
        found = (
            digest_differs(answer, data) if isinstance(answer, dict) else differences(answer, data, "golden", as_text)
        )
        if not found:
            return []
    return found


def digest_differs(answer: dict[str, Any], data: pa.Table) -> list[str]:
    lines = sorted(json.dumps(row, sort_keys=True) for row in data.to_pylist())
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    same = (len(lines), digest) == (answer["count"], answer["sha256_of_sorted_json_lines"])
    return [] if same else [f"{len(lines)} rows with digest {digest}, expected {answer}"]


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "name"), golden_names("mor"))
def test_merge_on_read_tables_return_what_real_hudi_returns(golden: Golden, version: str, name: str) -> None:
    path, description = golden(version, name)
    table = HudiTable.open(path)
    as_text = NUMBERS_AS_TEXT.get(name, ())
    base_files_only = [
        rows
        for rows in (
            description["expected"].get("read_optimized"),
            description.get("expected_by_1.2.0", {}).get("read_optimized"),
        )
        if isinstance(rows, list)
    ]

    for query in queries(description):
        assert problems(table, query, as_text) == [], query.as_of
    found = [differences(rows, table.scan(query_type="read_optimized").to_arrow()) for rows in base_files_only]
    assert [] in found or not found, found[0]


@pytest.mark.thorough
@pytest.mark.parametrize("name", fixture_names())
def test_sample_tables_return_what_hudi_rs_returns(tmp_path: Path, name: str) -> None:
    path, expected = open_fixture(name, tmp_path)
    table = HudiTable.open(path)
    as_text = NUMBERS_AS_TEXT.get(name, ())
    cases: list[tuple[dict[str, Any], Any]] = [({"query_type": "read_optimized"}, expected["read_optimized"])]
    cases.append(({}, expected["snapshot"]))
    cases += [({"as_of": instant_time}, rows) for instant_time, rows in expected["as_of"].items()]

    for options, rows in cases:
        data = table.scan(**options).to_arrow()
        kept = [column for column in data.column_names if column not in NOT_IN_FIXTURES]
        # hudi-rs returns the number as text in time travel only.
        found = [differences(rows, data.select(kept), "fixture", text) for text in {(), as_text}]
        assert [] in found, (options, found[0])


SKIPPING = [(version, name) for version, name in golden_names("cow") if name.startswith("skipping_")]
# Expressions on the left side are Spark's to evaluate; where= takes columns and literals.
NOT_IN_OUR_SQL = ("cast(v as string) = '105'", "v + 1 = 106")


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "name"), SKIPPING)
def test_filters_keep_the_rows_that_spark_keeps(golden: Golden, version: str, name: str) -> None:
    path, description = golden(version, name)
    table = HudiTable.open(path)
    asked = [query for query in description["expected"]["queries"] if query["where"] not in NOT_IN_OUR_SQL]

    for query in asked:
        # Where real Hudi's data skipping loses rows, the answer without skipping is the right one.
        right = query.get("keys_without_skipping", query["keys"])
        assert sorted(table.to_arrow(["id"], query["where"])["id"].to_pylist()) == right, query["where"]
    assert len(asked) == 37
