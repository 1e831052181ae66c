"""The TypedDicts of arguments say what the option table says: names, types, values and texts."""

from __future__ import annotations

import ast
import inspect

import pytest

from pyhudi.model.options import KEYWORDS, Kind, spec_of
from pyhudi.table import arguments
from pyhudi.table.named_arguments import argument_doc

TYPES = {Kind.FLAG: "bool", Kind.INTEGER: "int", Kind.NUMBER: "float", Kind.NAMES: "str | Sequence[str]"}
LONG = {"payload_class"}  # names of classes that say themselves what they are


def declared() -> dict[str, tuple[str, str]]:
    """Name → its type and its docstring, as the file has them."""
    found: dict[str, tuple[str, str]] = {}
    for node in ast.parse(inspect.getsource(arguments)).body:
        if isinstance(node, ast.ClassDef):
            for field, text in zip(node.body, node.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    assert field.target.id not in found, "one argument is declared in one place"
                    assert isinstance(text, ast.Expr), field.target.id
                    assert isinstance(text.value, ast.Constant)
                    found[field.target.id] = (ast.unparse(field.annotation), str(text.value.value))
    return found


def test_every_python_name_of_an_option_is_an_argument_and_nothing_else_is() -> None:
    assert sorted({*declared(), "operation"}) == sorted(KEYWORDS), "operation: of write_hudi alone"


@pytest.mark.parametrize("name", sorted(declared()))
def test_type_and_text_of_an_argument_are_those_of_its_option(name: str) -> None:
    annotation, text = declared()[name]
    spec = spec_of(KEYWORDS[name])
    kind = TYPES.get(spec.kind, "str")
    if spec.choices and spec.kind is Kind.TEXT and name not in LONG:
        kind = f"Literal[{', '.join(repr(choice) for choice in spec.choices)}] | str"
    assert annotation == f"{kind} | None"
    assert " ".join(text.split()) == argument_doc(name)
