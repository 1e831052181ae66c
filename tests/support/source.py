"""What the checks on the house look at: the modules of the packages, parsed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("pyhudi", "pyspark_hudi")


@cache
def modules() -> dict[str, ast.Module]:
    """Path relative to the checkout → syntax tree, for every module of the wheel."""
    paths = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(), str(path)) for path in paths}


def imported_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Dotted names that are imported anywhere in a module, inside functions too, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module, node.lineno
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


def attribute_chains(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Dotted names that are used anywhere, such as `time.time`, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            parts = [node.attr]
            value: ast.expr = node.value
            while isinstance(value, ast.Attribute):
                parts.append(value.attr)
                value = value.value
            if isinstance(value, ast.Name):
                yield ".".join([value.id, *reversed(parts)]), node.lineno
