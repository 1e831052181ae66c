"""The rollback of an instant in the metadata table: the files of its delta commit, and the delta commit itself.

Each delta commit has log files of its own, which are deleted. Below version 8 their names have the instant of their
slice, and only their blocks tell which instant wrote them. Hold the data table's lock.
Source: docs/formats/metadata-table.md, "Taking back".
"""

from __future__ import annotations

from collections.abc import Iterator

from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.metadata.table import FIRST_BUILD, SOLO, MetadataTable
from pyhudi.model.commit import OperationType
from pyhudi.model.filenames import META_FOLDER, LogFileName, instant_of
from pyhudi.model.instant import INSTANT_TIME_DIGITS, ActionKind, Instant
from pyhudi.storage.base import FileInfo
from pyhudi.transaction.undo import remove_instant

__all__ = ["files_written_by", "is_built_of", "is_compacted", "is_log_compaction", "roll_back"]


def is_compacted(table: MetadataTable, instant_time: str) -> bool:
    """True if this instant's records were merged into a base file or a log compaction's block, or if it was archived:
    they can't be taken out.
    """
    instants = [i for i in table.meta.timeline if i.requested_time == instant_time]
    oldest = min((i.requested_time for i in table.meta.timeline), default="")
    compactions = [i.requested_time for i in table.meta.timeline.completed() if _is_compaction(table, i)]
    if not instants:
        return instant_time < oldest
    by_completion = table.data.config.format.orders_by_completion
    when = (instants[0].completion_time or "") if by_completion else instant_time
    return instants[0].is_completed and any(compaction > when for compaction in compactions)


def _is_compaction(table: MetadataTable, instant: Instant) -> bool:
    return instant.action is ActionKind.COMMIT or is_log_compaction(table, instant)


def is_log_compaction(table: MetadataTable, instant: Instant) -> bool:
    """True if the instant is a completed log compaction."""
    if instant.action is not ActionKind.DELTACOMMIT or not instant.is_completed:
        return False
    return table.meta.commits.metadata(instant).operation_type == OperationType.LOG_COMPACT


def is_built_of(table: MetadataTable, partition: str, instant_time: str) -> bool:
    """True if file groups of the partition were built after this instant completed. They then include its changes, and
    no delta commit can be taken out to restore the earlier state. A later compaction does not change that.

    It is unknown whether an instant without a delta commit here was complete, so its start counts instead.
    """
    completed = {i.requested_time: i.completion_time or "" for i in table.meta.timeline if i.is_completed}
    if not table.data.config.format.has_own_log_files:
        return any(instant_time <= build[:INSTANT_TIME_DIGITS] for build in _builds(table, partition))
    when = completed.get(instant_time, instant_time)
    return any(completed.get(build, "") > when for build in _builds(table, partition))


def _builds(table: MetadataTable, partition: str) -> Iterator[str]:
    """The instants that built file groups of the partition: their times differ from those of other delta commits."""
    for instant in table.meta.timeline.completed():
        time = instant.requested_time
        is_build = time.startswith(SOLO) or time[INSTANT_TIME_DIGITS:] >= FIRST_BUILD
        if not is_build or instant.action is not ActionKind.DELTACOMMIT:
            continue
        if partition in table.meta.commits.metadata(instant).partition_to_write_stats:
            yield time


def roll_back(table: MetadataTable, instant_time: str) -> bool:
    """Take out the delta commit of this instant; True if there was one. It must not be compacted (`is_compacted`).

    After a crash in between, the delta commit is inflight, and the next attempt takes it out.
    """
    instants = [
        i for i in table.meta.timeline if i.requested_time == instant_time and i.action is ActionKind.DELTACOMMIT
    ]
    if not instants:
        return False
    completed = next((i for i in instants if i.is_completed), instants[0])
    remove_instant(completed, table.meta, files_written_by(table, instant_time))
    return True


def files_written_by(table: MetadataTable, instant_time: str) -> Iterator[str]:
    """Paths of the files that an instant of the metadata table has written."""
    by_name = table.data.config.format.has_own_log_files
    for folder in table.meta.storage.list(""):
        if not folder.is_dir or folder.name == META_FOLDER:
            continue
        for entry in table.meta.storage.list(folder.path):
            is_named = instant_of(entry.name) == instant_time
            if is_named or (not by_name and _has_blocks_of(table, entry, instant_time)):
                yield entry.path


def _has_blocks_of(table: MetadataTable, entry: FileInfo, instant_time: str) -> bool:
    """True for a log file whose first block is of this instant; its other blocks then are, too."""
    if LogFileName.parse(entry.name) is None:
        return False
    first = next(iter(scan_log(table.meta.storage, entry.path)), None)
    return isinstance(first, LogBlock) and first.instant_time == instant_time
