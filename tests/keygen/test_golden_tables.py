"""Keys of tables that real Hudi wrote: made again from the data columns of their files, equal to the meta columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import keygen
from tests.support.golden.folder import SHARED, GoldenTable

Golden = Callable[[str, str], GoldenTable]

# No data for a key: automatic keys are counted, virtual keys are not stored, dropped columns are not in the files.
NOT_FROM_FILES = {"keys_auto", "keys_virtual", "keys_drop_partition_columns"}
CONSISTENT = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
STORED_ENCODING = "hoodie.table.complex.keygenerator.encoding"

TABLES = [
    (path.parent.name, path.stem)
    for path in sorted((SHARED / "golden").glob("*/keys_*.json"))
    if path.stem not in NOT_FROM_FILES
]


def files(table: Path) -> list[pa.Table]:
    found = [path for path in table.rglob("*.parquet") if ".hoodie" not in path.parts]
    return [pq.ParquetFile(path).read() for path in found]


def properties(table: Path) -> dict[str, str]:
    lines = (table / ".hoodie" / "hoodie.properties").read_text().splitlines()
    # Values escape ":" and "=" as Java's Properties do.
    pairs = (line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return {key: value.replace("\\:", ":").replace("\\=", "=").replace("\\\\", "\\") for key, value in pairs}


def assert_keys_are_those_in(data: pa.Table, options: dict[str, str], version: int) -> None:
    field = options.get("hoodie.datasource.write.recordkey.field") or options["hoodie.table.recordkey.fields"]
    if keygen.generator_name(options) == "COMPLEX" and "," not in field:
        form = keygen.detect_single_key_encoding(data["_hoodie_record_key"].to_pylist(), field)
        options = {**options, STORED_ENCODING: form or ""}
    generator = keygen.from_options(options, table_version=version, schema=data.schema)
    columns = generator.columns(data.combine_chunks().to_batches()[0])

    assert columns.record_key.to_pylist() == data["_hoodie_record_key"].to_pylist()
    assert columns.partition_path.to_pylist() == data["_hoodie_partition_path"].to_pylist()


def with_what_the_option_says(name: str) -> dict[str, str]:
    """The bulk-insert row writer spells timestamps as if the consistent option were on."""
    return {CONSISTENT: "true"} if name == "keys_typed_bulk_insert" else {}


def test_there_are_golden_tables(shared: Any) -> None:
    assert len(TABLES) >= 25


@pytest.mark.parametrize(("version", "name"), TABLES)
def test_the_writers_options_make_the_keys_of_the_table(golden: Golden, version: str, name: str) -> None:
    table, description = golden(version, name)
    for data in files(table):
        options = {**description["options"], **with_what_the_option_says(name)}
        assert_keys_are_those_in(data, options, description["table_version"])


# What hoodie.properties does not hold: slash-separated dates, and for CUSTOM all settings of time, in any version; the
# partition types of CUSTOM and the timestamp type of TIMESTAMP before version 8.
NOT_IN_PROPERTIES = {
    "keys_slash_dates": ("slash.separated",),
    "keys_custom": ("partitionpath.field", "timebased"),
    "keys_custom_slashes": ("partitionpath.field", "timebased"),
    "keys_timestamp_number": ("timestamp.type",),
    "keys_timestamp_text": ("timestamp.type",),
}
ALWAYS_MISSING = ("slash.separated", "timebased")


@pytest.mark.parametrize(("version", "name"), TABLES)
def test_the_tables_own_properties_make_the_same_keys(golden: Golden, version: str, name: str) -> None:
    table, description = golden(version, name)
    table_version = description["table_version"]
    options = {**properties(table), **with_what_the_option_says(name)}
    missing = [part for part in NOT_IN_PROPERTIES.get(name, ()) if table_version < 8 or part in ALWAYS_MISSING]
    options |= {k: v for k, v in description["options"].items() if any(part in k for part in missing)}
    for data in files(table):
        assert_keys_are_those_in(data, options, table_version)


def test_write_probes_agree_where_hudi_took_the_write(shared: Any) -> None:
    """Whole writes by real Hudi 1.2.0 with doubtful keys; the inputs are known from the names and the keys."""
    probes = json.loads((shared / "golden" / "keygen-write-probes.json").read_text())["probes"]
    write = "hoodie.datasource.write."
    slashes = {write + "slash.separated.date.partitioning": "true"}
    dates = ("hoodie.keygen.timebased.timestamp.type", "hoodie.keygen.timebased.output.dateformat")
    micros = pa.array([1705311000123456], pa.timestamp("us", tz="UTC"))
    typed = {"id": micros, "p": pa.array([-1], pa.int32()).cast(pa.date32())}
    asked: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
        "timestamp_bulk_insert": (
            {write + "keygenerator.type": "TIMESTAMP", dates[0]: "EPOCHMILLISECONDS", dates[1]: "yyyyMMdd"},
            {"id": ["a"], "p": [1705311000000]},
        ),
        "timestamp_column": (
            {write + "keygenerator.type": "TIMESTAMP", dates[0]: "EPOCHMICROSECONDS", dates[1]: "yyyyMMdd"},
            {"id": ["a"], "p": micros},
        ),
        "slash_hive": (
            {**slashes, write + "hive_style_partitioning": "true"},
            {"id": ["a"], "p": ["2024-01-15"]},
        ),
        "slash_not_a_date": (slashes, {"id": ["a"], "p": ["x-y"]}),
        "slash_in_partition": ({}, {"id": ["a"], "p": ["a/b"]}),
        "typed_key_bulk_insert": ({CONSISTENT: "true"}, typed),
        "typed_key_bulk_insert_no_row_writer": ({}, typed),
        "binary_key": ({}, {"id": pa.array([b"abc"]), "p": ["x"]}),
    }
    for name, (options, data) in asked.items():
        fields = {write + "recordkey.field": "id", write + "partitionpath.field": "p"}
        columns = keygen.from_options({**fields, **options}).columns(pa.record_batch(data))
        found = [[columns.record_key[0].as_py(), columns.partition_path[0].as_py()]]
        assert found == probes[name]["keys"], name
