"""What a table version means, `TableFormat` says; nobody else compares versions."""

from __future__ import annotations

import ast

from pyhudi.model.table_format import TableFormat, TimelineLayout
from tests.support.source import modules

# Module → why it may.
MAY_COMPARE = {
    "pyhudi/model/table_format.py": "it has the answers",
    "pyhudi/model/table_config.py": "which versions this release reads and writes",
    "pyhudi/model/new_table.py": "which versions it makes tables of",
    "pyhudi/services/versions/upgrade.py": "its steps go from one version to another",
}
_VERSIONS = {"table_version", "layout_version"}
_NUMBERS = {2, 5, 6, 8, 9}


def compared_in(tree: ast.AST) -> list[str]:
    """The comparisons of a table's version, or of any version with a number that is one, but with None."""
    comparisons = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and not all(isinstance(how, (ast.Is, ast.IsNot)) for how in node.ops):
            parts = [node.left, *node.comparators]
            names = {part.attr if isinstance(part, ast.Attribute) else getattr(part, "id", "") for part in parts}
            numbers = {part.value for part in parts if isinstance(part, ast.Constant)}
            if names & _VERSIONS or ("version" in names and numbers & _NUMBERS):
                comparisons.append(ast.unparse(node))
    return comparisons


def test_versions_are_compared_where_their_meaning_is() -> None:
    comparing = {path for path, tree in modules().items() if path.startswith("pyhudi/") and compared_in(tree)}

    assert comparing - {"pyhudi/model/table_format.py"} <= MAY_COMPARE.keys()


def test_a_comparison_is_found() -> None:
    tree = ast.parse("a = config.table_version >= 8\nb = version < 9\nc = table_version is None\nd = version == 1")

    assert compared_in(tree) == ["config.table_version >= 8", "version < 9"]


def questions(kind: type[TableFormat] | type[TimelineLayout]) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_") and name != "version"}


def test_every_question_is_asked() -> None:
    asked = {
        node.attr
        for path, tree in modules().items()
        if path.startswith("pyhudi/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
    }

    assert (questions(TableFormat) | questions(TimelineLayout)) - asked == set()
