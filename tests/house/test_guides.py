"""The tutorial, its notebook, and the pages for people who come from elsewhere: their code runs as it is there."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.model.options import Support, spec_of
from tests.support.pages import examples, run_examples
from tests.support.source import ROOT

DOCS = ROOT / "docs"
# A line of a table: another library's call, and ours.
_ROW = re.compile(r"^\| (?P<theirs>.+?) \| (?P<ours>.+) \|$", re.M)
_CODE = re.compile(r"`([^`]+)`")


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def equivalents(page: str) -> list[str]:
    """The first code of each line's last column, but for the head of the table."""
    rows = _ROW.findall((DOCS / f"{page}.md").read_text().partition("What else differs")[0])
    return [found[1] for _, ours in rows[2:] if (found := _CODE.match(ours)) and not found[1].endswith("=")]


def test_the_tutorial_runs_from_its_first_line_to_its_last(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")

    assert run_examples("docs/tutorial", {"/tmp/": f"{tmp_path}/"}, {}, with_spark=False) > 20
    assert "readable" in capsys.readouterr().out  # the history


def test_the_cells_of_the_notebook_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    text = (DOCS / "first_hour.ipynb").read_text()

    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    for number, cell in enumerate(cells, 1):
        assert cell["outputs"] == []
        source = "".join(cell["source"]).replace("/tmp/", f"{tmp_path}/")
        exec(compile(source, f"cell {number}", "exec"), names)
    assert len(cells) > 10
    assert capsys.readouterr().out.rstrip().endswith("8 8")


@pytest.mark.parametrize("name", ["delta-rs", "pyiceberg"])
def test_every_equivalent_on_the_page_of_another_library_runs(name: str, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    page = f"coming-from/{name}"
    names: dict[str, Any] = {}
    for text in examples(f"docs/{page}"):
        exec(compile(text.replace("/tmp", str(tmp_path)), page, "exec"), names)
    lines = equivalents(page)
    for line in lines:
        value = eval(line.replace("/tmp", str(tmp_path)), names)
        if isinstance(value, pyhudi.Scan):
            assert isinstance(value.to_arrow(), pa.Table), line
    assert len(lines) >= 25


def test_the_options_of_the_quick_start_are_honoured_and_the_settings_to_delete_are_none_of_ours() -> None:
    text = (DOCS / "coming-from" / "hudi-spark.md").read_text()

    keys = re.findall(r'^    "(hoodie\.[\w.]+)"', text, re.M)
    assert len(keys) == 4
    assert [key for key in keys if spec_of(key).support is not Support.HONOURED] == []
    to_delete = re.findall(r"`(spark\.[\w.]+)=", text)
    assert {"spark.kryo.registrator", "spark.sql.extensions", "spark.sql.catalog.spark_catalog"} < set(to_delete)
