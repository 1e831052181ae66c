"""Pages and pictures that are made from code, or from other pages."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import pyhudi
from bench.plot import plot
from docs.notebook import notebook
from pyhudi import errors
from pyhudi.cli.page import cli_page
from pyhudi.model.options.__main__ import options_page
from pyhudi.sql.procedures.page import procedures_page
from tests.support.source import ROOT

DOCS = ROOT / "docs"
GENERATED: dict[str, Callable[[], str]] = {
    "benchmarks.svg": lambda: plot((DOCS / "benchmarks.md").read_text()),
    "cli.md": cli_page,
    "first_hour.ipynb": lambda: notebook((DOCS / "tutorial.md").read_text()),
    "options.md": options_page,
    "procedures.md": procedures_page,
}


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_file_is_what_its_source_makes_of_it(name: str) -> None:
    assert (DOCS / name).read_text() == GENERATED[name](), "run `make docs`"


def test_every_argument_of_every_command_has_its_meaning() -> None:
    rows = [line for line in cli_page().splitlines() if line.startswith("| `")]

    assert rows
    assert [row for row in rows if row.endswith("|  |")] == []


def test_the_page_of_the_api_has_every_public_name() -> None:
    listed = re.findall(r"^::: pyhudi\.(\w+)$", (DOCS / "api.md").read_text(), re.M)

    assert "errors" in listed
    assert {name for name in pyhudi.__all__ if not hasattr(errors, name)} - {"__version__"} == {*listed} - {"errors"}
