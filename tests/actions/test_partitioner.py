"""Which task takes which rows."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.actions.partitioner import (
    MAX_RECORD_BYTES,
    MIN_RECORD_BYTES,
    LogPlan,
    RowCount,
    Sizing,
    pick_small_files,
    plan_slots,
    profile_of,
    record_size_bytes,
)
from pyhudi.model.commit import CommitMetadata, WriteStat
from pyhudi.model.file_group import BaseFile, FileGroupId, FileSlice
from tests.support.tables.small import TestTable

MB = 1 << 20
SIZING = Sizing(small_file_limit_bytes=100 * MB, max_file_size_bytes=120 * MB, record_size_bytes=1024)


def base_file(file_id: str, size_bytes: int, partition: str = "x") -> BaseFile:
    return BaseFile(f"{partition}/{file_id}_0-0-0_1.parquet", partition, file_id, "1", size_bytes)


def test_every_hit_file_group_gets_one_task() -> None:
    files = {"x": (base_file("f1", 200 * MB), base_file("f2", 200 * MB))}
    plan = plan_slots([RowCount("x", "f1", 5), RowCount("x", "f2", 1)], files, SIZING)

    assert [(task.kind, task.base_file.file_id) for task in plan.tasks if task.base_file] == [
        ("merge", "f1"),
        ("merge", "f2"),
    ]


def test_inserts_fill_small_files_before_new_ones_are_made() -> None:
    files = {"x": (base_file("large", 110 * MB), base_file("small", 60 * MB))}
    room = 60 * MB // 1024
    plan = plan_slots([RowCount("x", None, room + 10)], files, SIZING)

    assert [task.kind for task in plan.tasks] == ["merge", "create"]
    assert plan.tasks[0].base_file == files["x"][1]
    shares = [share for share, _ in plan.inserts["x"]]
    assert shares == [pytest.approx(room / (room + 10)), 1.0]


def test_no_small_files_are_filled_with_a_limit_of_zero() -> None:
    sizing = Sizing(0, 120 * MB, 1024)
    plan = plan_slots([RowCount("x", None, 1)], {"x": (base_file("small", 1),)}, sizing)

    assert [task.kind for task in plan.tasks] == ["create"]


def test_many_inserts_are_split_over_new_files() -> None:
    rows = SIZING.rows_per_new_file
    plan = plan_slots([RowCount("x", None, 2 * rows + 1)], {}, SIZING)

    assert len(plan.tasks) == 3


def test_deletes_of_unknown_keys_have_a_task_that_drops_them() -> None:
    plan = plan_slots([RowCount("x", None, 3), RowCount("y", None, 1)], {}, SIZING, drop_inserts=True)

    assert [task.kind for task in plan.tasks] == ["drop"]


def test_a_new_bucket_is_a_file_group_with_an_id_of_its_own() -> None:
    plan = plan_slots([RowCount("x", "00000007", 3)], {}, SIZING, new_file_id=lambda location: f"{location}-id-0")

    (task,) = plan.tasks
    assert (task.kind, task.file_id) == ("create", "00000007-id-0")
    assert plan.slots_of(pa.array(["k"]), pa.array(["x"]), pa.array(["00000007"])).to_pylist() == [0]


@given(
    st.lists(
        st.tuples(st.text(max_size=4), st.sampled_from(["x", "y"]), st.sampled_from(["f1", "f2", None])), max_size=40
    )
)
def test_every_row_finds_the_task_of_its_file_group_or_one_of_its_partition(
    rows: list[tuple[str, str, str | None]],
) -> None:
    counts = [RowCount(p, f, 1000) for p, f in sorted({(p, f) for _, p, f in rows}, key=repr)]
    files = {p: tuple(base_file(f, 200 * MB, p) for f in ("f1", "f2")) for p in ("x", "y")}
    plan = plan_slots(counts, files, Sizing(0, 1 << 20, 10_000))
    keys, partitions, locations = ([row[i] for row in rows] for i in range(3))
    slots = plan.slots_of(
        pa.array(keys, pa.string()), pa.array(partitions, pa.string()), pa.array(locations, pa.string())
    ).to_pylist()

    of_key: dict[tuple[str, str], int] = {}
    for (key, partition, file_id), slot in zip(rows, slots, strict=True):
        task = plan.tasks[slot]
        assert task.partition_path == partition
        if file_id is None:
            assert task.kind == "create"
            assert of_key.setdefault((key, partition), slot) == slot, "rows of one key meet"
        else:
            assert task.base_file is not None
            assert task.base_file.file_id == file_id


def test_the_profile_counts_inserts_and_updates_as_hudi_does() -> None:
    counts = [RowCount("x", None, 2), RowCount("x", "f1", 5), RowCount("y", None, 1)]
    plan = plan_slots(counts, {"x": (base_file("f1", 200 * MB),)}, SIZING)
    profile = profile_of(counts, plan, "UPSERT")

    assert profile.operation_type == "UPSERT"
    stats = {
        p: [(s.file_id, s.num_inserts, s.num_update_writes, s.prev_commit) for s in v]
        for p, v in profile.partition_to_write_stats.items()
    }
    assert stats == {"x": [("", 2, 0, "null"), ("f1", 0, 5, "1")], "y": [("", 1, 0, "null")]}


def test_small_files_come_smallest_first() -> None:
    files = [base_file("b", 20), base_file("a", 20), base_file("c", 10), base_file("d", 100)]

    assert [file.file_id for file in pick_small_files(files, 100)] == ["c", "a", "b"]


def test_the_size_of_a_row_comes_from_the_newest_large_commit() -> None:
    def commit(size_bytes: int, rows: int) -> CommitMetadata:
        return CommitMetadata({"x": (WriteStat("f", "x/f", "x", num_writes=rows, total_write_bytes=size_bytes),)})

    assert record_size_bytes([commit(10, 1), commit(1000, 3), commit(5000, 1)], 100, 7) == 334
    assert record_size_bytes([commit(10, 1)], 100, 7) == 7


@pytest.mark.parametrize(
    ("size_bytes", "rows", "believed"),
    [
        (200 * MB, 1, MAX_RECORD_BYTES),
        (200 * MB, 10**12, MIN_RECORD_BYTES),
        (200 * MB, -1, 1024),
        (10**30, 10**28, 100),
        (200 * MB, 200 * 1024, 1024),
    ],
)
def test_the_size_of_a_row_that_a_commit_says_is_believed_within_bounds(
    size_bytes: int, rows: int, believed: int
) -> None:
    stat = WriteStat("f", "x/f", "x", num_writes=rows, total_write_bytes=size_bytes)
    assert record_size_bytes([CommitMetadata({"x": (stat,)})], 100 * MB, 1024) == believed


def test_a_forged_write_stat_does_not_make_a_file_for_each_row() -> None:
    table = TestTable(options={"hoodie.write.table.version": "6"})
    first = table.insert(("a", "x", 1, 1)).instant_time
    body = json.loads(table.memory.read(f".hoodie/{first}.commit"))
    body["partitionToWriteStats"]["x"][0].update(numWrites=1, totalWriteBytes=200 * MB)
    table.memory.write(f".hoodie/{first}.commit", json.dumps(body).encode())

    table.insert(*((f"k{n}", "x", 1, 1) for n in range(300)), parquet_small_file_limit="104857600")

    data_files = [info.path for info in table.memory.walk("x") if info.name.endswith(".parquet")]
    assert len(data_files) <= 5
    assert len(table.rows()) == 301


def test_the_tasks_that_take_longest_come_first_and_rows_find_them() -> None:
    files = {
        "x": (base_file("small", 60 * MB), base_file("large", 200 * MB)),
        "y": (base_file("middle", 150 * MB, "y"),),
    }
    counts = [RowCount("x", "small", 1), RowCount("x", "large", 1), RowCount("y", "middle", 1), RowCount("z", None, 5)]
    plan = plan_slots(counts, files, SIZING)

    assert [task.base_file.file_id if task.base_file else task.kind for task in plan.tasks] == [
        "large",
        "middle",
        "small",
        "create",
    ]
    keys, places = pa.array(["a", "b", "c", "d"]), pa.array(["small", "large", "middle", None])
    assert plan.slots_of(keys, pa.array(["x", "x", "y", "z"]), places).to_pylist() == [2, 0, 1, 3]


def test_a_rewrite_that_inserts_ask_for_comes_before_log_files() -> None:
    """An insert that fills a small file of a merge-on-read table rewrites it; updates of others are appended."""
    slices = {
        path: (FileSlice(FileGroupId(path, f"f{path}"), "1", base_file(f"f{path}", 60 * MB, path)),) for path in "abc"
    }
    counts = [*(RowCount(path, f"f{path}", 10) for path in "abc"), RowCount("c", None, 1)]
    files = {path: tuple(found.base_file for found in own if found.base_file) for path, own in slices.items()}
    plan = plan_slots(counts, files, SIZING, logs=LogPlan(slices))

    assert [(task.kind, task.partition_path) for task in plan.tasks] == [
        ("merge", "c"),
        ("append", "a"),
        ("append", "b"),
    ]
    assert plan.inserts["c"] == ((1.0, 0),)
