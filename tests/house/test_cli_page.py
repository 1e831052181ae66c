"""The page of the command line is made from its registry, and is current."""

from __future__ import annotations

from pyhudi.cli.page import cli_page
from tests.support.source import ROOT


def test_the_page_of_the_command_line_is_what_the_registry_says() -> None:
    assert (ROOT / "docs" / "cli.md").read_text() == cli_page(), "run `make docs`"


def test_every_argument_of_every_command_has_its_meaning() -> None:
    rows = [line for line in cli_page().splitlines() if line.startswith("| `")]

    assert rows
    assert [row for row in rows if row.endswith("|  |")] == []
