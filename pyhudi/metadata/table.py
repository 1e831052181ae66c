"""MetadataTable: the table in `.hoodie/metadata`, as a reader of the data table may use it.

It is a separate merge-on-read table. A block of its log files counts if the instant that wrote it is completed in the
data table, or can't be pending there: an update of the metadata table completes before its write does, and that write
may still fail. The data table's timeline is loaded first, so that no instant is missed.
Source: docs/formats/metadata-table.md, "Timeline", "Which blocks count".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
import pyarrow as pa

from pyhudi.errors import HudiError, MetadataTableDamaged
from pyhudi.formats.damage import as_corrupt
from pyhudi.lazy_property import lazy_property
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.group_reader import GroupReader, with_keys
from pyhudi.metadata.keys import group_numbers, groups_by_prefix, secondary_key_prefix
from pyhudi.metadata.merging import merged_records
from pyhudi.metadata.records import concat_records
from pyhudi.metadata.schema import MetadataKind, kind_of, record_fields
from pyhudi.model.file_group import FileSlice, LogFile
from pyhudi.model.filenames import METADATA_TABLE_FOLDER, BaseFileName
from pyhudi.model.instant import INSTANT_TIME_DIGITS, ActionKind, Instant
from pyhudi.storage.subfolder import Subfolder
from pyhudi.view.committed_logs import with_committed_bytes
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["FIRST_BUILD", "SOLO", "MetadataTable", "check_log_files", "has_metadata_table"]

FIRST_BUILD = "010"  # below version 8: digits behind the instant from which a partition was built
SOLO = "0" * 14  # prefix of instants that build a partition of a new metadata table
_OPERATION_DIGITS = 20  # of an instant time below version 8 with three more digits for the operation
_OPERATIONS = frozenset({"001", "002", "003", "004", "005", "006"})
_FIRST_INITIALIZATION = "010"


def has_metadata_table(meta: MetaClient) -> bool:
    """True when the properties list partitions of it, or its folder exists."""
    partitions = meta.config.metadata_partitions or meta.config.metadata_partitions_inflight
    return bool(partitions) or bool(meta.storage.list(METADATA_TABLE_FOLDER))


@dataclass(frozen=True)
class MetadataTable:
    """The metadata table of `data`, at one moment. `meta`: the metadata table's own. `raises`: a log file that lost
    blocks is an error, else a warning. `deleted`: paths of files that `files` still lists though the undoing of an
    instant has deleted them.
    """

    data: MetaClient
    meta: MetaClient
    raises: bool = True
    deleted: frozenset[str] = frozenset()
    _slices: dict[str, tuple[FileSlice, ...]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def open(cls, data: MetaClient) -> MetadataTable | None:
        """The metadata table, None when the table has no readable one.

        Args:   data: the data table, already loaded.
        Raises: MetadataTableDamaged when the properties list partitions but it can't be opened.
        """
        if MetadataKind.FILES.value.prefix not in data.config.metadata_partitions:
            return None
        try:
            return cls(data, MetaClient.load(Subfolder(data.storage, METADATA_TABLE_FOLDER), data.clock))
        except HudiError as error:
            raise MetadataTableDamaged(
                f"{data.storage.root}: hoodie.properties lists partitions of a metadata table "
                f"({', '.join(data.config.metadata_partitions)}), but it can't be opened: {error}"
            ) from error

    def reloaded(self) -> MetadataTable:
        """The metadata table as it is now, for the same state of the data table, whose lock the caller holds."""
        return MetadataTable(self.data, self.meta.reload(), self.raises, self.deleted)

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partitions that are complete, in the order in which the table's properties list them."""
        return self.data.config.metadata_partitions

    @property
    def knows_newest_rows(self) -> bool:
        """True if the keys and ranges in partitions describe the rows of the newest snapshot.

        Readers no longer see a completed write once its rollback has begun. If a build or a compaction has merged its
        records, they remain until the rollback ends.
        """
        return not any(instant.action.is_undoing for instant in self.data.timeline.pending())

    def slices(self, partition: str) -> tuple[FileSlice, ...]:
        """The newest slice of each file group of a partition, in order of the file ids.

        Raises: MetadataTableDamaged when there is no file group, or more than one of `files`.
        """
        if partition not in self._slices:
            self.load_slices((partition,))
        return self._slices[partition]

    def load_slices(self, partitions: Sequence[str]) -> None:
        """Load the `slices` of several partitions at once: the commits are read once."""
        missing = [name for name in partitions if name not in self._slices]
        if not missing:
            return
        view = FileSystemView.load(self.meta, partitions=missing)
        by_partition = {name: view.slices(name) for name in missing}
        for name, slices in by_partition.items():
            self._check_slices(name, slices)
        checked = iter(
            self._since_built(with_committed_bytes(self.meta, [s for own in by_partition.values() for s in own]))
        )
        for name, slices in by_partition.items():
            self._slices[name] = tuple(islice(checked, len(slices)))

    def _check_slices(self, partition: str, slices: Sequence[FileSlice]) -> None:
        # A record index with file groups for each partition of the table has none while the table has no partition.
        may_be_empty = partition == MetadataKind.RECORD_INDEX.value.prefix
        if (not slices and not may_be_empty) or (partition == MetadataKind.FILES.value.prefix and len(slices) != 1):
            raise MetadataTableDamaged(
                f"{self.meta.storage.root}: the partition {partition!r} has {len(slices)} file groups; expected "
                f"{'exactly one' if partition == MetadataKind.FILES.value.prefix else 'at least one'}."
            )
        self._check_base_files(partition, slices)

    def _check_base_files(self, partition: str, slices: Sequence[FileSlice]) -> None:
        """Raise MetadataTableDamaged when the newest base file that an instant names is missing: its slice would be
        read without the base file's records.
        """
        unchecked = {slice.group.file_id: slice for slice in slices}
        # `files` is rebuilt only with the whole table.
        by_completion = self.data.config.format.orders_by_completion
        is_built_alone = not by_completion and partition != MetadataKind.FILES.value.prefix
        for instant in self._base_file_writers:
            for stat in self.meta.commits.metadata(instant).partition_to_write_stats.get(partition, ()):
                name = BaseFileName.parse((stat.path or "").rpartition("/")[2])
                slice = None if name is None else unchecked.get(name.file_id)
                if name is None or slice is None or self._when(instant) < self._began(slice):
                    continue  # the file group no longer exists: its partition was dropped and rebuilt
                if is_built_alone and _may_be_built(slice):
                    continue  # its time is an instant time of the table: when it was built is unknown
                del unchecked[name.file_id]
                if slice.base_file is None or slice.base_file.instant_time != name.instant_time:
                    raise MetadataTableDamaged(f"{self.meta.storage.root}: the base file {stat.path} is missing.")
            if not unchecked:
                return

    def _when(self, instant: Instant) -> str:
        by_completion = self.data.config.format.orders_by_completion
        return (instant.completion_time or "") if by_completion else instant.requested_time

    def _began(self, slice: FileSlice) -> str:
        instant = self.meta.timeline.find(slice.base_instant)
        return "" if instant is None else self._when(instant)

    def _since_built(self, slices: Sequence[FileSlice]) -> tuple[FileSlice, ...]:
        """The slices without the log files that were deleted when their partition was rebuilt; older instants still
        name those.
        """
        if not self.data.config.format.has_own_log_files:
            return tuple(slices)  # a log file's name tells its slice
        completed = {i.requested_time: i.completion_time or "" for i in self.meta.timeline}

        def was_removed(log: LogFile, since: str) -> bool:
            return log.is_missing and completed.get(log.instant_time, "") <= since

        trimmed = []
        for one in slices:
            since = completed.get(one.base_instant, "") if one.base_instant.startswith(SOLO) else ""
            logs = tuple(log for log in one.log_files if not was_removed(log, since))
            trimmed.append(one if len(logs) == len(one.log_files) else replace(one, log_files=logs))
        return tuple(trimmed)

    @lazy_property
    def _base_file_writers(self) -> Sequence[Instant]:
        """Compactions and instants that built partitions, newest first."""
        writers = [
            i
            for i in self.meta.timeline.completed()
            if i.action is ActionKind.COMMIT or (i.action is ActionKind.DELTACOMMIT and _is_build(i.requested_time))
        ]
        return sorted(writers, key=self._when, reverse=True)

    def records(self, partition: str, without: str | None = None) -> pa.Table:
        """All live records of a partition: `key`, `type` and the fields with the partition's data.

        Args:   without: a key whose record is left out.
        Raises: MetadataTableDamaged, CorruptFile.
        """
        return self._merged(partition, lambda reader: reader.all(without))

    def lookup(self, partition: str, keys: Collection[str]) -> pa.Table:
        """The live records with these keys. Only file groups that may have them are opened.

        Raises: MetadataTableDamaged, CorruptFile.
        """
        ordered = pa.array(sorted(set(keys)), pa.string())
        version, kind = self.data.config.table_version, kind_of(partition)
        with self._as_corrupt(partition):
            readers = {reader.file_slice.group.file_id: reader for reader in self._readers(partition)}
            batches = []
            for file_ids in groups_by_prefix(readers).values():
                numbers = group_numbers(partition, ordered, len(file_ids), version)
                keys_of_groups = [
                    (readers[file_ids[number]], ordered.filter(pa.array(numbers == number)))
                    for number in np.unique(numbers).tolist()
                ]
                if keys_of_groups:
                    batches.append(merged_records(with_keys(keys_of_groups), kind))
            return self._together(batches, kind)

    def with_prefixes(self, partition: str, prefixes: Sequence[str]) -> pa.Table:
        """The live records whose keys begin with one of the prefixes."""
        return self._merged(partition, lambda reader: reader.with_prefixes(prefixes))

    def with_values(self, partition: str, values: Sequence[str]) -> pa.Table:
        """The live records of a secondary index with these values, as texts.

        From version 9 on only file groups that may have them are opened. Raises: MetadataTableDamaged, CorruptFile.
        """
        prefixes = [secondary_key_prefix(value) for value in values]
        if not self.data.config.format.shards_pairs_by_value:
            return self.with_prefixes(partition, prefixes)
        ids = [slice.group.file_id for slice in self.slices(partition)]
        numbers = group_numbers(partition, pa.array(prefixes, pa.string()), len(ids), self.data.config.table_version)
        prefixes_of_group = {
            ids[number]: np.array(prefixes)[numbers == number].tolist() for number in np.unique(numbers).tolist()
        }

        def read(reader: GroupReader) -> pa.Table:
            group_prefixes = prefixes_of_group.get(reader.file_slice.group.file_id)
            return (
                reader.with_prefixes(group_prefixes) if group_prefixes else reader.with_keys(pa.array([], pa.string()))
            )

        return self._merged(partition, read)

    def _merged(self, partition: str, read: Callable[[GroupReader], pa.Table]) -> pa.Table:
        with self._as_corrupt(partition):
            kind = kind_of(partition)
            return self._together([merged_records(read(reader), kind) for reader in self._readers(partition)], kind)

    def _as_corrupt(self, partition: str) -> AbstractContextManager[None]:
        return as_corrupt(f"{self.meta.storage.root}/{partition}", "its records")

    def _together(self, batches: Sequence[pa.Table], kind: MetadataKind) -> pa.Table:
        filled = [records for records in batches if records.num_rows]
        return concat_records(filled) if filled else record_fields(self.data.config.table_version, kind).empty_table()

    def _readers(self, partition: str) -> Iterator[GroupReader]:
        return map(self.reader, self.slices(partition))

    def reader(self, file_slice: FileSlice) -> GroupReader:
        """A reader of one of the `slices`."""
        payloads = kind_of(file_slice.group.partition_path).payloads
        return GroupReader(self.meta, file_slice, payloads, self.counts, self.raises)

    def counts(self, instant_time: str) -> bool:
        """True if blocks of this instant count."""
        if instant_time.startswith(SOLO):
            return instant_time in self._own_completed
        if instant_time in self._data_completed or instant_time in self._rolled_back_here:
            return True
        if self.data.config.format.orders_by_completion:
            # The instant is completed here (else its files would not be listed), so it counts unless it is pending in
            # the data table.
            return instant_time not in self._data_pending
        return len(instant_time) == _OPERATION_DIGITS and (
            instant_time[-3:] in _OPERATIONS or instant_time[-3:] >= _FIRST_INITIALIZATION
        )

    @lazy_property
    def _own_completed(self) -> frozenset[str]:
        return frozenset(i.requested_time for i in self.meta.timeline if i.is_completed)

    @lazy_property
    def _rolled_back_here(self) -> frozenset[str]:
        undone = (ActionKind.ROLLBACK, ActionKind.RESTORE)
        return frozenset(i.requested_time for i in self.meta.timeline if i.is_completed and i.action in undone)

    @lazy_property
    def _data_completed(self) -> frozenset[str]:
        return frozenset(i.requested_time for i in self.data.timeline if i.is_completed)

    @lazy_property
    def _data_pending(self) -> frozenset[str]:
        completed = self._data_completed
        return frozenset(
            i.requested_time for i in self.data.timeline if not i.is_completed and i.requested_time not in completed
        )


def check_log_files(table: MetadataTable, partition: str) -> None:
    """Raise MetadataTableDamaged when files of the partition are missing, or shorter than its commits say.

    Only the listing and the commits are read; other damage shows when the files are read.
    """
    for slice in table.slices(partition):
        for log in slice.log_files:
            expected = max((written.size_bytes for written in log.committed), default=0)
            if log.is_missing or log.size_bytes < expected:
                state = "missing" if log.is_missing else f"{log.size_bytes:,} bytes long"
                raise MetadataTableDamaged(
                    f"{table.meta.storage.root}: the log file {log.path} is {state}; its commits wrote {expected:,} "
                    f"bytes."
                )


def _may_be_built(slice: FileSlice) -> bool:
    """True if, below version 8, a build may have started the slice. A build without records writes only a log file."""
    if slice.base_file is None:
        return slice.base_instant.startswith(SOLO) or slice.base_instant[INSTANT_TIME_DIGITS:] >= FIRST_BUILD
    return _is_build(slice.base_file.instant_time)


def _is_build(instant_time: str) -> bool:
    return instant_time.startswith(SOLO) or len(instant_time) > INSTANT_TIME_DIGITS
