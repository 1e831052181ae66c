"""The files of a table's schema history: one for each change, with all schemas up to it.

A file takes effect once the instant in its name completes, so it is written before that.
Source: docs/formats/schema.md, "Schema history".
"""

from __future__ import annotations

from collections.abc import Sequence

from pyhudi.model.filenames import SCHEMA_FOLDER, InstantFileName
from pyhudi.model.instant import ActionKind, State
from pyhudi.model.table_config import TableConfig
from pyhudi.model.timeline import Timeline
from pyhudi.schema.internal import InternalSchema, encode_history, encode_internal_schema, history_texts
from pyhudi.storage.base import Storage

__all__ = ["delete_history", "save_history"]


def save_history(
    times: tuple[str, str],
    history: Sequence[InternalSchema],
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
) -> None:
    """Write an instant's history: its schema first, then the existing ones.

    Args:    times: the instant time, and the completion time of its history file, which is in names from version 8 on.
    """
    instant_time, completed = times
    paths = []
    older = history_texts(storage, timeline) or [encode_internal_schema(schema) for schema in history[1:]]
    for state in (State.REQUESTED, State.INFLIGHT, State.COMPLETED):
        is_completed = state is State.COMPLETED
        time = completed if is_completed else None
        name = InstantFileName(instant_time, ActionKind.SCHEMACOMMIT, state, time).text(config.layout_version)
        data = encode_history([encode_internal_schema(history[0]), *older]) if is_completed else b""
        paths.append(f"{SCHEMA_FOLDER}/{name}")
        storage.write(paths[-1], data)
    storage.sync(paths)  # a completed instant needs them, even after a power cut


def delete_history(instant_time: str, storage: Storage) -> None:
    """Delete the files of an undone instant: its time may later lie before the active timeline."""
    for info in storage.list(SCHEMA_FOLDER):
        name = InstantFileName.parse(info.name, 2)
        if name is not None and name.action is ActionKind.SCHEMACOMMIT and name.requested_time == instant_time:
            storage.delete(info.path)
            storage.sync([info.path])  # a file that reappears could take effect
