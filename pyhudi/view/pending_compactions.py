"""File groups that a pending compaction will rewrite, and the slices that log files of theirs go to meanwhile.

Below table version 8 the plan opens a slice under its own instant, and log files written from then on name that
instant; from version 8 on they name their own delta commit, and completion times part them.
Source: docs/formats/file-names.md, "File groups and slices"; docs/formats/table-services.md, "Compaction plan".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import FileGroupId, FileSlice
from pyhudi.model.instant import ActionKind
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["pending_compactions", "slices_to_append_to"]


def pending_compactions(meta: MetaClient) -> dict[FileGroupId, str]:
    """File group → instant of the pending compaction that has it in its plan. Raises CorruptFile."""
    found: dict[FileGroupId, str] = {}
    for instant in meta.timeline.pending():
        if instant.action is ActionKind.COMPACTION:
            operations = meta.reader.compaction_plan(instant).operations
            found.update((operation.group, instant.requested_time) for operation in operations)
    return found


def slices_to_append_to(
    view: FileSystemView, partition_path: str, compacting: Mapping[FileGroupId, str], meta: MetaClient
) -> tuple[FileSlice, ...]:
    """The slice of each file group of a partition that log files of a new delta commit belong to."""
    slices = view.slices(partition_path)
    if meta.config.table_version >= 8 or not compacting:
        return slices
    return tuple(_opened(s, compacting[s.group]) if s.group in compacting else s for s in slices)


def _opened(file_slice: FileSlice, compaction: str) -> FileSlice:
    """The slice that a pending compaction has opened, with the log files that are in it already."""
    logs = tuple(log for log in file_slice.log_files if log.instant_time == compaction)
    return replace(file_slice, base_instant=compaction, base_file=None, log_files=logs)
