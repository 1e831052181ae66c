"""The examples of the pages run as they are, one page after the other, as a reader of all of them would run them.

A line that ends in `# → text` is compared: text is what `str` makes of its value, or what it prints, with `…` for
anything. Source: CONTRIBUTING.md.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, write_hudi
from tests.support.pages import examples, run_examples
from tests.support.source import ROOT

# README first: other pages go on with its table.
PAGES = (
    "README", "docs/reading", "docs/updating", "docs/metrics", "docs/history", "docs/savepoints", "docs/clustering",
    "docs/cleaning", "docs/overwriting", "docs/streaming", "docs/bootstrap", "docs/apply-changes",
)  # fmt: skip
# What runs the examples of the other pages, and those with a Spark session of all pages.
ELSEWHERE = {
    "docs/concurrency": "tests/house/test_pages.py",
    "docs/versions": "tests/house/test_pages.py",
    "docs/writing": "tests/house/test_pages.py",
    "docs/procedures": "tests/house/test_pages.py",
    "docs/sql-without-spark": "tests/house/test_pages.py",
    "docs/key-generators": "tests/keygen/test_page.py",
    "docs/merging": "tests/merge/test_page.py",
    "docs/sql": "tests/spark/test_readme.py",
    "docs/storage": "tests/house/test_pages.py",
    "docs/catalogs": "tests/sync/test_after_commit.py",
    "docs/exports": "tests/exports/test_after_commit.py",
    "docs/engines": "tests/house/test_pages.py",
    "docs/libraries": "tests/house/test_pages.py",
    "docs/repairs": "tests/house/test_pages.py",
    "docs/streamer/own-source": "tests/streamer/test_page.py",
    "docs/dbt": "tests/spark/test_dbt.py",
    "docs/tutorial": "tests/house/test_guides.py",
    "docs/coming-from/hudi-spark": "tests/spark/test_readme.py",
    "docs/coming-from/delta-rs": "tests/house/test_guides.py",
    "docs/coming-from/pyiceberg": "tests/house/test_guides.py",
    "docs/contributing/add-an-option": "tests/house/test_examples.py",
    "docs/contributing/add-a-key-generator": "tests/house/test_examples.py",
    "docs/contributing/add-a-lock-provider": "tests/house/test_how_to_add.py",
    "docs/contributing/add-an-index": "tests/house/test_how_to_add.py",
    "docs/contributing/add-a-table-service": "tests/house/test_how_to_add.py",
    "docs/contributing/add-a-log-block": "tests/house/test_how_to_add.py",
    "docs/contributing/add-a-reporter": "tests/house/test_how_to_add.py",
}
ROWS = pa.table({"id": ["a", "b"], "city": ["rome", "oslo"], "fare": [1.0, 2.0]})


def test_the_examples_of_all_pages_run_one_after_the_other_and_give_what_the_pages_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compared = {page: run_examples(page, {"/tmp/": f"{tmp_path}/"}, {}, with_spark=False) for page in PAGES}

    assert [page for page, lines in compared.items() if not lines] == [], "a page whose results nobody compares"
    output = capsys.readouterr().out
    assert "would delete: 2 files" in output  # cleaning
    assert "0 partitions expired" in output  # overwriting


def test_the_examples_that_take_a_readers_own_table_run(tmp_path: Path) -> None:
    path = str(tmp_path / "trips")
    write_hudi(path, ROWS, record_key="id", partition_by="city", table_version=6)

    assert run_examples("docs/versions", {}, {"HudiTable": HudiTable, "path": path})
    assert HudiTable.open(path).state().config.table_version == 6

    assert run_examples(
        "docs/concurrency", {"/data/trips": path}, {"HudiTable": HudiTable, "write_hudi": write_hudi, "changes": ROWS}
    )
    assert len(HudiTable.open(path).state().timeline.commits().instants) == 2


def test_the_examples_of_writing_and_calling_run(tmp_path: Path) -> None:
    rows = ROWS.append_column("ts", pa.array([1, 2])).append_column("name", ROWS["id"])
    rows = rows.append_column("zip", ROWS["id"])
    trips = str(tmp_path / "trips")
    indexed = {"hoodie.metadata.record.index.enable": "true"}
    write_hudi(trips, rows, record_key="id", options=indexed)
    given = {"write_hudi": write_hudi, "batch": rows, "table": HudiTable.open(trips), "pyhudi": pyhudi}

    assert run_examples("docs/writing", {"/data/trips": trips, "/tmp/cabs": str(tmp_path / "cabs")}, given)
    assert run_examples("docs/procedures", {"/lake/rides": trips}, given)


def test_the_example_of_a_store_runs() -> None:
    assert run_examples("docs/storage", {}, {"key": "k", "secret": "s"})


def test_the_example_of_repairs_runs(tmp_path: Path) -> None:
    write_hudi(tmp_path / "rides", ROWS, record_key="id", partition_by="city")
    assert run_examples("docs/repairs", {"/tmp": str(tmp_path)}, {})


def test_the_example_of_other_libraries_runs(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    assert run_examples("docs/libraries", {"/tmp": str(tmp_path)}, {})


def test_the_examples_of_engines_run(tmp_path: Path) -> None:
    for library in ("duckdb", "polars", "hudi", "deltalake"):
        pytest.importorskip(library)
    rows = [{"id": n, "city": "AB"[n % 2], "fare": n / 2} for n in range(10)]
    write_hudi(tmp_path / "rides", rows, record_key="id", partition_by="city")
    assert run_examples("docs/engines", {"/data": str(tmp_path)}, {}) == 5


def test_the_example_of_sql_without_spark_runs(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    write_hudi(tmp_path / "rides", ROWS, record_key="id", partition_by="city")
    assert run_examples("docs/sql-without-spark", {"/lake": str(tmp_path)}, {})


def test_every_page_with_an_example_is_run_and_every_comparison_is_on_a_page_that_is_run() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    with_examples = {
        page.relative_to(ROOT).with_suffix("").as_posix()
        for page in pages
        if re.search(r"^```python", page.read_text(), re.M)
    }

    assert with_examples == {*PAGES, *ELSEWHERE}
    not_run = [page for page, test in ELSEWHERE.items() if page.rpartition("/")[2] not in (ROOT / test).read_text()]
    assert not_run == []
    assert [page for page in pages if "```python notest" in page.read_text()] == []


def test_a_comparison_of_a_page_fails_where_the_page_is_wrong(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nfor n in (1,):\n    print(n, n + 1)  # → 1 2\nn  # → …\n[n,\n n]  # → [1, 2]\n```\n")

    with pytest.raises(AssertionError, match=r"page.md says \[1, 2\], found \[1, 1\]"):
        run_examples(page.with_suffix("").as_posix(), {}, {})
    assert examples(page.with_suffix("").as_posix())
