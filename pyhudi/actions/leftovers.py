"""Leftovers: markers, index pieces and heartbeats of completed instants, whose writers died before they deleted them.

They are harmless, but they would stay: a rollback deletes those of pending instants only.
Source: docs/formats/writers.md, "Markers", "Heartbeats".
"""

from __future__ import annotations

from pyhudi.actions.action import ActionContext
from pyhudi.filegroup.write.markers import delete_markers
from pyhudi.metadata.staged_index import delete_staged_index
from pyhudi.model.filenames import HEARTBEAT_FOLDER, INDEX_PIECES_FOLDER, TEMPORARY_FOLDER, heartbeat_path

__all__ = ["delete_leftovers"]


def delete_leftovers(context: ActionContext) -> None:
    """Delete markers, index pieces and heartbeats of instants that were complete, or archived, when the context was
    loaded.

    Instants that began since then are in neither set, so those of running writers stay.
    """
    storage, timeline = context.meta.storage, context.meta.timeline
    done = {instant.requested_time for instant in timeline.completed()}
    done -= {instant.requested_time for instant in timeline.pending()}

    def is_over(instant_time: str) -> bool:
        return instant_time in done or (timeline.first_time is not None and instant_time < timeline.first_time)

    for entry in storage.list(TEMPORARY_FOLDER):
        if entry.is_dir and is_over(entry.name):
            delete_markers(storage, entry.name)
    known = {instant.requested_time for instant in timeline}
    for entry in storage.list(INDEX_PIECES_FOLDER):
        # Real Hudi, which knows nothing of pieces, may have undone one: whatever is gone began before others did.
        was_undone = entry.name not in known and entry.name < (timeline.latest_time or "")
        if entry.is_dir and (is_over(entry.name) or was_undone):
            delete_staged_index(storage, entry.name)
    for entry in storage.list(HEARTBEAT_FOLDER):
        # A heartbeat starts before its instant exists: a writer that died in between has left nothing else.
        if is_over(entry.name) or (entry.name not in known and context.is_dead(entry.name)):
            storage.delete(heartbeat_path(entry.name))
