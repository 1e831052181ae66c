"""Named arguments of the public calls: their entries in `help`, and the errors for wrong names.

A call declares the options that it takes by name as `**more: Unpack[WriteArguments]`, a TypedDict of `arguments.py`,
which type checkers and editors read. `named` makes the same names visible where Python itself is asked
(`inspect.signature`, `help`, completion), with a line of the option table for each.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache, wraps
from typing import Any, TypeVar, cast

from pyhudi.errors import ConfigError
from pyhudi.model.options import KEYWORDS, spec_of
from pyhudi.table.arguments import ActionArguments, FileArguments, RowArguments
from pyhudi.table.neighbours import argument_like

__all__ = ["UnknownArgument", "argument_doc", "named", "named_methods"]

Call = TypeVar("Call", bound=Callable[..., object])
Class = TypeVar("Class", bound=type)

_UNPACKED = re.compile(r"Unpack\[(\w+)\]")
_LINK = re.compile(r" ?\(?\[[^]]*\]\(([\w-]+\.md)\)\)?")
_CALLS_SHOWN = 3  # that an error names
_NO_NAMES = frozenset({"self", "cls"})
_LINE = 110
_TAKEN_BY: dict[str, list[str]] = {}  # a name → the calls that take it


class UnknownArgument(ConfigError, TypeError):
    """A call has no argument of this name."""


def named(function: Call) -> Call:
    """The function, with the names of its options in its signature and docstring; the error for a wrong name has the
    right one.

    Raises (when called): UnknownArgument.
    """
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    options: Mapping[str, str] = {}
    takes_keys = bool(parameters) and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD
    if takes_keys:
        unpacked = _UNPACKED.search(str(parameters.pop().annotation))
        if unpacked is None:
            return function  # it passes names on to a library
        options = _types(function.__globals__[unpacked[1]])
        by_name = inspect.Parameter.KEYWORD_ONLY
        parameters += [inspect.Parameter(name, by_name, default=None, annotation=t) for name, t in options.items()]
    names = frozenset(parameter.name for parameter in parameters)
    shown = function.__qualname__.removesuffix(".__call__")
    for name in names:
        _TAKEN_BY.setdefault(name, []).append(shown)

    @wraps(function)
    def call(*positional: object, **by_name: object) -> object:
        if not by_name.keys() <= names:
            _check(by_name, names, shown, takes_keys)
        return function(*positional, **by_name)

    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    if options:
        call.__doc__ = _with_options(inspect.getdoc(function) or "", tuple(options))
    return cast("Call", call)


def named_methods(kind: Class) -> Class:
    """`named` for each public method of a class; its classmethods and staticmethods too."""
    for name, value in list(vars(kind).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(value, (classmethod, staticmethod)):
            setattr(kind, name, type(value)(named(value.__func__)))
        elif inspect.isfunction(value):
            setattr(kind, name, named(value))
    return kind


@cache
def _types(kind: type) -> Mapping[str, str]:
    """The keys of a TypedDict, with their types as text; the call's own come first."""
    types: Mapping[str, Any] = kind.__annotations__
    return {key: getattr(types[key], "__forward_arg__", str(types[key])) for key in sorted(types, key=_place)}


def _place(name: str) -> int:
    shared = (ActionArguments, FileArguments)
    return next((number for number, kind in enumerate(shared, 1) if name in kind.__annotations__), 0)


def _with_options(text: str, names: tuple[str, ...]) -> str:
    return f"{text}\n\nOptions by name; `options` takes all others (docs/options.md):\n{_documented(names)}\n"


@cache
def _documented(names: tuple[str, ...]) -> str:
    return "\n".join(
        textwrap.fill(
            f"{name}: {argument_doc(name)}",
            _LINE,
            initial_indent="    ",
            subsequent_indent="        ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for name in names
    )


def argument_doc(name: str) -> str:
    """What the option of a Python name does, its default and its key, from the option table."""
    spec = spec_of(KEYWORDS[name])
    doc = _LINK.sub(r" (docs/\1)", spec.doc)
    default = f" Default: {spec.default}." if spec.default else ""
    return f"{doc}{default} `{spec.key}`"


def _check(by_name: Mapping[str, object], names: frozenset[str], call: str, takes_keys: bool) -> None:
    """Raise UnknownArgument; a name with a dot is a key of Hudi's, where a call takes options."""
    for name in by_name:
        if name not in names and not (takes_keys and "." in name):
            raise UnknownArgument(f"{call} has no argument {name!r}. {_advice(name, names, takes_keys)}")


def _advice(name: str, names: frozenset[str], takes_options: bool) -> str:
    hint = argument_like(name, names)
    if hint is not None:
        return hint
    # The table's own calls first, in whatever order modules were imported.
    takers = sorted(_TAKEN_BY.get(name, ()), key=lambda call: not call.startswith("HudiTable."))
    calls = ", ".join(takers[:_CALLS_SHOWN])
    elsewhere = f"It is an argument of {calls}. " if calls else ""
    if name in KEYWORDS and takes_options and name not in RowArguments.__annotations__:
        return f"{elsewhere}Here it is given as options={{{KEYWORDS[name]!r}: ...}}."
    if elsewhere:
        return elsewhere.strip()
    (near,) = get_close_matches(name, names, n=1) or ("",)
    return f"Did you mean {near!r}?" if near else f"It takes {', '.join(sorted(names - _NO_NAMES))}."
