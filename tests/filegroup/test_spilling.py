"""Log rows beyond the memory limit wait in a file, and nothing else changes."""

from __future__ import annotations

import io
import tempfile
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.errors import ConfigError, CorruptFile
from pyhudi.filegroup.read import record_buffer
from pyhudi.filegroup.read import spill as spill_files
from pyhudi.filegroup.read.matching import KeyMatching
from pyhudi.filegroup.read.record_buffer import LogRecords, RecordBuffer
from pyhudi.formats.log.blocks import delete
from pyhudi.formats.log.blocks.delete import DeleteRecords
from pyhudi.merge.rules import MergeRules
from pyhudi.model.keys import PARTITION_PATH, RECORD_KEY
from pyhudi.model.options import ReadOptions, WriteOptions
from pyhudi.model.options.merging import MemoryOptions
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches
from tests.support.sweeps import SAMPLED
from tests.support.tables.compacted import Compacted
from tests.support.tables.merge_on_read import BLOCK_FORMATS

PARTIAL = "org.apache.hudi.common.model.PartialUpdateAvroPayload"


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Folders of the temporary files that are made."""
    made: list[Any] = []
    real = tempfile.NamedTemporaryFile
    monkeypatch.setattr(
        spill_files.tempfile, "NamedTemporaryFile", lambda **how: made.append(how["dir"]) or real(**how)
    )
    return made


def history(**options: str) -> Compacted:
    table = Compacted("9", **options)
    table.upsert(*((f"k{n}", "x", 5, n) for n in range(20)))
    for ts in (6, 4, 7):
        table.upsert(*((f"k{n}", "x", ts, 100 * ts + n) for n in range(ts, 3 * ts)))
    table.delete(("k1", "x"), ("k8", "x"))
    table.mark_deleted(("k9", "x", 9, 0))
    return table


def rows(table: Compacted, memory: MemoryOptions) -> list[Any]:
    plan = plan_snapshot(table.meta, Query(memory=memory))
    batches = read_batches(plan, table.storage, threads=1)
    return sorted(map(repr, pa.Table.from_batches(list(batches), plan.schema).to_pylist()))


@pytest.mark.thorough
@pytest.mark.parametrize("options", [{}, {"datasource_write_payload_class": PARTIAL}], ids=["whole rows", "in pairs"])
@pytest.mark.parametrize("block_format", BLOCK_FORMATS)
def test_a_query_returns_the_same_rows_from_a_file(
    block_format: str, options: dict[str, str], folders: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_buffer, "_SHARE_BYTES", 1)  # so that there are many shares
    table = history(logfile_data_block_format=block_format, **options)
    plenty = rows(table, MemoryOptions())
    assert not folders

    assert rows(table, MemoryOptions(merge_bytes=0, spill_folder=str(tmp_path))) == plenty
    assert set(folders) == {str(tmp_path)}
    assert not list(tmp_path.iterdir()), "the file goes with the last row"


def test_a_compaction_keeps_to_its_own_limit(folders: list[Any], tmp_path: Path) -> None:
    table = history()
    before = table.rows()
    path = {"hoodie.memory.spillable.map.path": str(tmp_path)}
    table.options = {**table.options, **path, "hoodie.memory.compaction.max.size": "100"}

    assert table.compact().runs
    assert set(folders) == {str(tmp_path)}
    assert table.rows() == before


def test_the_limits_are_options_of_reads_and_writes() -> None:
    given = {"hoodie.memory.merge.max.size": "7", "hoodie.memory.spillable.map.path": "/scratch"}
    expected = MemoryOptions(merge_bytes=7, spill_folder="/scratch")
    assert ReadOptions.parse(given).memory == expected
    assert WriteOptions.parse({**given, "hoodie.memory.compaction.max.size": "8"}).memory == replace(
        expected, compaction_bytes=8
    )
    with pytest.raises(ConfigError, match=r"memory\.merge\.max\.size: expected at least 0"):
        ReadOptions.parse({"hoodie.memory.merge.max.size": "-1"})


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere.*hoodie\.memory\.spillable\.map\.path"):
        rows(history(), MemoryOptions(merge_bytes=0, spill_folder=str(tmp_path / "nowhere")))


@pytest.fixture
def arrow_memory() -> Iterator[pa.MemoryPool]:
    """All that Arrow allocates from here on."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    yield pool
    pa.set_memory_pool(before)


SCHEMA = pa.schema([(RECORD_KEY, pa.string()), ("ts", pa.int64()), ("v", pa.string())])


def keys(numbers: range) -> pa.Array:
    return pa.array([f"{n * 7919 % 1_000_003:064}" for n in numbers])


def deletes(numbers: range, ts: int) -> DeleteRecords:
    count = len(numbers)
    batch = pa.RecordBatch.from_arrays(
        [keys(numbers), pa.nulls(count, pa.string())], names=[RECORD_KEY, PARTITION_PATH]
    )
    return DeleteRecords(batch, pa.repeat(False, count), (pa.repeat(pa.scalar(ts), count),))


def merged(limit_bytes: int, parts: int) -> LogRecords:
    """Deletes of many keys, of which every fourth part comes back as rows."""
    rules = MergeRules(mode="EVENT_TIME_ORDERING", ordering_fields=("ts",))
    buffer = RecordBuffer(SCHEMA, rules, in_pairs=False, memory=(limit_bytes, None))
    for part in range(parts):
        buffer.add_deletes(deletes(range(part * 5000, (part + 1) * 5000), 5))
        if part % 4 == 0:
            later = range(part * 5000, part * 5000 + 2500)
            columns = [keys(later), pa.repeat(pa.scalar(9), len(later)), pa.repeat("back", len(later))]
            buffer.add_rows(pa.Table.from_arrays(columns, schema=SCHEMA))
    return buffer.merge()


@pytest.mark.thorough
@pytest.mark.parametrize(("limit_bytes", "least_mb", "most_mb"), [(1 << 30, 60, 200), (1 << 20, 5, 25)])
def test_keys_beyond_the_limit_wait_in_a_file_too_and_are_merged_in_shares(
    limit_bytes: int, least_mb: int, most_mb: int, arrow_memory: pa.MemoryPool
) -> None:
    records = merged(limit_bytes, parts=80)  # 30 MB of keys and what goes with them
    assert least_mb << 20 < (arrow_memory.max_memory() or 0) < most_mb << 20
    assert len(records) == 400_000
    assert records.is_delete.sum() == 350_000
    at = np.array([399_999, 0, 2_499, 2_500, 20_000, 123_456])
    assert records.keys(at).to_pylist() == [keys(range(n, n + 1))[0].as_py() for n in at]
    assert records.ordering(at)[0].to_pylist() == [5, 9, 9, 5, 9, 5]
    assert records.take(at[[1, 2, 4]]).to_pylist() == [
        {RECORD_KEY: keys(range(n, n + 1))[0].as_py(), "ts": 9, "v": "back"} for n in (0, 2_499, 20_000)
    ]
    stored = pa.table({RECORD_KEY: keys(range(399_000, 402_000))})
    hits, versions = KeyMatching(len(records), records.key_parts).find(stored)
    assert hits.tolist() == list(range(1_000))
    assert versions.tolist() == list(range(399_000, 400_000))


@pytest.mark.thorough
def test_merging_keys_that_wait_in_a_file_takes_few_bytes_of_a_key() -> None:
    tracemalloc.start()
    records = merged(1 << 19, parts=40) if SAMPLED else merged(1 << 20, parts=80)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak_bytes < 50 * len(records), f"{peak_bytes / len(records):.0f} bytes of a key"


@pytest.mark.thorough
def test_a_large_delete_block_is_decoded_in_parts_as_it_is_at_once() -> None:
    count = 40_000
    batch = pa.RecordBatch.from_arrays([keys(range(count)), pa.repeat("p", count)], names=[RECORD_KEY, PARTITION_PATH])
    ordering = pa.array([None if n % 3 else n for n in range(count)])
    content = delete.encode(batch, [ordering])
    whole = delete.decode(content)
    parts = list(delete.decoded_parts(io.BytesIO(content + b"the next block"), len(content)))
    assert sum(part.keys.num_rows for part in parts) == count
    assert max(part.keys.num_rows for part in parts) <= 16_384
    assert len(parts) <= 8, "small parts cost more than their deletes"
    assert (
        pa.Table.from_batches([part.keys for part in parts])
        .combine_chunks()
        .equals(pa.Table.from_batches([whole.keys]))
    )
    alone = [part.ordering[0] if part.ordering else pa.nulls(len(part.keys), pa.int64()) for part in parts]
    assert pa.concat_arrays(alone).equals(whole.ordering[0])
    assert pa.concat_arrays([part.commit_time for part in parts]).equals(whole.commit_time)
    for cut in (7, len(content) // 2, len(content) - 1):
        with pytest.raises(CorruptFile):
            list(delete.decoded_parts(io.BytesIO(content[:cut]), len(content)))
