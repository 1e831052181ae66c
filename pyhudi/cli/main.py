"""`pyhudi ...`: one command is parsed, run and answered; each way to end has its exit code (docs/cli.md).

    commands.py      the row that the words name
    parsing.py       its arguments, by argparse, and its call
    reply.py         what it answers, as text, JSON or CSV

Help of all commands is written from the rows alone: it imports no table.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from pyhudi.cli.calls import in_commands
from pyhudi.cli.command import Command
from pyhudi.cli.commands import COMMANDS, GROUPS, command_of, near_commands
from pyhudi.completed import completed_instants, completed_note, naming_completed
from pyhudi.errors import HudiError
from pyhudi.redaction import message

__all__ = ["main", "run"]

DONE = 0
REFUSED = 1
USAGE = 2
WRONG = 3
CONFLICT = 4
ENDED_AFTER = 5  # by a signal, after something was complete
INTERRUPTED = 130  # 128 + SIGINT
TERMINATED = 143  # 128 + SIGTERM
_HELP = ("--help", "-h", "help")
_USAGE = "usage: pyhudi COMMAND [ARGUMENTS]; `pyhudi COMMAND --help` says what it takes"
_DEBUG = "--debug"


def run() -> NoReturn:
    """The console script."""
    gc.set_threshold(100_000, 50, 50)  # a listing makes a million objects, which looking for cycles would slow by half
    sys.exit(main(sys.argv[1:]))


def main(tokens: Sequence[str]) -> int:
    """Run one command. Returns: its exit code."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        code = _main(list(tokens))
    except BrokenPipeError:
        _silence_output()
        return DONE
    except KeyboardInterrupt as error:
        return _stopped("interrupted", error, INTERRUPTED)
    except SystemExit as end:
        if end.code == TERMINATED:
            return _stopped("ended by SIGTERM", end, TERMINATED)
        raise
    return code


def _stopped(how: str, error: BaseException, code: int) -> int:
    """Say in one line what of the command is complete."""
    note = completed_note(error)
    if not note:
        return _ended(f"{how}; nothing of it became visible unless the command had said so", code)
    return _ended(f"{how} after its commit. {message(note)}", ENDED_AFTER if completed_instants(error) else code)


def _main(tokens: list[str]) -> int:
    if not tokens or tokens[0] in _HELP:
        return _show(_help_of(COMMANDS))
    if tokens[0] == "--version":
        from pyhudi import __version__

        return _show(f"pyhudi {__version__}")
    named = command_of(tokens)
    if named is None:
        return _no_command(tokens)
    try:
        with naming_completed():
            return _answered(*named)
    except BrokenPipeError:
        raise
    except Exception as error:
        return _failed(error, tokens)


def _answered(command: Command, tokens: Sequence[str]) -> int:
    from pyhudi.cli.parsing import UsageError, answer_of, help_of, parsed
    from pyhudi.cli.reply import show

    text = help_of(command, tokens)
    if text is not None:
        return _show(text)
    try:
        common, arguments = parsed(command, tokens)
    except UsageError as error:
        return _ended(f"{message(str(error))} (`pyhudi {command.words} --help`)", USAGE, f"pyhudi {command.words}")
    form, answer = common.form, answer_of(command, common, arguments)
    try:
        show(answer, form, sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:  # whether it comes in time is chance, so it changes no exit code
        _silence_output()
    return WRONG if command.wrong is not None and command.wrong(answer.value) else DONE


def _failed(error: Exception, arguments: Sequence[str]) -> int:
    """Say in one line what went wrong. The library's messages name calls in Python; here they are commands."""
    if _DEBUG in arguments:
        traceback.print_exc()
    note = completed_note(error)
    text = message(f"{error} {note}." if note else str(error)).replace("\n", " ")
    if isinstance(error, HudiError | OSError):
        text = in_commands(text, arguments)
        is_conflict = isinstance(error, HudiError) and error.retryable
        return _ended(f"{_public_name(error)}: {text}", CONFLICT if is_conflict else REFUSED)
    return _ended(f"unexpected {type(error).__name__}: {text} ({_DEBUG} shows where)", REFUSED)


def _public_name(error: Exception) -> str:
    """The name that `pyhudi.errors` or Python has for an error: the library catches some by private subclasses."""
    return next(kind.__name__ for kind in type(error).__mro__ if not kind.__name__.startswith("_"))


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    """SIGTERM unwinds as Ctrl-C does: a write that has not committed is undone."""
    raise SystemExit(TERMINATED)


def _no_command(tokens: list[str]) -> int:
    asks = tokens[-1] in _HELP
    before = " ".join([*(tokens[:-1] if asks else tokens), ""])
    group = [command for command in COMMANDS if command.words.startswith(before)]
    if group:
        _show(_help_of(group))
        return DONE if asks else USAGE
    group = [command for command in COMMANDS if command.group == tokens[0]]
    near = " or ".join(f"`pyhudi {name}`" for name in near_commands(tokens))
    typed = " ".join(tokens[:2] if group else tokens[:1])
    advice = f"Did you mean {near}?" if near else "`pyhudi --help` lists them."
    return _ended(f"there is no command {message(repr(typed))}. {advice}", USAGE)


def _help_of(commands: Sequence[Command]) -> str:
    width = max(len(command.words) for command in commands)
    lines = [_USAGE]
    for group, title in GROUPS.items():
        rows = [f"  {one.words:<{width}}  {one.summary}" for one in commands if one.group == group]
        lines += ["", f"{title}:", *rows] if rows else []
    return "\n".join(lines)


def _silence_output() -> None:
    """After the reader of standard output has gone (`| head`): Python writes to it once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show(text: str) -> int:
    print(text, flush=True)
    return DONE


def _ended(text: str, code: int, program: str = "pyhudi") -> int:
    print(f"{program}: {text}", file=sys.stderr)
    return code
