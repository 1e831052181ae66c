"""Partial updates in a range of commits: their other columns are in the slice that the log files join.

    log files of the range → the newest slice that has one of them → what was complete at the end of the range

Only where a block of such a log file is a partial update is the slice looked for, when it is read.
Source: docs/formats/incremental.md, "Files of a range"; docs/formats/log.md, "Partial blocks".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import FileSlice, LogFile
from pyhudi.storage.base import Storage
from pyhudi.view.committed_logs import with_committed_bytes
from pyhudi.view.file_system_view import Visibility, listed_partitions

__all__ = ["WholeSlices"]


@dataclass(frozen=True, slots=True)
class WholeSlices:
    """Finds the slices of a table as of the end of a range of commits. Picklable.

    `until`: the time of the last commit of the range, as ranges count: when it completed from version 8 on.
    """

    storage: Storage
    until: str

    def __call__(self, part: FileSlice) -> FileSlice | None:
        """The slice that these log files of the range belong to, None when it is not there any more.

        Raises:  PathNotFound when a write was rolled back since.
        """
        meta = MetaClient.load(self.storage)
        # An overwrite after the range may have replaced the group: its files stay until they are cleaned.
        rules = replace(Visibility.of(meta, None), replaced=frozenset())
        group = part.group
        listed = listed_partitions(self.storage, [group.partition_path])
        files = [file for _, found in listed for file in found if group.file_id in file.name]
        slices = next((g.slices for g in rules.file_groups(group.partition_path, files) if g.group == group), ())
        named = {log.path for log in part.log_files}
        newest = next((s for s in slices if named & {log.path for log in s.log_files}), None)
        if newest is None:
            return None
        known = with_committed_bytes(meta, (newest,))[0]
        if meta.config.table_version < 8:
            return known
        return replace(known, log_files=tuple(log for log in known.log_files if self._is_in_time(log, rules)))

    def _is_in_time(self, log: LogFile, rules: Visibility) -> bool:
        """Was the write of a log file complete at the end of the range?"""
        if log.instant_time > self.until:
            return False
        completed = rules.completion_times.get(log.instant_time)
        return (completed or rules.archived.completion_of(log.instant_time)) <= self.until
