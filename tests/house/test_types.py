"""What mypy is told about pyarrow is so, and every floor says what its values are."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.source import ROOT

STUBS = {"pyarrow": ROOT / "typings/pyarrow/__init__.pyi", "pyarrow.compute": ROOT / "typings/pyarrow/compute.pyi"}

# Lines that say `Any`, imports of the word too. What takes values of any column, or bodies that a schema describes, is
# named once; a floor that is not here has no such line.
MOST_LINES_WITH_ANY = {
    "pyhudi/formats": 5,
    "pyhudi/java": 4,
    "pyhudi/merge": 2,
    "pyhudi/model": 2,
    "pyhudi/result.py": 2,
    "pyhudi/storage": 2,
    "pyhudi/table": 8,
}
FLOORS = [path for path in (*(ROOT / "pyhudi").iterdir(), ROOT / "pyspark_hudi") if path.name != "__pycache__"]


def declared(module: str) -> Iterator[ast.FunctionDef | ast.AnnAssign]:
    """Functions and names that a stub says the module has; what begins with _ is the stub's own."""
    for node in ast.parse(STUBS[module].read_text()).body:
        name = node.name if isinstance(node, ast.FunctionDef) else _target(node)
        if name and (not name.startswith("_") or name == "__version__"):
            yield node


def _target(node: ast.stmt) -> str:
    return node.target.id if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) else ""


@pytest.mark.parametrize("module", STUBS)
def test_pyarrow_has_every_name_of_our_stubs(module: str) -> None:
    there = importlib.import_module(module)
    names = {node.name if isinstance(node, ast.FunctionDef) else _target(node) for node in declared(module)}
    assert len(names) > 10
    assert sorted(name for name in names if not hasattr(there, name)) == []


def test_pyarrow_takes_every_keyword_of_our_stubs() -> None:
    compute = importlib.import_module("pyarrow.compute")
    functions = [node for node in declared("pyarrow.compute") if isinstance(node, ast.FunctionDef)]
    wrong = []
    for function in functions:
        taken = inspect.signature(getattr(compute, function.name)).parameters
        given = [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]
        wrong += [f"{function.name}({name}=)" for name in given if name not in taken]
    assert len(functions) > 20
    assert wrong == []


def lines_with_any(place: Path) -> list[str]:
    found = []
    for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
        text = path.read_text()
        if "Any" not in text:  # most files; reading their tokens takes seconds
            continue
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        lines = {token.start[0] for token in tokens if token.type == tokenize.NAME and token.string == "Any"}
        found += [f"{path.relative_to(ROOT)}:{line}" for line in sorted(lines)]
    return found


@pytest.mark.parametrize("floor", [str(path.relative_to(ROOT)) for path in sorted(FLOORS)])
def test_a_floor_hardly_says_any(floor: str) -> None:
    found = lines_with_any(ROOT / floor)
    assert len(found) <= MOST_LINES_WITH_ANY.get(floor, 0), found
