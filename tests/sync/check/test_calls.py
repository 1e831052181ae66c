"""A check by its doors: Python, the command line, and with a catalog."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.cli.main import main
from pyhudi.errors import ConfigError, StorageError
from pyhudi.results import SyncCheck
from pyhudi.sync.catalog import CatalogColumn
from pyhudi.sync.check.rules import ENGINES
from tests.support.catalogs import MemoryCatalog, catalogs_in_memory

ROWS = [{"id": i, "city": "ab"[i % 2], "ts": 1} for i in range(4)]
URIS = {"hoodie.datasource.hive_sync.metastore.uris": "thrift://here:9083"}
NO_METADATA = {"hoodie.metadata.enable": "false"}


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> Any:
    with catalogs_in_memory(monkeypatch) as catalog:
        yield catalog


def written(path: str, version: int = 9, rows: Any = ROWS, **arguments: Any) -> HudiTable:
    options = {**NO_METADATA, "hoodie.table.name": "rides"}
    given = {"record_key": "id", "partition_by": "city", "ordering": "ts", **arguments}
    write_hudi(path, rows, table_version=version, options=options, **given)
    return HudiTable.open(path)


def test_a_check_says_of_each_engine_whether_it_reads_the_table() -> None:
    checked = written("memory://check-all").sync_check()

    reads = {one.engine: one.reads for one in checked.engines}
    assert reads.keys() == ENGINES.keys()
    assert (reads["athena"], reads["trino"], reads["doris"], reads["duckdb"]) == ("no", "all", "not known", "all")
    assert not checked
    assert [one.level for one in checked.findings] == sorted(
        (one.level for one in checked.findings), key=["unreadable", "wrong", "unknown", "note"].index
    )
    assert "can't be read by: athena" in str(checked)


def test_a_check_of_one_engine_is_true_where_there_is_no_problem() -> None:
    checked = written("memory://check-one").sync_check("trino")

    assert checked.ok
    assert [one.engine for one in checked.engines] == ["trino"]
    assert {one.engine for one in checked.findings} == {"trino"}


def test_an_empty_table_is_checked_too() -> None:
    table = HudiTable.create(
        "memory://check-empty", pa.schema({"id": pa.int64()}), record_key="id", options=NO_METADATA
    )

    checked = table.sync_check()
    assert checked.instant_time is None
    assert "as of no commit" in str(checked)


def test_a_check_changes_nothing(tmp_path: Path) -> None:
    table = written(str(tmp_path / "t"), table_type="MERGE_ON_READ")
    table.upsert([{"id": 0, "city": "a", "ts": 2}], options=NO_METADATA)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "t").rglob("*")}

    table.sync_check()

    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "t").rglob("*")} == before


def test_findings_are_json_and_rows() -> None:
    table = written("memory://check-json", table_type="MERGE_ON_READ")
    commit = table.upsert([{"id": 0, "city": "a", "ts": 2}], options=NO_METADATA)
    checked = table.sync_check("trino")

    said = json.loads(checked.to_json())
    (problem,) = [one for one in said["findings"] if one["level"] == "wrong"]
    assert (problem["rows"], problem["is_bound"], problem["since"]) == (1, False, commit.instant_time)
    rows = checked.to_arrow()
    assert rows.num_rows == len(checked.findings)
    assert rows.column("rows").to_pylist() == [one.rows for one in checked.findings]


def test_an_engine_that_no_rule_is_about_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"found 'Trinoo'. Did you mean 'trino'"):
        written("memory://check-unknown").sync_check("Trinoo")


def test_the_command_line_ends_with_3_where_there_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "t")
    written(path)

    assert main(["sync", "check", path, "--engine", "trino"]) == 0
    assert main(["sync", "check", path, "--engine", "athena"]) == 3
    assert f"pyhudi downgrade {path} --to 6" in capsys.readouterr().out
    assert main(["sync", "check", path, "--engine", "nobody"]) == 1


# ---- with a catalog


def about(checked: SyncCheck) -> dict[str, str]:
    return {one.about: one.text for one in checked.findings if one.engine == "hive" and one.source != ""
            and one.run.startswith(("table.sync", "drop"))}  # fmt: skip


def test_a_table_that_is_registered_as_it_is_has_no_finding(catalog: MemoryCatalog) -> None:
    table = written("memory://check-registered")
    table.sync("hive", options=URIS)
    catalog.calls.clear()

    checked = table.sync_check("trino", options=URIS)

    assert checked.ok
    assert about(checked) == {}
    assert checked.catalog == "the catalog in memory"
    assert {call for call, _ in catalog.calls} == {
        "has_database", "table", "partition_names", "locations", "own_columns",
    }  # fmt: skip


def test_without_a_named_catalog_none_is_asked(catalog: MemoryCatalog) -> None:
    written("memory://check-unasked").sync_check()
    written("memory://check-by-path").sync_check("duckdb", options=URIS)

    assert catalog.calls == []


def test_what_is_not_registered_is_said_with_its_rows(catalog: MemoryCatalog) -> None:
    table = written("memory://check-partitions")
    assert "is not registered" in about(table.sync_check("hive", options=URIS))["registration"]
    table.sync("hive", options=URIS)
    table.upsert([{"id": n, "city": "c", "ts": 2} for n in (8, 9)], options=NO_METADATA)
    table.delete_partitions(["a"], options=NO_METADATA)

    checked = table.sync_check("hive", options=URIS)

    found = [one for one in checked.findings if one.about == "partitions"]
    assert {(one.level, one.rows) for one in found} == {("wrong", 2), ("note", None)}
    assert "2 commits behind" in about(checked)["last sync"]
    assert not checked


def test_columns_and_the_partitions_own_columns_are_compared(catalog: MemoryCatalog) -> None:
    table = written("memory://check-columns")
    table.sync("hive", options=URIS)
    registered = catalog.databases["default"]["rides"]
    registered.columns_of = {values: columns[:-1] for values, columns in registered.columns_of.items()}
    wider = tuple(replace(one, type="int") if one.name == "ts" else one for one in registered.table.columns)
    registered.table = replace(registered.table, columns=(*wider, CatalogColumn("old", "int")))

    found = about(table.sync_check("hive", options=URIS))

    assert "columns of another type: ts; columns not in the table: old" in found["columns"]
    assert "2 of 2 partitions have other columns" in found["partitions' columns"]


def test_another_place_is_a_problem_of_table_and_partitions(catalog: MemoryCatalog) -> None:
    table = written("memory://check-places")
    table.sync("hive", options=URIS)
    registered = catalog.databases["default"]["rides"]
    registered.locations = dict.fromkeys(registered.locations, "memory://check-other/a")
    assert "2 partitions are registered elsewhere" in about(table.sync_check("hive", options=URIS))["locations"]

    registered.table = replace(registered.table, location="memory://check-other")
    assert "a table at memory://check-other" in about(table.sync_check("hive", options=URIS))["registration"]


def test_a_catalog_that_does_not_answer_is_an_error(catalog: MemoryCatalog) -> None:
    table = written("memory://check-silent")
    catalog.refuses = "has_database"

    with pytest.raises(StorageError, match="no rights to has_database"):
        table.sync_check(options=URIS)
