"""The files that runs of a compaction's plan have made.

Source: docs/formats/table-services.md, "Compaction plan", "Clustering plan"; docs/formats/writers.md, "Markers";
docs/formats/timeline.md, "Rollback"; docs/formats/file-names.md, "File groups and slices".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyhudi.errors import CorruptFile
from pyhudi.filegroup.write.markers import APPEND, list_markers, marker_folder
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.filenames import BaseFileName, LogFileName, data_path
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.plans import CompactionPlan
from pyhudi.storage.base import Storage

__all__ = ["delete_files_of_run"]


def delete_files_of_run(
    instant: Instant, plan: CompactionPlan, meta: MetaClient, *, keep: Iterable[str], by_listing: bool
) -> None:
    """Delete the files that a run of a plan has made, but those that `keep` names.

    Args:    by_listing: list the plan's partitions too, for runs without markers.
    Raises CorruptFile for a marker of a file that is not of the plan's file groups: it is not ours to delete.
    """
    kept = frozenset(keep)
    groups = frozenset(operation.group for operation in plan.operations)
    paths = dict.fromkeys(_marked(instant, groups, kept, meta.storage))
    if by_listing:
        paths |= dict.fromkeys(path for path in _listed(instant, plan, meta) if path not in kept)
    meta.storage.sync([path for path in paths if meta.storage.delete(path)])  # one that came back would count


def _marked(instant: Instant, groups: frozenset[FileGroupId], kept: frozenset[str], storage: Storage) -> Iterator[str]:
    for marker in list_markers(storage, instant.requested_time):
        if marker.data_path in kept:
            continue
        partition_path, _, name = marker.data_path.rpartition("/")
        parsed = BaseFileName.parse(name) or LogFileName.parse(name)
        if parsed is None or FileGroupId(partition_path, parsed.file_id) not in groups:
            raise CorruptFile(
                f"{marker_folder(instant.requested_time)}: a marker names {marker.data_path!r}, which is not of the "
                f"plan of {instant.requested_time}; nothing was deleted for it."
            )
        if marker.io_type == APPEND:
            if _holds_only(storage, marker.data_path, instant.requested_time):
                yield marker.data_path
        elif parsed.instant_time == instant.requested_time:
            yield marker.data_path


def _holds_only(storage: Storage, path: str, instant_time: str) -> bool:
    """Below version 8 another writer may have begun the log file, where the store can append."""
    if storage.stat(path) is None:
        return False
    blocks = scan_log(storage, path)
    return all(block.instant_time == instant_time for block in blocks if isinstance(block, LogBlock))


def _listed(instant: Instant, plan: CompactionPlan, meta: MetaClient) -> Iterator[str]:
    """Files of the instant by their names. Below version 8 log files of that name are those of other writers."""
    own_logs = instant.action is ActionKind.LOGCOMPACTION and meta.config.table_version >= 8
    for path in dict.fromkeys(operation.partition_path for operation in plan.operations):
        for info in meta.storage.list(path):
            name = BaseFileName.parse(info.name) or (LogFileName.parse(info.name) if own_logs else None)
            if name is not None and name.instant_time == instant.requested_time:
                yield data_path(path, info.name)
