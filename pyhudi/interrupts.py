"""Ctrl-C, and other signals whose handlers raise, wait during work that must not stop half way.

Python calls signal handlers in the main thread, between any two of its steps: even when a lock was just taken but not
recorded yet, or while a failed write is being undone. `uninterrupted` delays them until its block ends. The third one
is handled at once: a user who presses Ctrl-C repeatedly does not want to wait for a dead store.

Signals without a Python handler end the process as usual (SIGTERM, unless the program handles it); the next writer
undoes its work.
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
    """`with uninterrupted():` signals during the block are handled when it ends. No effect in other threads."""
    return _Uninterrupted()


def let_interrupts_through() -> None:
    """Within `uninterrupted`: call it before a wait, where no work is half done. Pending signals are handled here."""
    if _now is not None and threading.current_thread() is threading.main_thread():
        _now.let_through()


class _Uninterrupted(AbstractContextManager[object]):
    """Not a generator: an interrupt between its `yield` and the block would leave the handlers replaced."""

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
        # A signal may come between any two of these steps, and must not be lost: first handlers are restored.
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
        """Handle pending signals now."""
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
            if signal.getsignal(number) == self._note:  # the block may have set another handler
                signal.signal(number, handler)
