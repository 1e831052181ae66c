"""MetadataTable: the table below `.hoodie/metadata`, as a reader of the data table may use it.

It is a merge-on-read table of its own. A block of its log files counts when the instant that wrote it is completed in
the data table, or can't be pending there: an update of the metadata table completes before the write that it belongs
to, and that write may still fail. The data table's timeline is loaded first, so that nothing is missed.
Source: docs/formats/metadata-table.md, "Timeline", "Which blocks count".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from pyhudi.errors import HudiError, MetadataTableDamaged
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.group_reader import GroupReader
from pyhudi.metadata.merging import merged_records
from pyhudi.metadata.partitions import MetadataKind, kind_of
from pyhudi.metadata.record_keys import shards
from pyhudi.model.file_group import FileSlice
from pyhudi.model.filenames import METADATA_TABLE_FOLDER
from pyhudi.model.instant import ActionKind
from pyhudi.storage.subfolder import Subfolder
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["SOLO", "MetadataTable"]

SOLO = "0" * 14  # instants that build a partition of a new metadata table begin with it
_OPERATION_DIGITS = 20  # of an instant time below version 8 that says by three more digits what it was
_OPERATIONS = frozenset({"001", "002", "003", "004", "005", "006"})
_FIRST_INITIALIZATION = "010"


@dataclass(frozen=True)
class MetadataTable:
    """The metadata table of `data`, at one moment. `meta`: of the metadata table itself."""

    data: MetaClient
    meta: MetaClient
    _slices: dict[str, tuple[FileSlice, ...]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def open(cls, data: MetaClient) -> MetadataTable | None:
        """The metadata table, None when the table has none that may be read.

        Args:   data: loaded before this is called.
        Raises: MetadataTableDamaged when the properties list partitions of one that can't be opened.
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

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partitions that are complete, in the order in which the table's properties list them."""
        return self.data.config.metadata_partitions

    def slices(self, partition: str) -> tuple[FileSlice, ...]:
        """The newest slice of each file group of a partition, in order of the file ids.

        Raises: MetadataTableDamaged when there is no file group, or more than one of `files`.
        """
        if partition not in self._slices:
            view = FileSystemView.load(self.meta, partitions=(partition,))
            found = view.slices(partition)
            if not found or (partition == MetadataKind.FILES.value.prefix and len(found) != 1):
                raise MetadataTableDamaged(
                    f"{self.meta.storage.root}: the partition {partition!r} has {len(found)} file groups; expected "
                    f"{'exactly one' if partition == MetadataKind.FILES.value.prefix else 'at least one'}."
                )
            self._slices[partition] = found
        return self._slices[partition]

    def records(self, partition: str) -> pa.Table:
        """All live records of a partition: `key`, `type` and the fields that say what the partition knows.

        Raises: MetadataTableDamaged, CorruptFile.
        """
        kind = kind_of(partition)
        return _joined([merged_records(reader.all(), kind) for reader in self._readers(partition)])

    def lookup(self, partition: str, keys: Collection[str], *, by_secondary_value: bool = False) -> pa.Table:
        """The live records with these keys. Only file groups that may have them are opened."""
        kind = kind_of(partition)
        readers = list(self._readers(partition))
        wanted = pa.array(sorted(set(keys)), pa.string())
        groups = shards(wanted, len(readers), by_secondary_value=by_secondary_value)
        found = []
        for number, reader in enumerate(readers):
            own = wanted.filter(pa.array(groups == number))
            if len(own):
                found.append(merged_records(reader.with_keys(own), kind))
        return _joined(found) if found else self.records(partition).slice(0, 0)

    def with_prefixes(self, partition: str, prefixes: Sequence[str]) -> pa.Table:
        """The live records whose keys begin with one of the prefixes."""
        kind = kind_of(partition)
        return _joined([merged_records(reader.with_prefixes(prefixes), kind) for reader in self._readers(partition)])

    def _readers(self, partition: str) -> Iterator[GroupReader]:
        payloads = kind_of(partition).payloads
        return (GroupReader(self.meta, file_slice, payloads, self.counts) for file_slice in self.slices(partition))

    def counts(self, instant_time: str) -> bool:
        """Do blocks of this instant count?"""
        if instant_time.startswith(SOLO):
            return instant_time in self._own_completed
        if instant_time in self._data_completed or instant_time in self._rolled_back_here:
            return True
        if self.data.config.table_version >= 8:
            # Completed here (else its files would not be seen), so all that can be wrong is that it is pending there.
            return instant_time not in self._data_pending
        return len(instant_time) == _OPERATION_DIGITS and (
            instant_time[-3:] in _OPERATIONS or instant_time[-3:] >= _FIRST_INITIALIZATION
        )

    @cached_property
    def _own_completed(self) -> frozenset[str]:
        return frozenset(i.requested_time for i in self.meta.timeline if i.is_completed)

    @cached_property
    def _rolled_back_here(self) -> frozenset[str]:
        undone = (ActionKind.ROLLBACK, ActionKind.RESTORE)
        return frozenset(i.requested_time for i in self.meta.timeline if i.is_completed and i.action in undone)

    @cached_property
    def _data_completed(self) -> frozenset[str]:
        return frozenset(i.requested_time for i in self.data.timeline if i.is_completed)

    @cached_property
    def _data_pending(self) -> frozenset[str]:
        completed = self._data_completed
        return frozenset(
            i.requested_time for i in self.data.timeline if not i.is_completed and i.requested_time not in completed
        )


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="permissive")
