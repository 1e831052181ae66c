"""Help of one command: its usage, what it does, its arguments, in lines of the terminal's width."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from textwrap import wrap

from cyclopts import Argument, ArgumentCollection

from pyhudi.cli.options import EVERY_COMMAND
from pyhudi.cli.parser import app_of, details_of
from pyhudi.cli.registry import Command

__all__ = ["arguments_of", "help_of", "is_common", "usage_of"]

_WIDEST = 120
_INDENT = 28


def help_of(command: Command) -> str:
    """The help as text."""
    width = min(shutil.get_terminal_size((100, 40)).columns, _WIDEST)
    arguments = arguments_of(command)
    details = details_of(command)
    lines = [f"usage: pyhudi {usage_of(command, arguments)} [OPTIONS]", "", *wrap(command.summary, width)]
    lines += ["", *wrap(details, width)] if details else []
    own = [one for one in arguments if one.show and not is_common(one)]
    shared = [one for one in arguments if one.show and is_common(one)]
    for title, part in (("arguments", own), ("of every command", shared)):
        lines += ["", f"{title}:", *(line for one in part for line in _lines(one, width))]
    return "\n".join(lines)


def arguments_of(command: Command) -> ArgumentCollection:
    """The arguments of a command, with their meaning."""
    return app_of(command).assemble_argument_collection(parse_docstring=True)


def usage_of(command: Command, arguments: ArgumentCollection) -> str:
    """Its words and the arguments that go by place: `table describe TABLE`."""
    places = [one for one in arguments if one.show and not one.names[0].startswith("-")]
    return " ".join([command.words, *(one.names[0] if one.required else f"[{one.names[0]}]" for one in places)])


def is_common(argument: Argument) -> bool:
    """Is it one that every command takes?"""
    return argument.parameter.group in (EVERY_COMMAND, (EVERY_COMMAND,))


def _lines(argument: Argument, width: int) -> Iterator[str]:
    names = ", ".join(argument.names)
    text = argument.parameter.help or ""
    if argument.required:
        text += " Required."
    first, *more = wrap(text, max(width - _INDENT, 20)) or [""]
    if len(names) + 4 > _INDENT:
        yield f"  {names}"
        names = ""
    yield f"  {names:<{_INDENT - 2}}{first}"
    yield from (" " * _INDENT + line for line in more)
