"""Which process wrote a note, and whether it has certainly ended.

A process id is valid only within one machine, boot and namespace, and may be reused; the note records all of that.
Where the system does not reveal this (only Linux does), every process counts as alive. A killed process whose parent
has not waited for it is a zombie: it has its id still, and is dead.
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
    """A note for a file that this process makes; `token` distinguishes it from other notes of the process.
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
    """Was it made by `note_of_this_process`, in any process?"""
    return isinstance(_fields(content).get("pid"), int)


def is_renewed(content: bytes) -> bool:
    """Is it a note of a file whose time its maker renews?"""
    return is_note(content) and _fields(content).get("renewed") is True


def is_surely_dead(note: bytes) -> bool:
    """Was the note made by a process of this machine that no longer runs? False when that can't be known."""
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
    """Did this very process make the note? A fork is another process."""
    fields = _fields(note)
    return (
        fields.get("pid") == os.getpid()
        and fields.get("host") == socket.gethostname()
        and fields.get("place") == _place(os.getpid())
        and fields.get("started") == _own_start(os.getpid())
    )


def token_of(note: bytes) -> str | None:
    """The token that distinguishes a note from others of its process; None for bytes that are not a note."""
    token = _fields(note).get("owner")
    return token if isinstance(token, str) else None


def _fields(note: bytes) -> Body:
    """The fields of the note; empty for bytes that are not a note."""
    try:
        fields = json.loads(note)
    except (ValueError, RecursionError):  # also for a number of thousands of digits, and for deeply nested brackets
        return {}
    return fields if isinstance(fields, dict) else {}


@lru_cache(maxsize=1)  # a fork asks for itself
def _place(own_pid: int) -> str | None:
    """The scope of process ids: this boot of the kernel and this namespace."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(_PROC / 'self/ns/pid')}"
    except OSError:
        return None


@lru_cache(maxsize=1)
def _own_start(own_pid: int) -> str | None:
    return _started(own_pid)


def _is_running(pid: int) -> bool:
    """Does the kernel know the process? True when that can't be known."""
    try:
        os.kill(pid, 0)  # signal 0 reaches nobody
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # PermissionError: another user's
        return True
    return True


def _started(pid: int) -> str | None:
    """When a process began, in ticks since the boot; None when there is no such process, or it is hidden."""
    fields = _stat(_PROC / str(pid))
    return fields[19] if len(fields) > 19 else None


def _is_zombie(pid: int) -> bool:
    """Has a process ended, and only waits for its parent to ask how? One whose first thread has ended, while others
    run, looks alike but for these.
    """
    if _stat(_PROC / str(pid))[:1] not in _ENDED:
        return False
    try:
        threads = list((_PROC / str(pid) / "task").iterdir())
    except OSError:
        return True  # its parent has asked meanwhile
    return all(_stat(thread)[:1] in (*_ENDED, []) for thread in threads)


def _stat(folder: Path) -> list[str]:
    """The fields of a process or a thread behind its name, which stands in brackets and may hold anything: the state is
    the first one, the start the 20th. Empty when there is no such process, or it is hidden.
    """
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):  # ValueError: a process name that is not text
        return []
