"""A table with a record index keeps it through all actions."""

from __future__ import annotations

from datetime import timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.actions.open_table import MetadataTableRebuilt
from pyhudi.actions.writes import preparation
from pyhudi.errors import ConfigError, WriteConflict
from pyhudi.metadata import delta_commit
from pyhudi.metadata import keys as keys_by_group
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.keys import one_per_key
from pyhudi.metadata.locations import file_ids, partition_paths, partitioned_record_index_updates, record_index_update
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.commit import WriteStat, WriteStatus
from pyhudi.model.file_group import FileSlice
from pyhudi.model.filenames import METADATA_TABLE_FOLDER
from pyhudi.model.options import WriteOptions
from pyhudi.queries.validation import validate
from tests.support.tables.clustered import Clustered
from tests.support.tables.merge_on_read import MergeOnRead
from tests.support.tables.record_indexed import places
from tests.support.tables.small import TestTable, rows_of

ON = {"metadata_enable": "true", "metadata_global_record_level_index_enable": "true"}
PARTITIONED = {"metadata_enable": "true", "metadata_record_level_index_enable": "true"}
KINDS = [(version, kind) for version in ("6", "8", "9") for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")]


def table_of(version: str, kind: str, **options: str) -> Clustered:
    return Clustered(version, kind, index_type="GLOBAL_RECORD_LEVEL_INDEX", **ON, **options)


def check(table: TestTable, what: str) -> None:
    assert "record_index" in table.meta.config.metadata_partitions, what
    assert validate(table.meta) == (), what


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_every_action_keeps_the_record_index_up(version: str, kind: str) -> None:
    table = table_of(version, kind)
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 1, 30), ("e", "y", 1, 5))
    check(table, "bulk insert")
    steps: list[tuple[str, Any]] = [
        ("upsert", lambda: table.upsert(("a", "x", 2, 11), ("d", "z", 1, 40))),
        ("delete", lambda: table.delete(("b", "x"))),
        ("flagged", lambda: table.mark_deleted(("e", "y", 0, 5), ("d", "z", 9, 1))),
        ("back again", lambda: table.upsert(("b", "x", 3, 21), ("d", "z", 10, 41))),
        ("cluster", lambda: table.cluster(clustering_plan_strategy_small_file_limit="1000000")),
        ("insert overwrite", lambda: table.write("insert_overwrite", rows_of(("a", "x", 4, 12), ("f", "x", 1, 7)))),
        ("rollback", lambda: HudiTable(table.meta).rollback()),
        ("delete partition", lambda: table.write("delete_partition", rows_of(("c", "y", 1, 1)))),
        ("moves", lambda: table.upsert(("a", "w", 5, 13), record_index_update_partition_path="true")),
        ("compaction", lambda: table.compact_now() if kind == "MERGE_ON_READ" else None),
        ("upsert again", lambda: table.upsert(("a", "w", 6, 14), ("g", "v", 1, 1))),
    ]
    for what, act in steps:
        act()
        check(table, what)
    assert table.rows(("id", "p", "v")) == [("a", "w", 14), ("b", "x", 21), ("d", "z", 41), ("g", "v", 1)]


def live(table: TestTable) -> dict[tuple[str, str], str]:
    """The same as the rows say."""
    rows = table.rows(("_hoodie_partition_path", "_hoodie_record_key", "_hoodie_file_name"))
    return {(path, key): name.split("_")[0] for path, key, name in rows}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_every_action_keeps_up_an_index_whose_keys_are_unique_in_their_partition(kind: str) -> None:
    table = Clustered("9", kind, index_type="RECORD_LEVEL_INDEX", **PARTITIONED)
    steps: list[tuple[str, Any]] = [
        ("first", lambda: table.bulk_insert(("a", "x", 1, 10), ("a", "y", 1, 20), ("b", "y_1", 1, 30))),
        ("upsert", lambda: table.upsert(("a", "x", 2, 11), ("c", "x", 1, 40), ("a", "z", 1, 41))),
        ("delete", lambda: table.delete(("a", "y"))),
        ("back again", lambda: table.upsert(("a", "y", 3, 21), ("d", "y", 1, 22))),
        ("cluster", lambda: table.cluster(clustering_plan_strategy_small_file_limit="1000000")),
        ("overwrite", lambda: table.write("insert_overwrite", rows_of(("a", "x", 4, 12), ("f", "x", 1, 7)))),
        ("rollback", lambda: HudiTable(table.meta).rollback()),
        ("delete partition", lambda: table.write("delete_partition", rows_of(("a", "z", 1, 1)))),
        ("compaction", lambda: table.compact_now() if kind == "MERGE_ON_READ" else None),
        ("keys alone", lambda: table.write("delete", rows_of(("d", "", 1, 1)).select(["id"]))),
        ("last", lambda: table.upsert(("a", "z", 1, 42), ("b", "y_1", 2, 31))),
    ]
    for what, act in steps:
        act()
        check(table, what)
        assert places(table.meta) == live(table), what
    assert table.rows(("id", "p", "v")) == [
        *(("a", "x", 11), ("a", "y", 21), ("a", "z", 42)),
        *(("b", "y_1", 31), ("c", "x", 40)),
    ]
    groups = {path for path, _ in places(table.meta)}
    assert groups == {"x", "y", "z", "y_1"}


@pytest.mark.thorough
@pytest.mark.parametrize("options", [ON, PARTITIONED])
@pytest.mark.parametrize("before", [{}, {"metadata_enable": "true"}])
def test_a_call_that_wants_a_record_index_gets_one_of_all_rows(before: dict[str, str], options: dict[str, str]) -> None:
    table = MergeOnRead(**before)
    table.upsert(*((f"k{n}", f"p{n % 2}", 1, n) for n in range(20)))
    table.delete(("k0", "p0"))
    table.upsert(("k1", "p1", 2, 11), **options)
    assert places(table.meta) == live(table)
    table.upsert(("k2", "p0", 2, 12), ("new", "p1", 1, 1))
    assert places(table.meta) == live(table)
    check(table, "not said")


@pytest.mark.thorough
def test_a_table_without_rows_has_a_record_index_without_records() -> None:
    table = table_of("9", "COPY_ON_WRITE")
    table.upsert(("a", "x", 1, 1))
    table.delete(("a", "x"))
    check(table, "the last key was deleted")
    assert places(table.meta) == {}
    table.upsert(("a", "x", 2, 2))
    check(table, "it is back")


@pytest.mark.thorough
def test_a_write_that_did_not_know_of_the_index_does_not_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tasks have not reported keys: the index was made while it ran."""
    table = table_of("9", "COPY_ON_WRITE")
    table.upsert(("a", "x", 1, 1))
    with monkeypatch.context() as patch:
        patch.setattr(preparation, "keeps_record_index", lambda config: False)
        with pytest.raises(WriteConflict, match=r"a record index was made while .* was running"):
            table.upsert(("b", "x", 1, 1))
    assert table.rows(("id",)) == [("a",)]
    table.upsert(("b", "x", 1, 1))
    check(table, "again")


@pytest.mark.thorough
@pytest.mark.parametrize("update", ["true", "false"])
def test_a_key_is_in_the_partition_that_the_option_says(update: str) -> None:
    table = table_of("9", "COPY_ON_WRITE")
    table.upsert(("a", "x", 1, 1), ("b", "x", 1, 2))
    table.upsert(("a", "y", 2, 3), record_index_update_partition_path=update)

    there = "y" if update == "true" else "x"
    assert table.rows(("id", "_hoodie_partition_path", "v")) == [("a", there, 3), ("b", "x", 2)]
    check(table, "moved" if update == "true" else "stayed")


@pytest.mark.thorough
def test_keys_are_deleted_wherever_they_are() -> None:
    table = table_of("9", "MERGE_ON_READ")
    table.upsert(("a", "x", 1, 1), ("b", "y", 1, 2), ("c", "y", 1, 3))
    result = table.write("delete", rows_of(("a", "", 1, 1), ("c", "", 1, 1)).select(["id"]))

    assert result.deleted == 2
    assert table.rows(("id",)) == [("b",)]
    check(table, "deleted")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_changes_of_rows_where_they_are_keep_the_record_index_up(kind: str) -> None:
    table = table_of("9", kind)
    table.upsert(*((f"k{n}", f"p{n % 2}", 1, n) for n in range(8)))
    options = {"hoodie." + name.replace("_", "."): text for name, text in table.options.items()}
    changed = HudiTable(table.meta, options={**options, "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX"})
    changed.update("v < 3", set={"v": 100})
    check(table, "update")
    changed.delete(where="v = 5")
    check(table, "delete")
    source = rows_of(("k0", "p0", 2, 7), ("k5", "p1", 2, 8), ("k6", "p0", 2, -1), ("new", "p0", 1, 9))
    merge = changed.merge(source).when_matched_delete("source.v < 0").when_matched_update_all()
    merge.when_not_matched_insert_all().execute()
    check(table, "merge")
    assert places(table.meta) == live(table)
    assert [key for key, *_ in table.rows()] == ["k0", "k1", "k2", "k3", "k4", "k5", "k7", "new"]


def status(path: str, file_id: str, new: list[str], removed: list[str]) -> WriteStatus:
    stat = WriteStat(file_id=file_id, path=f"{path}/{file_id}_0-0-0_1.parquet", partition_path=path)
    return WriteStatus(stat, new_keys=pa.array(new, pa.string()), removed_keys=pa.array(removed, pa.string()))


def places_of(records: pa.Table) -> pa.Array:
    """Payloads of an update, which has them as a dictionary."""
    coded = records.column("recordIndexMetadata").combine_chunks()
    assert isinstance(coded, pa.DictionaryArray)
    return coded.dictionary_decode()


@pytest.mark.parametrize("by_partition", [True, False])
def test_a_key_that_came_and_left_in_one_commit_is_where_it_came_to(by_partition: bool) -> None:
    statuses = [status("x", "A-0", ["n1"], ["moved", "d1"]), status("y", "B-0", ["moved", "n2"], ["d2"])]
    given: tuple[Any, ...] = (9, "20260101000000000", timezone.utc, statuses, {"z": pa.array(["n1", "r1"])})
    if by_partition:
        updates = partitioned_record_index_updates(*given)
        found = {path: (u.records.column("key").to_pylist(), u.deleted.to_pylist()) for path, u in updates.items()}
        assert found == {
            "x": (["n1"], ["moved", "d1"]),
            "y": (["moved", "n2"], ["d2"]),
            "z": ([], ["n1", "r1"]),
        }
        return
    update = record_index_update(*given)
    payload = places_of(update.records)
    keys = update.records.column("key").to_pylist()
    assert dict(zip(keys, file_ids(payload).to_pylist(), strict=True)) == {"n1": "A-0", "moved": "B-0", "n2": "B-0"}
    assert sorted(map(str, update.deleted.to_pylist())) == ["d1", "d2", "r1"]


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["6", "9"])
def test_keys_of_many_rows_are_written_by_several_threads_in_pieces(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = table_of(version, "COPY_ON_WRITE")
    many = table_of(version, "COPY_ON_WRITE")
    rows = [(f"{'k' * (number % 3)}{number}", f"p{number % 4}", 1, number) for number in range(500)]
    few.bulk_insert(*rows[:100])
    many.bulk_insert(*rows[:100])
    few.upsert(*rows)
    monkeypatch.setattr(delta_commit, "_ROWS_OF_ONE_THREAD", 0)
    monkeypatch.setattr(keys_by_group, "_PIECE_ROWS", 7)
    many.upsert(*rows)
    check(many, "several threads")
    found = [index_rows(table) for table in (few, many)]
    assert found[0] == found[1]
    assert len(found[1]) == 500


def index_rows(table: TestTable) -> list[tuple[str, str]]:
    records = MetadataTable.open(table.meta)
    assert records is not None
    rows = records.records("record_index")
    paths = partition_paths(rows.column("recordIndexMetadata").combine_chunks())
    return sorted(zip(rows.column("key").to_pylist(), paths.to_pylist(), strict=True))


def test_of_a_key_that_came_to_two_file_groups_the_last_record_is_written() -> None:
    statuses = [status("x", "A-0", ["k", "a"], []), status("x", "B-0", ["k"], [])]
    update = record_index_update(9, "20260101000000000", timezone.utc, statuses)
    keys = update.records.column("key").combine_chunks()
    rows, in_order = one_per_key(keys, np.arange(len(keys)))
    assert in_order.to_pylist() == [b"a", b"k"]
    written = update.records.take(rows)
    places = file_ids(places_of(written))
    assert list(zip(written.column("key").to_pylist(), places.to_pylist(), strict=True)) == [("a", "A-0"), ("k", "B-0")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"global.record.level.index.enable": "true", "record.level.index.enable": "true"}, "are both true"),
        ({"record.index.enable": "true", "populate": "false"}, "store their keys"),
        ({"record.level.index.enable": "true", "version": "6"}, "from version 9 on"),
        ({"record.index.min.filegroup.count": "20", "record.index.max.filegroup.count": "10"}, "is more than"),
        ({"record.index.growth.factor": "0"}, "a number above 0"),
    ],
)
def test_options_that_make_no_index_are_refused(given: dict[str, str], message: str) -> None:
    names = {"populate": "hoodie.populate.meta.fields", "version": "hoodie.write.table.version"}
    options = {names.get(name, f"hoodie.metadata.{name}"): text for name, text in given.items()}
    with pytest.raises(ConfigError, match=message):
        WriteOptions.parse(options)


@pytest.mark.thorough
@pytest.mark.parametrize(("options", "says"), [(ON, "false"), (PARTITIONED, "true")])
def test_an_index_that_is_rebuilt_is_of_the_kind_that_it_was(options: dict[str, str], says: str) -> None:
    table = MergeOnRead(**options)
    table.upsert(("a", "x", 1, 1), ("b", "y", 1, 2))
    definition = read_index_definitions(table.storage).by_name["record_index"].body()
    assert definition == {
        "indexName": "record_index",
        "indexType": "record_index",
        "indexFunction": "",
        "sourceFields": [],
        "indexOptions": {"isPartitioned": says},
        "version": "V1",
    }
    groups = [found.group.file_id for found in slices(table)]
    for entry in table.storage.list(f"{METADATA_TABLE_FOLDER}/.hoodie/timeline"):
        table.storage.delete(entry.path)
    table.options = {name: text for name, text in table.options.items() if "record" not in name}
    with pytest.warns(MetadataTableRebuilt):
        table.upsert(("c", "x", 1, 3))
    check(table, "built anew")
    assert places(table.meta) == live(table)
    assert [found.group.file_id for found in slices(table)] == groups


def slices(table: TestTable) -> tuple[FileSlice, ...]:
    found = MetadataTable.open(table.meta)
    assert found is not None
    return found.slices("record_index")
