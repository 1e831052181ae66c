"""Index: finds for each incoming row which file group holds its key.

`tag` adds LOCATION to the rows: the file id of the group, null for a key that no file holds. A global index searches
every partition and adds LOCATION_PARTITION, too; if it moves rows and rows win by ordering value, it also adds the
stored row's ordering values (STORED_ORDERING + number), which decide whether the row moves.
Source: docs/formats/indexes.md, "Finding keys".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeVar

import pyarrow as pa

from pyhudi.engine.base import Engine, Frame
from pyhudi.errors import UnsupportedTable
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.keygen.base import KeyGenerator
from pyhudi.metadata.locations import RecordLookup
from pyhudi.model.file_group import BaseFile, FileGroupId, FileSlice
from pyhudi.model.options.declare import own_options
from pyhudi.model.options.index import IndexOptions
from pyhudi.model.table_config import TableConfig
from pyhudi.storage.base import Storage
from pyhudi.view.file_system_view import FileSystemView

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["LOCATION_PARTITION", "STORED_ORDERING", "Index", "IndexSettings", "Lookup", "PartitionRows", "Tagged"]

LOCATION_PARTITION = "_pyhudi_file_partition"  # string: partition of the file group in LOCATION
Options = TypeVar("Options", bound="DataclassInstance")
STORED_ORDERING = "_pyhudi_stored_ordering_"  # + number of the ordering field


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """The caller's settings for indexes.

    `update_partition_path`: a global index moves rows to their new partition. `options`: all options of indexes.
    """

    update_partition_path: bool = True
    bucket_num: int = 256
    bucket_hash_fields: tuple[str, ...] = ()
    key_bytes_in_tasks_max: int = 64 << 20  # of keys and their locations; the engine joins a larger batch
    options: IndexOptions = field(default_factory=IndexOptions)

    def own(self, kind: type[Options]) -> Options:
        """The options that a user's index declares in its class `kind`. Raises ConfigError for wrong values."""
        return own_options(kind, self.options.index_own_texts)


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """The part of the batch for one partition path."""

    partition_path: str
    rows: int
    key_bytes: int
    combined: int = 0  # rows of the data that other rows with their keys have already replaced


@dataclass(frozen=True, slots=True)
class Lookup:
    """The table, engine and batch that an index works with.

    `view` covers the batch's partitions, all partitions for a global index. `batch`: the incoming rows by partition.
    `keygen` recomputes keys of stored rows if the table has no meta columns (None: keys are stored). `ordering`:
    the ordering fields with the table's types, for a global index that decides about moves, else empty. `merged`: how
    slices with log files are read, for a merge-on-read table; `only_live`: keys that log files delete don't count.
    `completed`: requested times of completed commits. `replaced`: file groups no longer in the table. `base_rows`: rows
    get BASE_ROW, where the index knows it and keys are found in their own partition. `records`: the metadata table's
    record index, for an index that reads it; None without a usable one, and `no_records` says why.
    """

    engine: Engine
    storage: Storage
    view: FileSystemView
    batch: Mapping[str, PartitionRows]
    keygen: KeyGenerator | None = None
    ordering: pa.Schema = field(default_factory=lambda: pa.schema([]))
    merged: SliceSpec | None = None
    only_live: bool = False
    completed: Container[str] = frozenset()
    replaced: Container[FileGroupId] = frozenset()
    base_rows: bool = False
    table_version: int = 9
    records: RecordLookup | None = None
    no_records: str = ""

    def candidates(self, *, everywhere: bool) -> tuple[BaseFile, ...]:
        """Base files that may hold a key of the batch: those of its partitions, or all."""
        partitions: Iterable[str] = self.view.partitions() if everywhere else self.batch
        return tuple(file for partition in partitions for file in self.view.base_files(partition))

    def slices_with_logs(self, *, everywhere: bool) -> tuple[FileSlice, ...]:
        """The candidates' slices that have log files.

        Raises UnsupportedTable if a slice has only log files and rows may belong to it: their keys are in no base file.
        """
        partitions: Iterable[str] = self.view.partitions() if everywhere else self.batch
        slices = []
        for file_slice in (s for partition in partitions for s in self.view.slices(partition)):
            if file_slice.base_file is None and not self.only_live:
                raise UnsupportedTable(
                    f"{self.storage.root}: the file group {file_slice.group.file_id} in partition "
                    f"{file_slice.group.partition_path!r} has log files only, whose keys this index does not see. "
                    f"Write with the index that made them (hoodie.index.type=BUCKET and its "
                    f"hoodie.bucket.index.num.buckets), or compact the table first."
                )
            if file_slice.log_files:
                slices.append(file_slice)
        return tuple(slices)


@dataclass(frozen=True, slots=True)
class Tagged:
    """Rows with LOCATION. `counts`: rows by (partition path, file id or None), if the index knows them.

    `cached`: frames that stay in the engine (`Engine.cache`) until the rows are written.
    """

    rows: Frame
    counts: Mapping[tuple[str, str | None], int] | None = None
    cached: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Index(ABC):
    """The base class of every kind of index, a user's included. It is made from the caller's settings.

    Class attributes describe an index to its callers, so that no caller compares names:

    is_global          a key is unique in the table, not in its partition
    places_inserts     the index also decides the file group of new keys, so all inserts go through it
    hashes_keys        the file group of a key is computed from it, so no other file groups may hold rows
    lists_file_groups  it keeps a list of its file groups, so they must not be replaced by others
    reads_records      it reads the record index of the metadata table
    resize_strategy    name of the clustering plan strategy that splits and merges its file groups, None: no strategy
    """

    settings: IndexSettings = field(default_factory=IndexSettings)
    is_global: ClassVar[bool] = False
    places_inserts: ClassVar[bool] = False
    hashes_keys: ClassVar[bool] = False
    lists_file_groups: ClassVar[bool] = False
    reads_records: ClassVar[bool] = False
    resize_strategy: ClassVar[str | None] = None
    options_class: ClassVar[type | None] = None  # of a user's index: the class that declares its options

    @abstractmethod
    def tag(self, rows: Frame, lookup: Lookup) -> Tagged:
        """Add LOCATION to rows that carry RECORD_KEY and PARTITION_PATH; the frame may be read several times."""

    def new_file_id(self, location: str, new_uuid: str) -> str:
        """File id for a LOCATION without a file group; only an index that `places_inserts` has such locations."""
        raise AssertionError(f"location {location} is a file id that the view does not know")

    def everywhere(self) -> Index | None:
        """The global form of this index, for rows without their partition; None if there is no such form."""
        return None

    def check_table(self, config: TableConfig, root: str) -> None:
        """Raise ConfigError if this index does not suit the table; most indexes suit all tables."""
        return
