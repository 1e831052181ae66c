"""Which process wrote a note, and whether it has certainly ended.

A process id means something only on the machine (and since the boot, and in the namespace) that gave it, and may be
given again; all of that is in the note. Where the system does not say (only Linux does) every process counts as alive.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path

from pyhudi.formats.bodies import Body

__all__ = ["is_note", "is_surely_dead", "note_of_this_process"]

_PROC = Path("/proc")


def note_of_this_process(token: str) -> bytes:
    """A note for a file that this process makes; `token` tells it from other notes of the process."""
    note = {
        "owner": token,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "thread": threading.current_thread().name,
        "place": _place(),
        "started": _started(os.getpid()),
    }
    return json.dumps(note).encode("utf-8")


def is_note(content: bytes) -> bool:
    """Was it made by `note_of_this_process`, in whatever process?"""
    return isinstance(_fields(content).get("pid"), int)


def is_surely_dead(note: bytes) -> bool:
    """Was the note made by a process of this machine that does not run any more? False when one can't know."""
    fields = _fields(note)
    if not is_note(note) or not fields.get("started"):
        return False
    place = _place()
    return place is not None and fields.get("place") == place and _started(fields["pid"]) != fields["started"]


def _fields(note: bytes) -> Body:
    """What the note says; nothing for bytes that are no note, whatever they are."""
    try:
        fields = json.loads(note)
    except (ValueError, RecursionError):  # also of a number of thousands of digits, and of brackets in brackets
        return {}
    return fields if isinstance(fields, dict) else {}


def _place() -> str | None:
    """Where process ids mean the same: this boot of the kernel and this namespace."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(_PROC / 'self/ns/pid')}"
    except OSError:
        return None


def _started(pid: int) -> str | None:
    """When a process began, in ticks since the boot; None when there is no such process."""
    try:
        # Behind the name in brackets, which may hold anything: state is the 3rd field, the start the 22nd.
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError, ValueError):  # ValueError: a name of a process that is no text
        return None
