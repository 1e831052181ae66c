"""Nobody but the indexes compares their names: what is true of an index, its class says."""

from __future__ import annotations

import ast

from pyhudi.index import INDEXES
from tests.support.source import attribute_chains, imported_names, modules

_HOME = ("pyhudi/index/", "pyhudi/model/options/")
# Names that other things have as well: key generators, plan strategies of clustering, conflict strategies, reporters.
_SHARED = {"SIMPLE", "BUCKET", "CONSISTENT_BUCKET", "INMEMORY"}
_IN_MESSAGES = "pyhudi/actions/writes/delete_keys.py"


def _elsewhere() -> dict[str, ast.Module]:
    return {path: tree for path, tree in modules().items() if not path.startswith(_HOME)}


def test_the_name_of_the_index_is_read_by_the_indexes_only() -> None:
    """But for one message, which says it."""
    read = [
        (path, f"{path}:{line} {name}")
        for path, tree in _elsewhere().items()
        for name, line in attribute_chains(tree)
        if name.endswith((".index_type", ".buckets.consistent"))
    ]
    compared = [
        f"{path}:{node.lineno}"
        for path, tree in _elsewhere().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and any(name.endswith(".index_type") for name, _ in attribute_chains(node))
    ]

    assert [at for path, at in read if path != _IN_MESSAGES] == []
    assert compared == []


def test_names_of_indexes_stand_with_the_indexes_only() -> None:
    names = set(INDEXES.entries) - _SHARED
    found = [
        f"{path}:{node.lineno} {node.value}"
        for path, tree in _elsewhere().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
    ]

    assert found == []


def test_indexes_are_made_by_chosen_only() -> None:
    imported = [
        f"{path}:{line}"
        for path, tree in _elsewhere().items()
        for name, line in imported_names(tree)
        if name == "pyhudi.index.INDEXES"
    ]

    assert imported == []
