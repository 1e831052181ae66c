"""Each damage made on small tables, repaired, and the rows and the listing compared with what they should be."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, repair_properties, write_hudi
from pyhudi.errors import ConfigError, TableError
from pyhudi.services.repair.result import PropertyItem
from tests.support.tables.repaired import START, VERSIONS, is_right, mended, read, rows, table_of


def timeline_folder(path: Path, version: str) -> Path:
    return path / ".hoodie" if version == "6" else path / ".hoodie" / "timeline"


# ---- orphans


def archived_away(table: HudiTable, path: Path, version: str) -> str:
    """A write whose instant goes without its files, as when its rollback died; then the timeline moves past it."""
    lost = table.upsert(rows(("lost", "x", 5, 50)), options={"hoodie.parquet.small.file.limit": "0"}).instant_time
    for file in timeline_folder(path, version).iterdir():
        if file.is_file() and file.name.startswith(lost):
            file.unlink()
    table.metadata.drop()
    for number in range(6):
        table.upsert(rows(("c", "y", 2 + number, 30)), options={"hoodie.metadata.enable": "false"})
    few = {"hoodie.keep.max.commits": "3", "hoodie.keep.min.commits": "2", "hoodie.clean.commits.retained": "1"}
    table.maintenance.archive(options=few)
    return lost


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_files_of_a_rollback_that_died_go_though_the_timeline_has_moved_past_it(tmp_path: Path, version: str) -> None:
    table = table_of(tmp_path, version)
    lost = archived_away(table, tmp_path, version)
    right = [row for row in read(table) if row[0] != "lost"]
    assert read(table) != right  # the damage: the row has come back

    plan = table.maintenance.repair.orphans()
    assert [item.action for item in plan.items] == ["delete"]
    assert lost in plan.items[0].where
    assert read(table) != right  # a dry run changes nothing
    cleaned = mended(table.maintenance.repair.orphans(dry_run=False))

    assert read(table) == right
    assert table.state().timeline.find(str(cleaned.instant_time)) is not None
    assert table.maintenance.repair.orphans(dry_run=False).items == ()
    table.metadata.rebuild()
    assert is_right(table)


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_whole_table_has_no_orphans_and_no_other_damage(tmp_path: Path, version: str, kind: str) -> None:
    table = table_of(tmp_path, version, kind)
    for number in range(8):
        table.upsert(rows(("a", "x", 2 + number, 11), (f"n{number}", "y", 1, 1)))
    table.rollback()
    few = {"hoodie.keep.max.commits": "3", "hoodie.keep.min.commits": "2", "hoodie.clean.commits.retained": "1"}
    table.maintenance.archive(options=few)

    assert [one.about for one in table.inspect.health(deep=True).findings if one.about == "damage"] == []


def test_a_file_that_its_commit_does_not_name_is_an_orphan(tmp_path: Path) -> None:
    table = table_of(tmp_path, "9")
    base = next((tmp_path / "x").glob("*.parquet"))
    file_id, _, time = base.name.split("_")
    stray = base.with_name(f"{file_id}_9-9-9_{time}")
    shutil.copy(base, stray)

    mended(table.maintenance.repair.orphans(dry_run=False))

    assert not stray.exists()
    assert base.exists()
    assert is_right(table)


def test_files_of_a_pending_write_stay(tmp_path: Path) -> None:
    table = table_of(tmp_path, "9")
    time = table.upsert(rows(("b", "x", 3, 21))).instant_time
    for file in (tmp_path / ".hoodie/timeline").glob(f"{time}_*"):
        file.unlink()

    assert table.maintenance.repair.orphans().items == ()


@pytest.mark.thorough
def test_files_older_than_the_archive_reaches_stay(tmp_path: Path) -> None:
    table = table_of(tmp_path, "9")
    archived_away(table, tmp_path, "9")
    shutil.rmtree(tmp_path / ".hoodie/timeline/history")

    assert HudiTable.open(tmp_path).maintenance.repair.orphans().items == ()


# ---- partitions


@pytest.mark.parametrize("version", VERSIONS)
def test_partition_metadata_that_is_missing_or_wrong_is_written(tmp_path: Path, version: str) -> None:
    table = table_of(tmp_path, version)
    table.metadata.drop()
    (tmp_path / "x/.hoodie_partition_metadata").unlink()
    (tmp_path / "y/.hoodie_partition_metadata").write_text("commitTime=1\npartitionDepth=3\n")
    assert read(table) == [START[2]]

    plan = table.maintenance.repair.partition_metadata()
    assert [item.where for item in plan.items] == ["x", "y"]
    mended(table.maintenance.repair.partition_metadata(dry_run=False))

    assert read(table) == START
    assert "partitionDepth=1" in (tmp_path / "y/.hoodie_partition_metadata").read_text()
    assert table.maintenance.repair.partition_metadata().items == ()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_renamed_partition_has_its_rows_with_the_new_value(tmp_path: Path, version: str, kind: str) -> None:
    table = table_of(tmp_path, version, kind)
    table.upsert(rows(("b", "x", 2, 21)))
    plan = table.maintenance.repair.rename_partition("x", "z")
    assert (plan.items[0].where, plan.is_done) == ("x", False)

    mended(table.maintenance.repair.rename_partition("x", "z", dry_run=False))

    assert read(table) == [("a", "z", 1, 10), ("b", "z", 2, 21), START[2]]
    assert is_right(table)
    table.upsert(rows(("a", "z", 5, 1)))
    assert read(table)[0] == ("a", "z", 5, 1)


def test_a_partition_is_not_renamed_to_one_with_rows_nor_from_one_without(tmp_path: Path) -> None:
    table = table_of(tmp_path, "9")
    with pytest.raises(TableError, match="rows in 'y' already"):
        table.maintenance.repair.rename_partition("x", "y")
    with pytest.raises(TableError, match="no rows in the partition 'w'"):
        table.maintenance.repair.rename_partition("w", "z")
    with pytest.raises(ConfigError, match="is its old one"):
        table.maintenance.repair.rename_partition("x", "x")


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_without_a_value_leave_the_old_default_partition(tmp_path: Path, version: str) -> None:
    table = table_of(tmp_path, version, partition_by="p")
    table.upsert(rows(("n", None, 1, 1)))
    table.metadata.drop()
    (tmp_path / "__HIVE_DEFAULT_PARTITION__").rename(tmp_path / "default")
    assert [one.run for one in table.inspect.health().warnings] == [
        "table.maintenance.repair.deprecated_partition(dry_run=False)"
    ]

    mended(table.maintenance.repair.deprecated_partition(dry_run=False))

    assert read(table) == [*START, ("n", None, 1, 1)]
    assert "__HIVE_DEFAULT_PARTITION__" in table.inspect.partitions().column("partition_path").to_pylist()
    assert table.maintenance.repair.deprecated_partition().items == ()


def test_rows_with_the_value_default_stay(tmp_path: Path) -> None:
    table = table_of(tmp_path, "9")
    table.upsert(rows(("d", "default", 1, 1)))

    assert table.maintenance.repair.deprecated_partition().items == ()


# ---- the timeline


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_clean_is_rewritten_and_an_empty_commit_with_files_stays(tmp_path: Path, version: str) -> None:
    table = table_of(tmp_path, version)
    for number in range(4):
        table.upsert(rows(("a", "x", 2 + number, 11)))
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    folder, before = timeline_folder(tmp_path, version), read(table)
    next(folder.glob("*.clean")).write_bytes(b"")
    newest = sorted(folder.glob("*.commit"))[-1]
    newest.write_bytes(b"")

    plan = HudiTable.open(tmp_path).maintenance.repair.empty_instants()
    assert [bool(item.action) for item in plan.items] == [False, True] or len(plan.repairable) == 1
    mended(HudiTable.open(tmp_path).maintenance.repair.empty_instants(dry_run=False))

    left = HudiTable.open(tmp_path).maintenance.repair.empty_instants().items
    assert [item.where for item in left] == [f"{newest.name[:17]}.commit"]
    assert "data files, whose rows count" in left[0].problem
    assert read(HudiTable.open(tmp_path)) == before


def test_a_pending_plan_that_is_empty_is_undone(tmp_path: Path) -> None:
    table = table_of(tmp_path, "9", "MERGE_ON_READ")
    table.upsert(rows(("b", "x", 2, 21)))
    time = table.compact(schedule_only=True, options={"hoodie.compact.inline.max.delta.commits": "1"}).scheduled
    (tmp_path / f".hoodie/timeline/{time}.compaction.requested").write_bytes(b"")

    mended(HudiTable.open(tmp_path).maintenance.repair.empty_instants(dry_run=False))

    assert not HudiTable.open(tmp_path).state().timeline.pending().instants
    assert read(HudiTable.open(tmp_path)) == [START[0], ("b", "x", 2, 21), START[2]]


# ---- log files


@pytest.mark.parametrize("version", VERSIONS)
def test_what_whole_blocks_hold_is_kept(tmp_path: Path, version: str) -> None:
    table = table_of(tmp_path, version, "MERGE_ON_READ")
    table.upsert(rows(("a", "x", 2, 11)))
    table.upsert(rows(("c", "y", 2, 31)))
    log = max((tmp_path / "x").glob(".*log*"))
    log.write_bytes(log.read_bytes()[:-40])

    plan = HudiTable.open(tmp_path).maintenance.repair.log_checksums()
    assert [item.where for item in plan.items] == [f"x/{log.name}"]
    mended(HudiTable.open(tmp_path).maintenance.repair.log_checksums(dry_run=False))

    assert read(HudiTable.open(tmp_path)) == [START[0], START[1], ("c", "y", 2, 31)]
    assert HudiTable.open(tmp_path).maintenance.repair.log_checksums().items == ()


# ---- properties


@pytest.mark.metadata_table
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_lost_properties_are_made_from_files(tmp_path: Path, version: str, kind: str) -> None:
    table = table_of(tmp_path, version, kind)
    table.upsert(rows(("b", "x", 2, 21)))
    before, config = read(table), dict(table.state().config.properties)
    (tmp_path / ".hoodie/hoodie.properties").unlink()
    given = {key: config[key] for key in config if "precombine" in key or "ordering" in key or "merge" in key}

    plan = repair_properties(tmp_path, properties=given)
    assert {"hoodie.table.name", "hoodie.table.type"} <= {item.where for item in plan.items}
    mended(repair_properties(tmp_path, properties=given, dry_run=False))

    again = HudiTable.open(tmp_path)
    assert read(again) == before
    ours = dict(again.state().config.properties)
    for key in ("name", "type", "version", "recordkey.fields", "partition.fields", "metadata.partitions"):
        assert ours.get(f"hoodie.table.{key}") == config.get(f"hoodie.table.{key}"), key
    again.upsert(rows(("b", "x", 3, 22)))
    assert ("b", "x", 3, 22) in read(again)


def test_a_cut_file_is_completed_and_a_backup_counts_first(tmp_path: Path) -> None:
    table = table_of(tmp_path, "9")
    file = tmp_path / ".hoodie/hoodie.properties"
    whole = file.read_bytes()
    config = dict(table.state().config.properties)
    file.with_name("hoodie.properties.backup").write_bytes(whole)
    file.write_bytes(whole[: len(whole) // 2])
    mended(repair_properties(tmp_path, dry_run=False))
    assert dict(HudiTable.open(tmp_path).state().config.properties) == config
    assert repair_properties(tmp_path).items == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_that_is_cut_anywhere_gets_no_half_value(tmp_path: Path, version: str) -> None:
    schema = pa.schema([("id", pa.string()), ("city", pa.string()), ("c", pa.string()), ("v", pa.int64())])
    data = pa.table([["a"], ["rome"], ["rome"], [1]], schema=schema)
    options = {"hoodie.write.table.version": version, "hoodie.metadata.enable": "false"}
    write_hudi(tmp_path, data, record_key="id", partition_by="city", options=options)
    file = tmp_path / ".hoodie/hoodie.properties"
    whole, config = file.read_bytes(), dict(HudiTable.open(tmp_path).state().config.properties)

    # By the files "c" is as good as "city", and version 9 as good as 8.
    given = {"hoodie.table.partition.fields": "city", "hoodie.table.version": version}

    for cut in range(1, len(whole), 11):
        file.write_bytes(whole[:cut])
        plan = repair_properties(tmp_path, properties=given)
        after = {item.where: item.after for item in plan.items if isinstance(item, PropertyItem)}
        wrong = {key: value for key, value in after.items() if config.get(key) not in (None, value)}
        assert not wrong, whole[:cut]


def test_a_value_that_is_cut_off_is_made_from_files_again(tmp_path: Path) -> None:
    table_of(tmp_path, "9", ordering=None)
    file = tmp_path / ".hoodie/hoodie.properties"
    whole = file.read_bytes()
    at = whole.index(b"hoodie.table.recordkey.fields=id") + len(b"hoodie.table.recordkey.fields=i")
    file.write_bytes(whole[:at])

    plan = repair_properties(tmp_path)

    (key,) = (item for item in plan.items if item.where == "hoodie.table.recordkey.fields")
    assert str(key) == "hoodie.table.recordkey.fields: missing → set 'id' (from the table's files)"
    mended(repair_properties(tmp_path, dry_run=False))
    assert HudiTable.open(tmp_path).state().config.record_key_fields == ("id",)


def test_lost_names_of_ordering_columns_are_asked_for(tmp_path: Path) -> None:
    config = dict(table_of(tmp_path, "9").state().config.properties)
    file = tmp_path / ".hoodie/hoodie.properties"
    whole = file.read_bytes()
    file.write_bytes(whole[: whole.index(b"=ts\n") + 2])  # its merge mode is in the lines before
    cut = file.read_bytes()

    with pytest.raises(
        ConfigError, match=r"the names of the ordering columns are lost.*'hoodie\.table\.ordering\.fields'"
    ):
        repair_properties(tmp_path, dry_run=False)
    assert file.read_bytes() == cut
    mended(repair_properties(tmp_path, properties={"hoodie.table.ordering.fields": "ts"}, dry_run=False))

    ours = HudiTable.open(tmp_path).state().config.properties
    assert {key: ours.get(key) for key in config if "ordering" in key or "merge" in key} == {
        key: value for key, value in config.items() if "ordering" in key or "merge" in key
    }


def test_a_result_is_one_line_and_a_dict(tmp_path: Path) -> None:
    plan = table_of(tmp_path, "9").maintenance.repair.orphans()

    assert repr(plan) == "RepairResult(repair orphans: nothing to do)"
    assert plan.to_dict()["items"] == []
    assert "orphans" in repr(HudiTable.open(tmp_path).maintenance.repair)
