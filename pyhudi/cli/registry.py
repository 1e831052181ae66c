"""The commands of `pyhudi`: a row each. A row is text, so that help of all of them imports none.

Source: docs/cli.md.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pyhudi.cli.reply import Reply

__all__ = ["COMMANDS", "GROUPS", "Command", "command_of", "near_commands"]


@dataclass(frozen=True, slots=True)
class Command:
    """`words`: what is typed after `pyhudi`. `target`: its function, "module:name". `summary`: the first line of the
    function's docstring. `answer`: the type of its answer, "module:name": a dataclass, a `ResultList`, an Arrow schema,
    whose rows are listed; "" for rows with the columns of the question. `is_rows`: it answers several of the dataclass.
    """

    words: str
    target: str
    summary: str
    answer: str = ""
    is_rows: bool = False

    @property
    def group(self) -> str:
        """`table` of `table describe`; "" for a command of one word."""
        return self.words.partition(" ")[0] if " " in self.words else ""

    def function(self) -> Callable[..., Reply]:
        """The function, imported now."""
        return cast("Callable[..., Reply]", load(self.target))


def load(target: str) -> object:
    """What "module:name" names."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


GROUPS = {
    "": "Rows, services and all else",
    "table": "A table as it is",
}
_TABLE = "pyhudi.cli.table"
COMMANDS = (
    Command("table describe", f"{_TABLE}:describe", "What a table is: type, version, keys, newest commit.",
            "pyhudi.table.description:TableDescription"),
    Command("table schema", f"{_TABLE}:schema", "The columns of a table.", "pyhudi.cli.table:TableColumn", True),
    Command("table files", f"{_TABLE}:files", "The newest file of each file group.", "pyhudi.table.scan:FILES_SCHEMA"),
    Command("table partitions", f"{_TABLE}:partitions", "The partitions, with their files and bytes.",
            "pyhudi.table.reports:PARTITIONS_SCHEMA"),
    Command("table history", f"{_TABLE}:history", "What happened to a table, newest first.",
            "pyhudi.queries.history:History"),
    Command("table health", f"{_TABLE}:health", "What makes a table slow or large, and what mends it.",
            "pyhudi.services.health:TableHealth"),
)  # fmt: skip


def command_of(tokens: Sequence[str]) -> tuple[Command, list[str]] | None:
    """The command that the first words name, and the words after them; None without one."""
    for count in (2, 1):
        words = " ".join(tokens[:count])
        for command in COMMANDS:
            if command.words == words:
                return command, list(tokens[count:])
    return None


def near_commands(tokens: Sequence[str]) -> list[str]:
    """Names of commands that look like what was typed."""
    typed = " ".join(tokens[:2])
    names = [command.words for command in COMMANDS]
    ends = {name.rpartition(" ")[2]: name for name in reversed(names)}
    near = get_close_matches(typed, names, n=3)
    by_word = [ends[word] for token in tokens[:2] for word in get_close_matches(token, ends, n=1)]
    return list(dict.fromkeys([*near, *by_word]))
