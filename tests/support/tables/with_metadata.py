"""Tables with a metadata table, and a second kind of partition that is easy to check: the names of the base files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa
import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.build import build
from pyhudi.metadata.partitions.base import PartitionUpdate, TableCommit
from pyhudi.metadata.partitions.registry import PARTITIONS
from pyhudi.metadata.schema import MetadataKind, RecordType, file_group_id, record_fields
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.filenames import BaseFileName
from pyhudi.model.options.metadata import DEFAULT_METADATA, MetadataOptions
from pyhudi.queries.validation import validate
from pyhudi.storage.memory import MemoryStorage
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.small import TestTable

ON = {"hoodie.metadata.enable": "true"}
KINDS = [(version, kind) for version in ("6", "8", "9") for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")]
NAMES = MetadataKind.BLOOM_FILTERS.value.prefix  # the partition that stands for all that are not `files`


def table_of(version: str, kind: str = "COPY_ON_WRITE", **options: str) -> TestTable:
    """A table without rows; keyword options have "_" for ".", behind "hoodie."."""
    given = {"hoodie." + name.replace("_", "."): text for name, text in options.items()}
    names = {"hoodie.write.table.version": version, "hoodie.datasource.write.table.type": kind}
    return TestTable(MemoryStorage(), {**ON, **names, **given}, engine=LocalEngine(1))


def metadata_of(table: TestTable | MetaClient) -> MetadataTable:
    """The metadata table, which there is."""
    found = MetadataTable.open(table.meta if isinstance(table, TestTable) else table)
    assert found is not None
    return found


def check(table: TestTable, what: object = "") -> None:
    """The metadata table is there and right."""
    meta = table.meta
    assert meta.config.metadata_partitions, what
    assert not meta.config.metadata_to_build, what
    # Where the second partition is, names stand for filters.
    assert [found for found in validate(meta) if found.partition != NAMES] == [], what
    if NAMES in meta.config.metadata_partitions:
        found = metadata_of(meta).records(NAMES).column("key").to_pylist()
        assert found == sorted(_names(meta)), what


def with_names(table: TestTable) -> None:
    """Give the table's metadata table the second partition; `keep_names` first."""
    build(table.meta, ("files", NAMES), DEFAULT_METADATA)


def keep_names(patch: pytest.MonkeyPatch) -> None:
    """Keep the second partition up."""
    assert isinstance(PARTITIONS, dict)
    patch.setitem(PARTITIONS, MetadataKind.BLOOM_FILTERS, NamesPartition())


class NamesPartition:
    """A record for each visible base file, without anything but its name."""

    def define(self, table: MetadataTable, partition: str, options: MetadataOptions) -> int:
        return 1

    def records(
        self, table: MetadataTable, partition: str, options: MetadataOptions, groups: int | None
    ) -> Mapping[str, Iterable[pa.Table]]:
        return {file_group_id(partition, 0): [_records(_names(table.data), table.data.config.table_version)]}

    def update(self, table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
        changes = commit.change.partitions.values()
        written = [name for change in changes for name in change.written if BaseFileName.parse(name)]
        deleted = [name for change in changes for name in change.deleted if BaseFileName.parse(name)]
        return PartitionUpdate(_records(written, table.data.config.table_version), pa.array(deleted, pa.string()))


def _names(meta: MetaClient) -> Collection[str]:
    view = FileSystemView.load(meta)
    slices = (s for groups in view.groups.values() for group in groups for s in group.slices)
    return [s.base_file.name for s in slices if s.base_file is not None]


def _records(names: Iterable[str], version: int) -> pa.Table:
    schema = record_fields(version, MetadataKind.BLOOM_FILTERS)
    payload = {"type": "SIMPLE", "timestamp": "0", "bloomFilter": b"", "isDeleted": False}
    rows = [{"key": n, "type": int(RecordType.BLOOM_FILTERS), "BloomFilterMetadata": payload} for n in names]
    return pa.Table.from_pylist(rows, schema)
