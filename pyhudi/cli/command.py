"""A row of the command line: its words, the method that it calls, and its arguments. A row imports nothing."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyhudi.errors import ConfigError

__all__ = ["DRY_RUN", "TABLE", "YES", "Command", "CommandArgument", "arg", "load", "names_of", "pairs_of"]


@dataclass(frozen=True, slots=True)
class CommandArgument:
    """`names`: `--limit`, `-n`; or only one name, for a positional argument. `meaning`: its help.
    `settings`: others of argparse's `add_argument`. `convert`: turns the parsed value into the method's.
    """

    names: tuple[str, ...]
    meaning: str
    settings: Mapping[str, Any]
    convert: Callable[[Any], object] | None = None

    @property
    def is_placed(self) -> bool:
        """True for a positional argument."""
        return not self.names[0].startswith("-")

    @property
    def typed(self) -> tuple[str, ...]:
        """Its names as users type them."""
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
YES = arg("--yes", "-y", meaning="Don't ask for confirmation; for scripts.", action="store_true")


def _always(plan: object) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Command:
    """`words`: the words after `pyhudi`. `summary`, `details`: its help. `method`: of a table, by its path from
    HudiTable, or of `pyhudi`; "" where there is none.

    takes:        its arguments; TABLE comes first if it is not among them.
    own:          "module:name" of a function that is called instead of the method, because it does more.
    asks:         the question before the method, which has `dry_run`, changes something; "" if it does not ask.
    changes:      tells if a plan changes anything; otherwise the command does not ask.
    wrong:        tells if the answer has findings, which end a run with exit code 3.
    has_options:  it takes `--option`.
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
        """All of its own arguments, in order."""
        table = (TABLE,) if self.method and TABLE not in self.takes else ()
        return (*table, *self.takes, *((DRY_RUN, YES) if self.asks else ()))

    @property
    def usage(self) -> str:
        """Its words and positional arguments: `savepoint create TABLE [INSTANT]`."""
        positional = [(one.typed[0], one.settings.get("nargs")) for one in self.arguments if one.is_placed]
        return " ".join([self.words, *(f"[{name}]" if nargs == "?" else name for name, nargs in positional)])


def load(target: str) -> Any:
    """The object named "module:name"."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def names_of(text: str) -> list[str]:
    """Names that are separated by commas."""
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
