"""What mypy is told about pyarrow is so, and the lower floors say what their values are."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import tokenize
from collections.abc import Iterator

import pytest

from tests.support.source import ROOT

STUBS = {"pyarrow": ROOT / "typings/pyarrow/__init__.pyi", "pyarrow.compute": ROOT / "typings/pyarrow/compute.pyi"}

# Lines that say `Any`, imports of the word too. What takes values of any column, or bodies that a schema describes, is
# named once; a floor that is not here has yet to be gone through.
MOST_LINES_WITH_ANY = {
    "errors.py": 0,
    "formats": 6,
    "keygen": 4,
    "locks": 0,
    "merge": 2,
    "model/predicate": 2,
    "registry.py": 0,
    "schema": 0,
    "storage": 2,
    "timeline": 0,
}


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


@pytest.mark.parametrize("floor", MOST_LINES_WITH_ANY)
def test_a_floor_hardly_says_any(floor: str) -> None:
    place = ROOT / "pyhudi" / floor
    found = []
    for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
        tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
        lines = {token.start[0] for token in tokens if token.type == tokenize.NAME and token.string == "Any"}
        found += [f"{path.relative_to(ROOT)}:{line}" for line in sorted(lines)]
    assert len(found) <= MOST_LINES_WITH_ANY[floor], found
