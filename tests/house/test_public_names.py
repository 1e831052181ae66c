"""The package root: its names, what importing it costs, and the docstrings behind public names."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

import pyhudi
from tests.support.source import ROOT, modules


def test_public_names_are_sorted():
    assert pyhudi.__all__ == sorted(pyhudi.__all__)


@pytest.mark.parametrize("name", [name for name in pyhudi.__all__ if name not in ("enable", "disable")])
def test_every_public_name_can_be_imported_and_says_what_it_is(name):
    value = getattr(pyhudi, name)
    assert name == "__version__" or (value.__doc__ or "").strip()


@pytest.mark.parametrize("name", ["enable", "disable"])
def test_the_spark_names_can_be_imported_where_pyspark_is(name):
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    assert getattr(pyhudi, name).__doc__


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        pyhudi.nonsense  # noqa: B018


def test_importing_the_root_loads_neither_pyspark_nor_pyarrow_nor_pandas():
    heavy = "import sys, pyhudi; print([m for m in ('pyspark', 'pyarrow', 'pandas', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


def test_the_front_desk_works_where_pyspark_is_not():
    code = "import sys; sys.modules['pyspark'] = None; from pyhudi import HudiTable, write_hudi; print('ok')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "ok", done.stderr


def test_the_version_is_the_one_of_the_project_file():
    text = (ROOT / "pyproject.toml").read_text()
    assert f'version = "{pyhudi.__version__}"' in text


def test_every_module_says_what_it_is():
    silent = [path for path, tree in modules().items() if tree.body and not ast.get_docstring(tree)]
    assert silent == []


def test_every_public_class_and_function_has_a_docstring():
    silent = []
    for path, tree in modules().items():
        exported = _exported(tree)
        silent += [
            f"{path}: {node.name}"
            for node in tree.body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))
            and node.name in exported
            and not ast.get_docstring(node)
        ]
    assert silent == []


def _exported(tree: ast.Module) -> set[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return set(ast.literal_eval(node.value))
    return set()
