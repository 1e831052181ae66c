"""Families of options that this release knows and does not honour, written compactly.

`keys` holds words `[!]key[=default][<older spelling]...`, each key without its `hoodie.`. A key with `!` would change
what a table holds or promises: any value but the default and the accepted ones is refused. The others touch speed or
housekeeping: a value outside `accepted` is warned about, and `doc` says what happens instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pyhudi.model.options.spec import Door, Kind, OptionSpec, Support

__all__ = ["Family"]


@dataclass(frozen=True, slots=True)
class Family:
    """Options that share a fate. `accepted`: key without `hoodie.` → values (lower case, blank between them)."""

    group: str
    doc: str
    keys: str
    accepted: Mapping[str, str] = field(default_factory=dict)
    doors: frozenset[Door] = frozenset({Door.WRITE})

    def specs(self) -> Iterator[OptionSpec]:
        """One row of the option table for each key."""
        for word in self.keys.split():
            names, has_default, default = word.lstrip("!").partition("=")
            if has_default:
                default, *aliases = default.split("<")
            else:
                names, *aliases = names.split("<")
            refused = word.startswith("!")
            accepted = set(self.accepted.get(names, "").split())
            if refused:
                accepted |= {default.lower()} if has_default else {""}
            yield OptionSpec(
                key=f"hoodie.{names}",
                kind=_kind_of(default),
                default=default if has_default else None,
                doc=self.doc,
                group=self.group,
                aliases=tuple(f"hoodie.{alias}" for alias in aliases),
                support=Support.REFUSED if refused else Support.NO_EFFECT,
                accepted=frozenset(accepted),
                doors=self.doors,
            )


def _kind_of(default: str) -> Kind:
    """The kind that the default shows; a value of an option that is not honoured is never read."""
    if default in ("true", "false"):
        return Kind.FLAG
    if default.lstrip("-").isdigit():
        return Kind.INTEGER
    if default.replace(".", "", 1).isdigit():
        return Kind.NUMBER
    return Kind.TEXT
