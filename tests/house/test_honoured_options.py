"""An option that is accepted and ignored is worse than one that is refused: what is listed as honoured does something.

From both ends: giving the option changes what a call asks for (or is answered by name), and each field of what a call
asks for is looked at outside the option table.
"""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from typing import Any

import pytest

from pyhudi.errors import ConfigError
from pyhudi.model import options as package
from pyhudi.model.options import (
    OPTIONS,
    HudiOptionWarning,
    Kind,
    OptionScope,
    OptionSpec,
    ReadOptions,
    WriteOptions,
    streamer_options,
)
from tests.support.source import attribute_chains, modules

PARSE: dict[OptionScope, Callable[[dict[str, str]], Any]] = {
    OptionScope.WRITE: WriteOptions.parse,
    OptionScope.READ: ReadOptions.parse,
    OptionScope.STREAM: streamer_options,
}
HONOURED = [
    pytest.param(spec, scope, id=f"{spec.key}-{scope.value}") for spec in OPTIONS for scope in sorted(spec.scopes)
]
# Options that say something about another one only.
NEEDED = {
    "hoodie.datasource.write.commitmeta.key.prefix": {"text.of": "the caller"},
    "hoodie.orc.compression.codec": {"hoodie.table.base.file.format": "ORC"},
    "hoodie.pyhudi.apply.changes.note": {"hoodie.pyhudi.apply.changes.after": "none"},
    "hoodie.pyhudi.streamer.notes": {"hoodie.pyhudi.streamer.after": "none"},
    "hoodie.orc.max.file.size": {"hoodie.table.base.file.format": "ORC"},
}
# What an options object, or a part of one, is called where it is used; parts are also called by their field's name.
CALLED = {"options", "_options", "own", "read_options", "requested", "settings", "_settings", "given"}


def other_values(spec: OptionSpec) -> list[str]:
    """Values to try; for an option with one choice only, a wrong one."""
    if spec.kind is Kind.FLAG:
        return ["true", "false"]
    if spec.choices:
        return [text for text in spec.choices if text != spec.default] or ["no such choice"]
    if spec.kind in (Kind.INTEGER, Kind.NUMBER):
        return [str(int(float(spec.default or 0)) + 1), "1", "0"]
    return ["text"]


@pytest.mark.parametrize(("spec", "scope"), HONOURED)
def test_giving_an_honoured_option_changes_what_the_call_asks_for(spec: OptionSpec, scope: OptionScope) -> None:
    needed = NEEDED.get(spec.key, {})
    plain = PARSE[scope](needed)

    def does_something(text: str) -> bool:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", HudiOptionWarning)
                given = PARSE[scope]({**needed, spec.key: text})
        except (ConfigError, HudiOptionWarning) as answer:
            return spec.key in str(answer)
        return bool((replace(given, explicit=plain.explicit) if scope is OptionScope.WRITE else given) != plain)

    assert any(does_something(text) for text in other_values(spec))


def option_classes() -> Iterator[type]:
    """The dataclasses that options are parsed into."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if module.name.rpartition(".")[2] in ("__main__", "declare", "spec"):  # the table itself
            continue
        loaded = import_module(module.name)
        for kind in vars(loaded).values():
            if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == loaded.__name__:
                yield kind


def test_every_field_that_options_are_parsed_into_is_looked_at() -> None:
    classes = list(option_classes())
    parts = {field.name for kind in classes for field in fields(kind)}
    used = set()
    for path, tree in modules().items():
        if not path.startswith("pyhudi/model/options/"):
            for name, _ in attribute_chains(tree):
                owner, _, attribute = name.rpartition(".")
                if owner.rpartition(".")[2] in CALLED | parts:
                    used.add(attribute)
    unused = {f"{kind.__name__}.{field.name}" for kind in classes for field in fields(kind) if field.name not in used}
    assert unused == set()
