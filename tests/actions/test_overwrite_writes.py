"""insert_overwrite and insert_overwrite_table: rows take the place of what was there, in one commit."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import ConfigError, TableError, WriteConflict
from pyhudi.formats.timeline.instant_files import decode_commit, decode_requested_replace
from pyhudi.model.instant import ActionKind, State
from pyhudi.model.options import WriteOptions
from pyhudi.services.cluster.calls import cluster
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.calls import serve
from tests.support.arguments import arguments
from tests.support.tables.small import DEFAULTS, TestTable, rollback_write, rows_of
from tests.support.writers.interrupted import InterruptedEngine

START = [("a", "x", 1, 1), ("b", "x", 1, 2), ("c", "y", 1, 3)]
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
VERSIONS = ("6", "8", "9")


def loaded(version: str = "9", kind: str = "COPY_ON_WRITE", **options: str) -> TestTable:
    given = {"hoodie.write.table.version": version, "hoodie.datasource.write.table.type": kind, **options}
    table = TestTable(MemoryStorage(), given)
    table.bulk_insert(*START)
    table.upsert(("a", "x", 2, 9))
    return table


def last(table: TestTable) -> str:
    newest = table.meta.timeline.last_commit()
    assert newest is not None
    return newest.requested_time


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_that_get_rows_hold_just_these_and_earlier_instants_the_old_ones(version: str, kind: str) -> None:
    table = loaded(version, kind)
    before, old = last(table), table.rows()

    result = table.write("insert_overwrite", rows_of(("n", "x", 1, 5), ("m", "z", 1, 6)))

    assert table.rows() == [("c", "y", 1, 3), ("m", "z", 1, 6), ("n", "x", 1, 5)]
    assert table.rows(as_of=before) == old
    assert (result.inserted, result.updated, len(result.file_groups_replaced)) == (2, 0, 1)
    assert "1 file groups replaced" in str(result)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", VERSIONS)
def test_overwriting_the_table_leaves_no_old_row_in_any_partition(version: str, kind: str) -> None:
    table = loaded(version, kind)

    table.write("insert_overwrite_table", rows_of(("n", "z", 1, 5)))
    table.upsert(("n", "z", 2, 6), ("b", "x", 1, 7))

    assert table.rows() == [("b", "x", 1, 7), ("n", "z", 2, 6)]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_timeline_says_it_as_hudi_does(version: str) -> None:
    """Bodies as in tables of real Hudi: the requested file all null, the profile without updates."""
    table = loaded(version)
    groups = {entry.path.rpartition("/")[2].partition("_")[0] for entry in table.storage.walk("x")} - {".hoodie"}
    table.write("insert_overwrite", rows_of(("n", "x", 1, 5), ("m", "z", 1, 6)))

    instant = table.meta.timeline.last_commit()
    assert instant is not None
    assert instant.action is ActionKind.REPLACECOMMIT
    reader = table.meta.reader
    requested = decode_requested_replace(reader.read_body(instant, State.REQUESTED))
    assert set(requested.values()) == {None}
    profile = decode_commit(reader.read_body(instant, State.INFLIGHT))
    assert profile.operation_type == "INSERT_OVERWRITE"
    assert {
        p: [(s.file_id, s.num_inserts) for s in stats] for p, stats in profile.partition_to_write_stats.items()
    } == {
        "x": [("", 1)],
        "z": [("", 1)],
    }
    body = table.meta.commits.metadata(instant)
    assert body.operation_type == "INSERT_OVERWRITE"
    assert {p: set(ids) for p, ids in (body.partition_to_replace_file_ids or {}).items()} == {"x": groups, "z": set()}
    assert [stat.prev_commit for stat in body.stats()] == ["null", "null"]


def test_named_partitions_are_replaced_even_without_rows() -> None:
    table = loaded()

    table.write("insert_overwrite", rows_of(("n", "x", 1, 5)), static_overwrite_partition_paths="x,y")

    assert table.rows() == [("n", "x", 1, 5)]
    with pytest.raises(ConfigError, match="'z'"):
        table.write("insert_overwrite", rows_of(("n", "z", 1, 5)), static_overwrite_partition_paths="x,y")
    assert table.rows() == [("n", "x", 1, 5)]


def test_rows_are_sorted_when_the_options_say_how() -> None:
    table = loaded()
    rows = rows_of(*[(f"k{i % 7}{i}", "x", 1, 100 - i) for i in range(50)])

    table.write("insert_overwrite_table", rows, bulkinsert_user_defined_partitioner_sort_columns="v")

    values = table.read().column("v").to_pylist()
    assert values == sorted(values)


def test_duplicate_keys_stay_unless_they_are_combined() -> None:
    twice = rows_of(("n", "x", 1, 5), ("n", "x", 2, 6))
    table = loaded()
    table.write("insert_overwrite", twice)
    assert len(table.rows()) == 3
    table.write("insert_overwrite", twice, combine_before_insert="true")
    assert table.rows() == [("c", "y", 1, 3), ("n", "x", 2, 6)]


def test_no_rows_overwrite_nothing_but_the_whole_table() -> None:
    table = loaded()
    table.write("insert_overwrite", rows_of())
    assert len(table.rows()) == 3
    table.write("insert_overwrite_table", rows_of())
    assert table.rows() == []


def test_a_first_write_may_be_an_overwrite() -> None:
    table = TestTable(MemoryStorage())
    table.write("insert_overwrite_table", rows_of(*START))
    assert table.rows() == START


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_buckets_go_to_new_file_groups_of_their_buckets(kind: str) -> None:
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = loaded("9", kind, **buckets)
    table.write("insert_overwrite", rows_of(*[(f"k{i}", "x", 1, i) for i in range(6)]))
    table.upsert(("k3", "x", 2, 33), ("k9", "x", 1, 9))
    expected = [(f"k{i}", "x", 1, i) if i != 3 else ("k3", "x", 2, 33) for i in range(6)]
    assert table.rows() == sorted([*expected, ("k9", "x", 1, 9), ("c", "y", 1, 3)])


@pytest.mark.thorough
def test_an_overwrite_can_be_rolled_back() -> None:

    for version in VERSIONS:
        table = loaded(version)
        old = table.rows()
        table.write("insert_overwrite_table", rows_of(("n", "z", 1, 5)))
        rollback_write(table.storage, last(table), WriteOptions.parse(DEFAULTS), table.engine)
        assert table.rows() == old


# ---- with other writers ----------------------------------------------------------------------------------------------


def overwritten_meanwhile(table: TestTable, operation: str, theirs: tuple[Any, ...], ours: tuple[Any, ...]) -> None:
    """An overwrite of ours, while a write of theirs is committed."""
    other = TestTable(table.storage, failed_writes_policy="LAZY")
    engine = InterruptedEngine(lambda: other.upsert(theirs))
    slow = TestTable(table.storage, engine=engine, failed_writes_policy="LAZY")
    slow.write(operation, rows_of(ours))


def test_an_update_of_a_row_that_is_about_to_go_is_a_conflict() -> None:
    table = loaded()
    with pytest.raises(WriteConflict, match="changed file groups that it changes too"):
        overwritten_meanwhile(table, "insert_overwrite", ("b", "x", 5, 5), ("n", "x", 1, 1))
    assert ("b", "x", 5, 5) in table.rows()


def test_a_write_to_another_partition_is_none() -> None:
    table = loaded()
    overwritten_meanwhile(table, "insert_overwrite", ("c", "y", 5, 5), ("n", "x", 1, 1))
    assert table.rows() == [("c", "y", 5, 5), ("n", "x", 1, 1)]


def test_an_update_that_began_before_an_overwrite_gives_way() -> None:
    table = loaded()
    other = TestTable(table.storage, failed_writes_policy="LAZY")
    engine = InterruptedEngine(lambda: other.write("insert_overwrite", rows_of(("n", "x", 1, 1))))
    slow = TestTable(table.storage, engine=engine, failed_writes_policy="LAZY")
    with pytest.raises(WriteConflict):
        slow.upsert(("a", "x", 9, 9))
    assert table.rows() == [("c", "y", 1, 3), ("n", "x", 1, 1)]


# ---- by the front doors ----------------------------------------------------------------------------------------------


def test_the_table_object_overwrites(tmp_path: Any) -> None:
    write_hudi(tmp_path / "t", rows_of(*START), record_key="id", partition_by="p", ordering="ts")
    table = HudiTable.open(tmp_path / "t")

    table.insert_overwrite(rows_of(("n", "x", 1, 5)))
    assert table.to_arrow(["id"]).column(0).to_pylist() == ["c", "n"] or sorted(ids(table)) == ["c", "n"]
    table.insert_overwrite(rows_of(("m", "x", 1, 5)), partitions=["x", "y"])
    assert ids(table) == ["m"]
    table.overwrite([{"id": "q", "p": "z", "ts": 1, "v": 1}])
    assert ids(table) == ["q"]


def ids(table: HudiTable) -> list[str]:
    return sorted(table.to_arrow(["id"]).column(0).to_pylist())


@pytest.mark.parametrize(
    ("options", "expected", "keeps_history"),
    [
        ({"operation": "insert_overwrite_table"}, ["n"], True),
        ({"hoodie.datasource.overwrite.mode": "static"}, ["n"], True),
        ({"hoodie.datasource.overwrite.mode": "DYNAMIC"}, ["c", "n"], True),
        # A named operation wins, and mode overwrite takes out all rows.
        ({"operation": "insert_overwrite", "hoodie.datasource.overwrite.mode": "DYNAMIC"}, ["n"], True),
        ({"operation": "upsert"}, ["n"], True),
        ({"operation": "bulk_insert"}, ["n"], True),
        ({}, ["n"], True),
        ({"mode": "replace"}, ["n"], False),
    ],
)
def test_what_mode_overwrite_does(
    options: dict[str, str], expected: list[str], keeps_history: bool, tmp_path: Any
) -> None:
    keys = {"record_key": "id", "partition_by": "p", "ordering": "ts"}
    write_hudi(tmp_path / "t", rows_of(*START), **keys)

    write_hudi(tmp_path / "t", rows_of(("n", "x", 1, 5)), **arguments({"mode": "overwrite"}, keys, options))

    table = HudiTable.open(tmp_path / "t")
    assert ids(table) == expected
    assert len(table.state().timeline) == (2 if keeps_history else 1)


@pytest.mark.parametrize("operation", ["delete", "delete_partition"])
def test_a_delete_with_mode_overwrite_is_refused(operation: str, tmp_path: Any) -> None:
    keys = {"record_key": "id", "partition_by": "p"}
    write_hudi(tmp_path / "t", rows_of(*START), **keys)
    with pytest.raises(ConfigError, match="append"):
        write_hudi(tmp_path / "t", rows_of(("a", "x", 1, 1)), operation, mode="overwrite", **keys)
    assert ids(HudiTable.open(tmp_path / "t")) == ["a", "b", "c"]


def test_a_new_column_may_come_with_an_overwrite() -> None:
    table = loaded()
    table.write("insert_overwrite", rows_of(("n", "x", 1, 5)).append_column("note", pa.array(["new"])))
    assert sorted(table.read().column("note").to_pylist(), key=repr) == ["new", None]


# ---- during clusterings ----------------------------------------------------------------------------------------------


def clustered(table: TestTable, *, schedule_only: bool = False) -> None:
    options = WriteOptions.parse({"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"})
    serve(table.storage, partial(cluster, schedule_only=schedule_only), options, table.engine)


@pytest.mark.parametrize("version", ["6", "9"])
def test_what_a_pending_clustering_reads_is_not_overwritten(version: str) -> None:
    table = loaded(version)
    clustered(table, schedule_only=True)
    for operation in ("insert_overwrite", "insert_overwrite_table", "delete_partition"):
        with pytest.raises(WriteConflict, match="clustering"):
            table.write(operation, rows_of(("n", "x", 1, 5)))
    clustered(table)
    table.write("insert_overwrite", rows_of(("n", "x", 1, 5)))
    assert table.rows() == [("c", "y", 1, 3), ("n", "x", 1, 5)]


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_clustering_that_was_planned_meanwhile_brings_no_row_back(version: str) -> None:
    table = loaded(version)
    engine = InterruptedEngine(lambda: clustered(table, schedule_only=True))
    slow = TestTable(table.storage, engine=engine, failed_writes_policy="LAZY")
    with suppress(WriteConflict):
        slow.write("insert_overwrite", rows_of(("n", "x", 1, 5)))
    kept = table.rows()
    with suppress(WriteConflict, TableError):
        clustered(table)
    assert table.rows() == kept
