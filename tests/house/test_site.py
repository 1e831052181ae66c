"""The README as a front page, and the parts of pages that are made from other parts."""

from __future__ import annotations

import re

import pyhudi
from bench.plot import plot
from pyhudi import errors
from tests.support.source import ROOT


def test_the_readme_fits_on_a_screen_and_shows_the_install_both_makes_and_both_engines_before_anything_else() -> None:
    text = (ROOT / "README.md").read_text()

    assert len(text.splitlines()) <= 75
    shown = [
        text.index(part) for part in ("pip install pyhudi", "make demo", "make test", "write_hudi(", "SparkSession")
    ]
    assert shown == sorted(shown)
    for example in re.findall(r"```python\n(.*?)```", text, re.S):
        assert len(example.splitlines()) <= 16
        assert "print(" in example


def test_the_plot_is_that_of_the_table_of_its_page() -> None:
    docs = ROOT / "docs"
    picture = plot((docs / "benchmarks.md").read_text())

    assert (docs / "benchmarks.svg").read_text() == picture, "run `make docs`"
    assert picture.count("<rect") == 6


def test_the_page_of_the_api_has_every_public_name() -> None:
    listed = re.findall(r"^::: pyhudi\.(\w+)$", (ROOT / "docs" / "api.md").read_text(), re.M)

    assert "errors" in listed
    assert {name for name in pyhudi.__all__ if not hasattr(errors, name)} - {"__version__"} == {*listed} - {"errors"}
