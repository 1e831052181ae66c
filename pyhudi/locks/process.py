"""Identify the process that wrote a note, and tell whether it has certainly ended.

A process id is valid only within one machine, boot and namespace, and may be reused; the note records all of that.
Where the system does not reveal this (only Linux does), every process counts as alive. A killed process whose parent
has not waited for it is a zombie: it still has its id, but is dead.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from functools import lru_cache
from pathlib import Path

from pyhudi.formats.timeline.bodies import Body

__all__ = ["is_note", "is_of_this_process", "is_renewed", "is_surely_dead", "note_of_this_process", "token_of"]

_PROC = Path("/proc")
_ENDED = (["Z"], ["X"], ["x"])  # states: a zombie, and a dead process that is being removed


def note_of_this_process(token: str, *, is_renewed: bool = False) -> bytes:
    """Return a note for a file that this process creates; `token` distinguishes it from other notes of the process.
    `is_renewed`: the process keeps renewing the file's time while it uses the file.
    """
    note = {
        "owner": token,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "thread": threading.current_thread().name,
        "place": _place(os.getpid()),
        "started": _own_start(os.getpid()),
        **({"renewed": True} if is_renewed else {}),
    }
    return json.dumps(note).encode("utf-8")


def is_note(content: bytes) -> bool:
    """True for a note of `note_of_this_process`, by any process."""
    return isinstance(_fields(content).get("pid"), int)


def is_renewed(content: bytes) -> bool:
    """True for the note of a file whose time its process keeps renewing."""
    return is_note(content) and _fields(content).get("renewed") is True


def is_surely_dead(note: bytes) -> bool:
    """True if the note is by a process of this machine that no longer runs; False if that can't be known."""
    fields = _fields(note)
    if not is_note(note) or not fields.get("started"):
        return False
    place = _place(os.getpid())
    if place is None or fields.get("place") != place:
        return False
    pid = fields["pid"]
    started = _started(pid)
    if started is None:
        return not _is_running(pid)  # /proc mounted with hidepid does not show other users' processes
    return bool(started != fields["started"]) or _is_zombie(pid)


def is_of_this_process(note: bytes) -> bool:
    """True for a note of this very process. A fork is another process."""
    fields = _fields(note)
    return (
        fields.get("pid") == os.getpid()
        and fields.get("host") == socket.gethostname()
        and fields.get("place") == _place(os.getpid())
        and fields.get("started") == _own_start(os.getpid())
    )


def token_of(note: bytes) -> str | None:
    """Return the token that distinguishes a note from others of its process; None for bytes that are not a note."""
    token = _fields(note).get("owner")
    return token if isinstance(token, str) else None


def _fields(note: bytes) -> Body:
    """Return the fields of the note; empty for bytes that are not a note."""
    try:
        fields = json.loads(note)
    except (ValueError, RecursionError):  # also for a number of thousands of digits, and for deeply nested brackets
        return {}
    return fields if isinstance(fields, dict) else {}


@lru_cache(maxsize=1)  # a fork asks for itself
def _place(own_pid: int) -> str | None:
    """Return the scope of process ids: this boot of the kernel and this namespace."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(_PROC / 'self/ns/pid')}"
    except OSError:
        return None


@lru_cache(maxsize=1)
def _own_start(own_pid: int) -> str | None:
    return _started(own_pid)


def _is_running(pid: int) -> bool:
    """True if the kernel knows the process, or may know it."""
    try:
        os.kill(pid, 0)  # signal 0 only checks
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # PermissionError: another user's
        return True
    return True


def _started(pid: int) -> str | None:
    """Return the start of a process, in ticks since the boot; None if it doesn't exist or is hidden."""
    fields = _stat(_PROC / str(pid))
    return fields[19] if len(fields) > 19 else None


def _is_zombie(pid: int) -> bool:
    """True for a process that has ended and waits for its parent to collect its status. A process whose first thread
    has ended looks the same, except that other threads run.
    """
    if _stat(_PROC / str(pid))[:1] not in _ENDED:
        return False
    try:
        threads = list((_PROC / str(pid) / "task").iterdir())
    except OSError:
        return True  # its parent has collected it since
    return all(_stat(thread)[:1] in (*_ENDED, []) for thread in threads)


def _stat(folder: Path) -> list[str]:
    """Return the fields of a process or a thread after its name, which is in brackets and may hold any text: the state
    is the first one, the start the 20th. Empty if the process doesn't exist or is hidden.
    """
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):  # ValueError: a process name that is not text
        return []
