"""Instants: their times, and the files that take them from state to state. Only this module writes them.

              request            start               commit (transaction/commit.py)
    nothing ─────────▶ requested ─────▶ inflight ───────────────▶ completed
       ▲                 │    ▲           │   │ ▲                    │
       └────── drop ─────┤    └ to_plan ──┘   │ └────── reopen ──────┘
                         └─────── drop ───────┘

`to_plan` serves pending plans (transaction/plans.py), `reopen` and then `drop` the undoing of an instant
(transaction/undo.py). Every state is a separate, lasting file that is created exclusively. Hold the table's lock when
drawing a time, until the file with it is made. Source: docs/formats/timeline.md, "File names", "Instant times",
"Completion times", "Steps of an instant", "Rollback".
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from pyhudi.errors import PathExists, WriteConflict
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import pending_actions
from pyhudi.model.instant import ActionKind, Instant, State, parse_instant_time
from pyhudi.model.table_config import TableConfig
from pyhudi.storage.base import Storage
from pyhudi.timeline.instant_time import InstantTimes
from pyhudi.timeline.listing import instant_path
from pyhudi.transaction.context import TableContext
from pyhudi.warnings import warn_caller

__all__ = [
    "TimelineWriter",
    "draw_completion_time",
    "draw_time",
    "drop",
    "drop_if_pending",
    "drop_savepoint",
    "instant_times",
    "reopen",
    "request",
    "request_at",
    "start",
    "to_plan",
]


def instant_times(context: TableContext) -> InstantTimes:
    """Return times for this table; the expected skew of clocks is the lock provider's unless the caller gave one."""
    options = context.options
    has_skew = "hoodie.time.generator.max_expected_clock_skew_ms" in options.explicit
    return InstantTimes(
        context.clock,
        context.meta.config.timeline_zone,
        context.lock,
        options.max_clock_skew_ms if has_skew else None,
        options.lock.wait_timeout_s,
    )


def draw_time(now: TableContext) -> str:
    """Draw the requested time of a new instant. `now`: the table as read under the lock."""
    return instant_times(now).draw(now.meta.timeline.latest_time)


def draw_completion_time(instant: Instant, now: TableContext, *, after: str | None = None) -> str:
    """The completion time of an inflight instant, later than all times on the timeline and than `after`. `now` as in
    `draw_time`.
    """
    latest = max(filter(None, (instant.requested_time, now.meta.timeline.latest_time, after)))
    return instant_times(now).draw_completion(latest)


def request(action: ActionKind, body: bytes, now: TableContext) -> Instant:
    """Create a new instant with its requested file; `body` is the plan of a table service. `now` as in `draw_time`."""
    return request_at(draw_time(now), action, now.meta, body)


def request_at(time: str, action: ActionKind, meta: MetaClient, body: bytes = b"") -> Instant:
    """Like `request`, at a drawn time. Raises WriteConflict when another writer has taken it."""
    return TimelineWriter(meta.storage, meta.config).request(time, action, body)


def start(instant: Instant, meta: MetaClient, body: bytes = b"") -> Instant:
    """Make a requested instant inflight: it may then write and delete files. See `TimelineWriter.start`."""
    return TimelineWriter(meta.storage, meta.config).start(instant, body)


def to_plan(instant: Instant, meta: MetaClient) -> Instant:
    """Turn an inflight instant back into its plan, to run again. Its files must already be deleted."""
    return TimelineWriter(meta.storage, meta.config).revert_to_requested(instant)


def reopen(instant: Instant, meta: MetaClient) -> Instant:
    """Make a completed instant inflight again: readers no longer see it, so its files may be deleted."""
    return TimelineWriter(meta.storage, meta.config).revert_to_inflight(instant)


def drop(instant: Instant, meta: MetaClient) -> None:
    """Remove a pending instant from the timeline. Its files must already be deleted."""
    TimelineWriter(meta.storage, meta.config).delete_files(instant)


def drop_if_pending(instant: Instant, meta: MetaClient) -> None:
    """Like `drop`, unless the instant in `meta` is complete or no longer exists."""
    pending = meta.timeline.find(instant.requested_time, instant.action)
    if pending is not None and not pending.is_completed:
        drop_savepoint(pending, meta) if pending.action is ActionKind.SAVEPOINT else drop(pending, meta)


def drop_savepoint(instant: Instant, meta: MetaClient) -> None:
    """Remove a savepoint from the timeline, in any state."""
    TimelineWriter(meta.storage, meta.config).delete_savepoint(instant)


@dataclass(frozen=True, slots=True)
class TimelineWriter:
    """Moves instants through their states. The caller encodes the bodies (see formats.instant_files)."""

    storage: Storage
    config: TableConfig

    def request(self, time: str, action: ActionKind, body: bytes = b"") -> Instant:
        """Make the requested file; hold the lock under which `time` was drawn.

        A plan outlasts a power cut from now on. Raises WriteConflict when another writer has taken the same time.
        """
        return self._create(Instant(time, action, State.REQUESTED), body, synced=bool(body))

    def start(self, instant: Instant, body: bytes = b"") -> Instant:
        """Make the inflight file of a requested instant (of a savepoint: the first file).

        From now on a power cut leaves it pending, so that its further writes and deletions can be undone. Raises
        WriteConflict when the requested file is missing, or the instant was started by another writer.
        """
        if instant.action is not ActionKind.SAVEPOINT:
            self._require(instant, State.REQUESTED)
        inflight = self._create(instant.at(State.INFLIGHT), body)
        self.storage.sync([self._path(instant.at(State.REQUESTED)), self._path(inflight)])
        return inflight

    def complete(self, instant: Instant, completion_time: str, body: bytes) -> Instant:
        """Make the completed file of an inflight instant: from now on readers see it. Hold the lock.

        `completion_time` was drawn under the same lock and is greater than the requested time. The returned instant
        has the action that the file names: a compaction completes as a commit. Raises WriteConflict when the inflight
        file is missing: another writer considered this one dead and rolled it back.
        """
        assert completion_time > instant.requested_time, (completion_time, instant)
        self._require(instant, State.INFLIGHT)
        completed = Instant(
            instant.requested_time, instant.action.completed_as, State.COMPLETED, completion_time=completion_time
        )
        try:
            self._create(completed, body, synced=True)
        except Exception as error:
            if not self._holds(completed, body):
                raise
            # The store refused or never answered, but created the file: readers see the instant.
            if not isinstance(error.__cause__, PathExists):
                warn_caller(
                    f"{self.storage.full_path(self._path(completed))} is made, so {instant.action.value} "
                    f"{instant.requested_time} is complete, but it may not outlast a power cut. "
                    f"{type(error).__name__}: {error}"
                )
        if not self.config.layout.names_completion_times:
            # In layout 1 the file's time is the only completion time.
            moment = parse_instant_time(completion_time, self.config.timeline_zone)
            with suppress(Exception):  # the write is visible already; it then completed a few milliseconds later
                self.storage.set_modified(self._path(completed), round(moment.timestamp() * 1000))
        return completed

    def delete_files(self, instant: Instant) -> None:
        """Remove the pending files of an instant that was rolled back: inflight, then requested.

        In this order a crash leaves an instant that is still pending, never an inflight file without its plan.
        """
        assert not instant.is_completed, instant
        inflight = self._path(instant.at(State.INFLIGHT))
        if self.storage.delete(inflight):
            self.storage.sync([inflight])
        self.storage.delete(self._path(instant.at(State.REQUESTED)))

    def revert_to_inflight(self, instant: Instant) -> Instant:
        """Turn a completed instant back to inflight: its data becomes invisible. For rollbacks that a user requests."""
        assert instant.is_completed, instant
        action = self._pending_action(instant)
        for state in (State.REQUESTED, State.INFLIGHT):
            path = self._path(Instant(instant.requested_time, action, state))
            if self.storage.stat(path) is None:
                self.storage.create_synced(path, b"")
        self.storage.delete(self._path(instant))
        self.storage.sync([self._path(instant)])  # before its files are deleted: it must not reappear without them
        return Instant(instant.requested_time, action, State.INFLIGHT)

    def revert_to_requested(self, instant: Instant) -> Instant:
        """Turn an inflight table service back to its plan, to run again."""
        assert instant.state is State.INFLIGHT, instant
        self.storage.delete(self._path(instant))
        return instant.at(State.REQUESTED)

    def delete_savepoint(self, instant: Instant) -> None:
        """Remove the files of a savepoint, first the completed one, which makes it valid."""
        assert instant.action is ActionKind.SAVEPOINT, instant
        if instant.is_completed:
            self.storage.delete(self._path(instant))
        self.storage.delete(self._path(instant.at(State.INFLIGHT)))
        self.storage.sync([self._path(instant)])

    def _pending_action(self, instant: Instant) -> ActionKind:
        """Return the action that names the pending files of a completed instant."""
        candidates = pending_actions(instant.action)
        for action in candidates:
            if self.storage.stat(self._path(Instant(instant.requested_time, action, State.REQUESTED))) is not None:
                return action
        return candidates[0]

    def _path(self, instant: Instant) -> str:
        return instant_path(instant, self.config)

    def _create(self, instant: Instant, body: bytes, *, synced: bool = False) -> Instant:
        path = self._path(instant)
        create = self.storage.create_synced if synced else self.storage.create_new
        try:
            create(path, body)
        except PathExists as error:
            raise WriteConflict(
                f"{self.storage.full_path(path)} exists already: another writer uses the instant time "
                f"{instant.requested_time}. Nothing of this write is visible; give all writers of the table the same "
                f"lock provider and write again."
            ) from error
        return instant

    def _holds(self, instant: Instant, body: bytes) -> bool:
        try:
            return bool(body) and self.storage.read(self._path(instant)) == body
        except Exception:
            return False

    def _require(self, instant: Instant, state: State) -> None:
        path = self._path(instant.at(state))
        if self.storage.stat(path) is None:
            raise WriteConflict(
                f"{self.storage.full_path(path)} is missing: another writer considered the write "
                f"{instant.requested_time} dead and rolled it back. Nothing of it is visible; write again."
            )
