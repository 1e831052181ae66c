"""The parser of one command, by cyclopts: only the module of this command is imported."""

from __future__ import annotations

import inspect

from cyclopts import App, Parameter

from pyhudi.cli.registry import Command

__all__ = ["app_of", "details_of"]


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
