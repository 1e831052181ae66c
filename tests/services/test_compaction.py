"""Compaction of tables in memory: what is compacted, what plans and commits say, writes meanwhile."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError, TableError, UnsupportedTable, WriteConflict
from pyhudi.formats.base import open_base_file
from pyhudi.formats.bloom import BloomFilter
from pyhudi.model.filenames import marker_folder
from pyhudi.model.instant import ActionKind, State
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.options import WriteOptions
from pyhudi.services.compact.compaction import COMPACTION, LOG_COMPACTION
from pyhudi.services.planned import call
from pyhudi.services.results import CompactionResult
from pyhudi.table.calls import serve
from pyhudi.transaction.instants import TimelineWriter
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.compacted import EVERYTHING, ROWS, Compacted
from tests.support.tables.merge_on_read import BLOCK_FORMATS, VERSIONS
from tests.support.tables.small import TestTable


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("block_format", BLOCK_FORMATS)
def test_a_compaction_merges_log_files_into_base_files_and_changes_no_row(version: str, block_format: str) -> None:
    table = Compacted(version, logfile_data_block_format=block_format).start()
    before = table.rows(EVERYTHING)
    result = table.compact()
    assert table.rows(EVERYTHING) == before
    assert sorted(row[4:] for row in before) == ROWS
    view = FileSystemView.load(table.meta)
    assert all(not s.log_files and s.base_instant == result.scheduled for s in view.all_slices())
    assert result.instant_times == (result.scheduled,)
    (run,) = result.runs
    assert (run.file_slices, run.log_files, run.rows_written) == (2, 3, 2)
    assert (run.updated, run.deleted, run.inserted, run.log_records) == (1, 1, 0, 3)
    assert not table.pending()
    assert not table.storage.list(marker_folder(result.instant_times[0]))
    assert table.compact() == CompactionResult(table.storage.root, "COMPACT")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_commit_says_what_was_compacted(version: str) -> None:
    table = Compacted(version).start()
    result = table.compact()
    last = table.meta.timeline.last_commit()
    assert last is not None
    assert (last.action, last.requested_time) == (ActionKind.COMMIT, result.scheduled)
    body = table.meta.commits.metadata(last)
    assert (body.operation_type, body.compacted) == ("COMPACT", True)
    assert set(body.extra_metadata) == {"schema"}
    (stat,) = body.partition_to_write_stats["x"]
    assert (stat.num_writes, stat.num_update_writes, stat.num_deletes, stat.num_inserts) == (1, 1, 1, 0)
    assert (stat.total_log_files_compacted, stat.total_log_blocks, stat.total_log_records) == (2, 2, 2)
    assert stat.total_updated_records_compacted == 2
    assert (stat.prev_base_file is not None) is (int(version) >= 8)
    assert table.storage.stat(stat.path or "") is not None


def test_new_base_files_have_names_keys_and_filters_of_their_rows() -> None:
    table = Compacted("9", index_type="BUCKET", bucket_index_num_buckets="1").start()
    table.upsert(("new", "x", 1, 1))
    table.compact()
    for file in FileSystemView.load(table.meta).all_base_files():
        with open_base_file(table.storage, file.path) as reader:
            names = reader.column("_hoodie_file_name").unique().to_pylist()
            keys = sorted(reader.column("_hoodie_record_key").to_pylist())
            footer = reader.footer
        assert names == [file.name]
        assert footer.min_key is not None
        assert footer.max_key is not None
        assert footer.min_key <= keys[0]
        assert keys[-1] <= footer.max_key
        bloom = BloomFilter.from_base64(footer.bloom_base64 or "", footer.bloom_type)
        assert bloom.might_contain(pa.array(keys)).all()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dry_run_says_what_would_be_done_and_does_nothing(version: str) -> None:
    table = Compacted(version).start()
    paths = sorted(info.path for info in table.storage.walk(""))
    result = table.compact(dry_run=True)
    assert sorted(info.path for info in table.storage.walk("")) == paths
    assert {operation.partition_path for operation in result.planned} == {"x", "y"}
    assert result.scheduled is None
    assert not result.runs
    assert result.log_bytes_planned == sum(info.size_bytes for info in table.storage.walk("") if ".log." in info.name)
    assert "would take: 2 slices, 3 log files" in str(result)
    assert "<table>" in result._repr_html_()


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_writing_goes_on_while_a_compaction_waits(version: str) -> None:
    table = Compacted(version).start()
    scheduled = table.compact(schedule_only=True).scheduled
    assert table.pending() == [scheduled]
    assert table.rows() == ROWS
    table.upsert(("a", "x", 3, 12), ("d", "y", 1, 40))
    table.delete(("c", "y"))
    rows = [("a", "x", 3, 12), ("d", "y", 1, 40)]
    assert table.rows() == rows
    result = table.compact(instant=scheduled)
    assert result.instant_times == (scheduled,)
    assert table.rows() == rows
    logs = [log for s in FileSystemView.load(table.meta).all_slices() for log in s.log_files]
    assert logs, "what was written meanwhile is still in log files"
    table.compact()
    assert table.rows() == rows
    assert not any(s.log_files for s in FileSystemView.load(table.meta).all_slices())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_that_began_before_a_compaction_ran_does_not_collide_with_it(version: str) -> None:
    table = Compacted(version).start()
    scheduled = table.compact(schedule_only=True).scheduled

    class CompactsMeanwhile(LocalEngine):
        def map_groups(self, *given: Any, **more: Any) -> Any:
            assert table.compact(instant=scheduled).instant_times == (scheduled,)
            return super().map_groups(*given, **more)

    table.engine, engine = CompactsMeanwhile(1), table.engine
    try:
        other = Compacted(version)
        other.storage, other.options, other.engine = table.storage, table.options, table.engine
        table.engine = engine
        other.upsert(("a", "x", 7, 70), ("c", "y", 7, 70))
    finally:
        table.engine = engine
    assert table.rows() == [("a", "x", 7, 70), ("c", "y", 7, 70)]
    table.compact()
    assert table.rows() == [("a", "x", 7, 70), ("c", "y", 7, 70)]


def test_a_compaction_takes_no_file_group_of_another_plan() -> None:
    table = Compacted("9").start()
    table.compact(schedule_only=True)
    assert table.compact(schedule_only=True).scheduled is None
    assert not table.compact(dry_run=True).planned
    assert not table.log_compact(dry_run=True).planned


def test_plans_that_wait_run_first() -> None:
    table = Compacted("9").start()
    first = table.compact(schedule_only=True).scheduled
    table.upsert(("a", "x", 9, 90))
    result = table.compact()
    assert result.instant_times == (first, result.scheduled)
    assert len(str(result).splitlines()) == 2


def test_options_bound_a_compaction() -> None:
    table = Compacted("9").start()
    regex = {"compaction_strategy": "PARTITION_REGEX", "compaction_partition_path_regex": "y"}
    assert [operation.partition_path for operation in table.compact(**regex).planned] == ["y"]
    assert table.rows() == ROWS
    with pytest.raises(ConfigError, match="partitions named"):
        table.compact(compaction_strategy="DAY_BASED")


def test_a_call_waits_for_a_trigger_only_when_it_names_one() -> None:
    table = Compacted("9").start()
    assert table.compact(compact_inline_max_delta_commits="4").scheduled is None
    assert table.compact(compact_inline_max_delta_commits="3").scheduled is not None


def test_a_copy_on_write_table_has_nothing_to_compact() -> None:
    table = TestTable()
    table.upsert(("a", "x", 1, 1))
    parsed = WriteOptions.parse({}, table=table.meta.config)
    for service in (COMPACTION, LOG_COMPACTION):
        with pytest.raises(UnsupportedTable, match="no log files"):
            serve(table.storage, partial(call, service), parsed, LocalEngine())


def test_an_unknown_plan_is_refused_with_those_that_wait() -> None:
    table = Compacted("9").start()
    scheduled = table.compact(schedule_only=True).scheduled
    with pytest.raises(TableError, match=f"Pending are: {scheduled}"):
        table.compact(instant="20200101000000000")
    table.compact(instant=scheduled)
    with pytest.raises(TableError, match="Pending are: none"):
        table.compact(instant=scheduled)


def test_a_plan_whose_files_are_gone_says_so() -> None:
    table = Compacted("9").start()
    table.compact(schedule_only=True)
    table.storage.delete(table.logs()[0])
    with pytest.raises(TableError, match="are missing"):
        table.compact()
    assert [instant.state for instant in table.meta.timeline.pending()] == [State.REQUESTED]


@pytest.mark.thorough
def test_below_version_8_no_plan_is_made_while_a_write_is_pending() -> None:
    for version in VERSIONS:
        table = Compacted(version).start()
        writer = TimelineWriter(table.storage, table.meta.config)
        writer.start(writer.request("20200101000000000", ActionKind.DELTACOMMIT))
        if version == "6":
            with pytest.raises(WriteConflict, match="pending: 20200101000000000"):
                table.compact()
        else:
            assert table.compact().runs
        with pytest.raises(WriteConflict, match="pending"):
            table.log_compact()
        assert table.rows() == ROWS


def test_rows_without_meta_columns_keep_none() -> None:
    table = Compacted("9", populate_meta_fields="false")
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20))
    table.upsert(("a", "x", 2, 11))
    table.upsert(("b", "x", 2, 21))
    table.log_compact()
    table.upsert(("b", "x", 3, 22))
    assert table.compact().runs
    (file,) = FileSystemView.load(table.meta).all_base_files()
    with open_base_file(table.storage, file.path) as reader:
        stored = pa.Table.from_batches(list(reader.batches()))
    assert all(stored.column(name).null_count == 2 for name in META_COLUMNS)
    assert sorted(zip(*(stored.column(n).to_pylist() for n in ("id", "v")), strict=True)) == [("a", 11), ("b", 22)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_waiting_compaction_and_the_writes_that_its_plan_reads_are_not_rolled_back(version: str) -> None:
    table = Compacted(version).start()
    newest = table.meta.timeline.commits().instants[-1].requested_time
    scheduled = table.compact(schedule_only=True).scheduled
    assert scheduled is not None
    before = table.rows()

    with pytest.raises(TableError, match="waits to be run, not a failed write"):
        table.roll_back(scheduled)
    with pytest.raises(TableError, match=f"the compaction {scheduled} waits to be run"):
        table.roll_back(newest)

    assert table.rows() == before
    assert table.pending() == [scheduled]
