"""SECURITY.md says of each limit what the code says."""

from __future__ import annotations

import ast
import re

import pytest

from tests.support.source import ROOT, modules

_ROW = re.compile(
    r"\| (?P<what>[^|]+) \| `(?P<name>\w+)` \| `(?P<file>[\w/]+\.py)` \| `(?P<value>[^`]+)` \| (?P<why>[^|]+) \|"
)
Limit = tuple[str, str]  # file, constant


def named() -> dict[Limit, str]:
    """Limits that the page names → their values as it gives them."""
    rows = _ROW.finditer((ROOT / "SECURITY.md").read_text())
    return {(row["file"], row["name"]): row["value"] for row in rows if row["why"].strip()}


def constants() -> dict[Limit, str]:
    """Numbers that modules call MAX_something or something_MAX → the code of their values."""
    return {
        (path, target.id): ast.unparse(value)
        for path, tree in modules().items()
        for node in tree.body
        for target, value in _assigned(node)
        if target.id.isupper() and "MAX" in target.id.split("_") and not _is_text(value)
    }


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Constant) and isinstance(value.value, str))


def _assigned(node: ast.stmt) -> list[tuple[ast.Name, ast.expr]]:
    if isinstance(node, ast.Assign):
        return [(target, node.value) for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        return [(node.target, node.value)]
    return []


def test_every_limit_on_the_page_is_in_the_code_with_this_value() -> None:
    assert len(named()) > 15
    assert {limit: constants().get(limit) for limit in named()} == named()


@pytest.mark.parametrize("name", ["SECURITY.md", "docs/contributing/fuzzing.md"])
def test_the_page_names_files_that_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    paths = re.findall(r"`((?:pyhudi|tests|fuzz|docs)/[\w/]+\.(?:py|md))`|\]\(([\w/.]+\.md)\)", text)

    assert [path for pair in paths for path in pair if path and not (ROOT / path).is_file()] == []
