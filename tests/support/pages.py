"""The examples of the project's pages: read, run, and what they say compared with what comes."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from tests.support.source import ROOT

__all__ = ["examples", "run_examples"]

_SPARK = re.compile(r"SparkSession|\bspark\.|\bdf\.write|\bevents\.|enable\(spark\)|write_batches_to")
_RESULT = re.compile(r"# → (.*)$")


def examples(page: str, *, with_spark: bool | None = None) -> list[str]:
    """The Python examples of a page, which is named without `.md`. `with_spark`: those alone that need a session, or
    that need none.
    """
    found = re.findall(r"```python\n(.*?)```", (ROOT / f"{page}.md").read_text(), re.S)
    return [text for text in found if with_spark is None or (_SPARK.search(text) is not None) is with_spark]


def run_examples(
    page: str, places: Mapping[str, str], given: Mapping[str, Any], *, with_spark: bool | None = None
) -> int:
    """Run the examples of a page, one after the other; the number of lines whose result was compared.

    Args:    places: text of an example → text in its place, for folders. given: names that the page takes as known.
    Raises:  AssertionError where a line says another result in a comment `# → text`.
    """
    compared = 0

    def says(expected: str, *values: object) -> None:
        nonlocal compared
        compared += 1
        found = " ".join(map(str, values))
        pattern = ".*".join(map(re.escape, expected.split("…")))
        assert re.fullmatch(pattern, found, re.S), f"{page}.md says {expected}, found {found}"

    names = {**given, "_says": says}
    for number, text in enumerate(examples(page, with_spark=with_spark), 1):
        for place, instead in places.items():
            text = text.replace(place, instead)
        tree = _Comparing(text.splitlines()).visit(ast.parse(text))
        exec(compile(ast.fix_missing_locations(tree), f"{page}.md, example {number}", "exec"), names)
    return compared


class _Comparing(ast.NodeTransformer):
    """Puts a call of `_says` in the place of an expression that ends in `# → text`."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        shown_text = _RESULT.search(self.lines[(node.end_lineno or node.lineno) - 1])
        if shown_text is None:
            return node
        value = node.value
        is_print = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print"
        values = value.args if is_print and isinstance(value, ast.Call) else [value]
        call = ast.Call(ast.Name("_says", ast.Load()), [ast.Constant(shown_text[1].strip()), *values], [])
        return ast.copy_location(ast.Expr(ast.copy_location(call, value)), node)
