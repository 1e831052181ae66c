"""What is registered equals what real HiveSyncTool wrote, table by table and step by step."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.storage import open_storage
from pyhudi.sync.catalog import CatalogColumn
from pyhudi.sync.result import SyncResult
from pyhudi.sync.syncing import sync_to
from tests.support.catalogs import MemoryCatalog, comparable, oracle_cases, oracle_steps, stored_as_oracle

# Where we take a side of our own; each has a test below.
_DIFFERENT = {"comments": (0,), "mor_skip_ro_suffix": (1,), "not_incremental": (1,)}


def synced(catalog: MemoryCatalog, folder: Path, options: dict[str, str]) -> SyncResult:
    meta = MetaClient.load(open_storage(str(folder)))
    return sync_to(catalog, meta, WriteOptions.parse(options, None, meta.config).sync)


@pytest.mark.parametrize("name", [name for name in oracle_cases() if name not in ("no_auto_database", "colon")])
def test_tables_are_registered_as_real_hudi_registers_them(name: str, tmp_path: Path) -> None:
    catalog = MemoryCatalog()

    for number, folder, options, step in oracle_steps(name, tmp_path):
        result = synced(catalog, folder, options)
        if number in _DIFFERENT.get(name, ()):
            continue
        expected = stored_as_oracle(step, folder)
        database = catalog.databases[options["hoodie.datasource.hive_sync.database"]]

        assert database.keys() == expected.keys()
        for table, there in expected.items():
            assert comparable(database[table], name, step["hudi"]) == comparable(there, name, step["hudi"]), table
        assert result.instant_time == step["instants"][-1]["requested"]


@pytest.mark.parametrize("name", ["cow", "mor", "types", "odd_values_encoded", "dropped_partition", "given_properties"])
def test_a_sync_without_news_changes_nothing(name: str, tmp_path: Path) -> None:
    catalog = MemoryCatalog()
    for _, folder, options, _step in oracle_steps(name, tmp_path):
        synced(catalog, folder, options)

    catalog.calls.clear()
    again = synced(catalog, folder, options)

    assert {table.action for table in again.tables} == {"unchanged"}
    assert {call for call, _ in catalog.calls} == {"has_database", "table"}


@pytest.mark.parametrize("name", ["cow", "mor_by_0_15_0", "metadata_table", "dropped_partition_mor", "added_column"])
def test_a_sync_goes_on_with_what_real_hudi_has_registered(name: str, tmp_path: Path) -> None:
    catalog = MemoryCatalog()
    for number, folder, options, step in oracle_steps(name, tmp_path):
        expected = stored_as_oracle(step, folder)
        database = options["hoodie.datasource.hive_sync.database"]
        if number:
            synced(catalog, folder, options)
            for table, there in expected.items():
                one = catalog.databases[database][table]
                assert comparable(one, name, step["hudi"]) == comparable(there, name, step["hudi"])
        catalog.databases[database] = stored_as_oracle(step, folder)


# ---- where Hudi is not copied


def test_comments_are_there_after_the_first_sync(tmp_path: Path) -> None:
    catalog = MemoryCatalog()
    _, folder, options, _ = next(oracle_steps("comments", tmp_path))

    synced(catalog, folder, options)

    columns = {one.name: one for one in catalog.databases["db_comments"]["comments"].table.columns}
    assert columns["id"].comment == "the key"
    assert columns["v"].comment == 'a "quoted" value'
    assert columns["n"] == CatalogColumn("n", "struct<x:int>", "outer")


def test_the_plain_name_stays_the_read_optimised_view_that_skip_ro_suffix_asks_for(tmp_path: Path) -> None:
    catalog = MemoryCatalog()
    for _, folder, options, _step in oracle_steps("mor_skip_ro_suffix", tmp_path):
        synced(catalog, folder, options)

    tables = catalog.databases["db_mor_skip_ro_suffix"]
    shown = {name: one.table.serde_properties["hoodie.query.as.ro.table"] for name, one in tables.items()}
    assert shown == {"mor_skip_ro_suffix": "true", "mor_skip_ro_suffix_rt": "false"}
    assert len(tables["mor_skip_ro_suffix"].locations) == 4


def test_a_full_comparison_drops_deleted_partitions(tmp_path: Path) -> None:
    catalog = MemoryCatalog()
    for _, folder, options, _step in oracle_steps("not_incremental", tmp_path):
        synced(catalog, folder, options)

    assert set(catalog.databases["db_not_incremental"]["not_incremental"].locations) == {("p0",), ("p2",)}


def test_a_missing_database_is_refused_when_none_may_be_made(tmp_path: Path) -> None:
    catalog = MemoryCatalog()
    _, folder, options, _ = next(oracle_steps("no_auto_database", tmp_path))

    with pytest.raises(ConfigError, match=r"no database 'db_no_auto_database'.*auto_create_database"):
        synced(catalog, folder, options)
    assert not catalog.databases
