"""Several rows with one key, repaired: in a partition, across partitions, in buckets and rings of buckets."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import ConfigError, WriteConflict
from tests.support.tables.repaired import KEYS, START, VERSIONS, is_right, mended, read, rows, table_of


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_one_row_of_each_key_stays_by_the_ordering_column(tmp_path: Path, version: str, kind: str) -> None:
    table = table_of(tmp_path, version, kind)
    table.bulk_insert(rows(("a", "x", 9, 99), ("c", "y", 0, 1), ("d", "y", 1, 4), ("d", "y", 2, 5)))
    assert len(read(table)) == 7

    plan = table.maintenance.repair.duplicates()
    assert [item.where for item in plan.items] == ["x", "y"]
    commits = len(table.state().timeline.commits())
    mended(table.maintenance.repair.duplicates(dry_run=False))

    assert read(table) == [("a", "x", 9, 99), ("b", "x", 1, 20), ("c", "y", 1, 30), ("d", "y", 2, 5)]
    assert len(table.state().timeline.commits()) == commits + 1
    assert is_right(table)
    assert table.maintenance.repair.duplicates(dry_run=False).items == ()


def test_without_an_ordering_column_the_newest_row_stays(tmp_path: Path) -> None:
    options = {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}
    write_hudi(tmp_path, rows(("a", "x", 9, 1)), record_key="id", partition_by="p", options=options)
    table = HudiTable.open(tmp_path)
    table.bulk_insert(rows(("a", "x", 3, 2)))
    table.bulk_insert(rows(("a", "x", 5, 3)))

    mended(table.maintenance.repair.duplicates(dry_run=False))

    assert read(table) == [("a", "x", 5, 3)]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
@pytest.mark.parametrize("mode", ["COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"])
def test_of_many_rows_of_one_commit_that_row_stays_which_an_upsert_of_them_keeps(
    tmp_path: Path, kind: str, operation: str, mode: str
) -> None:
    options = {"hoodie.write.record.merge.mode": mode}
    keys = {**KEYS, "ordering": "ts" if mode == "EVENT_TIME_ORDERING" else None}
    for name in ("repaired", "upserted"):
        write_hudi(tmp_path / name, rows(("z", "x", 1, 0)), table_type=kind, options=options, **keys)  # type: ignore[arg-type]
    table, right = HudiTable.open(tmp_path / "repaired"), HudiTable.open(tmp_path / "upserted")
    many = rows(*(("a", "x", 5, number) for number in range(12)))  # the row numbers 9 and 11 sort otherwise as text
    getattr(table, operation)(many)
    right.upsert(many)

    mended(table.maintenance.repair.duplicates(dry_run=False))

    assert read(table) == read(right) == [("a", "x", 5, 11), ("z", "x", 1, 0)]


@pytest.mark.parametrize(
    ("numbers", "right"),
    [
        (["9_7", "10_0"], 2),  # tasks are numbers, too
        (["10_0", "9_7"], 1),
        (["0_99999999999", "0_100000000000"], 2),  # beyond 32 bits
        (["0_1", None], 1),  # without a number a row is the oldest of its commit
        ([None, None], 2),  # then the order in the file counts
        (["no number", "0_99999999999999999999"], 2),
    ],
)
def test_sequence_numbers_of_other_writers_are_compared_as_numbers(
    tmp_path: Path, numbers: list[str | None], right: int
) -> None:
    options = {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}
    write_hudi(tmp_path, rows(("a", "x", 1, 1)), record_key="id", partition_by="p", options=options)
    table = HudiTable.open(tmp_path)
    table.bulk_insert(rows(("b", "x", 1, 1), ("b", "x", 1, 2)))
    base = max((tmp_path / "x").glob("*.parquet"), key=lambda file: file.name.rpartition("_")[2])
    stored = pq.read_table(base, partitioning=None)
    time = stored.column("_hoodie_commit_time")[0].as_py()
    texts = pa.array([number if number is None else f"{time}_{number}" for number in numbers], pa.string())
    pq.write_table(stored.set_column(1, stored.schema.field(1), texts), base)

    mended(table.maintenance.repair.duplicates(dry_run=False))

    assert read(table) == [("a", "x", 1, 1), ("b", "x", 1, right)]


def test_file_groups_without_duplicates_are_not_rewritten(tmp_path: Path) -> None:
    table = table_of(tmp_path, "9")
    table.bulk_insert(rows(("a", "x", 9, 99)))
    before = {path.name for path in (tmp_path / "y").glob("*.parquet")}

    mended(table.maintenance.repair.duplicates(dry_run=False))

    assert {path.name for path in (tmp_path / "y").glob("*.parquet")} == before


@pytest.mark.thorough
def test_the_record_index_finds_the_rows_that_stay(tmp_path: Path) -> None:
    table = table_of(tmp_path, "9")
    table.bulk_insert(rows(("a", "x", 9, 99)))
    mended(table.maintenance.repair.duplicates(dry_run=False))
    table.indexes.create("record_index")
    table.bulk_insert(rows(("b", "x", 8, 88)))
    mended(table.maintenance.repair.duplicates(dry_run=False))

    table.upsert(rows(("b", "x", 9, 77)), options={"hoodie.index.type": "RECORD_INDEX"})

    assert read(table) == [("a", "x", 9, 99), ("b", "x", 9, 77), ("c", "y", 1, 30)]
    assert is_right(table)


GLOBAL = {"hoodie.index.type": "GLOBAL_SIMPLE"}


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_key_in_two_partitions_stays_in_one_where_the_index_is_global(
    tmp_path: Path, version: str, kind: str
) -> None:
    table = table_of(tmp_path, version, kind)
    table.bulk_insert(rows(("a", "y", 9, 99), ("b", "z", 0, 1), ("c", "x", 1, 31)))
    assert table.maintenance.repair.duplicates().items == ()  # in their partitions all keys are single

    (plan,) = table.maintenance.repair.duplicates(options=GLOBAL).items
    assert (plan.where, plan.problem[:36]) == ("", "3 keys have 6 rows in 5 file groups ")
    assert "3 partitions (x, y, z)" in plan.problem
    mended(table.maintenance.repair.duplicates(dry_run=False, options=GLOBAL))

    assert read(table) == [("a", "y", 9, 99), ("b", "x", 1, 20), ("c", "x", 1, 31)]  # of equal ones the later commit's
    assert is_right(table)
    assert table.maintenance.repair.duplicates(options=GLOBAL).items == ()


@pytest.mark.thorough
@pytest.mark.parametrize(("options", "is_found"), [({}, True), ({"hoodie.index.type": "SIMPLE"}, False)])
def test_a_record_index_says_that_keys_are_single_in_the_table(
    tmp_path: Path, options: dict[str, str], is_found: bool
) -> None:
    table = table_of(tmp_path, "9")
    table.bulk_insert(rows(("a", "y", 9, 99)))
    table.indexes.create("record_index")

    assert bool(table.maintenance.repair.duplicates(options=options).items) == is_found
    found = [one.run for one in table.inspect.health(deep=True).findings if one.about == "damage"]
    assert found == ["table.maintenance.repair.duplicates(dry_run=False)"]
    mended(table.maintenance.repair.duplicates(dry_run=False))

    assert read(table) == [("a", "y", 9, 99), *START[1:]]
    assert is_right(table)
    table.upsert(rows(("a", "y", 10, 1)), options={"hoodie.index.type": "RECORD_INDEX"})
    assert read(table)[0] == ("a", "y", 10, 1)


@pytest.mark.thorough
def test_a_partitioned_record_index_allows_a_key_in_every_partition(tmp_path: Path) -> None:
    table = table_of(tmp_path, "9", options={"hoodie.metadata.record.level.index.enable": "true"})
    table.bulk_insert(rows(("a", "y", 9, 99)))

    assert "record_index" in table.state().config.metadata_partitions
    assert table.maintenance.repair.duplicates().items == ()


@pytest.mark.thorough
def test_many_keys_are_looked_at_a_share_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = rows(*((f"k{number}", "x", 1, 1) for number in range(500)))
    write_hudi(tmp_path, many, **KEYS)
    table = HudiTable.open(tmp_path)
    table.bulk_insert(rows(*((f"k{number}", "x", 2, 2) for number in range(0, 500, 2))))
    whole = table.maintenance.repair.duplicates()
    monkeypatch.setattr("pyhudi.services.repair.duplicates._KEYS_AT_ONCE", 100)

    shared = table.maintenance.repair.duplicates()
    assert shared.items[0].problem.startswith("250 keys have 500 rows in 2 file groups")
    assert shared.items[0].action == whole.items[0].action
    mended(table.maintenance.repair.duplicates(dry_run=False))
    assert sum(row[3] for row in read(table)) == 250 + 2 * 250
    assert table.maintenance.repair.duplicates().items == ()


BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
RINGS = {**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}


def table_of_buckets(path: Path, version: str, options: dict[str, str], kind: str) -> HudiTable:
    given = {**options, "hoodie.write.table.version": version, "hoodie.compact.inline": "false"}
    write_hudi(path, rows(*START), table_type=kind, options=given, **KEYS)
    return HudiTable.open(path)


def with_a_row_twice(table: HudiTable, path: Path) -> None:
    base = max((path / "x").glob("*.parquet"), key=lambda file: file.name.rpartition("_")[2])
    found = pq.read_table(base, partitioning=None)
    pq.write_table(pa.concat_tables([found, found.slice(0, 1)]), base)
    assert table.count() == 4


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("options", "kind"), [(BUCKETS, "COPY_ON_WRITE"), (RINGS, "MERGE_ON_READ")])
def test_keys_are_found_in_their_buckets_after_repairs(
    tmp_path: Path, version: str, options: dict[str, str], kind: str
) -> None:
    table = table_of_buckets(tmp_path, version, options, kind)
    if kind == "MERGE_ON_READ":
        table.upsert(rows(("a", "x", 1, 10), ("c", "y", 1, 30)))
        table.compact(options={"hoodie.compact.inline.max.delta.commits": "1"})
    with_a_row_twice(table, tmp_path)

    mended(table.maintenance.repair.duplicates(dry_run=False))
    assert read(table) == START
    mended(table.maintenance.repair.rename_partition("x", "z", dry_run=False))

    table.upsert(rows(("a", "z", 5, 1), ("a", "x", 5, 2), ("c", "y", 5, 3)))
    table.upsert(rows(("a", "x", 6, 4)))
    assert read(table) == [("a", "x", 6, 4), ("a", "z", 5, 1), ("b", "z", 1, 20), ("c", "y", 5, 3)]
    assert is_right(table)


@pytest.mark.parametrize("options", [BUCKETS, RINGS])
def test_buckets_whose_options_nobody_gives_are_not_rewritten(tmp_path: Path, options: dict[str, str]) -> None:
    table = table_of_buckets(tmp_path, "9", options, "MERGE_ON_READ")
    table.maintenance.set_properties(unset=[*options])

    with pytest.raises(ConfigError, match=r"hoodie\.index\.type=BUCKET"):
        table.maintenance.repair.rename_partition("x", "z", dry_run=False)
    mended(table.maintenance.repair.rename_partition("x", "z", dry_run=False, options=options))
    assert read(table)[0] == ("a", "z", 1, 10)


@pytest.mark.thorough
def test_a_ring_of_a_rewrite_counts_after_its_commit_is_archived(tmp_path: Path) -> None:
    table = table_of_buckets(tmp_path, "9", RINGS, "MERGE_ON_READ")
    table.upsert(rows(("a", "x", 1, 10)))
    table.compact(options={"hoodie.compact.inline.max.delta.commits": "1"})
    with_a_row_twice(table, tmp_path)
    time = str(mended(table.maintenance.repair.duplicates(dry_run=False)).instant_time)
    for number in range(6):
        table.upsert(rows(("c", "y", 2 + number, 30)))
    few = {"hoodie.keep.max.commits": "3", "hoodie.keep.min.commits": "2", "hoodie.clean.commits.retained": "1"}
    table.clean(options=few)
    table.maintenance.archive(options=few)
    assert table.state().timeline.find(time) is None

    table.upsert(rows(("a", "x", 9, 9)))
    assert read(table) == [("a", "x", 9, 9), START[1], ("c", "y", 7, 30)]


def test_a_waiting_plan_for_a_file_group_is_a_conflict(tmp_path: Path) -> None:
    table = table_of(tmp_path, "9", "MERGE_ON_READ")
    table.bulk_insert(rows(("a", "x", 9, 99)))
    table.upsert(rows(("b", "x", 2, 21)), options={"hoodie.compact.inline": "false"})
    assert table.compact(schedule_only=True, options={"hoodie.compact.inline.max.delta.commits": "1"}).scheduled

    with pytest.raises(WriteConflict, match="a pending plan"):
        table.maintenance.repair.duplicates(dry_run=False)
