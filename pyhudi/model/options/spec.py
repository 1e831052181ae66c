"""One option: its key, kind of value, default, older spellings and support in this release.

Keys, defaults and older spellings are Hudi's (1.2, with other spellings of 0.15 and 1.0). Keys that begin with
`hoodie.pyhudi.` are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from pyhudi.errors import ConfigError

__all__ = [
    "ON_READ",
    "ON_READ_AND_WRITE",
    "HudiOptionWarning",
    "Kind",
    "OptionScope",
    "OptionSpec",
    "Support",
    "text_of",
]


class HudiOptionWarning(UserWarning):
    """An option is unknown, or known and without effect in this release."""


class Kind(str, Enum):
    """The type of an option's value."""

    TEXT = "text"
    FLAG = "true or false"
    INTEGER = "integer"
    NUMBER = "number"
    NAMES = "names, comma separated"


class OptionScope(str, Enum):
    """The kind of call that an option applies to."""

    WRITE = "write"
    READ = "read"
    STREAM = "stream"  # a pipeline of the Streamer


ON_READ = frozenset({OptionScope.READ})
ON_READ_AND_WRITE = frozenset({OptionScope.READ, OptionScope.WRITE})


class Support(str, Enum):
    """The support of an option in this release.

    HONOURED: it does what Hudi documents. NO_EFFECT: it could only change speed or housekeeping, never contents; a
    value outside `accepted` causes a warning by name. REFUSED: it would change contents or promises that this release
    can't keep; a value outside `accepted` is an error.
    """

    HONOURED = "honoured"
    NO_EFFECT = "no effect"
    REFUSED = "refused"


_SHORT = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}  # as in SQL's `type`


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """A row of the option table.

    `default` is the text of the default, None when there is none. `doc` describes in one line the option's effect, or
    our behaviour for an option that is not honoured. `group` is its heading on the page. `aliases` are older or other
    spellings. `accepted` (lower case): values of an option that is not honoured that match our behaviour. `choices`:
    the values of an honoured option (compared without case); `later`: Hudi's values that this release refuses by name.
    `minimum` is that of an integer. `keyword` is its name in Python calls. `may_be_empty`: an empty text means "none";
    for any other option it means "not set". `secret`: its value is never shown.
    """

    key: str
    kind: Kind
    default: str | None
    doc: str
    group: str = ""
    aliases: tuple[str, ...] = ()
    support: Support = Support.HONOURED
    accepted: frozenset[str] = frozenset()
    choices: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    scopes: frozenset[OptionScope] = frozenset({OptionScope.WRITE})
    minimum: int | None = None
    keyword: str | None = None
    may_be_empty: bool = False
    secret: bool = False

    def normalise(self, text: str) -> str:
        """The text as this option stores it. Raises ConfigError for an invalid value."""
        text = text.strip()
        if self.kind is Kind.FLAG:
            if text.lower() not in ("true", "false"):
                raise self._wrong(text, "true or false")
            return text.lower()
        if self.kind in (Kind.INTEGER, Kind.NUMBER):
            try:
                int(text) if self.kind is Kind.INTEGER else float(text)
            except ValueError:
                raise self._wrong(text, f"one {self.kind.value}") from None
        if self.kind is Kind.NAMES:
            return ",".join(part for part in (piece.strip() for piece in text.split(",")) if part)
        return self._choice(text) if self.choices else text

    def _choice(self, text: str) -> str:
        text = _SHORT.get(text.lower(), text)
        by_lower_case: Mapping[str, str] = {choice.lower(): choice for choice in self.choices}
        if text.lower() in by_lower_case:
            return by_lower_case[text.lower()]
        if text.lower() in {value.lower() for value in self.later}:
            raise ConfigError(
                f"{self.key}={text}: Hudi has this value, this release of PyHudi does not do it yet. "
                f"Use one of {', '.join(self.choices)}; nothing was written."
            )
        raise self._wrong(text, f"one of {', '.join(self.choices)}")

    def _wrong(self, text: str, expected: str) -> ConfigError:
        return ConfigError(f"{self.key}: expected {expected}, found {text!r}. See docs/options.md.")


def text_of(value: object) -> str:
    """Convert a Python value to option text: True → "true", a list or tuple → its items with commas, None → "", a
    function → "module:name".
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(text_of(item) for item in value)
    if callable(value):
        return f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', type(value).__qualname__)}"
    return str(value)
