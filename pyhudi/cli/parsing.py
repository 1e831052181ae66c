"""One command by argparse: its row becomes a parser, the parsed values a call, and the result of the call an answer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from functools import partial
from operator import attrgetter
from typing import Any, NoReturn

from pyhudi.cli.command import DRY_RUN, TABLE, YES, Command, load
from pyhudi.cli.options import COMMON_ARGUMENTS, Common
from pyhudi.cli.reply import Reply
from pyhudi.errors import ConfigError, TableError
from pyhudi.storage.waiting import announce_waits

__all__ = ["Declined", "UsageError", "answer_of", "help_of", "parsed"]


class UsageError(Exception):
    """An invalid command line."""


class Declined(TableError):
    """The user did not confirm a plan; nothing was changed."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def _parser_of(command: Command) -> _Parser:
    parser = _Parser(
        prog=f"pyhudi {command.words}",
        usage=f"pyhudi {command.usage} [OPTIONS]",
        description=" ".join(filter(None, [command.summary, command.details])),
        add_help=False,
        allow_abbrev=False,
    )
    for title, arguments in (("arguments", command.arguments), ("of every command", COMMON_ARGUMENTS)):
        group = parser.add_argument_group(title)
        for one in arguments:
            shown = {"metavar": one.typed[0]} if one.is_placed else {}
            group.add_argument(*one.names, help=one.meaning, **{**shown, **one.settings})
    return parser


def help_of(command: Command, tokens: Sequence[str]) -> str | None:
    """The help of a command, if it is requested. After `--` there are no options."""
    options = tokens[: tokens.index("--")] if "--" in tokens else tokens
    return _parser_of(command).format_help().rstrip() if {"--help", "-h"} & {*options} else None


def parsed(command: Command, tokens: Sequence[str]) -> tuple[Common, dict[str, Any]]:
    """The common arguments, and the typed arguments of this command, by the names of its method.

    Raises: UsageError; ConfigError for a value that is refused.
    """
    namespace, unknown = _parser_of(command).parse_known_intermixed_args(tokens)
    if unknown:
        names = [name for one in (*command.arguments, *COMMON_ARGUMENTS) for name in one.names if name[0] == "-"]
        similar = get_close_matches(unknown[0].partition("=")[0], names, n=1)
        raise UsageError(f"there is no argument {unknown[0]!r}." + "".join(f" Did you mean {one}?" for one in similar))
    values = vars(namespace)
    common = Common(**{one.name: values.pop(one.name) for one in fields(Common)})
    if common.option and not command.has_options:
        raise ConfigError(f"`pyhudi {command.words}` takes no --option: it has no use for {common.option[0]!r}.")
    for one in command.arguments:
        if one.convert is not None and values[one.keyword] is not None:
            values[one.keyword] = one.convert(values[one.keyword])
    return common, {name: value for name, value in values.items() if value is not None}


def answer_of(command: Command, common: Common, arguments: dict[str, Any]) -> Reply:
    """Call the method of a command, or its own function. Changes show their plan and ask first.

    Raises: HudiError; Declined.
    """
    announce_waits(_say_once())
    is_planned = _is_planned(arguments)
    if not command.asks:
        return _call(command, common, arguments)()
    dry_run, is_confirmed = arguments.pop(DRY_RUN.keyword), arguments.pop(YES.keyword)
    call = _call(command, common, arguments)
    if dry_run or is_confirmed or is_planned:
        return call(dry_run=dry_run)
    plan = call(dry_run=True)
    if not command.changes(plan.value):
        return plan
    _ask(plan, command.asks)
    return call(dry_run=False)


def _call(command: Command, common: Common, arguments: dict[str, Any]) -> Callable[..., Reply]:
    """The call with its arguments, except `dry_run`."""
    if command.own:
        return partial(load(command.own), common, **arguments)
    options = {"options": common.options} if command.has_options else {}
    table = common.open(arguments.pop(TABLE.keyword))
    method = partial(attrgetter(command.method)(table), **arguments, **options)
    return lambda **more: Reply(method(**more))


def _is_planned(arguments: Mapping[str, object]) -> bool:
    """True for --schedule and --run. Raises ConfigError for two contradicting arguments about the plan."""
    if "schedule_only" not in arguments:
        return False
    dry_run, *planned = (bool(arguments.get(name)) for name in (DRY_RUN.keyword, "schedule_only", "instant_time"))
    if dry_run + sum(planned) > 1:
        raise ConfigError("--dry-run, --schedule and --run exclude each other; give one of them.")
    return any(planned)


def _ask(plan: Reply, question: str) -> None:
    """Show a plan on standard error and ask. Raises Declined for any answer but yes, and without a terminal."""
    print(plan.value if plan.text is None else plan.text, file=sys.stderr)
    if not sys.stdin.isatty():
        raise Declined(f"{question} Nothing was changed: there is no terminal to ask on. Add --yes to confirm.")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Declined("Nothing was changed.")


def _say_once() -> Callable[[str], None]:
    """Print on standard error what the command is waiting for, only the first time."""
    printed: list[str] = []

    def say(where: str) -> None:
        if not printed:
            printed.append(where)
            print(f"pyhudi: waiting for {where} (--timeout SECONDS gives up)", file=sys.stderr, flush=True)

    return say
