"""One command by cyclopts: its arguments are parsed, it is called, its answer shown; and the help of it.

Only the module of this command is imported.
"""

from __future__ import annotations

import inspect
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from textwrap import wrap

from cyclopts import App, Argument, ArgumentCollection, CycloptsError, Parameter

from pyhudi.cli.exit_codes import DONE, USAGE, WRONG, silence_output
from pyhudi.cli.options import COMMON, EVERY_COMMAND, NothingToDo
from pyhudi.cli.registry import WITHOUT_OPTIONS, Command
from pyhudi.cli.reply import Reply, show
from pyhudi.errors import ConfigError
from pyhudi.storage.waiting import announce_waits

__all__ = [
    "STANDARD_INPUT",
    "app_of",
    "arguments_of",
    "details_of",
    "help_of",
    "is_common",
    "reply_of",
    "usage_of",
    "with_standard_input",
]


def reply_of(command: Command, tokens: Sequence[str]) -> int:
    """Parse the arguments, run the command and show its answer. Returns: the exit code."""
    if _asks_for_help(tokens):
        print(help_of(command))
        return DONE
    app = app_of(command)
    try:
        function, bound, _ = app.parse_args(with_standard_input(tokens), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        text = " ".join(str(error).split())
        print(f"pyhudi {command.words}: {text} (`pyhudi {command.words} --help`)", file=sys.stderr)
        return USAGE
    common = bound.arguments.setdefault("common", COMMON)
    if common.option and command.words in WITHOUT_OPTIONS:
        raise ConfigError(f"`pyhudi {command.words}` takes no --option: it has no use for {common.option[0]!r}.")
    announce_waits(_say_once())
    try:
        answer = function(*bound.args, **bound.kwargs)
    except NothingToDo as nothing:
        answer = Reply(nothing.plan)
    try:
        show(answer, common.form, sys.stdout, command.row_type)
        sys.stdout.flush()
    except BrokenPipeError:  # whether it comes in time is chance, so it changes no exit code
        silence_output()
    return WRONG if answer.found_wrong else DONE


def _say_once() -> Callable[[str], None]:
    """Says on standard error what is waited for, the first time only."""
    said: list[str] = []

    def say(where: str) -> None:
        if not said:
            said.append(where)
            print(f"pyhudi: waiting for {where} (--timeout SECONDS gives up)", file=sys.stderr, flush=True)

    return say


def _asks_for_help(tokens: Sequence[str]) -> bool:
    """After `--` there are no options."""
    options = list(tokens[: tokens.index("--")] if "--" in tokens else tokens)
    return "--help" in options or "-h" in options


STANDARD_INPUT = "/dev/stdin"


def with_standard_input(tokens: Iterable[str]) -> list[str]:
    """The tokens, with the path of standard input for `-`."""
    return [STANDARD_INPUT if token == "-" else token for token in tokens]


def app_of(command: Command) -> App:
    """The parser of one command."""
    app = App(
        name=f"pyhudi {command.words}",
        help_flags=(),
        default_parameter=Parameter(negative=()),
        version_flags=(),
        result_action="return_value",
    )
    app.default(command.function())
    return app


def details_of(command: Command) -> str:
    """What the docstring of a command says between its first line and its arguments."""
    text = inspect.getdoc(command.function()) or ""
    return " ".join(text.partition("\n")[2].partition("Args:")[0].split())


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
