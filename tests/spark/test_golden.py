"""Tables that real Hudi wrote, read through Spark: the rows that real Hudi returned.

The Arrow reader is proven on all of them in tests/golden; here the same plan goes the other road.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.meta_client import MetaClient
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches
from pyhudi.spark.engine import collect_arrow
from pyhudi.spark.reader import read_frame
from pyhudi.storage import open_storage
from tests.support.golden.cases import as_stored, fixture_names, golden_names, open_fixture
from tests.support.golden.folder import SHARED
from tests.support.golden.rows import differences

Golden = Callable[[str, str], tuple[Path, dict[str, Any]]]

# Per family at least one of each writer's; types, keys and schema changes of all of them.
TABLES = [
    ("1.2.0", "cow_operations"), ("1.0.2", "cow_operations"), ("0.15.0", "cow_operations"),
    ("1.2.0", "cow_bulk_insert_sort_modes"), ("1.2.0", "cow_insert_overwrite_table"),
    ("1.2.0", "evolution_add_columns"), ("0.15.0", "evolution_add_columns"), ("1.2.0", "evolution_drop_column"),
    ("1.2.0", "evolution_missing_columns"), ("1.2.0", "evolution_promotion"), ("0.15.0", "evolution_promotion"),
    ("1.2.0", "evolution_schema_on_read"), ("1.0.2", "evolution_schema_on_read"),
    ("1.2.0", "index_bucket"), ("1.2.0", "state_failed_writer"), ("0.15.0", "state_savepoint_and_rollback"),
    ("1.2.0", "keys_complex_two"), ("1.2.0", "keys_custom"), ("0.15.0", "keys_custom"),
    ("1.2.0", "keys_drop_partition_columns"), ("0.15.0", "keys_drop_partition_columns"), ("1.2.0", "keys_nested"),
    ("1.2.0", "keys_nonpartitioned"), ("1.2.0", "keys_simple_hive_url"), ("0.15.0", "keys_simple_hive_url"),
    ("1.2.0", "keys_simple_int_partition"), ("1.2.0", "keys_slash_dates"), ("1.2.0", "keys_timestamp_number"),
    ("0.15.0", "keys_timestamp_text"), ("1.2.0", "keys_typed"), ("1.2.0", "keys_virtual"), ("1.0.2", "keys_virtual"),
    ("0.15.0", "types_insert"), ("0.15.0", "types_bulk_insert"), ("1.0.2", "types_insert"),
    ("1.0.2", "types_bulk_insert"), ("1.2.0", "types_insert"), ("1.2.0", "types_bulk_insert"),
    ("1.2.0", "types_null_elements"), ("1.2.0", "types_timestamp_ntz"),
]  # fmt: skip
WITH_LOGS = [
    ("1.2.0", "g2_logs_avro"), ("1.2.0", "g2_logs_parquet"), ("1.2.0", "g2_logs_multiblock"),
    ("1.2.0", "g2_logs_corrupt_garbage_then_whole"), ("0.15.0", "g2_logs_rollback"), ("1.0.2", "g2_logs_failed_commit"),
    ("1.2.0", "g2_merge_event_time"), ("0.15.0", "g2_merge_event_time"), ("1.2.0", "g2_merge_multi_ordering"),
    ("1.2.0", "g2_merge_partial"), ("0.15.0", "g2_payload_partial_update_mor"),
]  # fmt: skip
TRAVELS = [
    ("1.2.0", "g2_merge_event_time"),
    ("1.2.0", "cow_operations"),
    ("0.15.0", "evolution_promotion"),
    ("1.2.0", "evolution_schema_on_read"),
]


def name_of(value: Any) -> str:
    return "-".join(value) if isinstance(value, tuple) else str(value)


def arrow_rows(path: Path, as_of: str | None = None) -> pa.Table:
    meta = MetaClient.load(open_storage(path))
    plan = plan_snapshot(meta, Query(as_of=as_of))
    return pa.Table.from_batches(list(read_batches(plan, meta.storage)), plan.schema)


def expectations(description: dict[str, Any]) -> list[dict[str, Any]]:
    description = dict(as_stored(description))
    return [description[key] for key in ("expected_by_1.2.0", "expected") if key in description]


def check(spark: Any, path: Path, accepted: list[Any], as_of: str | None = None, log_bytes: int | None = None) -> None:
    options = {"as.of.instant": as_of} if as_of else {}
    if log_bytes is not None:
        options["hoodie.pyhudi.read.log.driver.max.bytes"] = str(log_bytes)
    found = collect_arrow(read_frame(spark, str(path), options))

    # Real Hudi shows the field of its TIMESTAMP generator as text, whatever the column is; compatibility.md tells.
    as_text = ["ts"] if path.name == "keys_timestamp_number" else []
    problems = [differences(rows, found, as_text=as_text) for rows in accepted if isinstance(rows, list)]
    assert [] in problems, problems[0][:6]
    same = arrow_rows(path, as_of)
    assert found.schema.names == same.schema.names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, same.to_pylist()))


@pytest.mark.parametrize("table", TABLES, ids=name_of)
def test_a_table_of_real_hudi_reads_as_real_hudi_reads_it(table: tuple[str, str], golden: Golden, spark: Any) -> None:
    path, description = golden(*table)

    check(spark, path, [expected["snapshot"] for expected in expectations(description)])


@pytest.mark.thorough
@pytest.mark.parametrize("log_bytes", [0, 1 << 20], ids=["tasks", "driver"])
@pytest.mark.parametrize("table", WITH_LOGS, ids=name_of)
def test_slices_with_log_files_are_merged_by_tasks_and_by_the_driver(
    table: tuple[str, str], log_bytes: int, golden: Golden, spark: Any
) -> None:
    path, description = golden(*table)

    check(spark, path, [expected["snapshot"] for expected in expectations(description)], log_bytes=log_bytes)


@pytest.mark.thorough
def test_a_sample_table_with_log_files_returns_what_hudi_rs_returns(tmp_path: Path, spark: Any) -> None:
    if not SHARED.is_dir():
        pytest.skip("shared/ is absent")
    path, expected = open_fixture("quickstart_trips_table__mor__avro__v8_trips_8i3u1d", tmp_path)

    found = collect_arrow(read_frame(spark, str(path), {}))

    kept = [name for name in found.column_names if name not in ("_hoodie_file_name", "_hoodie_commit_seqno")]
    assert differences(expected["snapshot"], found.select(kept), "fixture") == []


@pytest.mark.thorough
@pytest.mark.parametrize("table", TRAVELS, ids=name_of)
def test_time_travel_reads_the_table_as_it_was(table: tuple[str, str], golden: Golden, spark: Any) -> None:
    path, description = golden(*table)
    instants = description["expected"]["as_of"]

    assert instants
    for as_of in instants:
        check(spark, path, [e["as_of"][as_of] for e in expectations(description) if as_of in e["as_of"]], as_of)


def same_rows_on_both_roads(spark: Any, path: Path, as_of: str | None = None) -> None:
    """The Arrow reader is held against real Hudi's answers in tests/golden."""
    found = collect_arrow(read_frame(spark, str(path), {"as.of.instant": as_of} if as_of else {}))
    same = arrow_rows(path, as_of)
    assert found.schema.names == same.schema.names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, same.to_pylist())), as_of


@pytest.mark.thorough
@pytest.mark.parametrize("table", [t for t in golden_names("cow") if t not in TABLES], ids=name_of)
def test_spark_and_arrow_return_the_same_rows_of_every_other_table(
    table: tuple[str, str], golden: Golden, spark: Any
) -> None:
    same_rows_on_both_roads(spark, golden(*table)[0])


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in fixture_names() if "__cow__" in name])
def test_spark_and_arrow_return_the_same_rows_of_sample_tables(name: str, tmp_path: Path, spark: Any) -> None:
    same_rows_on_both_roads(spark, open_fixture(name, tmp_path)[0])


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("table", golden_names("cow"), ids=name_of)
def test_spark_and_arrow_travel_to_the_same_rows(table: tuple[str, str], golden: Golden, spark: Any) -> None:
    path, description = golden(*table)

    for as_of, rows in (description["expected"].get("as_of") or {}).items():
        if isinstance(rows, list):
            same_rows_on_both_roads(spark, path, as_of)


def test_the_families_of_the_list_are_there() -> None:
    if not SHARED.is_dir():
        pytest.skip("shared/ is absent")
    for tables, kind in ((TABLES, "cow"), (WITH_LOGS, "mor")):
        for version, name in tables:
            assert json.loads((SHARED / "golden" / version / f"{name}.json").read_text())["type"] == kind
