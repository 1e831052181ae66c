"""Log rows beyond the memory limit wait in a file, and nothing else changes."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.errors import ConfigError
from pyhudi.filegroup.read import record_buffer
from pyhudi.model.options import ReadOptions, WriteOptions
from pyhudi.model.options.merging import MemoryOptions
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches
from tests.support.tables.compacted import Compacted
from tests.support.tables.merge_on_read import BLOCK_FORMATS

PARTIAL = "org.apache.hudi.common.model.PartialUpdateAvroPayload"


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Folders of the temporary files that are made."""
    made: list[Any] = []
    real = tempfile.NamedTemporaryFile
    monkeypatch.setattr(
        record_buffer.tempfile, "NamedTemporaryFile", lambda **how: made.append(how["dir"]) or real(**how)
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


@pytest.mark.parametrize("options", [{}, {"datasource_write_payload_class": PARTIAL}], ids=["whole rows", "in pairs"])
@pytest.mark.parametrize("block_format", BLOCK_FORMATS)
def test_a_query_returns_the_same_rows_from_a_file(
    block_format: str, options: dict[str, str], folders: list[Any], tmp_path: Path
) -> None:
    table = history(logfile_data_block_format=block_format, **options)
    plenty = rows(table, MemoryOptions())
    assert not folders

    assert rows(table, MemoryOptions(merge_bytes=0, spill_folder=str(tmp_path))) == plenty
    assert folders == [str(tmp_path)]
    assert not list(tmp_path.iterdir()), "the file goes with the last row"


def test_a_compaction_keeps_to_its_own_limit(folders: list[Any], tmp_path: Path) -> None:
    table = history()
    before = table.rows()
    path = {"hoodie.memory.spillable.map.path": str(tmp_path)}
    table.options = {**table.options, **path, "hoodie.memory.compaction.max.size": "100"}

    assert table.compact().runs
    assert folders == [str(tmp_path)]
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
