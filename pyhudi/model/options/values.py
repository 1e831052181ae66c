"""Resolved options as typed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.errors import ConfigError
from pyhudi.model.options.table import option

__all__ = ["Values"]


@dataclass(frozen=True, slots=True)
class Values:
    """Typed look at `given` (canonical key → text, from `resolve`); the option table has the defaults."""

    given: Mapping[str, str]
    read: set[str] = field(default_factory=set)  # keys asked for, so that a test can find rows that nobody reads

    def text(self, key: str) -> str | None:
        """The text given, else the default, else None."""
        spec = option(key)
        assert spec.key == key, f"{key} is another spelling of {spec.key}"
        self.read.add(key)
        text = self.given.get(key, "")
        return text if text else spec.default

    def must(self, key: str) -> str:
        """The text of an option that has a default."""
        text = self.text(key)
        assert text is not None, f"{key} has no default"
        return text

    def flag(self, key: str) -> bool:
        return self.must(key) == "true"

    def integer(self, key: str, minimum: int | None = None) -> int:
        """The integer. Raises ConfigError below `minimum`."""
        number = int(self.must(key))
        if minimum is not None and number < minimum:
            raise ConfigError(f"{key}: expected at least {minimum}, found {number}. See docs/options.md.")
        return number

    def number(self, key: str) -> float:
        return float(self.must(key))

    def names(self, key: str) -> tuple[str, ...]:
        """Names without blanks around them; () when none are given."""
        return tuple(part for part in (self.text(key) or "").split(",") if part)
