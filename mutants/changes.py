"""The changes that break a line: one small piece of text of a module replaced by another, found in its syntax tree.

Left alone is what no test should mind: docstrings, texts of errors and warnings, annotations, assertions, f-strings
(before Python 3.12 their positions are wrong), and what `unnoticeable` names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from mutants.unnoticeable import ROUND_NUMBERS, compares_round_number, is_left_out, name_of, steers_sharing_out

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
_FUNCTIONS = {
    "all": "any",
    "any": "all",
    "max": "min",
    "min": "max",
    "and_": "or_",
    "or_": "and_",
    "and_kleene": "or_kleene",
    "or_kleene": "and_kleene",
    "equal": "not_equal",
    "not_equal": "equal",
    "greater": "greater_equal",
    "greater_equal": "greater",
    "less": "less_equal",
    "less_equal": "less",
    "is_null": "is_valid",
    "is_valid": "is_null",
    "startswith": "endswith",
    "partition": "rpartition",
    "rpartition": "partition",
}
# What a function of this return type may answer instead, by how its annotation begins; the first that fits.
_ANSWERS = (
    ("bool", "not ({})"),
    ("int", "({}) + 1"),
    ("str", "''"),
    ("list[", "[]"),
    ("dict[", "{{}}"),
    ("set[", "set()"),
    ("frozenset[", "frozenset()"),
    ("Mapping[", "{{}}"),
    ("Sequence[", "()"),
    ("Collection[", "()"),
    ("Iterable[", "()"),
)
_MESSAGES = re.compile(r"(warn|Warning|Error|debug|info|log)$")


@dataclass(frozen=True, slots=True)
class Change:
    """Bytes `start` to `end` of the module become `new`.

    `line`: where the changed piece begins; `statement`: where its statement does; `name`: the constant that it gives a
    value, for a line of a module's own body.
    """

    start: int
    end: int
    new: str
    kind: str
    line: int
    statement: int
    name: str = ""


class Source:
    """A module's text, and where the pieces of its tree are in it."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def start(self, node: ast.expr | ast.stmt) -> int:
        """The byte at which a piece begins."""
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        """The byte after its last one."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def of(self, node: ast.expr | ast.stmt) -> str:
        """Its text."""
        return self.text[self.start(node) : self.end(node)].decode()

    @cached_property
    def changes(self) -> list[Change]:
        """Every change of the module, those that Python can't compile too."""
        return [*_Finder(self).found()]

    def changed(self, change: Change) -> bytes:
        """The module's text with one change."""
        return self.text[: change.start] + change.new.encode() + self.text[change.end :]

    def before_and_after(self, change: Change) -> tuple[str, str]:
        """The line, or lines, that a change is in: as they are and as they become, each as one line."""
        first = self.text.rfind(b"\n", 0, change.start) + 1
        last = self.text.find(b"\n", change.end)
        before = self.text[first:last]
        after = self.text[first : change.start] + change.new.encode() + self.text[change.end : last]
        return " ".join(before.decode().split()), " ".join(after.decode().split())

    def compiles(self, change: Change) -> bool:
        """Whether Python can compile the changed module."""
        try:
            compile(self.changed(change), "changed", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return False
        return True


class _Finder:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._statement: ast.stmt = ast.Pass(lineno=1, col_offset=0)
        self._constant = ""

    @property
    def _is_round(self) -> bool:
        """Whether the statement gives a round number its value."""
        return any(name_of(target) in ROUND_NUMBERS for target in targets_of(self._statement))

    def found(self) -> Iterator[Change]:
        """Changes in the bodies of functions, and in numbers and texts that the module names."""
        for node in self._source.tree.body:
            target = next(iter(targets_of(node)), None)
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(target, ast.Name) and node.value:
                self._statement, self._constant = node, target.id
                yield from self._expression(node.value) if target.id != "__all__" else ()
        self._constant = ""
        for function in ast.walk(self._source.tree):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for statement in function.body:
                    yield from self._in_statement(statement, function)

    def _change(self, node: ast.expr | ast.stmt, new: str, kind: str) -> Change:
        return self._between(self._source.start(node), self._source.end(node), new, kind, node.lineno)

    def _between(self, start: int, end: int, new: str, kind: str, line: int) -> Change:
        return Change(start, end, new, kind, line, self._statement.lineno, self._constant)

    def _in_statement(self, node: ast.stmt, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Change]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assert)):
            return  # a function within one is visited by itself
        self._statement = node
        yield from self._whole_statement(node, function)
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            return
        if isinstance(node, (ast.If, ast.While)):
            yield self._change(node.test, f"not ({self._source.of(node.test)})", "condition negated")
        for child in ast.iter_child_nodes(node):
            self._statement = node
            if isinstance(child, ast.stmt):
                yield from self._in_statement(child, function)
            elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
                for inner in child.body:
                    yield from self._in_statement(inner, function)
            elif isinstance(child, ast.withitem):
                yield from self._expression(child.context_expr)
            elif isinstance(child, ast.expr) and child is not getattr(node, "annotation", None):
                yield from self._expression(child)

    def _whole_statement(self, node: ast.stmt, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Change]:
        if isinstance(node, ast.Raise):
            yield self._change(node, "pass", "refusal removed")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield self._change(node, "pass", "statement removed")
        elif isinstance(node, ast.Expr) and isinstance(node.value, (ast.Yield, ast.YieldFrom)):
            yield self._change(node, f"if False: {self._source.of(node)}", "statement removed")
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.Delete)):
            targets = targets_of(node) if not isinstance(node, ast.AugAssign) else ()
            if not any(isinstance(target, (ast.Name, ast.Tuple)) for target in targets):
                yield self._change(node, "pass", "statement removed")
        elif isinstance(node, (ast.Continue, ast.Break)):
            yield self._change(node, "break" if isinstance(node, ast.Continue) else "continue", "loop")
        elif isinstance(node, ast.Return) and node.value is not None and function.returns is not None:
            declared = self._source.of(function.returns).strip("\"'")
            text = self._source.of(node.value)
            answer = next((new for begin, new in _ANSWERS if declared.startswith(begin)), None)
            if declared.startswith("tuple[") and declared.endswith(", ...]"):
                answer = "()"
            answer = "None" if "| None" in declared else answer
            if answer is not None and answer != text:
                yield self._change(node.value, answer.format(text), "return value replaced")

    def _expression(self, node: ast.expr) -> Iterator[Change]:
        source = self._source
        if isinstance(node, ast.JoinedStr) or steers_sharing_out(node):
            return
        if isinstance(node, ast.Compare) and compares_round_number(node):
            return
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            words = _COMPARISONS[type(node.ops[0])]
            yield from self._swapped(node.left, node.comparators[0], words, "comparison swapped")
        elif isinstance(node, ast.BoolOp):
            words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from self._swapped(left, right, words, "and/or swapped")
        elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS and not _is_text(node):
            yield from self._swapped(node.left, node.right, _OPERATORS[type(node.op)], "operator swapped")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert)):
            yield self._change(node, f"({source.of(node.operand)})", "negation removed")
        elif isinstance(node, ast.IfExp):
            yield self._change(node.test, f"not ({source.of(node.test)})", "condition negated")
        elif isinstance(node, ast.Constant):
            if not (self._is_round and isinstance(node.value, (int, float))):
                yield from (self._change(node, new, "constant changed") for new in _other_values(node.value))
        elif isinstance(node, ast.Call):
            yield from self._call(node)
            if _MESSAGES.search(source.of(node.func)):
                return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.comprehension):
                yield from self._expression(child.iter)
                for test in child.ifs:
                    yield self._change(test, f"not ({source.of(test)})", "condition negated")
                    yield from self._expression(test)
            elif isinstance(child, ast.keyword):
                is_out = isinstance(node, ast.Call) and is_left_out(node, child)
                yield from () if is_out else self._expression(child.value)
            elif isinstance(child, ast.expr) and not _is_type(node, child):
                yield from self._expression(child)

    def _call(self, node: ast.Call) -> Iterator[Change]:
        name = name_of(node.func)
        if name in _FUNCTIONS:
            end = self._source.end(node.func)
            yield self._between(end - len(name), end, _FUNCTIONS[name], "function swapped", node.lineno)
        if name == "len":
            yield self._change(node, f"({self._source.of(node)} + 1)", "one more")
        for keyword in node.keywords:
            if keyword.arg is not None and not is_left_out(node, keyword):
                value_end = self._source.end(keyword.value)
                start = value_end - len(self._source.of(keyword.value).encode()) - len(keyword.arg) - 1
                more = re.match(rb"\s*,", self._source.text[value_end:])
                end = value_end + (more.end() if more else 0)
                yield self._between(start, end, "", "argument dropped", keyword.value.lineno)

    def _swapped(self, left: ast.expr, right: ast.expr, words: tuple[str, str], kind: str) -> Iterator[Change]:
        start, end = self._source.end(left), self._source.start(right)
        between = self._source.text[start:end].decode()
        edge = r"\b" if words[0].isalnum() else ""
        new, times = re.subn(edge + re.escape(words[0]).replace(r"\ ", r"\s+") + edge, words[1], between)
        if times == 1 and "#" not in between:
            yield self._between(start, end, new, kind, right.lineno)


def targets_of(node: ast.stmt) -> Sequence[ast.expr]:
    """What a statement gives a value to, or deletes."""
    if isinstance(node, (ast.Assign, ast.Delete)):
        return node.targets
    return (node.target,) if isinstance(node, (ast.AnnAssign, ast.AugAssign)) else ()


def _other_values(value: object) -> list[str]:
    if isinstance(value, bool):
        return [repr(not value)]
    if isinstance(value, (int, float)):
        return [repr(value + 1), repr(value - 1)]
    if isinstance(value, (str, bytes)) and not (" " in value if isinstance(value, str) else b" " in value):
        return [repr(value + "~" if isinstance(value, str) else value + b"~")]
    return []


def _is_text(node: ast.BinOp) -> bool:
    """Whether one side is a literal text: taking it from another is an error at once, and says nothing."""
    sides = (node.left, node.right)
    return any(
        isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and isinstance(s.value, str)) for s in sides
    )


def _is_type(node: ast.expr, child: ast.expr) -> bool:
    """Whether `child` is the type that `node` casts to."""
    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return name in ("cast", "TypeVar") and isinstance(node, ast.Call) and child is node.args[0]
