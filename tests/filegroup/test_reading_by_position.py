"""Slices whose log blocks say at which base rows their keys are: merged without a look at the base file's keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.filegroup.read import split_merge
from pyhudi.filegroup.read.log_blocks import BlockRules
from pyhudi.filegroup.read.matching import PositionMatching, positions_fit
from pyhudi.filegroup.read.slice import SliceMerge, SliceSpec
from pyhudi.formats.base.parquet import ParquetReader
from pyhudi.formats.log.reader import LogBlock
from pyhudi.merge.rules import merge_rules
from pyhudi.model.file_group import FileSlice
from pyhudi.model.keys import META_COLUMNS, RECORD_KEY
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.merge_on_read import COMMIT_TIME, EVENT_TIME, MergeOnRead

MODES = (EVENT_TIME, COMMIT_TIME)


def history(mode: str, version: str = "9", positions: bool = True, **more: str) -> MergeOnRead:
    """Updates, late rows, deletes and a row that was both, over a base file of thirty."""
    given = {"write_record_merge_mode": mode, "write_record_positions": str(positions).lower(), **more}
    table = MergeOnRead(version, **given)
    table.bulk_insert(*((f"k{n:02d}", "x", 10, n) for n in range(30)))
    table.upsert(*((f"k{n:02d}", "x", 20, n + 100) for n in (17, 3, 4, 5, 29)))
    table.upsert(*((f"k{n:02d}", "x", 5, n + 200) for n in (17, 8, 9)))  # late
    table.delete(("k04", "x"), ("k01", "x"))
    table.mark_deleted(("k07", "x", 30, 0), ("k11", "x", 1, 0))
    return table


@pytest.fixture
def read_columns(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The columns of base files that were read."""
    columns_read: set[str] = set()
    original = ParquetReader.batches

    def batches(self: ParquetReader, columns: Sequence[str] | None = None, *args: Any, **more: Any) -> Any:
        columns_read.update(self.schema.names if columns is None else columns)
        return original(self, columns, *args, **more)

    monkeypatch.setattr(ParquetReader, "batches", batches)
    return columns_read


def slice_of(table: MergeOnRead) -> tuple[SliceSpec, FileSlice]:
    meta = table.meta
    schema = pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *meta.table_schema()])
    rules = BlockRules(meta.config.table_version, meta.timeline.is_visible)
    (file_slice,) = FileSystemView.load(meta).all_slices()
    return SliceSpec(meta.storage, schema, rules, merge_rules(meta.config)), file_slice


def leaving(table: MergeOnRead) -> list[int]:
    """Numbers of the base rows that leave."""
    return [row for part in split_merge.replaced_base_rows(*slice_of(table)) for row in part.rows.tolist()]


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", ["8", "9"])
def test_rows_are_those_that_matching_by_key_gives_and_keys_stay_unread(
    mode: str, version: str, read_columns: set[str]
):
    expected = history(mode, version, positions=False).rows(["v"])
    table = history(mode, version)
    read_columns.clear()

    assert table.rows(["v"]) == expected

    assert RECORD_KEY not in read_columns
    assert table.rows() == history(mode, version, positions=False).rows(), "keys too, when they are asked for"


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
def test_rows_that_leave_a_base_file_are_known_without_its_keys(mode: str, read_columns: set[str]):
    by_key = leaving(history(mode, positions=False))
    table = history(mode)
    read_columns.clear()

    assert leaving(table) == by_key

    assert read_columns == (set() if mode == COMMIT_TIME else {"ts"})


def test_a_block_without_positions_sends_its_slice_to_the_keys(read_columns: set[str]):
    table = history(EVENT_TIME)
    expected = dict(table.rows(["id", "v"]))
    table.upsert(("k20", "x", 40, 420), write_record_positions="false")
    read_columns.clear()

    assert table.rows(["v"]) == sorted(((v,) for v in ({**expected, "k20": 420}).values()), key=repr)

    assert RECORD_KEY in read_columns


@pytest.mark.thorough
@pytest.mark.parametrize("forged", [[40, 41, 42, 43, 44], [3, 3, 5, 6, 7], [-1, 2, 3, 4, 5], None])
def test_positions_that_do_not_fit_the_base_file_are_passed_over(
    forged: list[int] | None, monkeypatch: pytest.MonkeyPatch
):
    expected = history(EVENT_TIME, positions=False).rows()
    table = history(EVENT_TIME)
    positions = None if forged is None else np.array(forged, np.int64)
    monkeypatch.setattr(
        LogBlock, "positions", lambda self, base, records: positions if positions is None else positions[: len(records)]
    )
    assert table.rows() == expected


def test_positions_of_another_base_file_are_passed_over():
    spec, file_slice = slice_of(history(EVENT_TIME))
    assert file_slice.base_file is not None
    assert SliceMerge.of(spec, file_slice, spec.schema).records.positions is not None
    later = replace(file_slice.base_file, instant_time="99991231235959999")
    assert SliceMerge.of(spec, replace(file_slice, base_file=later), spec.schema).records.positions is None


def test_numbers_fit_when_they_are_rows_and_no_row_twice():
    assert positions_fit(np.array([0, 4, 2]), 5)
    assert positions_fit(np.array([], np.int64), 0)
    assert not positions_fit(np.array([0, 5]), 5)
    assert not positions_fit(np.array([-1, 3]), 5)
    assert not positions_fit(np.array([2, 2]), 5)
    assert not positions_fit(None, 5)


def test_base_rows_are_met_table_by_table():
    matching = PositionMatching(np.array([7, 1, 4]))
    found = [tuple(map(list, matching.find(pa.table({"v": range(rows)})))) for rows in (4, 0, 1, 5)]
    assert found == [([1], [1]), ([], []), ([0], [2]), ([2], [0])]
