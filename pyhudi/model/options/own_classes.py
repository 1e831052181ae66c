"""Options of a user's own lock provider or index: its class declares them, as a topic of ours does.

The class names in `options_class` a frozen dataclass whose fields are made by `option` (`declare.py`). Then these keys
are known where the class is named: they are checked, have defaults and older spellings, and a wrong one is told the
nearest. docs/contributing/add-a-lock-provider.md and docs/contributing/add-an-index.md walk through examples.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import TYPE_CHECKING, TypeVar

from pyhudi.errors import ConfigError
from pyhudi.model.options.declare import Values, parse, specs_of
from pyhudi.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from _typeshed import DataclassInstance

    from pyhudi.model.options.spec import OptionSpec

__all__ = ["is_own_class", "own_options", "own_rows", "own_texts"]

Options = TypeVar("Options", bound="DataclassInstance")


def is_own_class(name: str) -> bool:
    """Is this a class of the user's, "module:Class"? All others are names that we know."""
    return ":" in name


def own_rows(option_key: str, name: str) -> tuple[OptionSpec, ...]:
    """The options that the class `name`, given as `option_key`, declares; none for a name that we know.

    Raises ConfigError for a class that can't be imported, and for an `options_class` that declares none.
    """
    if not is_own_class(name):
        return ()
    classes: Registry[type] = Registry(option_key, {})
    declared = getattr(classes.load(name), "options_class", None)
    if declared is None:
        return ()
    rows = tuple(specs_of(declared)) if is_dataclass(declared) and isinstance(declared, type) else ()
    if not rows:
        raise ConfigError(
            f"{option_key}={name}: its options_class is {declared!r}; expected a dataclass whose fields are made by "
            f"pyhudi.model.options.declare.option. See docs/contributing/add-an-option.md."
        )
    return rows


def own_texts(option_key: str, name: str, values: Values) -> dict[str, str]:
    """What the call gives for the options of that class: key → text."""
    return {row.key: values.given[row.key] for row in own_rows(option_key, name) if row.key in values.given}


def own_options(kind: type[Options], texts: Mapping[str, str]) -> Options:
    """The options that a class declares, from text. Raises ConfigError for a wrong value."""
    return parse(kind, Values(texts))
