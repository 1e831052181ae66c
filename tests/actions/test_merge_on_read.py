"""What the write operations do to a merge-on-read table: which files they make, which rows readers find then."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from pyhudi.errors import HudiError, SchemaMismatch, TableError, WriteConflict
from pyhudi.formats.timeline.instant_files import decode_rollback_metadata, decode_rollback_plan
from pyhudi.model.filenames import LogFileName
from pyhudi.model.instant import ActionKind, State
from pyhudi.model.options import WriteOptions
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.merge_on_read import BLOCK_FORMATS, COMMIT_TIME, VERSIONS, MergeOnRead
from tests.support.tables.small import SCHEMA, rollback_write, rows_of
from tests.support.writers.interrupted import InterruptedEngine

BUCKETS = {"index_type": "BUCKET", "bucket_index_num_buckets": "1"}


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("block_format", BLOCK_FORMATS)
def test_updates_and_deletes_go_to_log_files_and_leave_base_files_alone(version: str, block_format: str) -> None:
    table = MergeOnRead(version, logfile_data_block_format=block_format)
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 1, 30))
    base_files = table.paths()
    result = table.upsert(("a", "x", 2, 11), ("c", "y", 2, 31))
    table.delete(("b", "x"), ("unknown", "y"))

    assert [path for path in table.paths() if path not in table.logs()] == base_files
    assert len(table.logs()) == 3
    assert (result.updated, result.log_files_written, result.files_created, result.files_rewritten) == (2, 2, 0, 0)
    assert table.rows() == [("a", "x", 2, 11), ("c", "y", 2, 31)]


def test_every_write_is_a_delta_commit(version: str) -> None:
    table = MergeOnRead(version)
    table.bulk_insert(("a", "x", 1, 10))
    table.insert(("b", "x", 1, 10))
    table.upsert(("a", "x", 2, 11))
    table.delete(("a", "x"))

    assert {instant.action for instant in table.meta.timeline} == {ActionKind.DELTACOMMIT}


def test_log_files_name_the_base_instant_below_version_8_and_their_own_from_there_on(version: str) -> None:
    table = MergeOnRead(version)
    first = table.bulk_insert(("a", "x", 1, 10))
    writes = [table.upsert(("a", "x", 2 + n, 11)) for n in range(2)]

    names = [LogFileName.parse(path.rpartition("/")[2]) for path in table.logs()]
    found = [(name.instant_time, name.version) for name in names if name is not None]
    if version == "6":
        assert found == [(first.instant_time, 1), (first.instant_time, 2)]
    else:
        assert found == [(write.instant_time, 1) for write in writes]


def test_inserts_fill_a_small_file_without_logs_and_its_updates_go_along(version: str) -> None:
    table = MergeOnRead(version)
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20))
    result = table.upsert(("a", "x", 2, 11), ("c", "x", 1, 30))

    assert (result.files_rewritten, result.log_files_written) == (1, 0)
    assert table.rows() == [("a", "x", 2, 11), ("b", "x", 1, 20), ("c", "x", 1, 30)]


def test_inserts_next_to_log_files_make_a_new_file_group(version: str) -> None:
    table = MergeOnRead(version)
    table.bulk_insert(("a", "x", 1, 10))
    table.upsert(("a", "x", 2, 11))
    result = table.insert(("c", "x", 1, 30))

    assert (result.files_created, result.files_rewritten, result.log_files_written) == (1, 0, 0)
    assert table.rows() == [("a", "x", 2, 11), ("c", "x", 1, 30)]


@pytest.mark.thorough
def test_so_many_small_files_take_inserts_as_the_option_says() -> None:
    def rewritten(limit: str) -> int:
        table = MergeOnRead(merge_small_file_group_candidates_limit=limit)
        for n in range(3):
            table.bulk_insert((f"a{n}", "x", 1, 10))
        rows = [(f"b{n}", "x", 1, n) for n in range(200)]
        return table.insert(
            *rows, parquet_max_file_size="20000", copyonwrite_record_size_estimate="500"
        ).files_rewritten

    assert [rewritten("0"), rewritten("1"), rewritten("3")] == [0, 1, 3]


def test_buckets_begin_with_a_log_file_from_version_8_on(version: str) -> None:
    table = MergeOnRead(version, **BUCKETS)
    first = table.upsert(("a", "x", 1, 10), ("b", "x", 1, 20))
    table.upsert(("a", "x", 2, 11), ("c", "x", 1, 30))
    table.delete(("b", "x"))

    assert (first.inserted, first.log_files_written) == (2, 0 if version == "6" else 1)
    (file_slice,) = FileSystemView.load(table.meta).all_slices()
    assert (file_slice.base_file is None) == (version != "6")
    assert file_slice.base_instant == first.instant_time
    assert len(file_slice.log_files) == (2 if version == "6" else 3)
    assert table.rows() == [("a", "x", 2, 11), ("c", "x", 1, 30)]


def test_deletes_of_a_bucket_without_file_group_make_none(version: str) -> None:
    table = MergeOnRead(version, **BUCKETS)
    table.upsert(("a", "x", 1, 10))
    before = table.paths()
    table.delete(("b", "y"))
    table.mark_deleted(("b", "y", 1, 1))

    assert table.paths() == before


def test_rows_of_a_log_file_carry_the_bare_file_id(version: str) -> None:
    table = MergeOnRead(version)
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 10))
    write = table.upsert(("a", "x", 2, 11))

    (logged, stored) = table.rows(("id", "_hoodie_commit_time", "_hoodie_file_name"))
    assert logged == ("a", write.instant_time, stored[2].partition("_")[0])


def test_a_deleted_key_comes_back_with_the_next_row(version: str) -> None:
    table = MergeOnRead(version)
    table.bulk_insert(("a", "x", 5, 10))
    table.delete(("a", "x"))
    assert table.rows() == []
    table.upsert(("a", "x", 6, 11))

    assert table.rows() == [("a", "x", 6, 11)]


@pytest.mark.parametrize("version", ["8", "9"])
def test_late_rows_and_late_deletes_change_nothing_with_event_time(version: str) -> None:
    table = MergeOnRead(version)
    table.bulk_insert(("a", "x", 5, 10), ("b", "x", 5, 20))
    table.upsert(("a", "x", 4, 99))
    table.mark_deleted(("a", "x", 4, 99), ("b", "x", 6, 0))
    table.upsert(("b", "x", 5, 77))

    assert table.rows() == [("a", "x", 5, 10)]


def test_a_row_with_a_new_column_widens_the_table(version: str) -> None:
    table = MergeOnRead(version)
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20))
    table.upsert_with(("a", "x", 2, 11), note="new")

    assert table.rows(("id", "v", "note")) == [("a", 11, "new"), ("b", 20, None)]


def test_a_log_file_that_is_full_is_followed_by_another(version: str) -> None:
    table = MergeOnRead(version, logfile_max_size="1000", logfile_data_block_max_size="600")
    rows = [(f"k{n}", "x", 1, n) for n in range(50)]
    table.bulk_insert(*rows)
    table.upsert(*((id_, p, 2, v) for id_, p, _, v in rows))

    assert len(table.logs()) > 2
    assert table.rows() == sorted((id_, p, 2, v) for id_, p, _, v in rows)


@pytest.mark.parametrize("versions", [(2,), (1, 3), (5, 12)])
def test_below_version_8_a_log_file_is_the_last_of_its_slice_when_versions_have_gaps(versions: tuple[int, ...]) -> None:
    """Tasks that failed had names in the gaps."""
    table = MergeOnRead("6", write_record_merge_mode=COMMIT_TIME)
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20))
    for n, _ in enumerate(versions):
        table.upsert(("a", "x", 1, n))
    for path, version in reversed(list(zip(table.logs(), versions, strict=True))):  # so that none meets another
        data = table.storage.read(path)
        table.storage.delete(path)
        table.storage.write(re.sub(r"\.log\.\d+_", f".log.{version}_", path), data)
    there = table.logs()

    table.upsert(("a", "x", 1, 99))

    (added,) = (path for path in table.logs() if path not in there)
    name = LogFileName.parse(added.rpartition("/")[2])
    assert name is not None
    assert name.version == max(versions) + 1
    assert table.rows() == [("a", "x", 1, 99), ("b", "x", 1, 20)]


# ---- rollback --------------------------------------------------------------------------------------------------------


def test_a_rollback_brings_the_rows_of_before_back(version: str) -> None:
    table = MergeOnRead(version)
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 1, 30))
    table.upsert(("a", "x", 2, 11))
    before, files = table.rows(), table.paths()
    table.upsert(("a", "x", 3, 12), ("c", "y", 2, 31), ("d", "z", 1, 40))
    table.delete(("b", "x"))
    table.roll_back_last()
    table.roll_back_last()

    assert table.rows() == before
    assert not list(table.storage.walk(".hoodie/.temp"))
    kept = [path for path in table.paths() if path in files]
    assert kept == files
    commands = [path for path in table.paths() if path.endswith("_1-0-1")]
    # x lost two blocks, y one, each by a command of its own; the base file in z is gone.
    assert len(commands) == (3 if version == "6" else 0)
    if version != "6":
        assert table.paths() == files

    table.upsert(("a", "x", 4, 13))
    assert table.rows() == [("a", "x", 4, 13), *before[1:]]


def test_plan_and_body_of_a_rollback_say_what_happened_to_logs(version: str) -> None:
    table = MergeOnRead(version)
    table.bulk_insert(("a", "x", 1, 10))
    table.upsert(("a", "x", 2, 11))
    (log,) = table.logs()
    table.roll_back_last()

    meta = table.meta
    (instant,) = meta.timeline.of([ActionKind.ROLLBACK])
    reader = meta.reader
    (request,) = decode_rollback_plan(reader.read_body(instant, State.REQUESTED)).requests
    (partition,) = decode_rollback_metadata(reader.read_body(instant, State.COMPLETED)).partitions.values()
    if version == "6":
        name = LogFileName.parse(log.rpartition("/")[2])
        assert name is not None
        assert (request.file_id, request.latest_base_instant) == (name.file_id, name.instant_time)
        assert list(request.log_blocks_to_be_deleted) == [table.storage.full_path(log)]
        assert partition.log_files_from_failed_commit == request.log_blocks_to_be_deleted
        (command,) = (path for path in table.logs() if path != log)
        assert partition.rollback_log_files == {table.storage.full_path(command): 105}
    else:
        assert [path.rpartition("/")[2] for path in request.files_to_be_deleted] == [log.rpartition("/")[2]]
        assert partition.success_delete_files == request.files_to_be_deleted
        assert not partition.rollback_log_files
        assert table.logs() == []


def test_only_the_newest_write_is_rolled_back(version: str) -> None:
    table = MergeOnRead(version)
    first = table.bulk_insert(("a", "x", 1, 10))
    table.upsert(("a", "x", 2, 11))
    with pytest.raises(TableError, match="later writes"):
        rollback_write(table.storage, first.instant_time, WriteOptions.parse({}), table.engine)


def test_a_row_without_ordering_value_is_refused_where_the_value_decides() -> None:
    table = MergeOnRead("9")
    table.bulk_insert(("a", "x", 1, 10))
    data = rows_of(("a", "x", 2, 11)).set_column(2, "ts", pa.array([None], pa.int64()))
    with pytest.raises(HudiError, match="ordering field 'ts', such as the one with the key 'a'"):
        table.write("upsert", data)

    assert table.rows() == [("a", "x", 1, 10)]
    assert not table.meta.timeline.pending().instants


def test_a_delete_with_a_null_among_its_ordering_values_takes_part_with_the_others() -> None:
    both = {"table_ordering_fields": "ts,v", "datasource_write_precombine_field": "ts,v"}
    table = MergeOnRead("9", **both)
    table.bulk_insert(("a", "x", 5, 10), ("b", "x", 5, 20), ("c", "x", 5, 30))
    late, early = rows_of(("a", "x", 6, 0)), rows_of(("b", "x", 4, 0), ("c", "x", 4, 0))
    gone = pa.concat_tables([late, early]).set_column(3, "v", pa.nulls(3, pa.int64()))
    table.write("upsert", gone.append_column("_hoodie_is_deleted", pa.repeat(True, 3)))

    assert len(table.logs()) == 1
    assert table.rows() == [("b", "x", 5, 20), ("c", "x", 5, 30)]
    table.compact_now()
    assert table.rows() == [("b", "x", 5, 20), ("c", "x", 5, 30)]


# ---- during compactions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("schedule_only", [True, False])
def test_log_files_go_next_to_a_compaction_that_begins_meanwhile(version: str, schedule_only: bool) -> None:
    table = MergeOnRead(version, clean_failed_writes_policy="LAZY")
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20))
    table.upsert(("a", "x", 2, 11))
    table.engine = InterruptedEngine(lambda: table.compact_now(schedule_only=schedule_only))
    table.upsert(("b", "x", 2, 21))

    assert table.rows() == [("a", "x", 2, 11), ("b", "x", 2, 21)]
    table.compact_now()
    assert table.rows() == [("a", "x", 2, 11), ("b", "x", 2, 21)]


def test_a_rewrite_gives_way_to_a_compaction_of_its_file_group_that_was_planned_meanwhile() -> None:
    table = MergeOnRead("9", clean_failed_writes_policy="LAZY")
    table.bulk_insert(("a", "x", 1, 10))

    def meanwhile() -> None:
        other = MergeOnRead("9", table.storage, clean_failed_writes_policy="LAZY")
        other.upsert(("a", "x", 2, 11))
        other.compact_now(schedule_only=True)

    table.engine = InterruptedEngine(meanwhile)
    with pytest.raises(WriteConflict):
        table.insert(("c", "x", 1, 30))

    assert table.rows() == [("a", "x", 2, 11)]


def test_a_file_group_of_a_waiting_compaction_takes_no_inserts(version: str) -> None:
    table = MergeOnRead(version)
    table.bulk_insert(("a", "x", 1, 10))
    table.upsert(("a", "x", 2, 11))
    (log,) = table.logs()
    table.compact_now(schedule_only=True)
    (planned,) = table.meta.timeline.pending()
    table.insert(("b", "x", 1, 20))
    write = table.upsert(("a", "x", 3, 12))

    (later,) = (path for path in table.logs() if path != log)
    name = LogFileName.parse(later.rpartition("/")[2])
    assert name is not None
    assert (name.instant_time, name.version) == (planned.requested_time if version == "6" else write.instant_time, 1)
    assert table.rows() == [("a", "x", 3, 12), ("b", "x", 1, 20)]
    table.compact_now()
    assert table.rows() == [("a", "x", 3, 12), ("b", "x", 1, 20)]


@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_that_is_undone_takes_the_log_files_of_its_slices_along(version: str, index: str) -> None:
    table = MergeOnRead(version, index_type=index, bucket_index_num_buckets="1")
    table.upsert(("a", "x", 1, 1))
    table.upsert(("a", "x", 2, 2))
    for _ in range(2):
        table.roll_back_last()
    assert not [path for path in table.memory.paths() if path.startswith("x/") and "metadata" not in path]
    table.upsert(("a", "x", 1, 3))
    table.upsert(("a", "x", 2, 4), ("b", "x", 1, 5))
    assert table.rows() == [("a", "x", 2, 4), ("b", "x", 1, 5)]


UNORDERED = pa.table({"id": ["a"], "p": ["x"], "ts": [None], "v": [11]}, SCHEMA)


def test_by_commit_time_rows_without_ordering_value_go_to_log_files_and_win(version: str) -> None:
    table = MergeOnRead(version, write_record_merge_mode=COMMIT_TIME)
    table.bulk_insert(("a", "x", 1, 10))
    table.write("upsert", UNORDERED)

    assert len(table.logs()) == 1
    assert table.rows() == [("a", "x", None, 11)]


@pytest.mark.parametrize("newer", ["8", "9"])
def test_by_event_time_rows_without_ordering_value_are_refused_as_hudi_can_not_read_them(newer: str) -> None:
    table = MergeOnRead(newer)
    table.bulk_insert(("a", "x", 1, 10))
    with pytest.raises(SchemaMismatch, match="no value in the ordering field 'ts'"):
        table.write("upsert", UNORDERED)

    assert not table.logs()
    assert table.rows() == [("a", "x", 1, 10)]


@pytest.mark.parametrize("version", ["8", "9"])  # below 8 a bucket begins with a base file
def test_a_log_file_that_begins_a_bucket_counts_its_rows_as_new(version: str) -> None:
    table = MergeOnRead(version, **BUCKETS)
    table.upsert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "x", 1, 30))
    table.upsert(("a", "x", 2, 11), ("b", "x", 2, 21))
    found = []
    for instant in table.meta.timeline.commits():
        (stat,) = table.meta.commits.metadata(instant).stats()
        found.append((stat.num_writes, stat.num_update_writes, stat.num_inserts, stat.num_deletes))
    assert found == [(3, 0, 3, 0), (2, 2, 0, 0)]
