"""Errors for wrong argument names: each names the right argument, the option's key, or the call that takes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import TypeVar, cast

from pyhudi.errors import ConfigError
from pyhudi.model.options import KEYWORDS
from pyhudi.table.aliases import argument_like, option_like

__all__ = ["UnknownArgument", "checked_call", "checked_methods"]

Call = TypeVar("Call", bound=Callable[..., object])
Class = TypeVar("Class", bound=type)

_CALLS_SHOWN = 3  # that an error names
_NO_NAMES = frozenset({"self", "cls"})
_TAKEN_BY: dict[str, list[str]] = {}  # a name → the calls that take it


class UnknownArgument(ConfigError, TypeError):
    """A call has no argument of this name."""


def checked_call(function: Call) -> Call:
    """The function, whose error for a wrong argument name says the right one. Raises (when called): UnknownArgument."""
    parameters = inspect.signature(function).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return function  # it passes names on to a library
    names = frozenset(parameters)
    for name in names:
        _TAKEN_BY.setdefault(name, []).append(function.__qualname__)

    @wraps(function)
    def call(*positional: object, **by_name: object) -> object:
        if not by_name.keys() <= names:
            called = function.__qualname__
            if "self" in names:  # a method of a base class is one of its kinds
                called = f"{type(positional[0]).__name__}.{function.__name__}"
            _check(by_name, names, called)
        return function(*positional, **by_name)

    return cast("Call", call)


def checked_methods(kind: Class) -> Class:
    """`checked_call` for each public method of a class; its classmethods and staticmethods too."""
    for name, value in list(vars(kind).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(value, (classmethod, staticmethod)):
            setattr(kind, name, type(value)(checked_call(value.__func__)))
        elif inspect.isfunction(value):
            setattr(kind, name, checked_call(value))
    return kind


def _check(by_name: Mapping[str, object], names: frozenset[str], call: str) -> None:
    unknown = next(name for name in by_name if name not in names)
    raise UnknownArgument(f"{call} has no argument {unknown!r}. {_advice(unknown, names)}")


def _advice(name: str, names: frozenset[str]) -> str:
    takes_options = "options" in names
    if takes_options and "." in name:
        return f"Hudi's keys go into options={{{name!r}: ...}}."
    if takes_options and name in KEYWORDS:
        return f"Here it is given as options={{{KEYWORDS[name]!r}: ...}}."
    hint = argument_like(name, names)
    if hint is not None:
        return hint
    option = option_like(name) if takes_options else None
    if option is not None:
        return f"Here it is given as options={{{option!r}: ...}}."
    # The table's own calls first, in whatever order modules were imported.
    takers = sorted(_TAKEN_BY.get(name, ()), key=lambda call: not call.startswith("HudiTable."))
    if takers:
        return f"It is an argument of {', '.join(takers[:_CALLS_SHOWN])}."
    (near,) = get_close_matches(name, names, n=1) or ("",)
    return f"Did you mean {near!r}?" if near else f"It takes {', '.join(sorted(names - _NO_NAMES))}."
