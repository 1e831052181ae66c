"""TableMetadata: the metadata table for inspection and checks. `HudiTable.metadata`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.where import parse_call
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.table import MetadataTable
from pyhudi.queries.validation import Difference, validate
from pyhudi.result import Result, ResultList
from pyhudi.services.index_building import run_index_plan, schedule_index
from pyhudi.services.indexes import IndexInfo, create_index, index_info, index_request
from pyhudi.services.metadata_table import MetadataRebuild, drop_metadata, rebuild_metadata
from pyhudi.table.calls import Options, TableHandle
from pyhudi.table.wrong_names import checked_methods

__all__ = ["MetadataPartition", "MetadataPartitionStats", "MetadataStats", "TableMetadata", "build_index"]


@dataclass(frozen=True, slots=True)
class MetadataPartition:
    """One partition of the metadata table, as of the call of `table.metadata`."""

    name: str
    _table: MetadataTable

    def to_arrow(self) -> pa.Table:
        """All live records: `key`, `type` and the partition's data, as in Hudi's `hudi_metadata`.

        Raises: CorruptFile, MetadataTableDamaged.
        """
        return self._table.records(self.name)

    def lookup(self, keys: Collection[str]) -> pa.Table:
        """The live records with these keys; only the file groups and blocks that may have them are read."""
        return self._table.lookup(self.name, keys)

    def with_prefixes(self, prefixes: Sequence[str]) -> pa.Table:
        """The live records whose keys begin with one of the prefixes."""
        return self._table.with_prefixes(self.name, prefixes)


@dataclass(frozen=True, slots=True, repr=False)
class MetadataPartitionStats(Result):
    """The newest files of one partition of the metadata table."""

    partition: str
    file_groups: int
    base_files: int
    base_bytes: int
    log_files: int
    log_bytes: int


class MetadataStats(ResultList[MetadataPartitionStats]):
    """A list of partitions that prints as a table."""

    entry_type = MetadataPartitionStats
    header = ("partition", "file groups", "base files", "base bytes", "log files", "log bytes")


@dataclass(frozen=True, slots=True)
@checked_methods
class TableMetadata:
    """The metadata table, as it is at each call."""

    _handle: TableHandle

    @property
    def _meta(self) -> MetaClient:
        return self._handle.fresh()

    def __repr__(self) -> str:
        return f"TableMetadata({self._meta.storage.root}: {', '.join(self.partitions) or 'no metadata table'})"

    @property
    def partitions(self) -> tuple[str, ...]:
        """Names of its complete partitions; () when the table has no metadata table."""
        return self._meta.config.metadata_partitions

    def partition(self, name: str) -> MetadataPartition:
        """One of its partitions. Raises ConfigError when there is none of this name, and MetadataTableDamaged."""
        if name not in self.partitions:
            raise ConfigError(
                f"{self._meta.storage.root}: the metadata table has no partition {name!r}; it has "
                f"{', '.join(self.partitions) or 'none'}."
            )
        table = MetadataTable.open(self._meta)
        if table is None:
            raise ConfigError(
                f"{self._meta.storage.root}: the table's properties list {name!r} without the partition 'files', so "
                f"there is no metadata table to read."
            )
        return MetadataPartition(name, table)

    def validate(self, *, sample: int | None = None, options: Options | None = None) -> tuple[Difference, ...]:
        """Compare its partitions with the table; return the errors, () without any.

        Reads all rows when there is an index of rows or statistics of partitions, and all base files when there are
        column statistics or bloom filters.

        Args:
            sample: this many file groups, chosen at random, are read and compared; the list of files is compared
                whole. None: all.
            options: Hudi's own keys, as `scan` takes them: the merger of a table with merge mode CUSTOM. Other
                options of reads have no effect here.
        Raises: ConfigError for a sample of none; UnsupportedTable when rows must be read and the table's merger is
            unknown; CorruptFile, MetadataTableDamaged.
        """
        merger_classes = self._handle.read_options(options).merger_classes
        return validate(self._meta, sample=sample, merger_classes=merger_classes)

    def stats(self) -> MetadataStats:
        """Number and size of its files, by partition; prints as a table, empty without a metadata table.

        Raises: CorruptFile, MetadataTableDamaged.
        """
        table, stats = MetadataTable.open(self._meta), MetadataStats()
        if table is None:
            return stats
        for name in table.partitions:
            slices = table.slices(name)
            bases = [one.base_file.size_bytes for one in slices if one.base_file is not None]
            logs = [log.size_bytes for one in slices for log in one.log_files]
            stats.append(MetadataPartitionStats(name, len(slices), len(bases), sum(bases), len(logs), sum(logs)))
        return stats

    def rebuild(
        self,
        partitions: Sequence[str] | None = None,
        *,
        dry_run: bool = False,
        options: Options | None = None,
    ) -> MetadataRebuild:
        """Rebuild the metadata table, or partitions of it, from the table's files.

        Args:
            partitions: None: the existing ones, or those of the options if none exist. With `files` all are rebuilt.
            dry_run: only return the partitions to build, and the errors in the current metadata table.
            options: Hudi's own keys, for new partitions.
        Raises: ConfigError for partitions unknown to this release or to the table's version.
        """
        service = partial(rebuild_metadata, partitions=partitions, dry_run=dry_run)
        return self._handle.serve(service, options, dry_run=dry_run)

    def drop(
        self,
        partitions: Sequence[str] | None = None,
        *,
        dry_run: bool = False,
        options: Options | None = None,
    ) -> tuple[str, ...]:
        """Remove the metadata table, or partitions of it; readers then list folders. A write with
        `hoodie.metadata.enable=true` makes a new one.

        Args:    partitions: None, or with `files`: all. dry_run: only return the names.
        Returns: the names of the removed partitions.
        Raises:  ConfigError when there is no such partition.
        """
        service = partial(drop_metadata, partitions=partitions, dry_run=dry_run)
        return self._handle.serve(service, options, dry_run=dry_run)


def build_index(
    handle: TableHandle,
    name: str,
    columns: str | Sequence[str],
    index_type: str | None,
    expression: str | None,
    while_writing: bool,
    schedule_only: bool,
    options: Options | None,
) -> IndexInfo:
    """`TableIndexes.create`."""
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    call = None if expression is None else parse_call(expression)
    if not while_writing and not schedule_only:
        run = partial(create_index, name=name, columns=names, index_type=index_type, expression=call)
        return handle.serve(run, options)
    index = index_request(name, names, index_type, call)
    plan = handle.serve(partial(schedule_index, index=index), options)
    if not schedule_only:
        return handle.serve(partial(run_index_plan, instant_time=plan.requested_time), options)
    return index_info(handle.fresh(), index.partition)
