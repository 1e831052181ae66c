"""TimelineWriter: the only writer of instant files.

Every state is a file of its own that stays: requested, then inflight, then completed, each made exclusively.
Source: docs/formats/timeline.md, "File names", "Steps of an instant", "Rollback".
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from pyhudi.caller_warnings import warn_caller
from pyhudi.errors import PathExists, WriteConflict
from pyhudi.model.filenames import pending_actions
from pyhudi.model.instant import ActionKind, Instant, State, parse_instant_time
from pyhudi.model.table_config import TableConfig
from pyhudi.storage.base import Storage
from pyhudi.timeline.read import instant_path

__all__ = ["TimelineWriter"]


@dataclass(frozen=True, slots=True)
class TimelineWriter:
    """Moves instants through their states. What a body holds is the caller's affair (see formats.instant_files)."""

    storage: Storage
    config: TableConfig

    def request(self, time: str, action: ActionKind, body: bytes = b"") -> Instant:
        """Make the requested file; hold the lock under which `time` was drawn.

        A plan outlasts a power cut from here on. Raises WriteConflict when another writer has taken the same time.
        """
        return self._create(Instant(time, action, State.REQUESTED), body, synced=bool(body))

    def start(self, instant: Instant, body: bytes = b"") -> Instant:
        """Make the inflight file of a requested instant (of a savepoint: the first file).

        From here on a power cut leaves it pending, so that whatever it writes or deletes next can be put right. Raises
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
            # The store refused, or never answered, and has made the file all the same: readers see the instant.
            if not isinstance(error.__cause__, PathExists):
                warn_caller(
                    f"{self.storage.full_path(self._path(completed))} is made, so {instant.action.value} "
                    f"{instant.requested_time} is complete, but it may not outlast a power cut. "
                    f"{type(error).__name__}: {error}"
                )
        if self.config.layout_version < 2:
            # Layout 1 has no completion time but the file's own.
            moment = parse_instant_time(completion_time, self.config.timeline_zone)
            with suppress(Exception):  # the write is visible already; it then completed a few milliseconds later
                self.storage.set_modified(self._path(completed), round(moment.timestamp() * 1000))
        return completed

    def delete_files(self, instant: Instant) -> None:
        """Remove the pending files of an instant that was rolled back: inflight, then requested.

        In this order a crash leaves an instant that is still pending, never an inflight file alone, without its plan.
        """
        assert not instant.is_completed, instant
        inflight = self._path(instant.at(State.INFLIGHT))
        if self.storage.delete(inflight):
            self.storage.sync([inflight])
        self.storage.delete(self._path(instant.at(State.REQUESTED)))

    def revert_to_inflight(self, instant: Instant) -> Instant:
        """Take a completed instant back: its data is invisible from now on. For rollbacks that a user asks for."""
        assert instant.is_completed, instant
        action = self._pending_action(instant)
        for state in (State.REQUESTED, State.INFLIGHT):
            path = self._path(Instant(instant.requested_time, action, state))
            if self.storage.stat(path) is None:
                self.storage.create_synced(path, b"")
        self.storage.delete(self._path(instant))
        self.storage.sync([self._path(instant)])  # before its files go: it must not come back without them
        return Instant(instant.requested_time, action, State.INFLIGHT)

    def revert_to_requested(self, instant: Instant) -> Instant:
        """Take an inflight table service back to its plan, to be run again."""
        assert instant.state is State.INFLIGHT, instant
        self.storage.delete(self._path(instant))
        return instant.at(State.REQUESTED)

    def delete_savepoint(self, instant: Instant) -> None:
        """Remove the files of a savepoint: the completed one, which makes it one, first."""
        assert instant.action is ActionKind.SAVEPOINT, instant
        if instant.is_completed:
            self.storage.delete(self._path(instant))
        self.storage.delete(self._path(instant.at(State.INFLIGHT)))
        self.storage.sync([self._path(instant)])

    def _pending_action(self, instant: Instant) -> ActionKind:
        """The action that names the pending files of a completed instant."""
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
