"""Which lines stand for a changed one when tests are sought: those that are executed when the changed piece counts.

Most often it is the line itself. A constant is executed when its module is imported, whichever test comes first; so
is a default value of an argument, and a function that remembers its answers is executed by the first test that calls
it. For these it is the lines that use what they name, in any module of these floors.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from mutants import ROOT
from mutants.changes import Change, targets_of
from mutants.unnoticeable import name_of

FLOORS = ("actions", "timeline", "merge", "filegroup", "formats", "index", "services")
_REMEMBERING = {"cache", "lru_cache"}

Lines = Mapping[str, set[int]]  # path of a module → numbers of lines
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """The tree of a module, and the names that it has from others."""

    path: str
    tree: ast.Module
    _users: dict[str, Lines] = field(default_factory=dict)

    @cached_property
    def imported(self) -> Mapping[str, tuple[str, str]]:
        """Name here → (path of the module that has it, its name there)."""
        found = (node for node in ast.walk(self.tree) if isinstance(node, ast.ImportFrom) and node.module)
        return {one.asname or one.name: (_path_of(node.module or ""), one.name) for node in found for one in node.names}

    @cached_property
    def remembering(self) -> set[str]:
        """The functions whose answers are kept: `@cache`, or `kept = cache(function)` in the module's body."""
        decorated = {
            node.name
            for node in _functions(self.tree)
            if any(_called(one) in _REMEMBERING for one in node.decorator_list)
        }
        values = [node.value for node in self.tree.body if isinstance(node, ast.Assign)]
        calls = [value for value in values if isinstance(value, ast.Call) and _called(value.func) in _REMEMBERING]
        return decorated | {name_of(one) for call in calls for one in call.args}

    @cached_property
    def named(self) -> Mapping[str, set[ast.expr]]:
        """Name → where it is, as a name by itself."""
        found: dict[str, set[ast.expr]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name):
                found.setdefault(node.id, set()).add(node)
        return found


def lines_that_count(path: str, change: Change, executed: Collection[int]) -> Lines:
    """Path → the lines of which a test that executes one may notice the change; `executed`: of its own module."""
    if change.name:
        return users(path, change.name)
    own = {path: {change.line} if change.line in executed else {change.statement}}
    module = _module(path)
    around = {node.name for node in _functions(module.tree) if _has(node, change.line)}
    return _joined([own, *(users(path, name) for name in sorted(around & module.remembering))])


def users(path: str, name: str) -> Lines:
    """Path → the lines of functions that use what the module calls so, directly or by way of another such name."""
    found: dict[str, set[int]] = {}
    waiting, met = [(path, name)], set[tuple[str, str]]()
    while waiting:
        one = waiting.pop()
        if one in met:
            continue
        met.add(one)
        for module, known_as in _known_as(*one):
            for node in module.named.get(known_as, ()):
                lines, names = _use(module, node)
                found.setdefault(module.path, set()).update(lines)
                waiting += [(module.path, other) for other in names]
    return {path: lines for path, lines in found.items() if lines}


def _known_as(path: str, name: str) -> Iterator[tuple[Module, str]]:
    yield _module(path), name
    for module in _modules():
        yield from ((module, here) for here, origin in module.imported.items() if origin == (path, name))


def _use(module: Module, node: ast.expr) -> tuple[set[int], set[str]]:
    """The lines that are executed when a name counts, and the names of the module that have its value."""
    within = next((one for one in module.tree.body if _has(one, node.lineno)), None)
    around = [one for one in _functions(within) if _has(one, node.lineno)] if within else []
    if around:
        function = max(around, key=lambda one: one.lineno)
        if node.lineno >= function.body[0].lineno:
            kept = {one.name for one in around} & module.remembering
            return {node.lineno, _statement(function, node.lineno)}, kept
        return {*range(function.body[0].lineno, (function.end_lineno or 0) + 1)}, set()  # a default value
    if isinstance(within, ast.ClassDef):
        bodies = ({*range(one.body[0].lineno, (one.end_lineno or 0) + 1)} for one in _functions(within))
        return set().union(*bodies), {within.name}
    return set(), {name_of(target) for target in targets_of(within)} - {""} if within else set()


def _statement(function: Function, line: int) -> int:
    """Where the smallest statement begins that the line is in."""
    return max(one.lineno for one in ast.walk(function) if isinstance(one, ast.stmt) and _has(one, line))


def _joined(parts: list[Lines]) -> Lines:
    joined: dict[str, set[int]] = {}
    for part in parts:
        for path, lines in part.items():
            joined.setdefault(path, set()).update(lines)
    return joined


def _functions(tree: ast.AST) -> list[Function]:
    return [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def _has(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _called(node: ast.expr) -> str:
    """`cache` of `cache`, `functools.cache` and `cache(maxsize=9)`."""
    return name_of(node.func if isinstance(node, ast.Call) else node)


def _path_of(module: str) -> str:
    file = Path(*module.split("."))
    return (file / "__init__.py" if (ROOT / file).is_dir() else file.with_suffix(".py")).as_posix()


@cache
def _module(path: str) -> Module:
    return Module(path, ast.parse((ROOT / path).read_bytes()))


@cache
def _modules() -> tuple[Module, ...]:
    files = (file for floor in FLOORS for file in sorted((ROOT / "pyhudi" / floor).rglob("*.py")))
    return tuple(_module(file.relative_to(ROOT).as_posix()) for file in files)
