"""Rewriting base files, against a plain model over random histories, and case by case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import ConfigError, CorruptFile, KeyGenError, SchemaMismatch
from pyhudi.filegroup.write.markers import list_markers
from pyhudi.filegroup.write.merge import merge_file
from pyhudi.filegroup.write.new_files import create_files
from pyhudi.formats.base import open_base_file
from pyhudi.formats.bloom import BloomFilter
from pyhudi.keygen import from_options
from pyhudi.model.commit import WriteStatus
from pyhudi.model.keys import CHANGE, FILE_NAME, IS_DELETE, META_COLUMNS, RECORD_KEY
from tests.support.sweeps import examples
from tests.support.tables.file_groups import FIRST, SCHEMA, SECOND, TASK, THIRD, Table, base_of
from tests.support.values.reduced_rows import Row, later_wins

EVENT = "EVENT_TIME_ORDERING"
COMMIT = "COMMIT_TIME_ORDERING"


def incoming(rows: list[dict[str, Any]], *, deletes: bool = True) -> pa.Table:
    """Rows as a write hands them over: data columns, record key, and the delete flag."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    table = table.append_column(RECORD_KEY, table.column("id"))
    if deletes:
        table = table.append_column(IS_DELETE, pa.array([bool(row.get("delete")) for row in rows], pa.bool_()))
    return table


def create(table: Table, rows: list[dict[str, Any]], instant_time: str = FIRST) -> WriteStatus:
    batches = incoming(rows, deletes=False).to_batches()
    (status,) = create_files(table.at(instant_time), TASK, "p=1", batches, clock=table.clock, file_id="group-0")
    return status


ROWS = [{"id": f"k{n}", "ts": 10 * n, "tie": "t", "city": "Oslo"} for n in range(5)]


def test_updates_inserts_and_deletes_make_the_next_version_of_the_file(table: Table) -> None:
    first = create(table, ROWS)
    changes = incoming(
        [
            {"id": "k1", "ts": 11, "tie": "t", "city": "Rome"},
            {"id": "new", "ts": 1, "tie": "t", "city": "Kyiv"},
            {"id": "k3", "ts": 31, "delete": True},
            {"id": "unknown", "ts": 1, "delete": True},
        ]
    )
    status = merge_file(table.at(SECOND), TASK, base_of(first, FIRST), changes, table.clock)

    stat = status.stat
    assert stat.path == "p=1/group-0_3-5-7_20240102000000000.parquet"
    assert (stat.file_id, stat.prev_commit, stat.prev_base_file) == (
        "group-0",
        FIRST,
        "group-0_3-5-7_20240101000000000.parquet",
    )
    assert (stat.num_writes, stat.num_update_writes, stat.num_inserts, stat.num_deletes) == (5, 1, 1, 1)
    assert stat.file_size_in_bytes == stat.total_write_bytes == len(table.storage.read(stat.path))
    assert (status.rows_read, status.skipped) == (4, 0)
    rows = {row["id"]: row for row in table.rows(stat.path)}
    assert sorted(rows) == ["k0", "k1", "k2", "k4", "new"]
    assert rows["k1"]["city"] == "Rome"
    assert {row[FILE_NAME] for row in rows.values()} == {"group-0_3-5-7_20240102000000000.parquet"}
    assert [rows["k0"][name] for name in META_COLUMNS[:4]] == [FIRST, f"{FIRST}_3_0", "k0", "p=1"]
    assert [rows["k1"][name] for name in META_COLUMNS[:4]] == [SECOND, f"{SECOND}_3_0", "k1", "p=1"]
    assert rows["new"]["_hoodie_commit_seqno"] == f"{SECOND}_3_1"


def test_a_marker_says_merge_before_the_file_is_there(table: Table) -> None:
    first = create(table, ROWS)
    merge_file(table.at(SECOND), TASK, base_of(first, FIRST), incoming([ROWS[0]]), table.clock)

    (marker,) = list_markers(table.storage, SECOND)
    assert (marker.data_path, marker.io_type) == ("p=1/group-0_3-5-7_20240102000000000.parquet", "MERGE")


def test_below_version_8_the_stat_does_not_name_the_old_file(table: Table) -> None:
    first = create(table, ROWS)
    status = merge_file(
        table.at(SECOND, table_version=6), TASK, base_of(first, FIRST), incoming([ROWS[0]]), table.clock
    )

    assert status.stat.prev_base_file is None


def test_a_row_that_loses_by_event_time_keeps_its_commit_time_and_is_counted_as_skipped() -> None:
    table = Table(merge_mode=EVENT, ordering_fields=("ts",))
    first = create(table, ROWS)
    late = incoming([{"id": "k2", "ts": 19, "city": "Rome"}, {"id": "k3", "ts": 30, "city": "Bonn"}])
    status = merge_file(table.at(SECOND), TASK, base_of(first, FIRST), late, table.clock)

    rows = {row["id"]: row for row in table.rows(str(status.stat.path))}
    assert (rows["k2"]["city"], rows["k2"]["_hoodie_commit_time"]) == ("Oslo", FIRST)
    assert (rows["k3"]["city"], rows["k3"]["_hoodie_commit_time"]) == ("Bonn", SECOND)  # a tie goes to the later
    assert (status.skipped, status.stat.num_update_writes, status.stat.num_writes) == (1, 1, 5)


def test_rows_keep_what_their_change_does_not_set_of_the_stored_row() -> None:
    table = Table(merge_mode=EVENT, ordering_fields=("ts",))
    first = create(table, [{**row, "city": f"city {row['id']}"} for row in ROWS])
    given = [
        {"id": "k0", "ts": 1, "tie": "new"},
        {"id": "k2", "ts": 19, "tie": "late"},
        {"id": "k3", "ts": 30, "city": "Bonn"},
        {"id": "k4", "ts": 41, "tie": "all", "city": "Kyiv"},
    ]
    changes = incoming(given).append_column(CHANGE, pa.array([0, 0, 1, 2], pa.int32()))
    kept = {0: frozenset({"city"}), 1: frozenset({"tie", "no column of the file"})}
    status = merge_file(table.at(SECOND), TASK, base_of(first, FIRST), changes, table.clock, unchanged=kept)

    rows = {row["id"]: (row["ts"], row["tie"], row["city"]) for row in table.rows(str(status.stat.path))}
    assert rows["k0"] == (1, "new", "city k0")
    assert rows["k2"] == (20, "t", "city k2"), "the stored row has the greater ordering value"
    assert rows["k3"] == (30, "t", "Bonn")
    assert rows["k4"] == (41, "all", "Kyiv")

    stray = incoming([{"id": "nobody", "ts": 1}]).append_column(CHANGE, pa.array([0], pa.int32()))
    with pytest.raises(CorruptFile, match="not in the file"):
        merge_file(table.at(THIRD), TASK, base_of(status, SECOND), stray, table.clock, unchanged=kept)


def test_deletes_by_key_always_win_and_need_no_data_columns() -> None:
    table = Table(merge_mode=EVENT, ordering_fields=("ts", "tie"))
    first = create(table, ROWS)
    keys = pa.table({RECORD_KEY: ["k4", "k0"], IS_DELETE: [True, True]})
    status = merge_file(table.at(SECOND), TASK, base_of(first, FIRST), keys, table.clock)

    assert [row["id"] for row in table.rows(str(status.stat.path))] == ["k1", "k2", "k3"]
    assert status.stat.num_deletes == 2


def test_a_file_that_loses_all_rows_is_still_written_with_an_empty_filter(table: Table) -> None:
    first = create(table, ROWS)
    keys = pa.table({RECORD_KEY: [row["id"] for row in ROWS], IS_DELETE: [True] * len(ROWS)})
    status = merge_file(table.at(SECOND), TASK, base_of(first, FIRST), keys, table.clock)

    with open_base_file(table.storage, str(status.stat.path)) as reader:
        assert (reader.num_rows, reader.footer.min_key, reader.footer.max_key) == (0, None, None)
        bloom = BloomFilter.from_base64(reader.footer.bloom_base64 or "", reader.footer.bloom_type)
        assert len(list(reader.batches())) == 0
    assert bloom.keys_added is not None
    assert (status.stat.num_writes, status.stat.num_deletes) == (0, 5)
    again = merge_file(table.at(THIRD), TASK, base_of(status, SECOND), incoming(ROWS), table.clock)
    assert again.stat.num_inserts == 5


def test_all_copies_of_a_key_are_updated_and_counted(table: Table) -> None:
    first = create(table, [*ROWS, ROWS[1]])
    status = merge_file(
        table.at(SECOND), TASK, base_of(first, FIRST), incoming([{**ROWS[1], "city": "Rome"}]), table.clock
    )

    assert [row["city"] for row in table.rows(str(status.stat.path)) if row["id"] == "k1"] == ["Rome", "Rome"]
    assert status.stat.num_update_writes == 2


def test_inserts_may_be_appended_without_matching_keys(table: Table) -> None:
    first = create(table, ROWS)
    more = incoming([ROWS[0], ROWS[0]], deletes=False)
    status = merge_file(table.at(SECOND), TASK, base_of(first, FIRST), more, table.clock, match_keys=False)

    assert [row["id"] for row in table.rows(str(status.stat.path))].count("k0") == 3
    assert (status.stat.num_inserts, status.stat.num_update_writes, status.stat.num_writes) == (2, 0, 7)


def test_incoming_keys_that_repeat_are_refused_before_anything_is_written(table: Table) -> None:
    first = create(table, ROWS)
    with pytest.raises(ConfigError, match="combine them first"):
        merge_file(table.at(SECOND), TASK, base_of(first, FIRST), incoming([ROWS[0], ROWS[0]]), table.clock)
    assert list_markers(table.storage, SECOND) == ()


def test_a_null_key_is_refused(table: Table) -> None:
    first = create(table, ROWS)
    for deletes in (True, False):
        rows = incoming([{**ROWS[0], "id": None, "delete": deletes}])
        with pytest.raises(KeyGenError):
            merge_file(table.at(SECOND), TASK, base_of(first, FIRST), rows, table.clock)


def test_a_missing_data_column_is_refused(table: Table) -> None:
    first = create(table, ROWS)
    with pytest.raises(SchemaMismatch, match="city"):
        merge_file(table.at(SECOND), TASK, base_of(first, FIRST), incoming(ROWS).drop_columns(["city"]), table.clock)


def test_stored_rows_are_brought_into_the_tables_new_schema(table: Table) -> None:
    first = create(table, ROWS)
    wider = pa.schema([*SCHEMA, pa.field("tip", pa.float64())]).set(1, pa.field("ts", pa.float64()))
    change = incoming([ROWS[0]]).append_column("tip", pa.array([1.5]))
    status = merge_file(table.at(SECOND, schema=wider), TASK, base_of(first, FIRST), change, table.clock)

    rows = {row["id"]: row for row in table.rows(str(status.stat.path))}
    assert (rows["k0"]["tip"], rows["k1"]["tip"], rows["k1"]["ts"]) == (1.5, None, 10.0)
    assert table.file(str(status.stat.path)).schema_arrow.field("ts").type == pa.float64()


def test_a_dropped_column_leaves_the_file(table: Table) -> None:
    first = create(table, ROWS)
    narrower = pa.schema([field for field in SCHEMA if field.name != "tie"])
    status = merge_file(
        table.at(SECOND, schema=narrower), TASK, base_of(first, FIRST), incoming([ROWS[0]]), table.clock
    )

    assert table.file(str(status.stat.path)).schema_arrow.names == [*META_COLUMNS, "id", "ts", "city"]


def test_files_without_meta_columns_are_matched_through_the_key_generator() -> None:
    generator = from_options({"hoodie.datasource.write.recordkey.field": "id,tie"})
    table = Table(populate_meta_fields=False, key_generator=generator)
    first = create(table, ROWS)
    change = incoming([{**ROWS[1], "city": "Rome"}, {"id": "k2", "tie": "t", "delete": True}])
    keys = pa.array(["id:k1,tie:t", "id:k2,tie:t"])
    change = change.set_column(change.column_names.index(RECORD_KEY), RECORD_KEY, keys)
    status = merge_file(table.at(SECOND), TASK, base_of(first, FIRST), change, table.clock)

    rows = {row["id"]: row for row in table.rows(str(status.stat.path))}
    assert sorted(rows) == ["k0", "k1", "k3", "k4"]
    assert rows["k1"]["city"] == "Rome"
    # A rewrite names the file in all carried rows; the other meta columns stay empty.
    assert [rows["k0"][name] for name in META_COLUMNS] == [None, None, None, None, status.stat.path.rpartition("/")[2]]  # type: ignore[union-attr]
    with open_base_file(table.storage, str(status.stat.path)) as reader:
        assert reader.footer.bloom_base64 is None
        assert reader.footer.min_key is None


def test_without_meta_columns_and_key_generator_a_rewrite_is_refused() -> None:
    table = Table(populate_meta_fields=False)
    first = create(table, ROWS)
    with pytest.raises(ConfigError, match="key generator"):
        merge_file(table.at(SECOND), TASK, base_of(first, FIRST), incoming([ROWS[0]]), table.clock)


def test_the_filter_and_the_range_of_a_rewritten_file_cover_its_keys(table: Table) -> None:
    status = create(table, ROWS)
    instants = [FIRST, SECOND, THIRD]
    steps = [
        incoming([{"id": "a", "ts": 1}, {"id": "k0", "delete": True}]),  # the least key leaves, a lesser comes
        incoming([{"id": "a", "delete": True}, {"id": "k4", "delete": True}]),
    ]
    for previous, instant, step in zip(instants, instants[1:], steps, strict=False):
        status = merge_file(table.at(instant), TASK, base_of(status, previous), step, table.clock)
        keys = [row["id"] for row in table.rows(str(status.stat.path))]
        with open_base_file(table.storage, str(status.stat.path)) as reader:
            footer = reader.footer
        assert (footer.min_key, footer.max_key) == (min(keys), max(keys))
        assert BloomFilter.from_base64(footer.bloom_base64 or "", footer.bloom_type).might_contain(pa.array(keys)).all()


def test_a_damaged_filter_is_healed_by_the_rewrite(table: Table) -> None:
    first = create(table, ROWS)
    path = str(first.stat.path)
    text = table.file(path).metadata.metadata[b"org.apache.hudi.bloomfilter"]
    table.storage.write(path, table.storage.read(path).replace(text, b"!" * len(text)))
    status = merge_file(table.at(SECOND), TASK, base_of(first, FIRST), incoming([ROWS[0]]), table.clock)

    with open_base_file(table.storage, str(status.stat.path)) as reader:
        bloom = BloomFilter.from_base64(reader.footer.bloom_base64 or "", reader.footer.bloom_type)
    assert bloom.might_contain(pa.array([row["id"] for row in ROWS])).all()


def test_keys_deleted_again_and_again_do_not_pile_up_in_the_filter() -> None:
    table = Table(file={"bloom_num_entries": 2000, "bloom_max_entries": 100_000})
    status = create(table, ROWS)
    for turn in range(8):
        instant, last = f"2024020{turn + 1}000000000", f"2024020{turn}000000000"
        rows = [{"id": f"x{turn}-{n}", "ts": 1} for n in range(700)]
        if turn:
            rows += [{"id": f"x{turn - 1}-{n}", "delete": True} for n in range(700)]
        base = base_of(status, last if turn else FIRST)
        status = merge_file(table.at(instant), TASK, base, incoming(rows), table.clock)
    with open_base_file(table.storage, str(status.stat.path)) as reader:
        bloom = BloomFilter.from_base64(reader.footer.bloom_base64 or "", reader.footer.bloom_type)
        assert reader.num_rows == 705
    assert bloom.keys_added is not None
    assert bloom.keys_added < 3000


_version = st.fixed_dictionaries(
    {
        "id": st.sampled_from([f"k{n}" for n in range(8)]),
        "ts": st.none() | st.integers(1, 5),
        "tie": st.none() | st.sampled_from(["x", "y", "é"]),
        "city": st.sampled_from(["Oslo", "Rome", "Kyiv"]),
        "delete": st.booleans(),
    }
)


@pytest.mark.thorough
@settings(max_examples=examples(120), deadline=None)
@given(
    first=st.lists(_version, max_size=12),
    batches=st.lists(st.lists(_version, max_size=8, unique_by=lambda row: row["id"]), min_size=1, max_size=4),
    mode=st.sampled_from([EVENT, COMMIT]),
    fields=st.sampled_from([("ts",), ("tie", "ts"), ("ts", "tie")]),
    group_rows=st.integers(1, 6),
)
def test_any_history_of_rewrites_gives_what_the_rules_give_row_by_row(
    first: list[dict[str, Any]],
    batches: list[list[dict[str, Any]]],
    mode: str,
    fields: tuple[str, ...],
    group_rows: int,
) -> None:
    table = Table(merge_mode=mode, ordering_fields=fields, file={"bloom_num_entries": 5, "row_group_rows": group_rows})
    start = list({row["id"]: row for row in first}.values()) or [ROWS[0]]
    status = create(table, start)
    model = {row["id"]: (row, FIRST) for row in start}
    last = FIRST
    for turn, batch in enumerate(batches):
        instant = f"2024010{turn + 2}000000000"
        status = merge_file(table.at(instant), TASK, base_of(status, last), incoming(batch), table.clock)
        counts = {"updated": 0, "inserted": 0, "deleted": 0, "skipped": 0}
        for row in batch:
            new = Row(tuple(row[name] for name in fields), row["delete"])
            if row["id"] not in model:
                if not row["delete"]:
                    model[row["id"]] = (row, instant)
                    counts["inserted"] += 1
                continue
            stored = Row(tuple(model[row["id"]][0][name] for name in fields), False)
            if not later_wins(stored, new, mode):
                counts["skipped"] += 1
            elif row["delete"]:
                del model[row["id"]]
                counts["deleted"] += 1
            else:
                model[row["id"]] = (row, instant)
                counts["updated"] += 1
        stat = status.stat
        assert counts == {
            "updated": stat.num_update_writes, "inserted": stat.num_inserts, "deleted": stat.num_deletes,
            "skipped": status.skipped,
        }  # fmt: skip
        found = {row["id"]: row for row in table.rows(str(stat.path))}
        assert len(found) == stat.num_writes == len(model)
        for key, (row, commit_time) in model.items():
            wanted = {name: row[name] for name in SCHEMA.names}
            assert {name: found[key][name] for name in SCHEMA.names} == wanted
            assert found[key]["_hoodie_commit_time"] == commit_time
            assert found[key]["_hoodie_commit_seqno"].startswith(commit_time + "_3_")
            assert found[key][FILE_NAME] == str(stat.path).rpartition("/")[2]
        seqnos = [row["_hoodie_commit_seqno"] for row in found.values()]
        assert len(set(seqnos)) == len(seqnos)
        with open_base_file(table.storage, str(stat.path)) as reader:
            footer = reader.footer
        assert (footer.min_key, footer.max_key) == ((min(model), max(model)) if model else (None, None))
        bloom = BloomFilter.from_base64(footer.bloom_base64 or "", footer.bloom_type)
        assert bloom.might_contain(pa.array(list(model), pa.string())).all()
        last = instant


def test_seqnos_of_a_task_can_go_on_over_its_files(table: Table) -> None:
    first = create(table, ROWS)
    spec = replace(table.spec, instant_time=SECOND)
    status = merge_file(spec, TASK, base_of(first, FIRST), incoming([ROWS[0]]), table.clock, first_seq=17)

    assert {row["_hoodie_commit_seqno"] for row in table.rows(str(status.stat.path)) if row["id"] == "k0"} == {
        f"{SECOND}_3_17"
    }
