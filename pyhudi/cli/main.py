"""`pyhudi ...`: parses and runs one command, and shows its answer; each way to end has its exit code (docs/cli.md).

    commands.py      the row of the words
    parsing.py       its arguments, by argparse, and its call
    reply.py         its answer, as text, JSON or CSV

The help of all commands comes from the rows: it imports no table.
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
_USAGE = "usage: pyhudi COMMAND [ARGUMENTS]; `pyhudi COMMAND --help` shows its arguments"
_DEBUG = "--debug"


def run() -> NoReturn:
    """The console script."""
    gc.set_threshold(
        100_000, 50, 50
    )  # a listing makes a million objects; searching them for cycles would take half of the time
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
    """Print one line on what the command has completed."""
    note = completed_note(error)
    if not note:
        return _ended(f"{how}; nothing of it is visible, except what the command has reported", code)
    return _ended(f"{how} after its commit. {message(note)}", ENDED_AFTER if completed_instants(error) else code)


def _main(tokens: list[str]) -> int:
    if not tokens or tokens[0] in _HELP:
        return _show(_help_of(COMMANDS))
    if tokens[0] == "--version":
        from pyhudi import __version__

        return _show(f"pyhudi {__version__}")
    match = command_of(tokens)
    if match is None:
        return _no_command(tokens)
    try:
        with naming_completed():
            return _answered(*match)
    except BrokenPipeError:
        raise
    except RuntimeError as error:
        # Before 3.12 Python wraps what ends the definition of a class, such as one that is imported right now.
        if isinstance(error.__cause__, KeyboardInterrupt | SystemExit):
            raise error.__cause__ from None
        return _failed(error, tokens)
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
    except BrokenPipeError:  # it may come at any time, so it must not change the exit code
        _silence_output()
    return WRONG if command.wrong is not None and command.wrong(answer.value) else DONE


def _failed(error: Exception, arguments: Sequence[str]) -> int:
    """Print one line on the error. The library's messages name Python calls; here they become commands."""
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
    """The name that `pyhudi.errors` or Python has for an error: the library has private subclasses of some."""
    return next(kind.__name__ for kind in type(error).__mro__ if not kind.__name__.startswith("_"))


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    """Unwind on SIGTERM as on Ctrl-C: a write that has not committed is undone."""
    raise SystemExit(TERMINATED)


def _no_command(tokens: list[str]) -> int:
    asks = tokens[-1] in _HELP
    before = " ".join([*(tokens[:-1] if asks else tokens), ""])
    group = [command for command in COMMANDS if command.words.startswith(before)]
    if group:
        _show(_help_of(group))
        return DONE if asks else USAGE
    group = [command for command in COMMANDS if command.group == tokens[0]]
    similar = " or ".join(f"`pyhudi {name}`" for name in near_commands(tokens))
    typed = " ".join(tokens[:2] if group else tokens[:1])
    advice = f"Did you mean {similar}?" if similar else "`pyhudi --help` lists them."
    return _ended(f"there is no command {message(repr(typed))}. {advice}", USAGE)


def _help_of(commands: Sequence[Command]) -> str:
    width = max(len(command.words) for command in commands)
    lines = [_USAGE]
    for group, title in GROUPS.items():
        rows = [f"  {one.words:<{width}}  {one.summary}" for one in commands if one.group == group]
        lines += ["", f"{title}:", *rows] if rows else []
    return "\n".join(lines)


def _silence_output() -> None:
    """Redirect standard output after its reader has closed it (`| head`): Python writes to it once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show(text: str) -> int:
    print(text, flush=True)
    return DONE


def _ended(text: str, code: int, program: str = "pyhudi") -> int:
    print(f"{program}: {text}", file=sys.stderr)
    return code
