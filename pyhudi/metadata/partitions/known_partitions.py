"""Statistics of partitions that this process remembers from its last writes.

    partition path    → the names of its files, and the range of each column over all of them

A file keeps its name and its content, so such a range remains true for these files. A write that only adds files joins
the ranges of the new files and reads nothing from the metadata table. If other files changed, the partition is looked
up in the metadata table. Source: docs/formats/metadata-table.md, "Statistics of partitions".
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import pyarrow as pa

from pyhudi.formats.stored_ranges import StoredRange, joined_range, ranges_from_bytes, ranges_of_rows, rows_of_files
from pyhudi.metadata.keys import partition_stats_key
from pyhudi.metadata.partitions.base import PartitionUpdate
from pyhudi.metadata.partitions.stats_updates import NewFileRanges, nothing_known, records_of
from pyhudi.metadata.schema import MetadataKind, RecordType
from pyhudi.model.table_format import TableFormat
from pyhudi.storage.base import Storage
from pyhudi.storage.file_cache import FILES
from pyhudi.storage.place import is_local

__all__ = ["KnownPartitions", "partition_stats_of"]

_PAYLOAD = MetadataKind.COLUMN_STATS.payloads[0]
_FEW_FILES = 1_000  # new files of a write: more are joined by Arrow
_NAME_BYTES, _RANGE_BYTES = 200, 400  # about the sizes of a name and of a range in memory

Ranges = Mapping[str, StoredRange]  # by column


class _Entry(NamedTuple):
    names: frozenset[str]
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class KnownPartitions:
    """The remembered statistics of a table's partitions. `storage`: of the table; `columns`: the indexed ones."""

    storage: Storage
    table_version: int
    columns: Sequence[str]

    def joined(self, new: Sequence[NewFileRanges], after: Mapping[str, Collection[str]]) -> dict[str, Ranges]:
        """Partition path → ranges over all its files, for the partitions whose older files are known.

        Args: new: the new files; after: partition path → names of all its files with the new ones.
        """
        if not self._names_identify_content or len(new) > _FEW_FILES:
            return {}
        by_path: dict[str, dict[str, NewFileRanges]] = {}
        for file in new:
            by_path.setdefault(file.partition_path, {})[file.name] = file
        joined: dict[str, Ranges] = {}
        for path, names in after.items():
            ranges = self._ranges(path, frozenset(names), by_path.get(path, {})) if names else None
            if ranges is not None:
                joined[path] = ranges
                self._put(path, names, ranges)
        return joined

    def remember(self, records: pa.Table, after: Mapping[str, Collection[str]]) -> None:
        """Remember the statistics in these records, for partitions with files of these names."""
        if not self._names_identify_content or len(after) > _FEW_FILES:
            return
        by_path: dict[str, dict[str, StoredRange]] = {path: {} for path in after}
        rows = cast("pa.StructArray", records.column(_PAYLOAD).combine_chunks())
        for path, one in ranges_of_rows(pa.Table.from_struct_array(rows)):
            by_path[path][one.column] = one
        for path, ranges in by_path.items():
            self._put(path, after[path], ranges)

    @property
    def _names_identify_content(self) -> bool:
        """True if a file name identifies its content. Tables in memory reuse names, so they are not remembered."""
        is_in_memory = is_local(self.storage) and not hasattr(self.storage, "file_state")
        # In earlier versions log files grow, and bounds have other forms.
        return TableFormat(self.table_version).has_value_types and not is_in_memory

    def _ranges(self, path: str, names: frozenset[str], new: Mapping[str, NewFileRanges]) -> Ranges | None:
        """The ranges over the files with these names; None if the statistics of some of them have to be read."""
        entry = cast("_Entry | None", FILES.get(self._key(path)))
        parts: list[Ranges] = []
        if entry is not None and entry.names <= names:
            parts, names = [entry.ranges], names - entry.names
        if not new.keys() >= names:
            return None
        parts += [{one.column: one for one in ranges_from_bytes(new[name].encoded)} for name in names]
        return {column: whole for column in self.columns if (whole := _joined(column, parts)) is not None}

    def _put(self, path: str, names: Collection[str], ranges: Ranges) -> None:
        size_bytes = _NAME_BYTES * len(names) + _RANGE_BYTES * len(ranges)
        FILES.put(self._key(path), _Entry(frozenset(names), ranges), size_bytes)

    def _key(self, path: str) -> Hashable:
        return "partition statistics", self.storage.root, self.table_version, tuple(self.columns), path


def partition_stats_of(table_version: int, columns: Sequence[str], partitions: Mapping[str, Ranges]) -> PartitionUpdate:
    """The records of whole partitions with these ranges; those of columns without a range are deleted."""
    nothing = nothing_known(table_version, MetadataKind.PARTITION_STATS)
    owned = [(path, name) for path, ranges in partitions.items() for name in ranges]
    rows = rows_of_files(table_version, [(path, tuple(r.values())) for path, r in partitions.items()], tight=True)
    without_range = [(path, name) for path, ranges in partitions.items() for name in columns if name not in ranges]
    records = records_of(table_version, _keys(owned), RecordType.PARTITION_STATS, rows)
    return PartitionUpdate(pa.concat_tables([nothing, records]), _keys(without_range))


def _keys(owned: Iterable[tuple[str, str]]) -> pa.Array:
    return pa.array([partition_stats_key(name, path) for path, name in owned], pa.string())


def _joined(column: str, parts: Sequence[Ranges]) -> StoredRange | None:
    """The range of a column over all parts; None if a part lacks it or has it in another form."""
    total: StoredRange | None = None
    for part in parts:
        next_range = part.get(column)
        if next_range is None or (total is not None and (next_range := joined_range(total, next_range)) is None):
            return None
        total = next_range
    return total
