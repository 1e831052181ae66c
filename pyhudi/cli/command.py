"""A row of the command line: what is typed, the method that it calls, and what it takes. A row imports nothing."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyhudi.errors import ConfigError

__all__ = ["DRY_RUN", "TABLE", "YES", "Command", "CommandArgument", "arg", "load", "names_of", "pairs_of"]


@dataclass(frozen=True, slots=True)
class CommandArgument:
    """`names`: `--limit`, `-n`; or one name alone, for an argument that goes by its place. `meaning`: its help.
    `settings`: further ones of argparse's `add_argument`. `convert`: makes the method's value of the parsed one.
    """

    names: tuple[str, ...]
    meaning: str
    settings: Mapping[str, Any]
    convert: Callable[[Any], object] | None = None

    @property
    def is_placed(self) -> bool:
        """Does it go by its place?"""
        return not self.names[0].startswith("-")

    @property
    def typed(self) -> tuple[str, ...]:
        """Its names as users see them."""
        return (self.settings.get("metavar", self.names[0].upper()),) if self.is_placed else self.names

    @property
    def keyword(self) -> str:
        """The argument of the method."""
        return str(self.settings.get("dest", self.names[0].lstrip("-").replace("-", "_")))


def arg(*names: str, meaning: str, convert: Callable[[Any], object] | None = None, **settings: Any) -> CommandArgument:
    """A `CommandArgument`."""
    return CommandArgument(names, meaning, settings, convert)


TABLE = arg("table", meaning="Path of the table; with --catalog its name.")
DRY_RUN = arg("--dry-run", meaning="Only show what would be done.", action="store_true")
YES = arg("--yes", "-y", meaning="Do it without asking, as scripts want it.", action="store_true")


def _always(plan: object) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Command:
    """`words`: what is typed after `pyhudi`. `summary`, `details`: its help. `method`: of a table, by its path from
    HudiTable, or of `pyhudi`; "" where there is none.

    takes:        after TABLE, if it is not among them.
    own:          "module:name" of the function that is called in place of the method: it has more to do.
    asks:         the question before the method, which has `dry_run`, changes something; "" where nobody is asked.
    changes:      does a plan change anything? Nobody is asked where it does not.
    wrong:        has the answer findings? They end a run with exit code 3.
    has_options:  does it take `--option`?
    """

    words: str
    summary: str
    method: str
    takes: tuple[CommandArgument, ...] = ()
    details: str = ""
    own: str = ""
    asks: str = ""
    changes: Callable[[Any], object] = _always
    wrong: Callable[[Any], object] | None = None
    has_options: bool = True

    @property
    def group(self) -> str:
        """`table` of `table describe`; "" for a command of one word."""
        return self.words.partition(" ")[0] if " " in self.words else ""

    @property
    def arguments(self) -> tuple[CommandArgument, ...]:
        """All that are its own, in their order."""
        table = (TABLE,) if self.method and TABLE not in self.takes else ()
        return (*table, *self.takes, *((DRY_RUN, YES) if self.asks else ()))

    @property
    def usage(self) -> str:
        """Its words and the arguments that go by place: `savepoint create TABLE [INSTANT]`."""
        placed = [(one.typed[0], one.settings.get("nargs")) for one in self.arguments if one.is_placed]
        return " ".join([self.words, *(f"[{name}]" if nargs == "?" else name for name, nargs in placed)])


def load(target: str) -> Any:
    """What "module:name" names."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def names_of(text: str) -> list[str]:
    """Names with commas."""
    return [name.strip() for name in text.split(",")]


def pairs_of(flag: str, texts: Sequence[str] | None) -> dict[str, str]:
    """`KEY=VALUE` texts as a dict. Raises ConfigError for one without a key or "="."""
    pairs: dict[str, str] = {}
    for text in texts or ():
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise ConfigError(f"{flag} takes KEY=VALUE, found {text!r}.")
        pairs[key.strip()] = value
    return pairs
