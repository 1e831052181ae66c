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

__all__ = ["app_of", "details_of", "reply_of"]


def app_of(command: Command) -> App:
    """The parser of one command."""
    app = App(
        name=f"pyhudi {command.words}",
        help_format="plaintext",
        help_formatter="plain",
        default_parameter=Parameter(negative=(), show_default=False),
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
    app = app_of(command)
    try:
        function, bound, _ = app.parse_args(tokens, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        text = " ".join(str(error).split())
        print(f"pyhudi {command.words}: {text} (`pyhudi {command.words} --help`)", file=sys.stderr)
        return USAGE
    if "common" not in bound.signature.parameters:  # help
        function(*bound.args, **bound.kwargs)
        return DONE
    common = bound.arguments.setdefault("common", COMMON)
    answer = function(*bound.args, **bound.kwargs)
    show(answer, common.form, sys.stdout)
    return WRONG if answer.found_wrong else DONE
