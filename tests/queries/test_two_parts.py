"""Base rows without those that leave, and the rows that come: together what merging a slice gives, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.expressions.filters import RowFilter
from pyhudi.expressions.predicates import Constant
from pyhudi.filegroup.read.split_merge import replaced_base_rows
from pyhudi.meta_client import MetaClient
from pyhudi.queries.plan import ReadPlan, ReadSlice, plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_log_rows, read_slice, split_read
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from tests.support.golden.cases import golden_names
from tests.support.golden.folder import GoldenTable
from tests.support.tables.merge_on_read import EVENT_TIME, VERSIONS, MergeOnRead

VERSION = "version"


def in_two_parts(plan: ReadPlan, storage: Storage, read: ReadSlice) -> Iterator[pa.RecordBatch]:
    assert plan.merge is not None
    base = ReadSlice.of_base_file(read.base_file, read.path_values, read.parsed_path_values)
    stored = pa.Table.from_batches(list(read_slice(plan, storage, base)), plan.schema)
    found = list(replaced_base_rows(plan.merge, read.file_slice))
    replaced = {int(row) for part in found for row in part.rows}
    lost = {int(version) for part in found for version in part.lost}
    assert len(replaced) == sum(len(part.rows) for part in found)
    yield from stored.filter(pa.array([row not in replaced for row in range(len(stored))], pa.bool_())).to_batches()
    for batch in read_log_rows(plan, read, VERSION):
        live = pa.array([version not in lost for version in batch.column(VERSION).to_pylist()], pa.bool_())
        yield batch.filter(live).select(plan.schema.names)


def by_one_reading(plan: ReadPlan, storage: Storage, read: ReadSlice) -> Iterator[pa.RecordBatch]:
    base = ReadSlice.of_base_file(read.base_file, read.path_values, read.parsed_path_values)
    everything = replace(plan, predicate=Constant(True), schema=plan.read_schema)
    stored = pa.Table.from_batches(list(read_slice(everything, storage, base)), plan.read_schema)
    split = split_read(plan, read)
    remaining = stored.take(np.setdiff1d(np.arange(len(stored)), split.replaced))
    row_filter = RowFilter.of(plan.predicate, plan.read_schema)
    yield from (row_filter.filter(batch).select(plan.schema.names) for batch in remaining.to_batches())
    yield from split.rows.to_batches()


def texts(batches: Iterator[pa.RecordBatch]) -> list[str]:
    return sorted(repr(row) for batch in batches for row in batch.to_pylist())


def compare(meta: MetaClient, **how: Any) -> int:
    """Compares every slice with a base file and logs; how many there were."""
    plan = plan_snapshot(meta, Query(**how))
    merging = [read for read in plan.slices if read.merges and read.file_slice.base_file is not None]
    for read in merging:
        whole = texts(read_slice(plan, meta.storage, read))
        assert texts(in_two_parts(plan, meta.storage, read)) == whole, read.file_slice
        assert texts(by_one_reading(plan, meta.storage, read)) == whole, read.file_slice
    return len(merging)


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "name"), golden_names("mor"))
def test_the_parts_of_real_hudi_s_slices_make_the_whole(
    golden: Callable[[str, str], GoldenTable], version: str, name: str
) -> None:
    path, _ = golden(version, name)
    compare(MetaClient.load(open_storage(path)))


@pytest.mark.thorough
@pytest.mark.parametrize("options", [{}, {"populate_meta_fields": "false"}], ids=["meta columns", "virtual keys"])
@pytest.mark.parametrize("version", VERSIONS)
def test_late_rows_deletes_and_new_rows_are_in_the_right_part(version: str, options: dict[str, str]) -> None:
    payload = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    table = MergeOnRead(version, datasource_write_payload_class=payload, **options)
    table.upsert(*((f"k{n}", "x", 5, n) for n in range(9)))
    table.upsert(("k1", "x", 7, 100), ("k2", "x", 3, 200), ("k3", "x", 5, 300))  # newer, late, as new
    table.mark_deleted(("k4", "x", 9, 0), ("k5", "x", 1, 0))
    table.delete(("k6", "x"), ("k7", "x"))
    table.upsert(("k7", "x", 8, 700))

    assert compare(table.meta) == 1
    assert compare(table.meta, where="v > 100") == 1
    assert compare(table.meta, columns=["v"]) == 1
    (read,) = plan_snapshot(table.meta).slices
    plan = plan_snapshot(table.meta)
    assert plan.merge is not None
    replaced = np.concatenate([found.rows for found in replaced_base_rows(plan.merge, read.file_slice)])
    assert sorted(replaced.tolist()) == [1, 3, 4, 6, 7]


def test_a_file_group_of_log_files_alone_comes_whole() -> None:
    table = MergeOnRead("9", index_type="BUCKET", bucket_index_num_buckets="1", record_merge_mode=EVENT_TIME)
    table.upsert(("k1", "x", 1, 1), ("k2", "x", 1, 2))

    plan = plan_snapshot(table.meta)
    (read,) = plan.slices
    assert read.file_slice.base_file is None
    assert plan.merge is not None
    assert not list(replaced_base_rows(plan.merge, read.file_slice))
    coming = [batch.select(plan.schema.names) for batch in read_log_rows(replace(plan, slices=()), read, VERSION)]
    assert texts(iter(coming)) == texts(read_slice(plan, table.storage, read))
