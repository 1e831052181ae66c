"""Hudi's options that PyHudi knows and does not honour, from `not_honoured.json`: group → why, and its options.

Keys and defaults are those of Apache Hudi 1.2, and those of 0.15 and 1.0 that 1.2 has dropped. An option may have:

    default     Hudi's default
    refused     true: it would change a table's contents or guarantees; any value but the default and the accepted ones
                is an error. The other options affect speed or housekeeping, and cause a warning.
    accepted    values (lower case) that match what PyHudi does anyway
    older       its older spellings

A group with `"scope": "read"` has options of reads, other groups have options of writes. The file is read when a call
has a key that no class declares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TypedDict

from pyhudi.model.options.spec import Kind, OptionScope, OptionSpec, Support

__all__ = ["Catalogue", "options_not_honoured"]


class _Option(TypedDict, total=False):
    default: str
    refused: bool
    accepted: Sequence[str]
    older: Sequence[str]


@cache
def options_not_honoured() -> tuple[OptionSpec, ...]:
    """All of them, in the order of the file."""
    groups = json.loads(files("pyhudi.model.options").joinpath("not_honoured.json").read_text("utf-8"))
    return tuple(
        _spec(name, group["why"], group.get("scope", "write"), key, option)
        for name, group in groups.items()
        for key, option in group["options"].items()
    )


def _spec(group: str, why: str, scope: str, key: str, option: _Option) -> OptionSpec:
    accepted = {*option.get("accepted", ())}
    if option.get("refused"):
        accepted.add(option.get("default", "").lower())
    return OptionSpec(
        key,
        Kind.TEXT,
        option.get("default"),
        why,
        group,
        aliases=tuple(option.get("older", ())),
        support=Support.REFUSED if option.get("refused") else Support.NO_EFFECT,
        accepted=frozenset(accepted),
        scopes=frozenset({OptionScope(scope)}),
    )


class Catalogue(Mapping[str, OptionSpec]):
    """Key or older spelling → option. Those not honoured are read for the first `hoodie.…` key not among the others."""

    def __init__(self, honoured: Mapping[str, OptionSpec]) -> None:
        self._honoured = honoured

    def __getitem__(self, key: str) -> OptionSpec:
        spec = self._honoured.get(key)
        return _not_honoured()[key] if spec is None and key.startswith("hoodie.") else self._honoured[key]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._honoured, *_not_honoured()))

    def __len__(self) -> int:
        return len(self._honoured) + len(_not_honoured())


@cache
def _not_honoured() -> Mapping[str, OptionSpec]:
    return {key: spec for spec in options_not_honoured() for key in (spec.key, *spec.aliases)}
