"""What the write operations do to a table, for each table version we write."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError, KeyGenError, SchemaMismatch
from pyhudi.model.instant import State
from tests.support.tables.small import SCHEMA, TestTable, rows_of
from tests.support.writers.every_fault import loaded

VERSIONS = ("6", "8", "9")


@pytest.fixture(params=VERSIONS)
def table(request: pytest.FixtureRequest) -> TestTable:
    return TestTable(options={"hoodie.write.table.version": request.param})


def test_rows_of_a_bulk_insert_are_read_back(table: TestTable) -> None:
    result = table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))

    assert table.rows() == [("a", "x", 1, 10), ("b", "y", 1, 20)]
    assert (result.inserted, result.files_created, result.partitions) == (2, 2, ("x", "y"))


def test_an_upsert_replaces_rows_of_known_keys_and_inserts_the_others(table: TestTable) -> None:
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20))
    result = table.upsert(("a", "x", 2, 11), ("c", "x", 1, 30))

    assert table.rows() == [("a", "x", 2, 11), ("b", "x", 1, 20), ("c", "x", 1, 30)]
    assert (result.updated, result.inserted, result.files_rewritten, result.files_created) == (1, 1, 1, 0)


def test_only_file_groups_that_are_hit_are_rewritten(table: TestTable) -> None:
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    result = table.upsert(("a", "x", 2, 11))

    assert result.partitions == ("x",)
    assert result.files_rewritten == 1


def test_rows_that_an_upsert_leaves_alone_keep_their_commit_time(table: TestTable) -> None:
    first = table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20))
    second = table.upsert(("a", "x", 2, 11))

    times = table.rows(("id", "_hoodie_commit_time"))
    assert times == [("a", second.instant_time), ("b", first.instant_time)]


def test_of_rows_with_one_key_in_a_batch_one_remains(table: TestTable) -> None:
    table.upsert(("a", "x", 2, 12), ("a", "x", 1, 11))

    # Event time (by inference from version 8 on, and within a batch always before) keeps the greater ordering value.
    assert table.rows() == [("a", "x", 2, 12)]


def test_with_commit_time_ordering_the_last_row_of_the_batch_wins() -> None:
    table = TestTable(options={"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"})
    table.upsert(("a", "x", 2, 12), ("a", "x", 1, 11))

    assert table.rows() == [("a", "x", 1, 11)]


@pytest.mark.parametrize("version", ["8", "9"])
def test_with_event_time_ordering_an_older_row_changes_nothing(version: str) -> None:
    table = TestTable(options={"hoodie.write.table.version": version})
    table.upsert(("a", "x", 5, 10))
    result = table.upsert(("a", "x", 4, 99))

    assert table.rows() == [("a", "x", 5, 10)]
    assert (result.updated, result.unchanged) == (0, 1)


def test_insert_adds_rows_even_if_their_key_is_there(table: TestTable) -> None:
    table.insert(("a", "x", 1, 10))
    result = table.insert(("a", "x", 2, 11), ("b", "x", 1, 20))

    assert table.rows() == [("a", "x", 1, 10), ("a", "x", 2, 11), ("b", "x", 1, 20)]
    assert result.files_rewritten == 1, "the small file takes the rows"


def test_without_small_files_inserts_go_to_new_files(table: TestTable) -> None:
    table.insert(("a", "x", 1, 10))
    result = table.insert(("b", "x", 1, 20), parquet_small_file_limit="0")

    assert (result.files_rewritten, result.files_created) == (0, 1)


def test_an_upsert_changes_every_copy_of_a_key_in_the_file_group(table: TestTable) -> None:
    table.insert(("a", "x", 1, 10))
    table.insert(("a", "x", 1, 11))
    table.upsert(("a", "x", 9, 99))

    assert {row[3] for row in table.rows()} == {99}


def test_policy_drop_leaves_out_known_keys(table: TestTable) -> None:
    table.insert(("a", "x", 1, 10))
    table.insert(("a", "x", 2, 11), ("b", "x", 1, 20), datasource_insert_dup_policy="drop")

    assert table.rows() == [("a", "x", 1, 10), ("b", "x", 1, 20)]


BUCKETS = {
    "copy-on-write": {},
    "merge-on-read": {"hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    "consistent hashing": {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    },
}


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
@pytest.mark.parametrize("kind", BUCKETS)
@pytest.mark.parametrize("policy", ["drop", "fail"])
def test_into_buckets_the_policy_on_duplicates_means_stored_keys_only(policy: str, kind: str, operation: str) -> None:
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = TestTable(options={**buckets, **BUCKETS[kind], "hoodie.datasource.insert.dup.policy": policy})
    first = [("a", "x", 1, 10), ("b", "y", 1, 20)]
    table.write(operation, rows_of(*first))
    new = ("a", "y", 1, 30)
    table.write(operation, rows_of(new))
    mixed = rows_of(("a", "x", 2, 11), ("c", "x", 1, 40), ("b", "y", 2, 21))
    if policy == "fail":
        with pytest.raises(ConfigError, match="rows have keys that the table holds"):
            table.write(operation, mixed)
        assert table.rows() == sorted([*first, new])
    else:
        table.write(operation, mixed)
        assert table.rows() == sorted([*first, new, ("c", "x", 1, 40)])


def test_a_deleted_key_can_be_inserted_again_into_its_bucket_under_policy_drop() -> None:
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = TestTable(options={**buckets, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    table.insert(("a", "x", 1, 10), ("b", "x", 1, 20))
    table.delete(("a", "x"))
    table.insert(("a", "x", 2, 11), ("b", "x", 2, 21), datasource_insert_dup_policy="drop")

    assert table.rows() == [("a", "x", 2, 11), ("b", "x", 1, 20)]


def test_bulk_insert_keeps_to_the_policy_on_duplicates_too(table: TestTable) -> None:
    table.bulk_insert(("a", "x", 1, 10))
    table.bulk_insert(("a", "x", 2, 11), ("b", "x", 1, 20), datasource_write_insert_drop_duplicates="true")

    assert table.rows() == [("a", "x", 1, 10), ("b", "x", 1, 20)]


def test_delete_takes_keys_and_ignores_unknown_ones(table: TestTable) -> None:
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20))
    result = table.delete(("a", "x"), ("zz", "x"), ("a", "nowhere"))

    assert table.rows() == [("b", "x", 1, 20)]
    assert (result.deleted, result.files_created, result.partitions) == (1, 0, ("x",))


def test_a_delete_that_hits_nothing_is_an_empty_commit_where_one_is_asked_for(table: TestTable) -> None:
    table.bulk_insert(("a", "x", 1, 10))
    result = table.delete(("zz", "x"), allow_empty_commit="true")

    assert table.meta.timeline.last_commit().requested_time == result.instant_time
    assert table.rows() == [("a", "x", 1, 10)]
    assert result.file_groups == ()


def test_a_delete_wins_whatever_ordering_value_is_stored(table: TestTable) -> None:
    table.upsert(("a", "x", 99, 10))
    table.delete(("a", "x"))

    assert table.rows() == []


def test_rows_flagged_as_deleted_delete_their_key(table: TestTable) -> None:
    def flagged(*rows: tuple[str, str, int, int, bool | None]) -> pa.Table:
        flags = pa.array([row[4] for row in rows], pa.bool_())
        return rows_of(*(row[:4] for row in rows)).append_column("_hoodie_is_deleted", flags)

    table.write("upsert", flagged(("a", "x", 1, 10, False), ("b", "x", 1, 20, None), ("c", "x", 1, 30, True)))
    assert table.rows() == [("a", "x", 1, 10), ("b", "x", 1, 20)]

    table.write("upsert", flagged(("a", "x", 2, 10, True), ("zz", "x", 2, 0, True)))
    assert table.rows() == [("b", "x", 1, 20)]


def test_a_snapshot_as_of_an_instant_shows_the_table_of_then(table: TestTable) -> None:
    first = table.upsert(("a", "x", 1, 10))
    table.upsert(("a", "x", 2, 11))

    assert table.rows(as_of=first.instant_time) == [("a", "x", 1, 10)]


def test_new_columns_are_added_and_null_in_older_rows(table: TestTable) -> None:
    table.upsert(("a", "x", 1, 10), ("b", "y", 1, 20))
    wider = rows_of(("a", "x", 2, 11)).append_column("note", pa.array(["new"]))
    table.write("upsert", wider)

    assert table.rows((*SCHEMA.names, "note")) == [("a", "x", 2, 11, "new"), ("b", "y", 1, 20, None)]


def test_a_partition_value_with_a_line_break_is_a_folder_like_any_other(table: TestTable) -> None:
    table.upsert(("a", "x\ny", 1, 10))
    assert table.upsert(("a", "x\ny", 2, 20)).updated == 1
    assert table.rows() == [("a", "x\ny", 2, 20)]


def test_meta_columns_in_the_data_are_left_out(table: TestTable) -> None:
    table.upsert(("a", "x", 1, 10))
    again = table.read()
    result = table.write("upsert", again)

    assert table.rows(("id", "_hoodie_commit_time")) == [("a", result.instant_time)]


def test_a_result_prints_counts_and_phases(table: TestTable) -> None:
    result = table.upsert(("a", "x", 1, 10))

    assert "1 inserted" in str(result)
    assert "execute" in str(result)
    assert result.instant_time in result._repr_html_()


def test_a_write_ends_without_markers(table: TestTable) -> None:
    table.upsert(("a", "x", 1, 10))
    table.upsert(("a", "x", 2, 11))

    assert not list(table.storage.walk(".hoodie/.temp"))
    assert all(instant.state is State.COMPLETED for instant in table.meta.timeline)


def test_rows_without_partition_columns_go_to_a_table_without_partitions() -> None:
    table = TestTable(options={"hoodie.datasource.write.partitionpath.field": ""})
    table.upsert(("a", "x", 1, 10))
    table.upsert(("a", "y", 2, 11))

    assert table.rows(("id", "p", "_hoodie_partition_path")) == [("a", "y", "")]


def test_automatic_keys_are_unique_and_stay() -> None:
    table = TestTable(
        options={"hoodie.datasource.write.recordkey.field": "", "hoodie.datasource.write.precombine.field": ""}
    )
    first = table.insert(("a", "x", 1, 10), ("a", "x", 1, 10))
    table.insert(("a", "x", 1, 10))

    keys = [key for (key,) in table.rows(("_hoodie_record_key",))]
    assert len(set(keys)) == 3
    assert f"{first.instant_time}_0_0" in keys


def test_virtual_keys_are_matched_by_recomputing_them() -> None:
    table = TestTable(options={"hoodie.populate.meta.fields": "false"})
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20))
    table.upsert(("a", "x", 2, 11), ("c", "x", 1, 30))
    table.delete(("b", "x"))

    assert table.rows() == [("a", "x", 2, 11), ("c", "x", 1, 30)]


def test_a_table_of_orc_files_is_written_and_read() -> None:
    table = TestTable(options={"hoodie.table.base.file.format": "ORC"})
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20))
    table.upsert(("a", "x", 2, 11), ("c", "x", 1, 30))
    table.delete(("b", "x"))

    assert table.rows() == [("a", "x", 2, 11), ("c", "x", 1, 30)]


@pytest.mark.parametrize(
    "mode",
    ["NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"],
)
def test_each_sort_mode_of_bulk_insert_writes_all_rows(mode: str) -> None:
    rows = [(f"k{n % 7}{n}", f"p{n % 3}", n, n) for n in range(40)]
    table = TestTable()
    table.bulk_insert(*rows, bulkinsert_sort_mode=mode)

    assert table.rows() == sorted(rows, key=repr)


def test_bulk_insert_sorts_by_chosen_columns() -> None:
    table = TestTable(options={"hoodie.datasource.write.partitionpath.field": ""})
    table.bulk_insert(
        ("a", "x", 3, 1), ("b", "x", 1, 2), ("c", "x", 2, 3),
        bulkinsert_user_defined_partitioner_sort_columns="ts",
    )  # fmt: skip

    assert table.read().column("ts").to_pylist() == [1, 2, 3]


def test_rows_with_automatic_keys_are_deleted_by_the_keys_they_were_read_with() -> None:
    table = TestTable(
        options={"hoodie.datasource.write.recordkey.field": "", "hoodie.datasource.write.precombine.field": ""}
    )
    table.insert(("a", "x", 1, 10), ("b", "x", 1, 20))
    with pytest.raises(ConfigError, match="_hoodie_record_key"):
        table.delete(("a", "x"))

    rows = table.read()
    table.write("delete", rows.filter(pa.compute.equal(rows.column("id"), "a")))
    assert table.rows() == [("b", "x", 1, 20)]


@pytest.mark.parametrize("operation", ["bulk_insert", "insert", "upsert"])
def test_rows_may_come_as_a_stream_or_from_pandas(operation: str) -> None:
    table = TestTable()
    rows = [(f"k{n}", f"p{n % 3}", 1, n) for n in range(20)]
    table.write(operation, rows_of(*rows[:10]).to_reader(max_chunksize=3))
    table.write(operation, rows_of(*rows[10:]).to_pandas())

    assert table.rows() == sorted(rows, key=repr)


def test_columns_of_every_arrow_layout_are_stored_as_hudi_s_types() -> None:
    from datetime import datetime, timezone

    table = TestTable(options={"hoodie.datasource.write.precombine.field": ""})
    moment = datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)
    data = pa.table(
        {
            "id": pa.array(["a"], pa.large_string()),
            "p": pa.array(["x"]).dictionary_encode(),
            "small": pa.array([7], pa.int8()),
            "unsigned": pa.array([4_000_000_000], pa.uint32()),
            "moment": pa.array([moment], pa.timestamp("ns", "UTC")),
            "raw": pa.array([b"q"], pa.large_binary()),
            "many": pa.array([["s"]], pa.large_list(pa.large_string())),
        }
    )
    for operation in ("bulk_insert", "upsert", "insert"):
        table.write(operation, data)

    found = table.read().drop_columns([n for n in table.read().column_names if n.startswith("_hoodie")])
    assert found.schema.field("small").type == pa.int32()
    assert found.schema.field("moment").type == pa.timestamp("us", "UTC")
    assert {repr(row) for row in found.to_pylist()} == {repr(row) for row in found.slice(0, 1).to_pylist()}
    assert found.to_pylist()[0]["moment"] == moment


def test_an_ordering_column_does_not_become_text_by_a_write() -> None:
    table = loaded("9")
    late = rows_of(("a", "x", 2, 1))
    as_text = late.set_column(late.column_names.index("ts"), "ts", late.column("ts").cast(pa.string()))

    with pytest.raises(SchemaMismatch, match=r"'ts'.* an ordering column may only become a wider number"):
        table.write("upsert", as_text, **{"pyhudi.schema.allow.kind.change": "true"})

    assert table.read().schema.field("ts").type == pa.int64()


@pytest.mark.parametrize(
    ("operation", "option", "rows"),
    [
        ("insert", "combine_before_insert", 1),
        ("insert", "combine_before_upsert", 2),
        ("bulk_insert", "combine_before_upsert", 2),
        ("bulk_insert", "combine_before_insert", 1),
    ],
)
def test_rows_with_one_key_are_combined_when_the_option_of_their_operation_says_so(
    table: TestTable, operation: str, option: str, rows: int
) -> None:
    table.write(operation, rows_of(("a", "x", 1, 10), ("a", "x", 2, 11)), **{option: "true"})

    assert len(table.rows()) == rows


class Keeping(LocalEngine):
    """Counts the frames that it keeps."""

    kept = 0

    def cache(self, frame: Any) -> Any:
        frame = super().cache(frame)
        self.kept += 1
        return frame

    def release(self, frame: Any) -> None:
        self.kept -= 1
        super().release(frame)


def test_a_write_that_is_refused_keeps_no_frame() -> None:
    table = TestTable(engine=Keeping(2))
    table.insert(("a", "x", 1, 10))
    nulls = rows_of(("b", "x", 1, 1)).set_column(0, "id", pa.array([None], pa.string()))
    with pytest.raises(KeyGenError):
        table.write("upsert", nulls)
    with pytest.raises(ConfigError, match="rows have keys"):
        table.insert(("a", "x", 2, 11), datasource_insert_dup_policy="fail")
    assert isinstance(table.engine, Keeping)
    assert table.engine.kept == 0
