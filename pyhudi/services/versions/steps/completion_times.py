"""When the instants of a table of version 6 completed, for version 8, which writes it into their names.

Below version 8 the completed file's modification time is all there is, and a copy of a table has new ones. From 8 on
log files join the newest base file that was requested before they completed: a wrong time would put log files of
version 6 (named after their base file) on a later base file, and old rows over new ones. So the slices that version 6
reads off the names have the last word. Source: docs/formats/timeline.md, "File names", "What a reader sees";
docs/formats/table-config.md, "Steps between versions"; docs/formats/file-names.md, "File groups and slices".
"""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import format_instant_time, parse_instant_time
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["completion_times"]

_MILLISECOND = timedelta(milliseconds=1)


def completion_times(meta: MetaClient) -> dict[tuple[str, str], str]:
    """(requested time, action) → completion time, of all completed instants.

    The modification time, but for one that is not after the requested time, or not before the base file that ended the
    slice of the instant's log files.
    """
    ends = _ends_of_slices(meta) if meta.config.is_merge_on_read else {}
    times = {}
    for instant in meta.timeline.completed():
        requested, completed = instant.requested_time, instant.completion_time
        assert completed is not None, instant
        end = ends.get(requested)
        if end is not None and completed >= end:
            completed = _moved(end, -_MILLISECOND, meta)
        if completed <= requested:
            completed = _moved(requested, _MILLISECOND, meta)
        times[requested, instant.action.completed_as.value] = completed
    return times


def _ends_of_slices(meta: MetaClient) -> dict[str, str]:
    """Instant in the names of log files → the earliest base instant that follows a slice which has some of them."""
    ends: dict[str, str] = {}
    for groups in FileSystemView.load(meta).groups.values():
        for group in groups:
            for newer, older in pairwise(group.slices):
                for log in older.log_files:
                    ends[log.instant_time] = min(newer.base_instant, ends.get(log.instant_time, newer.base_instant))
    return ends


def _moved(time: str, by: timedelta, meta: MetaClient) -> str:
    zone = meta.config.timeline_zone
    return format_instant_time(parse_instant_time(time, zone) + by, zone)
