"""Merge-on-read tables that we write are read by hudi-rs, which shares no code with us, with the same rows.

Left out is what hudi-rs 0.5 reads wrongly or not at all: slices without base file, and deletes with a long ordering
value, which it takes for another type.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.storage.local import LocalStorage
from tests.support.tables.hudi_rs import read_by_hudi_rs, rows
from tests.support.tables.merge_on_read import BLOCK_FORMATS, VERSIONS, MergeOnRead
from tests.support.tables.small import Row

COLUMNS = ["_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name", "id", "p", "v"]


@pytest.mark.parametrize("block_format", BLOCK_FORMATS)
@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_rs_merges_the_log_files_that_writes_left(version: str, block_format: str, tmp_path: Path) -> None:
    table = MergeOnRead(
        version,
        LocalStorage(str(tmp_path / "table")),
        logfile_data_block_format=block_format,
        datasource_write_payload_class="org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    )
    start: list[Row] = [(f"k{n}", f"p{n % 3}", 5, n) for n in range(30)]
    table.bulk_insert(*start)
    table.upsert(("k1", "p1", 6, 111), ("k2", "p2", 6, 222), ("k4", "p1", 4, 444))
    table.insert(("new", "p0", 5, 5))
    table.delete(*((id_, p) for id_, p, _, _ in start[10:13]))
    undone = table.upsert(("k1", "p1", 9, 999), ("k20", "p2", 9, 999), ("other", "p1", 9, 9))
    table.roll_back_last()
    table.upsert(("k1", "p1", 7, 112), ("k11", "p2", 7, 11))

    found = rows(read_by_hudi_rs(table, tmp_path), COLUMNS)
    assert found == sorted(table.rows(COLUMNS), key=repr)
    assert undone.instant_time not in {row[0] for row in found}
    assert {(row[4], row[6]) for row in found} >= {("k1", 112), ("k4", 4), ("k11", 11), ("new", 5)}
