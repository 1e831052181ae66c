"""A run of one command: its arguments are parsed, it is called, its answer shown."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import CycloptsError

from pyhudi.cli.exit_codes import DONE, USAGE, WRONG
from pyhudi.cli.help import help_of
from pyhudi.cli.options import COMMON
from pyhudi.cli.parser import app_of
from pyhudi.cli.registry import Command
from pyhudi.cli.reply import show
from pyhudi.cli.standard_input import with_standard_input

__all__ = ["reply_of"]


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
    answer = function(*bound.args, **bound.kwargs)
    show(answer, common.form, sys.stdout)
    return WRONG if answer.found_wrong else DONE


def _asks_for_help(tokens: Sequence[str]) -> bool:
    """After `--` there are no options."""
    options = list(tokens[: tokens.index("--")] if "--" in tokens else tokens)
    return "--help" in options or "-h" in options
