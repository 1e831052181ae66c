"""Validators see the table as a write would make it; one that fails takes the write back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pyhudi import ConfigError, HudiTable, Scan, ValidationFailed, write_hudi
from pyhudi.actions import validation
from tests.support.source import ROOT

PACKAGE = "org.apache.hudi.client.validator."
EQUAL, OTHER, VALUE = (f"SqlQuery{kind}PreCommitValidator" for kind in ("Equality", "Inequality", "SingleResult"))
KEYS = {
    EQUAL: "hoodie.precommit.validators.equality.sql.queries",
    OTHER: "hoodie.precommit.validators.inequality.sql.queries",
    VALUE: "hoodie.precommit.validators.single.value.sql.queries",
}
FORMS = {
    "copy on write": {},
    "merge on read": {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.parquet.small.file.limit": "0"},
    "merge on read, version 6": {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.write.table.version": "6",
    },
}


@pytest.fixture(params=FORMS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    pytest.importorskip("duckdb", reason="DuckDB is not installed")
    table = tmp_path / "t"
    options = FORMS[request.param] | {"hoodie.datasource.write.recordkey.field": "id"}
    write_hudi(table, rows((1, "a", 1.5), (2, "b", 2.5)), options=options)
    return table


def rows(*values: tuple[int, str, float]) -> list[dict[str, Any]]:
    return [{"id": number, "city": city, "fare": fare} for number, city, fare in values]


def upsert(path: Path, *values: tuple[int, str, float], options: Mapping[str, object] | None = None) -> None:
    HudiTable.open(path).upsert(rows(*values), options=options)


def by(name: str, queries: str, prefix: str = PACKAGE) -> dict[str, object]:
    return {"hoodie.precommit.validators": f"{prefix}{name}", KEYS[name]: queries}


def content(path: Path) -> list[tuple[Any, ...]]:
    table = HudiTable.open(path).to_arrow(["id", "city", "fare"]).sort_by("id")
    return [tuple(row.values()) for row in table.to_pylist()]


BEFORE = [(1, "a", 1.5), (2, "b", 2.5)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "passes"),
    [
        (by(VALUE, "SELECT count(*) FROM <TABLE_NAME> WHERE fare < 0#0"), True),
        (by(VALUE, "SELECT count(*) FROM <TABLE_NAME>#3; SELECT sum(fare) FROM <TABLE_NAME>#14", ""), True),
        (by(VALUE, "SELECT count(*) FROM <TABLE_NAME>#2"), False),
        (by(VALUE, "SELECT city FROM <TABLE_NAME> WHERE id = 1#a"), True),
        (by(VALUE, "SELECT max(fare) FROM <TABLE_NAME>#null"), False),
        (by(EQUAL, "SELECT id, city FROM <TABLE_NAME> WHERE id < 3"), True),
        (by(EQUAL, "SELECT city FROM <TABLE_NAME>; SELECT 1"), False),
        (by(EQUAL, "SELECT fare FROM <TABLE_NAME> WHERE id = 2"), False),
        (by(OTHER, "SELECT fare FROM <TABLE_NAME> WHERE id = 2"), True),
        (by(OTHER, "SELECT min(id) FROM <TABLE_NAME> a WHERE id IN (SELECT id FROM <TABLE_NAME>)"), False),
    ],
)
def test_a_query_decides_whether_the_write_stays(path: Path, options: dict[str, object], passes: bool) -> None:
    if passes:
        upsert(path, (2, "b", 9.5), (3, "c", 3.0), options=options)
        assert content(path) == [(1, "a", 1.5), (2, "b", 9.5), (3, "c", 3.0)]
    else:
        with pytest.raises(ValidationFailed, match="expected"):
            upsert(path, (2, "b", 9.5), (3, "c", 3.0), options=options)
        assert content(path) == BEFORE
    assert not HudiTable.open(path).state().timeline.pending().instants


@pytest.mark.thorough
def test_the_error_names_the_validator_what_was_expected_and_what_was_found(path: Path) -> None:
    with pytest.raises(ValidationFailed) as error:
        upsert(path, (2, "b", -1.0), options=by(VALUE, "SELECT count(*) FROM <TABLE_NAME> WHERE fare < 0#0"))
    assert f"fails {VALUE}, 'SELECT count(*) FROM <TABLE_NAME> WHERE fare < 0#0': expected 0, found 1" in str(
        error.value
    )
    with pytest.raises(ValidationFailed) as error:
        upsert(path, (2, "z", 1.0), options=by(EQUAL, "SELECT city FROM <TABLE_NAME>"))
    assert "only before: [{'city': 'b'}]; only after: [{'city': 'z'}]" in str(error.value)


def test_a_function_gets_the_table_before_and_after(path: Path) -> None:
    seen: list[tuple[list[int], list[int]]] = []

    def look(before: Scan, after: Scan) -> bool:
        ids = tuple(sorted(one.narrowed(["id"]).to_arrow()["id"].to_pylist()) for one in (before, after))
        seen.append(ids)  # type: ignore[arg-type]
        return len(ids[1]) <= 3

    upsert(path, (3, "c", 3.0), options={"hoodie.precommit.validators": look})
    with pytest.raises(ValidationFailed, match=r"look: expected true, found False"):
        upsert(path, (4, "d", 4.0), options={"hoodie.precommit.validators": [look]})
    assert seen == [([1, 2], [1, 2, 3]), ([1, 2, 3], [1, 2, 3, 4])]
    assert len(content(path)) == 3


def fares_are_positive(before: Scan, after: Scan) -> str | None:
    count = after.narrowed(where="fare <= 0").count()
    return f"{count} fares of {after.count()} are not positive" if count else None


def broken(before: Scan, after: Scan) -> None:
    raise AssertionError("never right")


def test_a_function_by_its_name(path: Path) -> None:
    named = {"hoodie.precommit.validators": f"{__name__}:fares_are_positive"}
    upsert(path, (3, "c", 3.0), options=named)
    with pytest.raises(ValidationFailed, match="1 fares of 3 are not positive"):
        upsert(path, (2, "c", 0.0), options=named)
    with pytest.raises(ValidationFailed, match="AssertionError: never right"):
        upsert(path, (2, "c", 0.0), options={"hoodie.precommit.validators": f"{__name__}:broken"})


@pytest.mark.thorough
def test_deletes_and_other_changes_are_validated_too(path: Path) -> None:
    table = HudiTable.open(path)
    keeps_all = by(VALUE, "SELECT count(*) FROM <TABLE_NAME>#2")
    with pytest.raises(ValidationFailed, match="found 1"):
        table.delete(where="id = 1", options=keeps_all)
    with pytest.raises(ValidationFailed, match="found 1"):
        table.overwrite(rows((7, "x", 1.0)), options=keeps_all)
    table.update("id = 1", values={"fare": 2.5}, options=keeps_all)
    assert content(path) == [(1, "a", 2.5), (2, "b", 2.5)]


def test_a_first_write_is_compared_with_no_rows(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="DuckDB is not installed")
    options = by(EQUAL, "SELECT id FROM <TABLE_NAME>")
    with pytest.raises(ValidationFailed, match=r"only before: none; only after: \[\{'id': 1\}\]"):
        write_hudi(tmp_path / "t", rows((1, "a", 1.0)), record_key="id", options=options)
    assert not HudiTable.exists(tmp_path / "t")


def test_warn_log_only_warns(path: Path) -> None:
    options = by(VALUE, "SELECT count(*) FROM <TABLE_NAME>#0") | {
        "hoodie.precommit.validators.failure.policy": "WARN_LOG"
    }
    with pytest.warns(UserWarning, match="expected 0, found 3"):
        upsert(path, (3, "c", 3.0), options=options)
    assert len(content(path)) == 3


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"hoodie.precommit.validators": "com.example.Mine"}, "Java classes can't be used"),
        ({"hoodie.precommit.validators": f"{PACKAGE}{VALUE}"}, "needs queries"),
        ({"hoodie.precommit.validators": "no_such_module:f"}, "no_such_module"),
        (by(VALUE, "SELECT 1"), "expected query#value"),
    ],
)
def test_what_can_not_run_is_refused_before_anything_is_written(
    tmp_path: Path, options: dict[str, object], expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        write_hudi(tmp_path / "t", rows((1, "a", 1.0)), record_key="id", options=options)
    assert not HudiTable.exists(tmp_path / "t")


@pytest.mark.parametrize(
    "query", ["SELECT nothing FROM <TABLE_NAME>#1", "SELECT * FROM read_csv('/etc/passwd')#1", "no#1"]
)
def test_a_query_that_fails_takes_the_write_back(path: Path, query: str) -> None:
    with pytest.raises(ConfigError):
        upsert(path, (3, "c", 3.0), options=by(VALUE, query))
    assert content(path) == BEFORE


@pytest.mark.thorough
def test_what_others_commit_meanwhile_is_validated_before_the_commit(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = by(VALUE, "SELECT count(*) FROM <TABLE_NAME>#3") | {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"
    }
    run = validation.Validation.run

    def run_and_write(self: validation.Validation) -> None:
        run(self)
        monkeypatch.setattr(validation.Validation, "run", run)
        HudiTable.open(path).bulk_insert(
            rows((8, "h", 8.0)), options={"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
        )

    monkeypatch.setattr(validation.Validation, "run", run_and_write)
    with pytest.raises(ValidationFailed, match="expected 3, found 4"):
        HudiTable.open(path).bulk_insert(rows((3, "c", 3.0)), options=options)
    assert [row[0] for row in content(path)] == [1, 2, 8]


@pytest.mark.thorough
def test_without_an_engine_of_sql_the_extra_is_named(tmp_path: Path) -> None:
    code = """
import sys
sys.modules['duckdb'] = None
import pyhudi
options = {"hoodie.precommit.validators": "SqlQuerySingleResultPreCommitValidator",
           "hoodie.precommit.validators.single.value.sql.queries": "SELECT 1#1"}
pyhudi.write_hudi(sys.argv[1], [{"id": 1}], options=options)
"""
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path / "t")], cwd=ROOT, capture_output=True, text=True)
    assert 'pip install "pyhudi[sql]"' in run.stderr
    assert not HudiTable.exists(tmp_path / "t")
