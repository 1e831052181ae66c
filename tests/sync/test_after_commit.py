"""A sync at the end of a call that committed: when there is one, that it fails nobody, and what the page shows."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.cli.main import main
from pyhudi.errors import ConfigError, MissingLibrary, StorageError
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.catalogs import syncing
from pyhudi.sync import calls
from pyhudi.sync.catalog import CatalogTable
from tests.support.catalogs import MemoryCatalog
from tests.support.glue import WatchedGlue, refusal
from tests.support.pages import run_examples

ROWS = [{"id": i, "city": "ab"[i % 2], "ts": 1} for i in range(4)]
SYNC = "hoodie.datasource.hive_sync."
ON = {f"{SYNC}enable": "true"}
_TOOL, _META = "hoodie.meta.sync.client.tool.class", "hoodie.datasource.meta.sync.enable"
GLUE = {_TOOL: "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool"}
_GLUES = {"glue": "pyhudi.sync.glue:open_glue"}
NEXT = [{"id": 9, "city": "c", "ts": 2}]


def written(path: str, rows: Any = ROWS, **options: str) -> HudiTable:
    given = {"hoodie.metadata.enable": "false", "hoodie.table.name": "rides", **options}
    write_hudi(path, rows, record_key="id", partition_by="city", ordering="ts", options=given)
    return HudiTable.open(path)


def partitions(catalog: MemoryCatalog, name: str = "rides") -> set[str]:
    return {values[0] for values in catalog.databases["default"][name].locations}


@pytest.mark.parametrize(
    "options",
    [
        ON,
        {"hoodie.datasource.meta.sync.enable": "true"},
        {"hoodie.meta.sync.client.tool.class": "org.apache.hudi.hive.HiveSyncTool"},
    ],
)
def test_a_write_registers_its_table_when_an_option_asks_for_it(
    options: dict[str, str], catalog: MemoryCatalog
) -> None:
    table = written(f"memory://{next(iter(options))}", **options)
    assert partitions(catalog) == {"a", "b"}

    table.upsert(NEXT, options=options)
    assert partitions(catalog) == {"a", "b", "c"}


def test_no_write_registers_a_table_otherwise(catalog: MemoryCatalog) -> None:
    tool = {"hoodie.meta.sync.client.tool.class": "org.apache.hudi.hive.HiveSyncTool"}
    written("memory://unregistered")
    written("memory://turned-off", **tool, **{f"{SYNC}enable": "false"})

    assert catalog.calls == []


def test_deletes_statements_and_undoings_are_followed(catalog: MemoryCatalog) -> None:
    table = written("memory://followed", **ON)

    table.delete_partitions(["a"], options=ON)
    assert partitions(catalog) == {"b"}
    table.upsert(NEXT, options=ON)
    table.rollback(options=ON)
    assert partitions(catalog) == {"b"}


def test_a_table_in_the_place_of_another_is_registered_where_it_is_at_last(
    catalog: MemoryCatalog, tmp_path: Path
) -> None:
    path = str(tmp_path / "rides")
    written(path, **ON)
    write_hudi(path, NEXT, record_key="id", partition_by="city", ordering="ts", mode="replace", options=ON)

    (location,) = catalog.databases["default"]["rides"].locations.values()
    assert location == f"file:{path}/c"


def test_the_sync_holds_no_lock(catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    short = {"hoodie.write.lock.wait_time_ms": "50"}

    def writes_itself(database: str) -> bool:
        monkeypatch.undo()
        HudiTable.open("memory://unlocked").upsert([{"id": 5, "city": "d", "ts": 3}], options=short)
        return False

    monkeypatch.setattr(catalog, "has_database", writes_itself)
    table = written("memory://unlocked", **ON, **short)
    assert table.count() == 5


def test_a_sync_that_fails_only_warns_and_the_next_one_catches_up(catalog: MemoryCatalog) -> None:
    table = written("memory://catches-up", **ON)
    catalog.refuses = "add_partitions"

    with pytest.warns(UserWarning, match=r"commit is complete.*next sync catches up.*no rights to add_partitions"):
        result = table.upsert(NEXT, options=ON)
    assert result.instant_time
    assert table.count() == 5
    assert partitions(catalog) == {"a", "b"}

    catalog.refuses = ""
    table.upsert([{"id": 0, "city": "a", "ts": 5}], options=ON)
    assert partitions(catalog) == {"a", "b", "c"}


def test_a_metastore_that_does_not_answer_is_warned_of(catalog: MemoryCatalog) -> None:
    with pytest.warns(UserWarning, match="No Hive metastore answers: thrift://nobody"):
        written("memory://nobody", **ON, **{f"{SYNC}metastore.uris": "thrift://nobody"})
    with pytest.raises(StorageError, match="No Hive metastore answers"):
        HudiTable.open("memory://nobody").sync("hive", options={f"{SYNC}metastore.uris": "thrift://nobody"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({f"{SYNC}mode": "jdbc"}, "jdbc"),
        ({f"{SYNC}mode": "hiveql"}, "hiveql"),
        ({f"{SYNC}use_jdbc": "true"}, "use_jdbc"),
        ({f"{SYNC}partition_extractor_class": "com.example.Mine"}, "other Java classes"),
        ({"hoodie.meta.sync.client.tool.class": "org.apache.hudi.sync.datahub.DataHubSyncTool"}, "by DataHubSyncTool"),
        ({"hoodie.datasource.meta.sync.glue.all_partitions_read_parallelism": "11"}, "expected 1 to 10, found 11"),
        ({"hoodie.datasource.meta.sync.glue.partition_index_fields": "a,b,c,d"}, "up to 3 indexes"),
        ({"hoodie.datasource.meta.sync.glue.partition_index_fields": "a;,b"}, "up to 3 indexes"),
        ({"hoodie.datasource.meta.sync.glue.resource_tags": "team"}, "expected key:value"),
        ({f"{SYNC}table_properties": "no pair"}, "lines of key=value"),
        ({"hoodie.meta.sync.no_partition_metadata": "true"}, "no_partition_metadata"),
    ],
)
def test_what_can_not_be_done_is_refused_before_anything_is_written(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        written("memory://refused", **ON, **options)
    assert not HudiTable.exists("memory://refused")


@pytest.mark.parametrize("extra", ["hive", "glue"])
def test_a_missing_client_is_named_before_anything_is_written(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syncing, "find_spec", lambda name: None)

    path = f"memory://no-client-{extra}"
    with pytest.raises(MissingLibrary, match=rf"pyhudi\[{extra}\]"):
        written(path, **(ON if extra == "hive" else GLUE))
    assert not HudiTable.exists(path)
    with pytest.raises(MissingLibrary, match=rf"sync\('{extra}'\) needs .*pyhudi\[{extra}\]"):
        written(path).sync(extra)


def test_other_catalogs_are_refused_by_name(catalog: MemoryCatalog) -> None:
    with pytest.raises(ConfigError, match=r"registered in hive, glue, bigquery; found 'glu'. Did you mean 'glue'\?"):
        written("memory://elsewhere").sync("glu")


# ---- several catalogs


@pytest.mark.parametrize(
    ("options", "catalogs"),
    [
        (GLUE, ("glue",)),
        ({_TOOL: "AwsGlueCatalogSyncTool, org.apache.hudi.hive.HiveSyncTool"}, ("glue", "hive")),
        ({**GLUE, **ON}, ("glue", "hive")),
        ({**GLUE, _META: "true"}, ("glue",)),
        ({**GLUE, _META: "true", f"{SYNC}enable": "false"}, ("glue",)),
        ({_META: "true"}, ("hive",)),
        ({**GLUE, _META: "false"}, ()),
        ({**GLUE, f"{SYNC}enable": "false"}, ()),
        ({_TOOL: "other.Tool", f"{SYNC}enable": "false"}, ()),
    ],
)
def test_options_name_the_catalogs_of_each_commit(options: dict[str, str], catalogs: tuple[str, ...]) -> None:
    assert WriteOptions.parse(options).sync.catalogs == catalogs


def test_a_commit_is_registered_in_each_catalog_and_one_that_fails_keeps_no_other_from_it(
    catalog: MemoryCatalog, glue: WatchedGlue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "CATALOGS", replace(calls.CATALOGS, entries={**calls.CATALOGS.entries, **_GLUES}))
    both = {**GLUE, **ON}
    table = written("memory://both", **both)
    assert partitions(catalog) == partitions_at(glue) == {"a", "b"}

    glue.failures["batch_create_partition"] = [refusal("AccessDeniedException", "not authorized")]
    with pytest.warns(UserWarning, match=r"commit is complete, but it is not registered at AWS Glue .*not authorized"):
        assert table.upsert(NEXT, options=both).instant_time
    assert (partitions(catalog), partitions_at(glue)) == ({"a", "b", "c"}, {"a", "b"})

    table.upsert([{"id": 0, "city": "a", "ts": 5}], options=both)
    assert partitions_at(glue) == {"a", "b", "c"}
    assert table.count() == 5


def partitions_at(glue: WatchedGlue) -> set[str]:
    return {
        one["Values"][0] for one in glue.client.get_partitions(DatabaseName="default", TableName="rides")["Partitions"]
    }


def test_the_result_says_what_was_done(catalog: MemoryCatalog) -> None:
    table = written("memory://said")

    first, second = table.sync("hive"), table.sync("HIVE")
    table.upsert([{"id": 9, "city": "c", "ts": 2, "fare": 1.5}])
    third = table.sync("hive").to_dict()

    assert "default.rides created, 2 partitions added" in str(first)
    assert [one.action for one in second.tables] == ["unchanged"]
    assert third["catalog"] == "the catalog in memory"
    (said,) = third["tables"]
    assert (said["action"], said["columns_added"], said["partitions_added"]) == ("changed", ["fare"], 1)


def test_the_command_line_registers_a_table(
    catalog: MemoryCatalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(str(tmp_path / "rides"))

    assert main(["sync", "hive", str(tmp_path / "rides"), "--option", f"{SYNC}database=lake", "--json"]) == 0

    (said,) = json.loads(capsys.readouterr().out)["tables"]
    assert (said["name"], said["action"]) == ("lake.rides", "created")
    assert list(catalog.databases["lake"]["rides"].locations) == [("a",), ("b",)]


def test_the_examples_of_the_page_run(catalog: MemoryCatalog, tmp_path: Path) -> None:
    path = str(tmp_path / "rides")
    written(path)
    assert isinstance(catalog, MemoryCatalog)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_examples("docs/catalogs", {"/data/rides": path}, {"changes": NEXT})
    registered = catalog.databases["lake"]["rides"].table
    assert isinstance(registered, CatalogTable)
    assert registered.location == f"file:{path}"
