"""The files of instants: `TimelineReader` returns those of one instant as bytes and decoded.

They are plans of pending instants, and bodies of completed ones other than commits (for these see
`timeline/commits.py`).
Source: docs/formats/timeline.md, "Instants and states", "File names", "Steps of an instant", "Bodies".
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.errors import PathNotFound
from pyhudi.formats.timeline.clean_plans import decode_clean_metadata, decode_clean_plan
from pyhudi.formats.timeline.instant_files import decode_commit, decode_rollback_metadata, decode_rollback_plan
from pyhudi.formats.timeline.plans import decode_clustering_plan, decode_compaction_plan, decode_index_plan
from pyhudi.formats.timeline.savepoints import decode_restore_metadata, decode_restore_plan, decode_savepoint
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.filenames import pending_actions
from pyhudi.model.instant import Instant, State
from pyhudi.model.plans import (
    CleanMetadata,
    CleanPlan,
    ClusteringPlan,
    CompactionPlan,
    IndexPlan,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    SavepointMetadata,
)
from pyhudi.model.table_config import TableConfig
from pyhudi.storage.base import Storage
from pyhudi.timeline.listing import instant_path

__all__ = ["TimelineReader"]


@dataclass(frozen=True, slots=True)
class TimelineReader:
    """Reads the files of instants, without a cache. All methods raise CorruptFile for files that can't be decoded, and
    PathNotFound for a state that the instant has not reached, or has left since the timeline was listed.
    """

    storage: Storage
    config: TableConfig

    def read_body(self, instant: Instant, state: State) -> bytes:
        """Read the bytes of one state's file of an instant."""
        if state is State.COMPLETED:
            try:
                return self.storage.read(instant_path(instant, self.config))
            except PathNotFound:
                # Layout 2 may hold completed files of 0.x without a completion time in their names.
                return self.storage.read(
                    instant_path(Instant(instant.requested_time, instant.action, state), self.config)
                )
        actions = (instant.action, *pending_actions(instant.action.completed_as))
        for action in dict.fromkeys(actions):
            try:
                return self.storage.read(instant_path(Instant(instant.requested_time, action, state), self.config))
            except PathNotFound:
                continue
        raise PathNotFound(
            f"{self.storage.full_path(self.config.timeline_path)}: the instant {instant.requested_time} "
            f"({instant.action.value}) has no {state.name.lower()} file."
        )

    # Plans: requested files, which stay when the instant proceeds

    def compaction_plan(self, instant: Instant) -> CompactionPlan:
        """Read the plan of a compaction or log compaction. Raises UnsupportedTable for one with bootstrapped files."""
        return decode_compaction_plan(*self._body(instant, State.REQUESTED))

    def clustering_plan(self, instant: Instant) -> ClusteringPlan | None:
        """Read the plan of a clustering; None for another action, or one dropped since the timeline was listed.

        Below version 8 pending clusterings and overwrites are both called replacecommit: the plan distinguishes them.
        """
        if not instant.action.is_replacing:
            return None
        try:
            body, where = self._body(instant, State.REQUESTED)
        except PathNotFound:
            return None
        return decode_clustering_plan(body, where)

    def clean_plan(self, instant: Instant) -> CleanPlan | None:
        """The plan of a clean, None when the file holds none: its writer died. Raises UnsupportedTable for one that
        deletes files of a bootstrap.
        """
        body, where = self._body(instant, State.REQUESTED)
        return decode_clean_plan(body, where) if body else None

    def rollback_plan(self, instant: Instant) -> RollbackPlan:
        return decode_rollback_plan(*self._body(instant, State.REQUESTED))

    def restore_plan(self, instant: Instant) -> RestorePlan:
        return decode_restore_plan(*self._body(instant, State.REQUESTED))

    def index_plan(self, instant: Instant) -> IndexPlan:
        """Return the plan of an indexing instant."""
        return decode_index_plan(*self._body(instant, State.REQUESTED))

    # Inflight files

    def profile(self, instant: Instant) -> CommitMetadata:
        """Return the workload profile in the inflight file of a write, empty when it has none."""
        return decode_commit(*self._body(instant, State.INFLIGHT))

    # Completed files

    def clean_metadata(self, instant: Instant) -> CleanMetadata:
        return decode_clean_metadata(*self._body(instant, State.COMPLETED))

    def rollback_metadata(self, instant: Instant) -> RollbackMetadata:
        return decode_rollback_metadata(*self._body(instant, State.COMPLETED))

    def restore_metadata(self, instant: Instant) -> RestoreMetadata:
        return decode_restore_metadata(*self._body(instant, State.COMPLETED))

    def savepoint_metadata(self, instant: Instant) -> SavepointMetadata:
        return decode_savepoint(*self._body(instant, State.COMPLETED))

    def _body(self, instant: Instant, state: State) -> tuple[bytes, str]:
        """Return the bytes of a file, and its name in messages."""
        ending = "" if state is State.COMPLETED else f".{state.name.lower()}"
        where = f"{self.storage.root}: {instant.requested_time}.{instant.action.value}{ending}"
        return self.read_body(instant, state), where
