"""Registry of plug-ins: name → "module:Class", with Java class names as aliases.

A row is text, so imports happen on first use, and only names are sent to executors. A user's class is named in full,
"my_package.keys:HashedKey", and needs no row.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Generic, TypeVar, cast

from pyhudi.errors import ConfigError

__all__ = ["Registry"]

Plugin = TypeVar("Plugin")  # a class by its use, such as a factory of indexes


@dataclass(frozen=True, slots=True)
class Registry(Generic[Plugin]):
    """The plug-ins of one kind. `entries`: name → "module:Class"; `aliases`: another spelling → name."""

    kind: str
    entries: Mapping[str, str]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def canonical(self, name: str) -> str:
        """The registered name for a name, an alias or a class path; a "module:Class" path is returned as it is.

        Raises ConfigError, naming the nearest known name, for anything else.
        """
        if name in self.aliases:
            return self.aliases[name]
        if name.upper() in self.entries:
            return name.upper()
        if name in self.entries or ":" in name:
            return name
        known = [*self.entries, *self.aliases]
        near = get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ConfigError(
            f"Unknown {self.kind} {name!r}.{hint} Known: {', '.join(self.entries)}; "
            f"or name a class of your own as 'module:Class'."
        )

    def load(self, name: str) -> Plugin:
        """The class behind a name. Raises ConfigError when it can't be imported."""
        target = self.canonical(name)
        module_name, _, attribute = self.entries.get(target, target).partition(":")
        try:
            return cast("Plugin", getattr(importlib.import_module(module_name), attribute))
        except (ImportError, AttributeError) as error:
            raise ConfigError(f"The {self.kind} {name!r} can't be imported from {module_name!r}: {error}.") from error
