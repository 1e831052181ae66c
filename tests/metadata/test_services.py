"""A metadata table over many instants: compacted, cleaned, archived with the table, and right all along."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.instant import ActionKind
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches
from pyhudi.queries.validation import validate
from pyhudi.storage.memory import MemoryStorage
from tests.support.tables.small import TestTable

OFTEN = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.clean.commits.retained": "2",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "4",
}
QUICK = [("6", "MERGE_ON_READ"), ("9", "COPY_ON_WRITE")]  # the others are slow, and run in `make stress`
KINDS = [
    pytest.param(version, kind, marks=[] if (version, kind) in QUICK else [pytest.mark.slow])
    for version in ("6", "8", "9")
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")
]


def table_of(version: str, kind: str, **options: str) -> TestTable:
    names = {"hoodie.write.table.version": version, "hoodie.datasource.write.table.type": kind}
    return TestTable(MemoryStorage(), {**OFTEN, **names, **options}, engine=LocalEngine(1))


FIRST = {"6": "00000000000000010", "8": "00000000000000000", "9": "00000000000000000"}  # builds `files`


def rows_of(table: TestTable, *, use_metadata: bool) -> dict[tuple[str, str], int]:
    plan = plan_snapshot(table.meta, Query(use_metadata=use_metadata))
    rows = pa.Table.from_batches(read_batches(plan, table.storage), plan.schema)
    return {(id_, p): v for id_, p, v in zip(*(rows.column(c).to_pylist() for c in ("id", "p", "v")), strict=True)}


def metadata_of(table: TestTable) -> MetadataTable:
    found = MetadataTable.open(table.meta)
    assert found is not None
    return found


@pytest.mark.filterwarnings("error:.*metadata table.*")
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_a_metadata_table_that_is_compacted_cleaned_and_archived_stays_right(version: str, kind: str) -> None:
    table = table_of(version, kind)
    expected = {}
    most = 0
    for n in range(34):
        key = f"k{n % 7}"
        table.upsert((key, "xyz"[n % 3], n, n))
        expected[key, "xyz"[n % 3]] = n
        most = max(most, len(metadata_of(table).meta.timeline.commits()))
    for use_metadata in (True, False):
        assert rows_of(table, use_metadata=use_metadata) == expected
    assert validate(table.meta) == ()

    found = metadata_of(table)
    completed = found.meta.timeline.completed()
    assert completed.of([ActionKind.COMMIT]).instants
    assert completed.of([ActionKind.CLEAN]).instants
    assert not found.meta.timeline.pending().instants
    assert most < 40
    assert len(table.meta.timeline.commits()) < 15
    assert not found.meta.timeline.find(FIRST[version])
    folders = {entry.path.split("/")[2] for entry in table.storage.walk(".hoodie/metadata")}
    assert folders == {*table.meta.config.metadata_partitions, ".hoodie"}
    names = [entry.name for entry in table.storage.list(".hoodie/metadata/files")]
    assert not any(FIRST[version] in name for name in names)
