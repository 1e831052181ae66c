"""What a table is registered as, and what can't be: nothing new is there then."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import time
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import HudiError, SchemaMismatch, StorageError, TableExists, UnsupportedTable
from tests.support.catalogs import MemoryCatalog, Registered

ROWS = [{"id": i, "city": "ab"[i % 2], "ts": 1} for i in range(4)]
SYNC = "hoodie.datasource.hive_sync."
RECREATE = {f"{SYNC}recreate_table_on_error": "true"}


def written(path: str, rows: Any = ROWS, partition_by: str = "city", **options: str) -> HudiTable:
    given = {"hoodie.metadata.enable": "false", "hoodie.table.name": "rides", **options}
    write_hudi(path, rows, record_key="id", partition_by=partition_by or None, ordering="ts", options=given)
    return HudiTable.open(path)


def registered(catalog: MemoryCatalog, name: str = "rides") -> Registered:
    return catalog.databases["default"][name]


def test_names_are_lower_case_for_hive_and_as_they_are_for_spark(catalog: MemoryCatalog) -> None:
    rows = pa.table({"id": [1], "ts": [1], "City": ["a"], "Fare": [{"Net": 1.5, "VAT": 2}]})
    written("memory://cases", rows, "City", **{"hoodie.table.name": "Rides"}).sync("hive")

    there = registered(catalog).table
    assert [one.name for one in there.partition_keys] == ["city"]
    assert there.columns[-1].type == "struct<net:double,vat:bigint>"
    assert [one["name"] for one in spark_schema(there.properties)["fields"]][-2:] == ["Fare", "City"]
    assert there.properties["spark.sql.sources.schema.partCol.0"] == "City"


def spark_schema(properties: Any) -> dict[str, Any]:
    count = int(properties["spark.sql.sources.schema.numParts"])
    schema: dict[str, Any] = json.loads("".join(properties[f"spark.sql.sources.schema.part.{n}"] for n in range(count)))
    return schema


def test_a_long_schema_is_cut_and_parts_that_it_has_no_longer_go(catalog: MemoryCatalog) -> None:
    table = written("memory://parts")
    table.sync("hive", options={f"{SYNC}schema_string_length_thresh": "100"})
    whole = spark_schema(registered(catalog).table.properties)

    table.sync("hive")

    properties = registered(catalog).table.properties
    assert [key for key in properties if ".schema.part." in key] == ["spark.sql.sources.schema.part.0"]
    assert spark_schema(properties) == whole


def test_meta_columns_can_be_left_out(catalog: MemoryCatalog) -> None:
    written("memory://no-meta").sync("hive", options={f"{SYNC}omit_metadata_fields": "true"})

    there = registered(catalog).table
    assert [one.name for one in there.columns] == ["id", "ts"]
    assert [one["name"] for one in spark_schema(there.properties)["fields"]] == ["id", "ts", "city"]


def test_names_come_from_the_options_or_from_the_table(catalog: MemoryCatalog) -> None:
    table = written("memory://names-of", **{"hoodie.database.name": "Lake"})
    table.sync("hive")
    table.sync("hive", options={f"{SYNC}database": "other", f"{SYNC}table": "T"})

    assert {name: list(tables) for name, tables in catalog.databases.items()} == {"lake": ["rides"], "other": ["t"]}


def test_columns_that_other_programs_have_described_keep_their_comments(catalog: MemoryCatalog) -> None:
    table = written("memory://described")
    table.sync("hive")
    there = registered(catalog)
    described = tuple(replace(one, comment="by hand") for one in there.table.columns)
    there.table = replace(there.table, columns=described, properties={**there.table.properties, "theirs": "x"})

    table.upsert([{"id": 9, "city": "c", "ts": 2, "fare": 1.5}])
    table.sync("hive")

    assert [one.comment for one in there.table.columns] == ["by hand"] * (len(described)) + [""]
    assert there.table.properties["theirs"] == "x"
    assert [one.name for one in there.columns_of["a",]][-1] == "fare"


# ---- what can't be registered


def refused(table: HudiTable, error: type[HudiError], words: str, **options: str) -> None:
    with pytest.raises(error, match=words):
        table.sync("hive", options=options)


def test_a_table_of_the_same_name_at_another_place_stays_as_it_is(catalog: MemoryCatalog) -> None:
    written("memory://first").sync("hive")
    there = registered(catalog).table

    second = written("memory://second")
    for options in ({}, RECREATE):
        refused(second, TableExists, r"rides is at memory://first, .* memory://second.*hive_sync.table", **options)
    assert registered(catalog).table == there


@pytest.mark.parametrize("location", ["s3a://lake/rides/", "s3n://lake/rides", "s3://lake/rides"])
def test_one_place_may_be_spelt_in_several_ways(location: str) -> None:
    from pyhudi.sync.definitions import same_place

    assert same_place(location, "s3://lake/rides")
    assert same_place("/lake/rides", "file:///lake/rides/")
    assert not same_place("file:/lake/rides", "s3://lake/rides")
    assert not same_place("s3://lake/rides2", location)


def test_a_view_of_the_same_name_stays_as_it_is(catalog: MemoryCatalog) -> None:
    table = written("memory://viewed")
    table.sync("hive")
    there = registered(catalog)
    there.table = replace(there.table, is_view=True)

    refused(table, TableExists, r"default\.rides is a view")


@pytest.mark.parametrize(
    ("properties", "format"),
    [({"table_type": "ICEBERG"}, "iceberg"), ({"spark.sql.sources.provider": "delta"}, "delta")],
)
def test_a_table_of_another_format_in_the_same_folder_stays_as_it_is(
    properties: dict[str, str], format: str, catalog: MemoryCatalog
) -> None:
    table = written(f"memory://exported-{format}")
    table.sync("hive")
    there = registered(catalog)
    there.table = replace(there.table, properties=properties)

    refused(table, TableExists, rf"default\.rides is a table of {format}")
    assert there.table.properties == properties


def test_other_partition_columns_are_refused_or_recreated_as_an_option_says(catalog: MemoryCatalog) -> None:
    path = "memory://other-keys"
    written(path).sync("hive")
    HudiTable.open(path).drop()
    table = written(path, partition_by="")

    refused(table, SchemaMismatch, r"partition columns \(city\).*has \(\).*recreate_table_on_error")
    assert len(registered(catalog).locations) == 2

    (one,) = table.sync("hive", options=RECREATE).tables
    assert one.action == "recreated"
    assert registered(catalog).table.partition_keys == ()


def test_a_change_that_the_catalog_refuses_is_made_by_a_new_table_when_an_option_says_so(
    catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = written("memory://narrower")
    table.sync("hive")
    table.upsert([{"id": 9, "city": "c", "ts": 2, "fare": 1.5}])
    original = catalog.alter_table

    def picky(database: str, name: str, change: Any) -> None:
        if change.columns:
            raise StorageError("incompatible types")
        original(database, name, change)

    monkeypatch.setattr(catalog, "alter_table", picky)
    refused(table, StorageError, "incompatible types")
    assert set(registered(catalog).locations) == {("a",), ("b",)}

    table.sync("hive", options=RECREATE)
    assert set(registered(catalog).locations) == {("a",), ("b",), ("c",)}
    assert registered(catalog).table.columns[-1].name == "fare"


def test_a_type_that_hive_lacks_is_refused_before_anything_is_registered(catalog: MemoryCatalog) -> None:
    table = written("memory://times", pa.table({"id": [1], "city": ["a"], "ts": [1], "at": [time(1, 2)]}))

    refused(table, UnsupportedTable, r"'at' is time64\[us\].*lacks.*Nothing was registered")
    assert catalog.databases == {}


@pytest.mark.parametrize("call", ["create_database", "create_table", "add_partitions", "alter_table"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_after_a_refusal_nothing_of_a_first_sync_stays(kind: str, call: str, catalog: MemoryCatalog) -> None:
    table = written(f"memory://half-{kind}-{call}", **{"hoodie.datasource.write.table.type": kind})
    catalog.refuses = call

    refused(table, StorageError, f"no rights to {call}")
    assert catalog.databases == {}

    catalog.refuses = ""
    table.sync("hive")
    assert len(catalog.databases["default"]) == {"cow": 1, "mor": 3}[kind]


def test_a_table_without_rows_is_registered_and_says_no_time_of_a_commit(catalog: MemoryCatalog) -> None:
    table = HudiTable.create("memory://empty", pa.schema([("id", pa.int64()), ("city", pa.string())]), record_key="id")

    assert [one.action for one in table.sync("hive").tables] == ["created"]
    assert "last_commit_time_sync" not in catalog.databases["default"]["empty"].table.properties
