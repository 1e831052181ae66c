"""A pause of Python's garbage collector while very many objects are made that all stay.

The collector runs after so many new objects, and looks at all that there are: making an object for each of a hundred
thousand files it looks at them several times, which takes half as long as to make them, and finds nothing.
The first section to end ends the pause for all of them, and the next one begins when no section is left: threads whose
sections overlap without end leave the collector to work meanwhile. Who has it switched off finds it so.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collector_paused"]


class _Pause:
    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """With a lock of its own: a forked process may have been made while another thread was in a section."""
        self._lock, self._inside, self._is_paused = threading.Lock(), 0, False

    def begin(self) -> None:
        with self._lock:
            if not self._inside and gc.isenabled():
                gc.disable()
                self._is_paused = True
            self._inside += 1

    def end(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._is_paused:
                self._is_paused = False
                gc.enable()

    def after_fork(self) -> None:
        """The sections of other threads don't end in this process."""
        if self._is_paused:
            gc.enable()
        self.begin_anew()


_PAUSE = _Pause()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_PAUSE.after_fork)


@contextmanager
def collector_paused() -> Iterator[None]:
    """No collections within: for work of the processor alone, that does not wait for anything."""
    _PAUSE.begin()
    try:
        yield
    finally:
        _PAUSE.end()
