"""Calls in Python, as messages of the library name them, in the words of the command line.

    HudiTable.open(path).maintenance.upgrade()  `pyhudi upgrade TABLE`
    table.alter(AddColumn('fare', ...))         `pyhudi query "ALTER TABLE … ADD COLUMNS (fare …)"`
    mode='replace'                              --mode replace
    table.constraints.drop('fare')              in Python table.constraints.drop('fare'), which no command does

What the user typed stays as it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from pyhudi.cli.registry import command_of

__all__ = ["command_for", "in_commands"]

_CALL = re.compile(r"table\.([\w.]+)\((.*)\)")
_ARGUMENTS = r"\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)"
_NAMED = re.compile(
    rf"(?<![\w.`])(?:(?:table\.|HudiTable\.open\([^()]*\)\.)([a-z_]+(?:\.[a-z_]+){{0,2}}){_ARGUMENTS}(?!\.\w)"
    rf"|HudiTable\.(?!open\b)([a-z_]+(?:\.[a-z_]+){{0,2}})(?:{_ARGUMENTS})?"
    rf"|(?:pyhudi\.)?(write_hudi|import_table|repair_properties)\b(?:{_ARGUMENTS})?)"
)
_SETTING = re.compile(r"(?<![\w-])(mode|schema_mode|overwrite|encoding|(?<!\()(?<!, )format)=(?:'([\w-]+)'|True)")
_VALUE = re.compile(r"(?:(\w+)=)?('[^']*'|\"[^\"]*\"|True|False|\d+)")
_CHANGE = re.compile(r"(AddColumn|ChangeType|DropNotNull)\('([^']+)'")
_CHANGES = {
    "AddColumn": "ADD COLUMNS ({} …)",
    "ChangeType": "ALTER COLUMN {} TYPE …",
    "DropNotNull": "ALTER COLUMN {} DROP NOT NULL",
}
_WORDS = {
    "create": "table create",
    "indexes.create": "index create",
    "indexes.build": "index build",
    "drop": "table drop",
    "indexes.drop": "index drop",
    "history": "table history",
    "health": "table health",
    "import_table": "import",
    "repair_properties": "repair properties",
    "run_ttl": "ttl",
    "savepoints.create": "savepoint create",
    "savepoints.delete": "savepoint delete",
    "set_checkpoint": "checkpoint set",
    "set_properties": "config set",
    "write_hudi": "write",
}
_WRITES = ("upsert", "insert", "bulk_insert", "delete", "insert_overwrite")


def command_for(call: str, table: str) -> str:
    """The command that does what a call of `table` in Python does; the call where there is none."""
    named = _CALL.fullmatch(call)
    if named is None:
        return call
    return _command(named[1], named[2], shlex.quote(table)) or call


def in_commands(text: str, typed: Sequence[str]) -> str:
    """A message with commands in the place of calls, but for what the user typed himself."""

    def is_typed(part: re.Match[str]) -> bool:
        return any(part[0] in token for token in typed)

    def command(found: re.Match[str]) -> str:
        if is_typed(found):
            return found[0]
        *_, name = (one for one in (found[1], found[3], found[5]) if one)
        arguments = next((one for one in (found[2], found[4], found[6]) if one), "")
        table, rest = "TABLE", arguments
        # A call of a function that takes a path: it is the first argument.
        if (found[3] or found[5] == "repair_properties") and (path := re.match(r"'([^']*)'(?:, )?", arguments)):
            table, rest = shlex.quote(path[1]), arguments[path.end() :]
        words = _command(name, rest, table)
        return f"in Python {found[0]}" if words is None else f"`{words}`"

    def option(found: re.Match[str]) -> str:
        if is_typed(found):
            return found[0]
        if found[1] == "schema_mode":
            return f"--option hoodie.pyhudi.schema.mode={found[2]}"
        return f"--{found[1]} {found[2] or ''}".rstrip()

    return _SETTING.sub(option, _NAMED.sub(command, text))


def _command(name: str, arguments: str, table: str) -> str | None:
    """The words of the command for a call; None without one."""
    name = name.removeprefix("maintenance.").removeprefix("inspect.")
    if name == "overwrite":
        return f"pyhudi write {table} FILES --mode overwrite"
    if name == "alter":
        change = _CHANGE.match(arguments)
        return f'pyhudi query "ALTER TABLE … {_CHANGES[change[1]].format(change[2]) if change else "…"}"'
    if name in _WRITES:
        return f"pyhudi write {table} FILES --operation {name}"
    words = _WORDS.get(name, name.replace(".", " ").replace("_", "-"))
    if command_of(words.split()) is None:
        return None
    place = {"write": f"{table} FILES", "import": f"KIND SOURCE {table}"}.get(words, table)
    return " ".join(["pyhudi", words, place, *_typed(arguments)])


def _typed(arguments: str) -> list[str]:
    """The values among the arguments as one types them. A dry run is the default in Python, and a question here."""
    words = []
    for keyword, literal in _VALUE.findall(arguments):
        value = literal.strip("'\"")
        if not keyword:
            words.append(shlex.quote(value))
        elif keyword == "dry_run":
            words += ["--dry-run"] if literal == "True" else []
        else:
            words += [f"--{keyword.replace('_', '-')}", *([] if literal == "True" else [shlex.quote(value)])]
    return words
