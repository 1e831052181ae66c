"""What test files share is in tests/support, so that each of them can be changed, moved and run alone."""

from __future__ import annotations

import ast
import re
from functools import cache

from tests.support.source import ROOT, imported_names

_NAMED = re.compile(r"\btests\.(?!support\b)\w+(?:\.\w+)*")


@cache
def files() -> dict[str, ast.Module]:
    """Path relative to the checkout → syntax tree, for every Python file of the tests."""
    paths = sorted((ROOT / "tests").rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(), str(path)) for path in paths}


def texts(tree: ast.Module) -> list[str]:
    """The texts of a module that may name a module: classes of options, programs that are started."""
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def test_tests_import_what_they_share_from_support_only() -> None:
    imported = [
        f"{path}:{line} {name}"
        for path, tree in files().items()
        for name, line in imported_names(tree)
        if name.startswith("tests.") and name != "tests.support" and not name.startswith("tests.support.")
    ]

    assert imported == []


def test_tests_name_classes_and_programs_of_their_own_or_of_support() -> None:
    named = [
        f"{path}: {name}"
        for path, tree in files().items()
        for text in texts(tree)
        for name in _NAMED.findall(text)
        if name != path.removesuffix(".py").replace("/", ".")
    ]

    assert named == []


def test_support_holds_no_tests() -> None:
    tests = [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in files().items()
        if path.startswith("tests/support/")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]

    assert tests == []


def test_a_module_of_support_is_used_by_a_test() -> None:
    """Or started by one, as a process of its own."""
    used = "\n".join((ROOT / path).read_text() for path in files())
    modules = [
        path
        for path in files()
        if path.startswith("tests/support/") and not path.endswith(("__init__.py", "__main__.py"))
    ]
    unused = []
    for path in modules:
        name = path.removesuffix(".py").replace("/", ".")
        spellings = (f"{name} import", f"{name}:", f'"{name}"', f'"{path.rpartition("/")[2]}"')
        if not any(spelling in used for spelling in spellings):
            unused.append(path)

    assert unused == []
