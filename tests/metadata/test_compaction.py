"""Compaction of the metadata table: the same records, in base files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.meta_client import MetaClient
from pyhudi.metadata.compaction import compact_if_due, run_pending_compactions
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.instant import ActionKind
from pyhudi.storage import open_storage
from tests.support.golden.folder import Golden

GOLDEN = [
    (version, name)
    for version in ("0.15.0", "1.0.2", "1.2.0")
    for name in ("mdt_all_cow", "history_a_mor", "skipping_a_cow")
] + [("1.2.0", "mdt_all_mor"), ("1.2.0", "mdt_all_mor_prli"), ("0.15.0", "mdt_all_mor"), ("0.15.0", "mdt_compacted_a")]


def opened(path: Path) -> MetadataTable:
    table = MetadataTable.open(MetaClient.load(open_storage(str(path))))
    assert table is not None
    return table


def plain(records: pa.Table) -> list[dict[str, Any]]:
    rows = records.to_pylist()
    for row in rows:
        for name, value in row.items():
            row[name] = sorted(value) if name == "filesystemMetadata" and value is not None else value
    return sorted(rows, key=lambda row: row["key"])


@pytest.mark.parametrize(("version", "name"), GOLDEN)
def test_a_compacted_metadata_table_of_hudi_has_the_records_that_it_had(
    golden: Golden, version: str, name: str
) -> None:
    path, _ = golden(version, name)
    before = opened(path)
    expected = {partition: plain(before.records(partition)) for partition in before.partitions}

    after = compact_if_due(run_pending_compactions(before), 1)

    assert not after.meta.timeline.pending().of([ActionKind.COMPACTION]).instants
    found = opened(path)
    for partition in found.partitions:
        assert plain(found.records(partition)) == expected[partition], partition
        assert not any(s.log_files for s in found.slices(partition)), partition
        assert all(s.base_file is not None for s in found.slices(partition)), partition
