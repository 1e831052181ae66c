"""The files of the table's partitions as the metadata table lists them, and their names after an instant.

The metadata table replaces a listing of folders when it is up to date. Hudi does not notice a metadata table that a
write failed to update, and readers then lose that write's rows. So the metadata table must have each completed write
and clean of the active timeline: as an instant of its own, or because its partition `files` was built later. If one is
missing, or if the metadata table can't be read, folders are listed.

`names_of` names the files of the newest slices as they are, `file_names_after` as they will be when an instant is
complete. `has_earlier_writes` says whether a pending write may add other files, whose names are not known yet.

Source: docs/formats/metadata-table.md, "Is it up to date?", "Statistics of partitions"; docs/formats/file-names.md,
"Visible slices".
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import MetadataTableDamaged
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.keys import ALL_PARTITIONS_KEY, NON_PARTITIONED, stored_partition
from pyhudi.metadata.schema import MetadataKind
from pyhudi.metadata.table import SOLO, MetadataTable
from pyhudi.model.commit import TableChange, WriteStat
from pyhudi.model.file_group import FileSlice
from pyhudi.model.filenames import LogFileName, data_path
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.storage.base import FileInfo
from pyhudi.storage.file_cache import FILES, settled_state
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["file_names_after", "has_earlier_writes", "listed_files", "missing_instants", "names_of"]


_FILES = MetadataKind.FILES.value.prefix
_BASE_TIME_DIGITS = 17
_FILE_BYTES = 200  # about the size of an entry in memory


def missing_instants(table: MetadataTable) -> tuple[str, ...]:
    """Completed writes and cleans of the table that its metadata table does not have, oldest first."""
    completed = {i.requested_time for i in table.meta.timeline if i.is_completed}
    covered_until = _covered_until(table)
    # Archiving begins with the oldest: while the instant that built `files` is active, no later one was archived.
    oldest = min(completed, default=None) if covered_until is None else None
    missing = []
    for instant in table.data.timeline:
        if not instant.is_completed or not (instant.action.is_commit or instant.action is ActionKind.CLEAN):
            continue
        if instant.requested_time in completed or (oldest is not None and instant.requested_time < oldest):
            continue  # archived there
        when = instant.completion_time if table.data.config.format.orders_by_completion else instant.requested_time
        if covered_until is None or when is None or when > covered_until:
            missing.append(instant.requested_time)
    return tuple(missing)


def _covered_until(table: MetadataTable) -> str | None:
    """The last completion time (below version 8: instant time) that the listing which built `files` covers. None if the
    instant that built it was archived.
    """
    by_completion = table.data.config.format.orders_by_completion
    times = []
    for instant in table.meta.timeline:
        time = instant.requested_time
        if not (time.startswith(SOLO) or _is_initialization(time)) or instant.action is not ActionKind.DELTACOMMIT:
            continue
        if instant.is_completed and _FILES in table.meta.commits.metadata(instant).partition_to_write_stats:
            times.append(instant.completion_time or "" if by_completion else time[:_BASE_TIME_DIGITS])
    return max(times, default=None)


def _is_initialization(instant_time: str) -> bool:
    """True for the time of an instant (below version 8) that built a partition."""
    return len(instant_time) > _BASE_TIME_DIGITS and instant_time[_BASE_TIME_DIGITS:] >= "010"


def listed_files(table: MetadataTable, partitions: Collection[str] | None = None) -> Mapping[str, list[FileInfo]]:
    """Partition path → its files. Sizes are exact; modification times are unknown and set to 0.

    Args:   partitions: paths of the partitions to list; None: all.
    Returns: a shared mapping; don't change it.
    Raises: CorruptFile, MetadataTableDamaged.
    """
    if partitions is not None:
        return _listing_of(table, table.lookup(_FILES, [stored_partition(path) for path in partitions]))
    key = _listing_key(table)
    cached = None if key is None else FILES.get(key)
    if cached is not None:
        return cast("Mapping[str, list[FileInfo]]", cached)
    # The list of all partitions is one value with an item each; items are read one after the other.
    listing = _listing_of(table, table.records(_FILES, without=ALL_PARTITIONS_KEY))
    if key is not None:
        FILES.put(key, listing, _FILE_BYTES * len(listing.names))
    return listing


def _listing_key(table: MetadataTable) -> Hashable | None:
    """The cache key of a listing: the states of the files of `files`, and which of their blocks count. None if a file
    may be changing.
    """
    (file_slice,) = table.slices(_FILES)
    reader = table.reader(file_slice)
    blocks = reader.blocks
    base = file_slice.base_file
    state = None if base is None else settled_state(table.meta.storage, base.path)
    if (base is not None and state is None) or any(block.state is None for block in blocks):
        return None
    if base is None and not blocks:
        return None  # nothing in it identifies the table
    counted = tuple((block.state, block.path, block.frame.offset) for block in blocks)
    return "listing", base and base.path, state, counted, table.deleted, table.data.config.table_version


def _listing_of(table: MetadataTable, records: pa.Table) -> _Listing:
    entries = records.column(MetadataKind.FILES.payloads[0]).combine_chunks()
    if not isinstance(entries, pa.MapArray):
        raise MetadataTableDamaged(f"{table.meta.storage.root}: its partition {_FILES!r} has no records of files.")
    names = cast("list[str]", entries.keys.to_pylist())
    sizes = cast("list[int]", pc.struct_field(entries.items, "size").to_pylist())
    deleted = cast("list[bool]", pc.struct_field(entries.items, "isDeleted").to_pylist())
    ends = cast("list[int]", entries.offsets.to_pylist())
    rows = {
        "" if key == NON_PARTITIONED else str(key): range(ends[row], ends[row + 1])
        for row, key in enumerate(records.column("key").to_pylist())
        if key != ALL_PARTITIONS_KEY
    }
    return _Listing(rows, names, sizes, deleted, table.deleted)


@dataclass(frozen=True, slots=True)
class _Listing(Mapping[str, list[FileInfo]]):
    """The files of each partition. Objects are made on demand: for very many files, keeping one each costs more than
    making it again. `rows`: partition path → its entries in the columns.
    """

    rows: Mapping[str, range]
    names: Sequence[str]
    sizes: Sequence[int]
    deleted: Sequence[bool]
    taken_back: frozenset[str]

    def __getitem__(self, path: str) -> list[FileInfo]:
        folder, names, sizes, deleted = data_path(path, ""), self.names, self.sizes, self.deleted
        files = [FileInfo(folder + names[at], sizes[at], 0) for at in self.rows[path] if not deleted[at]]
        return [entry for entry in files if entry.path not in self.taken_back] if self.taken_back else files

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


_Names: TypeAlias = dict[str, set[str]]  # file id → names of the files of its newest slice


def names_of(slices: Sequence[FileSlice]) -> Collection[str]:
    """Names of all files of these slices, without folders."""
    return _all(_by_group(slices))


def file_names_after(data: MetaClient, change: TableChange) -> Mapping[str, Collection[str]]:
    """The names of the files, without folders, that each partition will have after an instant.

    Only partitions that the instant writes to or replaces files in are keys. A partition without files has no names.
    """
    paths = sorted(
        {stat.partition_path or "" for stat in change.stats} | {g.partition_path for g in change.groups_replaced}
    )
    view = FileSystemView.load(data, partitions=paths)
    by_path: dict[str, Collection[str]] = {}
    for path in paths:
        names = _by_group(view.slices(path))
        for file_id in change.partitions[path].replaced_file_ids:
            names.pop(file_id, None)
        _put(names, [stat for stat in change.stats if (stat.partition_path or "") == path])
        by_path[path] = _all(names)
    return by_path


def has_earlier_writes(data: MetaClient, instant: Instant) -> bool:
    """True if an earlier write that may add rows is pending.

    If that write completes, its statistics of whole partitions rank as older than this instant's, by instant time. But
    this instant's statistics lack its rows. So this instant deletes the statistics of the partitions that it touches.
    """
    return any(i.action.is_commit and i.requested_time < instant.requested_time for i in data.timeline.pending())


def _by_group(slices: Sequence[FileSlice]) -> _Names:
    names: _Names = {}
    for slice in slices:
        logs = {log.name for log in slice.log_files}
        names[slice.group.file_id] = logs | ({slice.base_file.name} if slice.base_file is not None else set())
    return names


def _put(names: _Names, stats: Sequence[WriteStat]) -> None:
    """Add the files of write stats: a base file starts a new slice, a log file joins the newest slice."""
    for stat in stats:
        if stat.path is None:
            continue
        name = stat.path.rpartition("/")[2]
        is_log = LogFileName.parse(name) is not None
        names[stat.file_id] = {*names.get(stat.file_id, ()), name} if is_log else {name}


def _all(names: Mapping[str, set[str]]) -> Collection[str]:
    return {name for own in names.values() for name in own}
