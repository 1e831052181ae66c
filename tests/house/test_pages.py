"""The examples of the pages run as they are, one page after the other, as a reader of all of them would run them."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from tests.support.source import ROOT

# README first: other pages go on with its table. Pages of Spark and of one's own classes are run by their own tests.
PAGES = ("README", "reading", "updating", "history", "savepoints", "clustering", "cleaning", "overwriting")
SPARK = re.compile(r"SparkSession|\bdf\.write")
ROWS = pa.table({"id": ["a", "b"], "city": ["rome", "oslo"], "fare": [1.0, 2.0]})


def examples(page: str) -> list[str]:
    file = ROOT / f"{page}.md" if page == "README" else ROOT / "docs" / f"{page}.md"
    found = re.findall(r"```python\n(.*?)```", file.read_text(), re.S)
    return [text for text in found if not SPARK.search(text)]


def run(page: str, folder: Path, **given: Any) -> dict[str, Any]:
    namespace = dict(given)
    for number, text in enumerate(examples(page)):
        exec(compile(text.replace("/tmp/", f"{folder}/"), f"{page}.md, example {number + 1}", "exec"), namespace)
    return namespace


def test_the_examples_of_all_pages_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ended = {page: run(page, tmp_path) for page in PAGES}

    assert ended["reading"]["table"].scan(where="id = 7 AND fare = 70.0").count() == 1
    assert ended["savepoints"]["table"].scan(["fare"], "id = 'a'").to_arrow().to_pylist() == [{"fare": 9.0}]
    assert ended["clustering"]["table"].scan().count() == 4000
    output = capsys.readouterr().out
    assert "would delete: 2 files" in output  # cleaning
    assert "0 partitions expired" in output  # overwriting


def test_the_examples_that_take_a_readers_own_table_run(tmp_path: Path) -> None:
    path = str(tmp_path / "trips")
    write_hudi(path, ROWS, record_key="id", partition_by="city", table_version=6)

    versions = run("versions", tmp_path, HudiTable=HudiTable, path=path)
    assert versions["table"].config.table_version == 6

    (example,) = examples("concurrency")
    exec(example.replace("/data/trips", path), {"HudiTable": HudiTable, "changes": ROWS})
    assert len(HudiTable.open(path).timeline.commits().instants) == 2
