"""Short form of a row of the option table for options that are honoured."""

from __future__ import annotations

from pyhudi.model.options.spec import Door, Kind, OptionSpec

__all__ = ["honoured"]


def honoured(
    group: str,
    key: str,
    kind: Kind,
    default: str | None,
    doc: str,
    *aliases: str,
    choices: tuple[str, ...] = (),
    later: tuple[str, ...] = (),
    doors: frozenset[Door] = frozenset({Door.WRITE}),
) -> OptionSpec:
    """A row whose option does what its doc says. `aliases`: other spellings of the key."""
    return OptionSpec(key, kind, default, doc, group, aliases, choices=choices, later=later, doors=doors)
