"""Translates Python calls in the library's messages to commands of the command line.

    HudiTable.open(path).maintenance.upgrade()  `pyhudi upgrade TABLE`
    table.alter(AddColumn('fare', ...))         `pyhudi query "ALTER TABLE … ADD COLUMNS (fare …)"`
    mode='replace'                              --mode replace
    table.constraints.drop('fare')              in Python table.constraints.drop('fare'), if there is no command

The user's own words are not changed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from pyhudi.cli.command import Command
from pyhudi.cli.commands import COMMANDS

__all__ = ["command_for", "in_commands"]

_CALL = re.compile(r"table\.([\w.]+)\((.*)\)")
_ARGUMENTS = r"\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)"
_NAMED = re.compile(
    rf"(?<![\w.`])(?:(?:table\.|HudiTable\.open\([^()]*\)\.)([a-z_]+(?:\.[a-z_]+)*){_ARGUMENTS}(?!\.\w)"
    rf"|(?:HudiTable\.(?!open\b)|(?:pyhudi\.)?(?=(?:write_hudi|import_table|repair_properties)\b))([a-z_]+(?:\.[a-z_]+)*)"
    rf"(?:{_ARGUMENTS})?)"
)
_SETTING = re.compile(r"(?<![\w-])(mode|schema_mode|overwrite|encoding|(?<!\()(?<!, )format)=(?:'([\w-]+)'|True)")
_VALUE = re.compile(r"(?:(\w+)=)?('[^']*'|\"[^\"]*\"|True|False|\d+)")
_CHANGE = re.compile(r"(AddColumn|ChangeType|DropNotNull)\('([^']+)'")
_CHANGES = {
    "AddColumn": "ADD COLUMNS ({} …)",
    "ChangeType": "ALTER COLUMN {} TYPE …",
    "DropNotNull": "ALTER COLUMN {} DROP NOT NULL",
}
_COMMANDS = {one.method.removeprefix("pyhudi."): one for one in reversed(COMMANDS) if one.method}
_COMMANDS["repair_properties"] = next(one for one in COMMANDS if one.words == "repair properties")
_PLACES = {"write": "{} FILES", "import": "KIND SOURCE {}"}
_WRITES = ("upsert", "insert", "bulk_insert", "delete", "insert_overwrite")


def command_for(call: str, table: str) -> str:
    """The command for a Python call of `table`; the call itself if there is none."""
    match = _CALL.fullmatch(call)
    if match is None:
        return call
    return _command(match[1], match[2], shlex.quote(table)) or call


def in_commands(text: str, typed: Sequence[str]) -> str:
    """A message with commands instead of calls, except in the user's own words."""

    def is_typed(part: re.Match[str]) -> bool:
        return any(part[0] in token for token in typed)

    def command(match: re.Match[str]) -> str:
        if is_typed(match):
            return match[0]
        name, arguments = match[1] or match[3], match[2] or match[4] or ""
        table, other_arguments = "TABLE", arguments
        if match[3] and (path := re.match(r"'([^']*)'(?:, )?", arguments)):  # the call takes the path
            table, other_arguments = shlex.quote(path[1]), arguments[path.end() :]
        words = _command(name, other_arguments, table)
        return f"in Python {match[0]}" if words is None else f"`{words}`"

    def option(match: re.Match[str]) -> str:
        if is_typed(match):
            return match[0]
        if match[1] == "schema_mode":
            return f"--option hoodie.pyhudi.schema.mode={match[2]}"
        return f"--{match[1]} {match[2] or ''}".rstrip()

    return _SETTING.sub(option, _NAMED.sub(command, text))


def _command(name: str, arguments: str, table: str) -> str | None:
    """The command for a call; None if there is none."""
    if name == "alter":
        change = _CHANGE.match(arguments)
        return f'pyhudi query "ALTER TABLE … {_CHANGES[change[1]].format(change[2]) if change else "…"}"'
    if name == "overwrite":
        return f"pyhudi write {table} FILES --mode overwrite"
    if name in _WRITES:
        return f"pyhudi write {table} FILES --operation {name}"
    row = _COMMANDS.get(name)
    if row is None:
        return None
    return " ".join(["pyhudi", row.words, _PLACES.get(row.words, "{}").format(table), *_typed(row, arguments)])


def _typed(row: Command, arguments: str) -> list[str]:
    """The values of the arguments as typed. A dry run is the default in Python; the command asks instead."""
    flags = {one.keyword: [] if one.is_placed else [one.names[0]] for one in row.arguments}
    words: list[str] = []
    for keyword, literal in _VALUE.findall(arguments):
        value = literal.strip("'\"")
        if not keyword:
            words.append(shlex.quote(value))
        elif keyword == "dry_run":
            words += ["--dry-run"] if literal == "True" else []
        else:
            words += flags.get(keyword, [f"--{keyword.replace('_', '-')}"])
            words += [] if literal == "True" else [shlex.quote(value)]
    return words
