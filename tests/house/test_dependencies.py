"""The page of dependencies names exactly those of pyproject.toml, each package in a line of its own for its extras."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

import pytest

from tests.support.source import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it

_ROW = re.compile(r"^\| (?P<extras>[a-z0-9, ]+) \| (?P<packages>[^|]+) \| (?P<why>[^|]+) \|$", re.M)


def rows() -> list[tuple[str, str, str]]:
    """(extras, package, why) of each line of the table."""
    page = (ROOT / "docs" / "dependencies.md").read_text().partition("\n## ")[0]
    _, *found = _ROW.findall(page)  # the first is the head of the table
    return found


def packages(requirements: Iterable[str]) -> set[str]:
    found = [re.match(r"[\w-]+", requirement) for requirement in requirements]
    return {match.group() for match in found if match}


def declared() -> set[tuple[str, str]]:
    """(extra, package) of all that pyproject.toml asks for."""
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = {
        "build": project["build-system"]["requires"],
        "core": project["project"]["dependencies"],
        **project["project"]["optional-dependencies"],
    }
    return {(extra, package) for extra, requirements in wanted.items() for package in packages(requirements)}


def test_the_page_names_exactly_the_dependencies_of_pyproject():
    named = [(extra, package.strip("`")) for extras, package, _ in rows() for extra in extras.split(", ")]
    assert len(named) == len(set(named))
    assert set(named) == declared()


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[1].strip("`"))
def test_every_dependency_has_a_line_of_its_own_that_says_why(row: tuple[str, str, str]):
    _, package, why = row
    assert re.fullmatch(r"`[\w-]+`", package)
    assert len(why.split()) > 2
