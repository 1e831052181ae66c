"""Timeline: the active instants of a table, sorted, and queries over them.

Source: docs/formats/timeline.md, "Instants and states", "What a reader sees".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pyhudi.display import html_lines, html_table
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.result import Result

__all__ = ["Timeline"]

_INSTANTS_SHOWN = 100  # in a notebook


@dataclass(frozen=True, slots=True, repr=False)
class Timeline(Result):
    """Instants in the order of their requested times, one per (requested time, kind of action), in their highest state.

    `active_since`: requested time of the oldest write instant that is not archived, None without one. Older instants
    were archived, hence committed. Parts of a timeline keep it.
    """

    instants: tuple[Instant, ...] = ()
    active_since: str | None = None
    _commit_times: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "instants", tuple(sorted(self.instants, key=_order)))
        if self.active_since is None:
            object.__setattr__(self, "active_since", _first_write(self.instants))
        times = frozenset(i.requested_time for i in self.instants if i.is_completed and i.action.is_commit)
        object.__setattr__(self, "_commit_times", times)

    def __str__(self) -> str:
        if not self.instants:
            return "no instants"
        counts = Counter((instant.action.value, instant.is_completed) for instant in self.instants)
        kinds = ", ".join(f"{n:,} {action}{'' if done else ' pending'}" for (action, done), n in counts.items())
        first, last = self.instants[0].requested_time, self.instants[-1].requested_time
        return f"{len(self.instants):,} instants from {first} to {last}: {kinds}"

    def _repr_html_(self) -> str:
        rows = [(i.requested_time, i.completion_time, i.action.value, i.state.name.lower()) for i in self.instants]
        shown = rows[: -_INSTANTS_SHOWN - 1 : -1]
        table = html_table(("instant", "completed", "action", "state"), shown)
        more = len(rows) - len(shown)
        return table + (html_lines(f"and {more:,} earlier ones") if more else "")

    def __iter__(self) -> Iterator[Instant]:
        return iter(self.instants)

    def __len__(self) -> int:
        return len(self.instants)

    def completed(self) -> Timeline:
        """Only completed instants."""
        return self._where(lambda instant: instant.is_completed)

    def pending(self) -> Timeline:
        """Only requested and inflight instants."""
        return self._where(lambda instant: not instant.is_completed)

    def commits(self) -> Timeline:
        """Completed instants that make data visible: commit, deltacommit, replacecommit."""
        return self._where(lambda instant: instant.is_completed and instant.action.is_commit)

    def of(self, actions: Iterable[ActionKind]) -> Timeline:
        """Only instants of these actions."""
        kinds = frozenset(actions)
        return self._where(lambda instant: instant.action in kinds)

    def up_to(self, requested_time: str) -> Timeline:
        """Instants with a requested time of `requested_time` or less."""
        return self._where(lambda instant: instant.requested_time <= requested_time)

    def after(self, requested_time: str) -> Timeline:
        """Instants with a requested time of more than `requested_time`."""
        return self._where(lambda instant: instant.requested_time > requested_time)

    def find(self, requested_time: str, action: ActionKind | None = None) -> Instant | None:
        """The instant of a requested time. Of several (as with a savepoint) the write, unless `action` is given."""
        instants = [
            instant
            for instant in self.instants
            if instant.requested_time == requested_time
            and (action is None or instant.action.completed_as is action.completed_as)
        ]
        return next((instant for instant in instants if instant.action.is_write), instants[0] if instants else None)

    def last_commit(self) -> Instant | None:
        """The completed commit, deltacommit or replacecommit with the greatest requested time."""
        return next((i for i in reversed(self.instants) if i.is_completed and i.action.is_commit), None)

    def is_visible(self, instant_time: str) -> bool:
        """True if data files with `instant_time` are committed (as far as this timeline reaches)."""
        if instant_time in self._commit_times:
            return True
        return self.active_since is not None and instant_time < self.active_since

    @property
    def first_time(self) -> str | None:
        """The smallest requested time, None without instants."""
        return self.instants[0].requested_time if self.instants else None

    @property
    def latest_time(self) -> str | None:
        """The greatest requested or completion time; a new instant must be later."""
        times = [time for i in self.instants for time in (i.requested_time, i.completion_time) if time is not None]
        return max(times, default=None)

    def _where(self, keep: Callable[[Instant], bool]) -> Timeline:
        return Timeline(tuple(filter(keep, self.instants)), self.active_since)


def _order(instant: Instant) -> tuple[str, str, State]:
    return instant.requested_time, instant.action.value, instant.state


def _first_write(instants: Sequence[Instant]) -> str | None:
    """The oldest write that is not savepointed, as archiving skips savepointed commits.

    Pending writes count: archiving never passes one, so all writes older than a pending one were archived, and the
    files of the pending write stay invisible.
    """
    writes = [i for i in instants if i.action.is_write]
    saved = {i.requested_time for i in instants if i.action is ActionKind.SAVEPOINT}
    # If only savepointed commits remain, all writes older than the newest of them were archived.
    return next(
        (i.requested_time for i in writes if i.requested_time not in saved),
        writes[-1].requested_time if writes else None,
    )
