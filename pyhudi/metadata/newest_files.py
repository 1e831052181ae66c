"""Names of the files of a partition's newest slices: as they are, and as they will be when an instant is complete; and
whether one that is pending may bring others, which nobody knows yet.

Source: docs/formats/file-names.md, "Visible slices"; docs/formats/metadata-table.md, "Statistics of partitions".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import TableChange, WriteStat
from pyhudi.model.file_group import FileSlice
from pyhudi.model.filenames import LogFileName
from pyhudi.model.instant import Instant
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["has_earlier_writes", "names_after", "names_of"]

_Names: TypeAlias = dict[str, set[str]]  # file id → names of the files of its newest slice


def names_of(slices: Sequence[FileSlice]) -> Collection[str]:
    """Names of all files of these slices, without folders."""
    return _all(_by_group(slices))


def names_after(data: MetaClient, change: TableChange) -> Mapping[str, Collection[str]]:
    """Path of each partition that the instant writes to, or replaces files of → names of its files then, without
    folders; none where nothing is left.
    """
    paths = sorted(
        {stat.partition_path or "" for stat in change.stats} | {g.partition_path for g in change.groups_replaced}
    )
    view = FileSystemView.load(data, partitions=paths)
    found: dict[str, Collection[str]] = {}
    for path in paths:
        names = _by_group(view.slices(path))
        for file_id in change.partitions[path].replaced_file_ids:
            names.pop(file_id, None)
        _put(names, [stat for stat in change.stats if (stat.partition_path or "") == path])
        found[path] = _all(names)
    return found


def has_earlier_writes(data: MetaClient, instant: Instant) -> bool:
    """Is a write pending that began before this one, and may bring rows?

    Should it complete, what it writes of whole partitions would be older than what this instant writes, by the instant
    times, and this one does not have its rows: so this one takes away what is known of the partitions that it touches.
    """
    return any(i.action.is_commit and i.requested_time < instant.requested_time for i in data.timeline.pending())


def _by_group(slices: Sequence[FileSlice]) -> _Names:
    names: _Names = {}
    for found in slices:
        own = {log.name for log in found.log_files}
        names[found.group.file_id] = own | ({found.base_file.name} if found.base_file is not None else set())
    return names


def _put(names: _Names, stats: Sequence[WriteStat]) -> None:
    """A new base file begins a slice, a log file joins it."""
    for stat in stats:
        if stat.path is None:
            continue
        name = stat.path.rpartition("/")[2]
        is_log = LogFileName.parse(name) is not None
        names[stat.file_id] = {*names.get(stat.file_id, ()), name} if is_log else {name}


def _all(names: Mapping[str, set[str]]) -> Collection[str]:
    return {name for own in names.values() for name in own}
