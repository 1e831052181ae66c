"""A table may have thousands of columns, so nothing asks a list of names once for each of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.support.source import modules

LISTS = {"names", "column_names"}  # of pyarrow's schemas and tables: each access makes a list
OF_COLUMNS = (*LISTS, "columns", "schema", "incoming", "table", "data_fields")
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


def asks_of(comprehension: Comprehension) -> Iterator[ast.Compare]:
    """What is asked of a list of names for each item."""
    parts = [comprehension.key, comprehension.value] if isinstance(comprehension, ast.DictComp) else [comprehension.elt]
    for part in (*parts, *(test for loop in comprehension.generators for test in loop.ifs)):
        for node in ast.walk(part):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
                asked = node.comparators[0]
                if isinstance(asked, ast.Attribute) and asked.attr in LISTS:
                    yield node


def goes_over_columns(comprehension: Comprehension) -> bool:
    over = ast.walk(comprehension.generators[0].iter)
    return any(getattr(node, "attr", getattr(node, "id", None)) in OF_COLUMNS for node in over)


def quadratic(tree: ast.Module) -> list[int]:
    return [
        asked.lineno
        for node in ast.walk(tree)
        if isinstance(node, Comprehension) and goes_over_columns(node)
        for asked in asks_of(node)
    ]


def test_columns_are_looked_up_in_sets_of_names_not_in_lists() -> None:
    hits = [f"{path}:{line}" for path, tree in modules().items() for line in quadratic(tree)]

    assert hits == [], "make a set of the names once: `column_names = set(schema.names)`"


def test_a_list_that_is_asked_once_for_each_column_is_noticed() -> None:
    assert quadratic(ast.parse("missing = [name for name in table.names if name not in rows.names]")) == [1]
    assert quadratic(ast.parse("missing = [name for name in table.names if name not in there]")) == []
