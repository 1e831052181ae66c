"""What mypy is told about pyarrow is so."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator

import pytest

from tests.support.source import ROOT

STUBS = {"pyarrow": ROOT / "typings/pyarrow/__init__.pyi", "pyarrow.compute": ROOT / "typings/pyarrow/compute.pyi"}


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
