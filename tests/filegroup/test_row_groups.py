"""How rows are laid out in row groups of rewritten files."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.tables.small import TestTable


def newest_file(table: TestTable) -> pq.ParquetFile:
    path = max((p for p in table.memory.paths() if p.endswith(".parquet")), key=lambda p: p.rpartition("_")[2])
    return pq.ParquetFile(pa.BufferReader(table.memory.read(path)))


def test_a_file_that_gets_few_rows_again_and_again_keeps_one_row_group():
    table = TestTable()
    for n in range(5):
        table.upsert((f"k{n}", "x", n, n), ("k0", "x", n, n))
    file = newest_file(table)
    assert (file.metadata.num_rows, file.metadata.num_row_groups) == (5, 1)
    assert sorted(table.rows()) == [("k0", "x", 4, 4), *((f"k{n}", "x", n, n) for n in range(1, 5))]


@pytest.mark.thorough
def test_large_row_groups_stay_apart():
    table = TestTable()
    table.bulk_insert(*((f"k{n:06d}", "x", 1, n) for n in range(130_000)))
    before = [newest_file(table).metadata.row_group(i).num_rows for i in range(2)]
    table.upsert(("k000001", "x", 2, -1))
    after = newest_file(table).metadata
    assert [after.row_group(i).num_rows for i in range(after.num_row_groups)] == before
