"""Which partitions a sync looks at, what it does to them, and what it asks the catalog for."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import ConfigError, HudiError
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.storage.memory import MemoryStorage
from pyhudi.sync.catalog import CatalogTable, Located, PartitionValues
from pyhudi.sync.definitions import COMPLETED, SYNCED
from pyhudi.sync.syncing import sync_to
from tests.support.catalogs import MemoryCatalog, Registered, catalogs_in_memory
from tests.support.sweeps import examples

ROWS = [{"id": i, "city": "ab"[i % 2], "ts": 1} for i in range(4)]
SYNC = "hoodie.datasource.hive_sync."


def written(path: Any, rows: Any = ROWS, partition_by: Any = "city", **options: str) -> HudiTable:
    given = {"hoodie.metadata.enable": "false", "hoodie.table.name": "rides", **options}
    write_hudi(path, rows, record_key="id", partition_by=partition_by, ordering="ts", options=given)
    return HudiTable(MetaClient.load(path)) if isinstance(path, MemoryStorage) else HudiTable.open(path)


def registered(catalog: MemoryCatalog) -> Registered:
    return catalog.databases["default"]["rides"]


def cities(catalog: MemoryCatalog) -> set[str]:
    return {values[0] for values in registered(catalog).locations}


def ride(number: int, city: str) -> dict[str, Any]:
    return {"id": number, "city": city, "ts": number}


def test_only_partitions_that_changed_are_asked_for(catalog: MemoryCatalog) -> None:
    table = written("memory://asked", [ride(i, f"c{i:03}") for i in range(30)])
    table.sync("hive")
    catalog.calls.clear()

    table.upsert([ride(3, "c003"), ride(900, "new")])
    table.sync("hive")

    calls = [("has_database", 0), ("table", 0), ("locations", 2), ("add_partitions", 1), ("alter_table", 0)]
    assert catalog.calls == calls


def test_of_many_changed_partitions_only_the_names_are_asked_for(
    catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyhudi.sync.syncing._ENTRIES_MAX", 3)
    table = written("memory://names", [ride(i, f"c{i}") for i in range(9)])
    table.sync("hive")
    catalog.calls.clear()

    table.upsert([ride(i, f"c{i}") for i in range(3, 12)])
    table.sync("hive")

    assert ("partition_names", 9) in catalog.calls
    assert ("add_partitions", 3) in catalog.calls
    assert "locations" not in dict(catalog.calls)
    assert len(cities(catalog)) == 12


def test_when_the_last_sync_is_in_the_history_all_are_compared_once_by_their_names(catalog: MemoryCatalog) -> None:
    limits = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "1",
    }
    table = written("memory://archived", **limits)
    table.sync("hive")
    for number in range(10, 18):
        table.upsert([ride(number, f"c{number}")], options=limits)
    table.delete_partitions(["a"], options=limits)
    catalog.calls.clear()

    (first,) = table.sync("hive").tables
    assert (first.compared_all, first.partitions_added, first.partitions_dropped) == (True, 8, 1)
    assert {name for name, _ in catalog.calls} & {"locations", "partition_names"} == {"partition_names"}

    (second,) = table.sync("hive").tables
    assert not second.compared_all
    assert second.action == "unchanged"


def test_a_commit_that_was_complete_only_after_a_later_one_was_synced_is_seen(catalog: MemoryCatalog) -> None:
    table = written("memory://late", [ride(1, "a")])
    table.upsert([ride(2, "late")])
    table.upsert([ride(3, "b")])
    first, late, last = table.history(3)[::-1]
    table.sync("hive")
    there = registered(catalog)
    del there.locations["late",]
    times = {SYNCED: last.instant_time, COMPLETED: first.completion_time}
    there.table = replace(there.table, properties={**there.table.properties, **times})

    table.sync("hive")

    assert late.instant_time < last.instant_time
    assert cities(catalog) == {"a", "b", "late"}


def test_deleted_overwritten_restored_and_returning_partitions_are_what_the_table_has(catalog: MemoryCatalog) -> None:
    table = written("memory://comes-and-goes")
    steps: Mapping[str, Callable[[], object]] = {
        "b": lambda: table.delete_partitions(["a"]),
        "ab": lambda: table.upsert([ride(7, "a")]),
        "abc": lambda: table.insert([ride(8, "c")]),
        "c": lambda: table.delete_partitions(["a", "b"]),
    }
    for expected, step in steps.items():
        step()
        table.sync("hive")
        assert cities(catalog) == set(expected)


def test_a_restore_is_followed(catalog: MemoryCatalog) -> None:
    table = written("memory://restored")
    to = table.history(1)[0].instant_time
    table.upsert([ride(8, "c")])
    table.upsert([ride(9, "d")])
    table.sync("hive")
    table.restore(to)

    table.sync("hive")

    assert cities(catalog) == {"a", "b"}
    assert registered(catalog).table.properties[SYNCED] == to


def test_a_table_recreated_in_another_style_has_its_partitions_moved(catalog: MemoryCatalog) -> None:
    path = "memory://anew"
    written(path).sync("hive")
    HudiTable.open(path).drop()
    table = written(path, **{"hoodie.datasource.write.hive_style_partitioning": "true"})

    (one,) = table.sync("hive").tables

    assert (one.partitions_moved, one.partitions_added, one.partitions_dropped) == (2, 0, 0)
    assert set(registered(catalog).locations.values()) == {f"{path}/city=a", f"{path}/city=b"}


def test_touched_partitions_keep_their_locations(catalog: MemoryCatalog) -> None:
    table = written("memory://touched")
    table.sync("hive")
    before = dict(registered(catalog).locations)
    table.upsert([ride(0, "a")])

    (one,) = table.sync("hive", options={"hoodie.meta.sync.touch.partitions.enabled": "true"}).tables

    assert one.partitions_moved == 1
    assert ("move_partitions", 1) in catalog.calls
    assert registered(catalog).locations == before


def test_memory_follows_the_number_of_partitions(catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 5_000
    table = written("memory://many")
    paths = frozenset(f"2026-01-01-{number:05}" for number in range(count))
    monkeypatch.setattr("pyhudi.sync.changes._present", lambda meta, among: paths)
    meta, everything = table.state(), {"hoodie.meta.sync.incremental": "false"}
    forgetful = {"partition_names": lambda *_: [(path,) for path in paths], "add_partitions": lambda *_: None}
    for name, call in forgetful.items():
        monkeypatch.setattr(catalog, name, call)

    for options, bytes_each in (dict[str, str](), 400), (everything, 600):
        given = WriteOptions.parse(options).sync
        tracemalloc.start()
        (said,) = sync_to(catalog, meta, given).tables
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert said.compared_all
        assert peak / count < bytes_each


# ---- several at once


@pytest.mark.parametrize(
    ("is_first", "at"),
    [
        *(
            (True, call)
            for call in ("has_database", "create_database", "create_table", "add_partitions", "alter_table")
        ),
        *((False, call) for call in ("table", "locations", "add_partitions", "drop_partitions", "alter_table")),
    ],
)
def test_two_syncs_at_once_end_with_what_the_table_has(
    is_first: bool, at: str, catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow one is overtaken at one of its calls: by commits that take away and bring, and by their syncs."""
    table = written(f"memory://twice-{at}-{is_first}", [ride(1, "a"), ride(2, "b"), ride(3, "c")])
    if not is_first:
        table.sync("hive")
        table.delete_partitions(["a"])
        table.upsert([ride(4, "d")])
    original = getattr(catalog, at)
    overtaken = list[str]()

    def overtaking(*arguments: Any) -> object:
        if not overtaken:
            overtaken.append(at)
            other = HudiTable.open(table.path)
            other.upsert([ride(5, "a"), ride(6, "e")])
            other.sync("hive")
            other.delete_partitions(["b"])
            other.sync("hive")
        return original(*arguments)

    monkeypatch.setattr(catalog, at, overtaking)
    table.sync("hive")

    assert overtaken
    assert cities(catalog) == ({"a", "c", "e"} if is_first else {"a", "c", "d", "e"})
    table.sync("hive")
    assert cities(catalog) == ({"a", "c", "e"} if is_first else {"a", "c", "d", "e"})
    assert registered(catalog).table.properties[SYNCED] == table.history(1)[0].instant_time


def test_a_sync_that_newer_columns_pass_ends_with_them(catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = written("memory://newer-columns")
    table.sync("hive")
    table.upsert([{**ride(0, "a"), "fare": 1.5}])
    original = catalog.alter_table

    def slow(*arguments: Any) -> None:
        monkeypatch.setattr(catalog, "alter_table", original)
        other = HudiTable.open(table.path)
        other.upsert([{**ride(0, "a"), "fare": 1.5, "tip": 2.5}])
        other.sync("hive")
        original(*arguments)

    monkeypatch.setattr(catalog, "alter_table", slow)
    table.sync("hive")

    assert [one.name for one in registered(catalog).table.columns][-2:] == ["fare", "tip"]


def test_a_sync_that_another_one_passes_drops_nothing_that_stays(
    catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It decided to drop a partition, which another one registers meanwhile: it is there after the slow one alone."""
    table = written("memory://passed")
    table.sync("hive")
    table.delete_partitions(["a"])
    original = catalog.drop_partitions

    def slow(database: str, name: str, partitions: list[PartitionValues], batch: int) -> None:
        monkeypatch.undo()
        other = HudiTable.open(table.path)
        other.upsert([ride(5, "a")])
        there = registered(catalog)
        there.locations["a",] = "memory://passed/a"
        times = {SYNCED: other.history(1)[0].instant_time}
        there.table = replace(there.table, properties={**there.table.properties, **times})
        original(database, name, partitions, batch)

    monkeypatch.setattr(catalog, "drop_partitions", slow)
    sync_to(catalog, table.state(), WriteOptions.parse({"hoodie.table.name": "rides"}).sync)

    assert cities(catalog) == {"a", "b"}


# ---- forms


@pytest.mark.parametrize("package", ["", "org.apache.hudi.hive.", "org.apache.hudi.sync.common.model.partextractor."])
@pytest.mark.parametrize(
    ("extractor", "folder", "values"),
    [
        ("SinglePartPartitionValueExtractor", "2026/10/01", ("2026-10-01",)),
        ("SlashEncodedDayPartitionValueExtractor", "2026/10/01", ("2026-10-01",)),
        ("SlashEncodedDayPartitionValueExtractor", "2026/1/2", ("2026-01-02",)),
        ("SlashEncodedHourPartitionValueExtractor", "2026/10/01/07", ("2026-10-01-07",)),
        ("MultiPartKeysValueExtractor", "x=y", ("y",)),
        ("NonPartitionedExtractor", "x", None),
    ],
)
def test_values_come_from_paths_by_the_extractor(
    extractor: str, folder: str, values: tuple[str, ...] | None, package: str, catalog: MemoryCatalog
) -> None:
    name = f"memory://extracted-{package}{extractor}-{folder}".replace("/", "-").replace(":--", "://")
    table = written(name, [ride(1, folder)])

    table.sync("hive", options={f"{SYNC}partition_extractor_class": package + extractor})

    there = registered(catalog)
    assert set(there.locations) == (set() if values is None else {values})
    assert [one.name for one in there.table.partition_keys] == ([] if values is None else ["city"])
    assert all(place == f"{name}/{folder}" for place in there.locations.values())


@pytest.mark.parametrize("folder", ["2026/10", "2026/13/01", "x"])
def test_a_path_that_the_extractor_can_not_read_is_named_and_nothing_is_registered(
    folder: str, catalog: MemoryCatalog
) -> None:
    table = written(f"memory://odd-{folder.replace('/', '-')}", [ride(1, folder)])
    extractor = {f"{SYNC}partition_extractor_class": "SlashEncodedDayPartitionValueExtractor"}

    with pytest.raises(ConfigError, match=rf"{folder}.*SlashEncodedDay.*partition_extractor_class"):
        table.sync("hive", options=extractor)
    assert catalog.databases == {}


def test_two_paths_with_one_value_are_refused(catalog: MemoryCatalog) -> None:
    table = written("memory://one-value", [ride(1, "2026/10/01"), ride(2, "2026-10-01")])

    with pytest.raises(ConfigError, match="both have the value '2026-10-01' by SinglePart"):
        table.sync("hive")
    assert catalog.databases == {}


def test_a_value_with_an_equals_sign_is_whole_under_hive_style(catalog: MemoryCatalog) -> None:
    style = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    table = written("memory://equals", [ride(1, "x=y")], **style)

    table.sync("hive")

    assert set(registered(catalog).locations) == {("x=y",)}


def test_other_partition_columns_can_be_named(catalog: MemoryCatalog) -> None:
    table = written("memory://named", [ride(1, "2026/10")])
    options = {
        f"{SYNC}partition_fields": "Year,Month",
        f"{SYNC}partition_extractor_class": "MultiPartKeysValueExtractor",
    }

    table.sync("hive", options=options)

    there = registered(catalog)
    assert [(one.name, one.type) for one in there.table.partition_keys] == [("year", "string"), ("month", "string")]
    assert set(there.locations) == {("2026", "10")}
    assert "city" in [one.name for one in there.table.columns]


def test_formatted_dates_are_text_whatever_the_column_has(catalog: MemoryCatalog) -> None:
    keys = {
        "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
    }
    table = written("memory://formatted", [{"id": 1, "ts": 1767323045000}], "ts", **keys)

    table.sync("hive")

    there = registered(catalog)
    assert [one.type for one in there.table.partition_keys] == ["string"]
    assert set(there.locations) == {("2026-01-02",)}


def test_partitions_are_sent_in_batches(catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []

    def add(database: str, name: str, table: CatalogTable, added: Located, batch: int) -> None:
        batches.append(batch)

    monkeypatch.setattr(catalog, "add_partitions", add)
    written("memory://batches").sync("hive", options={f"{SYNC}batch_num": "7"})

    assert batches == [7]


@pytest.mark.parametrize("undo", ["rollback", "restore"])
def test_partitions_come_back_when_their_replacement_is_undone(catalog: MemoryCatalog, undo: str) -> None:
    table = written(f"memory://undone-{undo}")
    saved = table.savepoints.create()
    table.overwrite([ride(9, "c")])
    table.sync("hive")
    assert cities(catalog) == {"c"}

    if undo == "rollback":
        table.savepoints.delete(saved.instant_time)
        table.rollback()
    else:
        table.restore(saved.instant_time)
    table.sync("hive")

    assert cities(catalog) == {"a", "b"}


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_write_that_began_before_the_synced_commit_and_ended_after_the_sync_is_registered(
    catalog: MemoryCatalog, version: str
) -> None:
    storage = MemoryStorage()
    written(storage, **{"hoodie.write.table.version": version})
    table = HudiTable(MetaClient.load(storage))
    late = table.insert([ride(9, "late")]).instant_time
    (file,) = [path for path in storage.paths() if late in path and path.endswith(".commit") and "inflight" not in path]
    body = storage.read(file)
    storage.delete(file)
    storage.create_new(f".hoodie/.heartbeat/{late}", b"")  # its writer is alive
    newest = table.insert([ride(10, "a")])
    table.sync("hive")
    assert "late" not in cities(catalog)

    completed = file if version == "6" else f"{file.rpartition('/')[0]}/{late}_{int(newest.completion_time) + 5}.commit"
    storage.create_new(completed, body)
    table.sync("hive")

    assert cities(catalog) == {"a", "b", "late"}


@settings(deadline=None, max_examples=examples(15))
@given(st.integers(0, 10**6))
def test_after_any_life_the_partitions_with_files_are_registered(seed: int) -> None:
    random = Random(seed)
    with pytest.MonkeyPatch.context() as patch, catalogs_in_memory(patch) as catalog:
        kind = random.choice(["COPY_ON_WRITE", "MERGE_ON_READ"])
        path = f"memory://life-{seed}-{len(_LIVES)}"
        _LIVES.append(path)
        table = written(path, **{"hoodie.datasource.write.table.type": kind, **_SHORT})
        for step in range(random.randrange(4, 10)):
            with suppress(HudiError):  # some undo what can't be undone
                _live(table, random, step)
            if random.random() < 0.4:
                table.sync("hive")
        table.sync("hive")

        present = {row["partition_path"] for row in table.inspect.partitions().to_pylist() if row["files"]}
        for there in catalog.databases["default"].values():
            assert {values[0] for values in there.locations} == present


_LIVES: list[str] = []
_SHORT = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5", "hoodie.clean.commits.retained": "2"}


def _live(table: HudiTable, random: Random, step: int) -> None:
    """One change of a table's life."""
    row = ride(step, random.choice("abcd"))
    match random.choice(
        ["upsert", "drop", "overwrite", "partition", "rollback", "delete", "cluster", "save", "restore"]
    ):
        case "upsert":
            table.upsert([row], options=_SHORT)
        case "drop":
            table.delete_partitions([random.choice("abcd")], options=_SHORT)
        case "overwrite":
            table.overwrite([row], options=_SHORT)
        case "partition":
            table.insert_overwrite([row], options=_SHORT)
        case "rollback":
            table.rollback(options=_SHORT)
        case "delete":
            table.delete(where=f"city = '{random.choice('abcd')}'", options=_SHORT)
        case "cluster":
            table.cluster(options=_SHORT)
        case "save":
            table.savepoints.create(options=_SHORT)
        case _ if saved := table.savepoints.list():
            table.restore(saved[-1].instant_time, options=_SHORT)
