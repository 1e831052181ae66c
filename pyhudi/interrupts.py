"""Ctrl-C, and other signals whose handlers raise, wait while something is done that must not stop half way.

Python calls handlers of signals in the main thread, between any two steps of it: also when a lock was just taken and
nobody knows of it yet, or while what a write left is being undone. `uninterrupted` puts them off until its block ends.
The third one goes through at once: whoever presses Ctrl-C again and again does not want to wait for a dead store.

Signals that no Python handler is there for end the process as ever (SIGTERM, unless the program handles it); what it
leaves, the next writer undoes.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType, TracebackType

__all__ = ["let_interrupts_through", "uninterrupted"]

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM") if hasattr(signal, name))
_PATIENCE = 3  # signals; the last of them does not wait

_Handler = Callable[[int, FrameType | None], object]
_now: _Uninterrupted | None = None  # the outermost block; of the main thread only


def uninterrupted() -> AbstractContextManager[object]:
    """`with uninterrupted():` signals that come meanwhile are handled when the block ends. Nothing in other threads."""
    return _Uninterrupted()


def let_interrupts_through() -> None:
    """Within `uninterrupted`: a place where nothing is half done, before a wait. Signals that came are handled here."""
    if _now is not None and threading.current_thread() is threading.main_thread():
        _now.let_through()


class _Uninterrupted(AbstractContextManager[object]):
    """No generator: between its `yield` and the block an interrupt would leave the handlers replaced."""

    def __init__(self) -> None:
        self._handlers: dict[int, _Handler] = {}
        self._waiting: list[int] = []
        self._is_over = False

    def __enter__(self) -> _Uninterrupted:
        global _now
        if _now is None and threading.current_thread() is threading.main_thread():
            try:
                for number in _SIGNALS:
                    handler = signal.getsignal(number)
                    if callable(handler):
                        self._handlers[number] = handler
                        signal.signal(number, self._note)
            except ValueError:
                return self  # not the main interpreter, which alone gets signals
            except BaseException:
                self._restore()
                raise
            _now = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        global _now
        if _now is not self:
            return
        # A signal may come between any two of these steps, and must not be forgotten: first they go through again.
        try:
            self._is_over = True
            _now = None
            self._restore()
        except BaseException:
            _now = None
            self._restore()
            raise
        finally:
            for number in self._waiting:
                signal.raise_signal(number)

    def let_through(self) -> None:
        """Handle now what has come meanwhile."""
        while self._waiting:
            number = self._waiting.pop(0)
            self._handlers[number](number, sys._getframe())

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._is_over:
            self._handlers[number](number, frame)
            return
        self._waiting.append(number)
        if len(self._waiting) >= _PATIENCE:
            self.let_through()

    def _restore(self) -> None:
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._note:  # the block may have set another
                signal.signal(number, handler)
