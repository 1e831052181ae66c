"""The arguments of one command, by cyclopts, and its run: only the module of this command is imported."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

from pyhudi.cli.exit_codes import DONE, USAGE, WRONG
from pyhudi.cli.options import COMMON
from pyhudi.cli.registry import Command
from pyhudi.cli.reply import show
from pyhudi.cli.standard_input import with_standard_input

__all__ = ["app_of", "details_of", "reply_of"]


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


def reply_of(command: Command, tokens: Sequence[str]) -> int:
    """Parse the arguments, run the command and show its answer. Returns: the exit code."""
    if _asks_for_help(tokens):
        from pyhudi.cli.help import help_of

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
    answer = function(*bound.args, **bound.kwargs)
    show(answer, common.form, sys.stdout)
    return WRONG if answer.found_wrong else DONE


def _asks_for_help(tokens: Sequence[str]) -> bool:
    """After `--` there are no options."""
    options = list(tokens[: tokens.index("--")] if "--" in tokens else tokens)
    return "--help" in options or "-h" in options
