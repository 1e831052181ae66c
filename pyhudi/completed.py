"""What a call completed before an error ended it: Ctrl-C, a SIGTERM handler that raises, a warning made an error.

    with naming_completed():            around a call of the library, or around a whole command
        with completing(completion):    around the step that makes an instant complete

The error leaves the outermost block with a note, and with the attribute `completed_instants`: the instants that the
call completed, the write itself first. What a call undoes or clears up for others is not named (`unnamed`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import TracebackType

from pyhudi.errors import add_note
from pyhudi.interrupts import uninterrupted

__all__ = ["Completion", "completed_instants", "completed_note", "completing", "naming_completed", "unnamed"]

_INSTANTS, _NOTE = "completed_instants", "completed_note"  # attributes of the error


@dataclass(frozen=True, slots=True)
class Completion:
    """An instant that is about to complete. `is_complete`: asks the table, and may fail as storage does."""

    table: str
    action: str
    instant_time: str
    is_complete: Callable[[], bool]


@dataclass(slots=True)
class _Call:
    begun: list[Completion] = field(default_factory=list)
    returned: set[str] = field(default_factory=set)  # instant times whose completed file was made for sure


_call: ContextVar[_Call | None] = ContextVar("call", default=None)


def naming_completed() -> AbstractContextManager[None]:
    """`with naming_completed():` an error that ends the block names what the block completed. No effect within another
    such block.
    """
    return _Naming()


def completing(completion: Completion) -> AbstractContextManager[None]:
    """`with completing(...):` around the step that makes the completed file."""
    return _Completing(completion)


def unnamed() -> AbstractContextManager[None]:
    """`with unnamed():` what the block completes is not the call's own."""
    return _Unnamed()


def completed_instants(error: BaseException) -> tuple[str, ...]:
    """The instants that the call which the error ended has completed."""
    return getattr(error, _INSTANTS, ())


def completed_note(error: BaseException) -> str:
    """The same as a sentence without its full stop, "" where nothing is complete: Python 3.10 shows no notes."""
    return getattr(error, _NOTE, "")


class _Naming(AbstractContextManager[None]):
    """Not a generator: an interrupt between its `yield` and the block would go by it."""

    def __init__(self) -> None:
        self._token: Token[_Call | None] | None = None

    def __enter__(self) -> None:
        if _call.get() is None:
            self._token = _call.set(_Call())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is None:
            return
        call = _call.get()
        _call.reset(self._token)
        if error is not None and call is not None and call.begun:
            with uninterrupted():
                _name(error, call)


class _Completing(AbstractContextManager[None]):
    def __init__(self, completion: Completion) -> None:
        self._completion = completion

    def __enter__(self) -> None:
        call = _call.get()
        if call is not None:
            call.begun.append(self._completion)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        call = _call.get()
        if call is not None and error is None:
            call.returned.add(self._completion.instant_time)


class _Unnamed(AbstractContextManager[None]):
    def __init__(self) -> None:
        self._token: Token[_Call | None] | None = None

    def __enter__(self) -> None:
        self._token = _call.set(_Call())  # of its own, which nobody asks

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            _call.reset(self._token)


def _name(error: BaseException, call: _Call) -> None:
    """Say in the error what is complete; the table is asked, since the error may have come between any two steps."""
    complete, unknown = list[Completion](), list[Completion]()
    for one in call.begun:
        try:
            is_complete = one.is_complete()
        except Exception:
            (complete if one.instant_time in call.returned else unknown).append(one)
        else:
            if is_complete:
                complete.append(one)
    notes = []
    if complete:
        is_or_are, it = ("is", "it") if len(complete) == 1 else ("are", "them")
        notes.append(f"{_named(complete)} {is_or_are} complete, and readers see {it}; don't run the call again")
    if unknown:
        notes.append(f"{_named(unknown)} may be complete: the table could not be asked")
    with suppress(AttributeError):  # an error that takes none
        setattr(error, _INSTANTS, tuple(one.instant_time for one in complete))
        setattr(error, _NOTE, ". ".join(notes))
    for note in notes:
        add_note(error, f"{note}.")


def _named(ones: Sequence[Completion]) -> str:
    names = [f"{one.action} {one.instant_time}" for one in ones]
    return f"{ones[0].table}: {', '.join(names)}"
