"""Compaction of tables in memory: plans, runs, writes meanwhile, runs that fail, several processes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.actions.services.compacting import call
from pyhudi.actions.services.compaction import COMPACTION
from pyhudi.actions.services.compaction_result import CompactionResult
from pyhudi.actions.services.log_compaction import LOG_COMPACTION
from pyhudi.actions.services.planned import Service
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError, HudiError, TableError, UnsupportedTable, WriteConflict
from pyhudi.filegroup.compact import CompactSlices
from pyhudi.formats.base import open_base_file
from pyhudi.formats.bloom import BloomFilter
from pyhudi.metadata.file_system_view import FileSystemView
from pyhudi.model.filenames import heartbeat_path, marker_folder
from pyhudi.model.instant import ActionKind, State
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.options import WriteOptions
from pyhudi.serving import serve
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.write import TimelineWriter
from tests.actions.merge_on_read import BLOCK_FORMATS, VERSIONS, MergeOnRead
from tests.actions.tables import TestTable

EVERYTHING = [*META_COLUMNS[:4], "id", "p", "ts", "v"]


class Compacted(MergeOnRead):
    """A merge-on-read table whose writes compact only when they are asked to."""

    def __init__(self, version: str = "9", **options: str) -> None:
        by_event_time = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
        fixed = {"compact_inline": "false", "datasource_write_payload_class": by_event_time}
        super().__init__(version, **{**fixed, **options})

    def compact(
        self, service: Service = COMPACTION, *, policy: str = "EAGER", instant: str | None = None, **more: Any
    ) -> CompactionResult:
        options = {"hoodie." + n.replace("_", "."): more.pop(n) for n in list(more) if isinstance(more[n], str)}
        parsed = WriteOptions.parse({**self.options, **options}, table=self.meta.config)
        parsed = replace(parsed, failed_writes_policy=policy)
        run = partial(call, service, instant_time=instant, **more)
        return serve(self.storage, run, parsed, self.engine, dry_run=more.get("dry_run", False), clock=self.clock)

    def log_compact(self, **more: Any) -> CompactionResult:
        return self.compact(LOG_COMPACTION, **{"log_compaction_blocks_threshold": "2", **more})

    def start(self) -> Compacted:
        """Three rows in two partitions, then an update, a delete and a late row in log files."""
        self.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 5, 30))
        self.upsert(("a", "x", 2, 11), ("c", "y", 4, 99))
        self.delete(("b", "x"))
        return self

    def pending(self) -> list[str]:
        return [instant.requested_time for instant in self.meta.timeline.pending()]

    def base_names(self) -> list[str]:
        return [path for path in self.paths() if path.endswith(".parquet")]


ROWS = [("a", "x", 2, 11), ("c", "y", 5, 30)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("block_format", BLOCK_FORMATS)
def test_a_compaction_folds_log_files_into_base_files_and_changes_no_row(version: str, block_format: str) -> None:
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
def test_the_commit_says_what_was_folded(version: str) -> None:
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
    with pytest.raises(TableError, match="are gone"):
        table.compact()
    assert [instant.state for instant in table.meta.timeline.pending()] == [State.REQUESTED]


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


# ---- runs that fail, and several processes


class Broken(Exception):
    pass


def test_a_run_that_fails_is_taken_back_to_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    for version in VERSIONS:
        table = Compacted(version).start()
        files = table.paths()
        with monkeypatch.context() as patch:
            patch.setattr(CompactSlices, "__call__", _fails_after_writing)
            with pytest.raises(Broken):
                table.compact()
        assert table.paths() == files
        (instant,) = table.meta.timeline.pending().instants
        assert (instant.action, instant.state) == (ActionKind.COMPACTION, State.REQUESTED)
        assert not table.storage.list(marker_folder(instant.requested_time))
        assert table.rows() == ROWS
        assert table.compact().instant_times == (instant.requested_time,)
        assert table.rows() == ROWS


_real_call = CompactSlices.__call__


def _fails_after_writing(self: CompactSlices, task: Any, file_slice: Any) -> Any:
    list(_real_call(self, task, file_slice))
    raise Broken


def _dead_run(table: Compacted) -> str:
    """A compaction whose process died after it had written its files."""
    scheduled = table.compact(schedule_only=True).scheduled
    assert scheduled is not None
    memory = table.storage
    assert isinstance(memory, MemoryStorage)
    counted = memory.clone()
    attempt = Compacted()
    attempt.storage, attempt.options, attempt.engine = counted, table.options, LocalEngine(1)
    attempt.compact()
    creations = [at for at, (verb, path) in enumerate(counted.log) if verb == "create_new" and path.endswith("commit")]
    table.engine = LocalEngine(1)
    memory.reset_faults()
    memory.fail_at(creations[-1] + 1, "before")
    with pytest.raises(HudiError):
        table.compact()
    memory.reset_faults()
    assert [instant.state for instant in table.meta.timeline.pending()] == [State.INFLIGHT]
    return scheduled


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dead_run_is_taken_back_by_the_next_one(version: str) -> None:
    table = Compacted(version).start()
    dead = _dead_run(table)
    left = [path for path in table.base_names() if dead in path]
    assert left
    assert table.rows() == ROWS
    assert table.compact().instant_times == (dead,)
    assert table.rows() == ROWS
    assert len([path for path in table.base_names() if dead in path]) == len(left), "nothing is left of the dead run"


def test_writing_goes_on_over_a_dead_run() -> None:
    for version in VERSIONS:
        table = Compacted(version).start()
        _dead_run(table)
        table.upsert(("a", "x", 8, 80))
        assert table.rows() == [("a", "x", 8, 80), ROWS[1]]
        table.compact()
        assert table.rows() == [("a", "x", 8, 80), ROWS[1]]
        assert not table.pending()


def test_a_run_with_a_fresh_heartbeat_is_left_alone() -> None:
    table = Compacted("9").start()
    dead = _dead_run(table)
    table.storage.write(heartbeat_path(dead), b"")
    table.storage.set_modified(heartbeat_path(dead), table.clock.now_ms())
    with pytest.raises(WriteConflict, match="heartbeat is fresh"):
        table.compact(policy="LAZY")
    table.storage.set_modified(heartbeat_path(dead), table.clock.now_ms() - 10 * 60_000)
    assert table.compact(policy="LAZY").instant_times == (dead,)
    assert table.storage.stat(heartbeat_path(dead)) is None


def test_of_two_runs_of_one_plan_one_completes_and_no_row_is_lost() -> None:
    """The slower run is taken for dead: its files go, and it must not complete with them."""
    for version in VERSIONS:
        table = Compacted(version).start()
        scheduled = table.compact(schedule_only=True).scheduled
        other = Compacted(version)
        other.storage, other.options = table.storage, table.options

        class Overtaken(LocalEngine):
            def collect(self, frame: Any) -> Any:
                result = super().collect(frame)
                assert other.compact().instant_times == (scheduled,)  # noqa: B023
                return result

        table.engine = Overtaken(1)
        with pytest.raises(WriteConflict):
            table.compact()
        table.engine = LocalEngine(1)
        assert table.rows() == ROWS
        assert not table.pending()
        assert table.compact().runs == ()


# ---- at the end of a write


def test_a_write_compacts_when_the_trigger_says_so() -> None:
    for version in VERSIONS:
        table = MergeOnRead(version, compact_inline="true")
        results = [table.upsert(("a", "x", n, n), ("b", "y", n, n)) for n in range(1, 11)]
        assert [bool(result.compacted) for result in results] == [n % 5 == 0 for n in range(1, 11)]
        assert "compaction" in results[4].seconds
        assert table.rows() == [("a", "x", 10, 10), ("b", "y", 10, 10)]
        assert not any(s.log_files for s in FileSystemView.load(table.meta).all_slices())


def test_a_write_only_schedules_when_it_is_told_so() -> None:
    table = Compacted("9", compact_schedule_inline="true", compact_inline_max_delta_commits="2")
    table.upsert(("a", "x", 1, 1))
    assert not table.pending()
    table.upsert(("a", "x", 2, 2))
    assert len(table.pending()) == 1
    assert table.rows() == [("a", "x", 2, 2)]


def test_a_write_folds_log_blocks_when_it_is_told_so() -> None:
    table = Compacted("9", log_compaction_inline="true", log_compaction_blocks_threshold="3")
    results = [table.upsert(("a", "x", n, n)) for n in range(5)]
    assert [bool(result.compacted) for result in results] == [False, False, False, True, False]
    assert table.rows() == [("a", "x", 4, 4)]


def test_a_compaction_that_fails_after_a_write_is_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Compacted("9", compact_inline="true", compact_inline_max_delta_commits="2")
    table.upsert(("a", "x", 1, 1))

    def fails(*_: Any) -> Any:
        raise TableError("no luck")

    monkeypatch.setattr(CompactSlices, "__call__", fails)
    with pytest.warns(UserWarning, match="the write is complete, but the compaction after it failed.*no luck"):
        table.upsert(("a", "x", 2, 2))
    assert table.rows() == [("a", "x", 2, 2)]
    assert len(table.pending()) == 1
    monkeypatch.undo()
    assert table.upsert(("a", "x", 3, 3)).compacted
    assert table.rows() == [("a", "x", 3, 3)]


# ---- log compaction


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("block_format", BLOCK_FORMATS)
def test_a_log_compaction_folds_blocks_and_changes_no_row(version: str, block_format: str) -> None:
    table = Compacted(version, logfile_data_block_format=block_format).start()
    before, bases, logs = table.rows(EVERYTHING), table.base_names(), table.logs()
    result = table.log_compact()
    assert table.rows(EVERYTHING) == before
    assert table.base_names() == bases
    (new,) = set(table.logs()) - set(logs)
    assert new.startswith("x/"), "the slice in y has one block only"
    (run,) = result.runs
    assert (run.file_slices, run.log_files, run.log_records) == (1, 2, 2)
    last = table.meta.timeline.last_commit()
    assert last is not None
    body = table.meta.commits.metadata(last)
    assert (last.action, body.operation_type, body.compacted) == (ActionKind.DELTACOMMIT, "LOG_COMPACT", True)
    (stat,) = body.stats()
    base_instant = FileSystemView.load(table.meta).slices("x")[0].base_instant
    assert (stat.prev_commit, stat.num_update_writes, stat.num_deletes) == (base_instant, 1, 1)
    assert (stat.total_log_files_compacted, stat.total_log_blocks) == (2, 2)
    table.upsert(("a", "x", 3, 12), ("b", "x", 9, 21))
    rows = [("a", "x", 3, 12), ("b", "x", 9, 21), ROWS[1]]
    assert table.rows() == rows
    table.log_compact()
    assert table.rows() == rows
    table.compact()
    assert table.rows() == rows
    assert not any(s.log_files for s in FileSystemView.load(table.meta).all_slices())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_log_compaction_that_waits_folds_what_it_planned(version: str) -> None:
    table = Compacted(version).start()
    scheduled = table.log_compact(schedule_only=True).scheduled
    table.upsert(("a", "x", 3, 12))
    rows = [("a", "x", 3, 12), ROWS[1]]
    assert table.rows() == rows
    assert table.log_compact(instant=scheduled).instant_times == (scheduled,)
    assert table.rows() == rows


@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_overtakes_a_log_compaction(version: str) -> None:
    table = Compacted(version).start()
    scheduled = table.log_compact(schedule_only=True).scheduled
    table.compact()
    table.upsert(("a", "x", 3, 12))
    table.log_compact(instant=scheduled)
    rows = [("a", "x", 3, 12), ROWS[1]]
    assert table.rows() == rows
    table.compact()
    assert table.rows() == rows


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
