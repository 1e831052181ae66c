"""Partition columns in Delta: with the values that our own reader gives, or as plain columns where paths don't tell."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pyhudi import HudiTable, write_hudi
from tests.support.exports.delta import assert_equal, by_delta

HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
DROPPED = {"hoodie.datasource.write.drop.partition.columns": "true"}
TIMES = {
    "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}
ODD = ["a b", "c%d", "e=f", "ü+&", None, "default", "x#y"]
DAYS = [date(2026, 11, 28), date(1969, 1, 2), None]


def exported(path: Path, values: pa.Array | Mapping[str, pa.Array], options: Mapping[str, str]) -> DeltaTable:
    columns: dict[str, Any] = dict(values) if isinstance(values, Mapping) else {"p": values}
    count = len(next(iter(columns.values())))
    rows = pa.table({"id": pa.array(range(count)), **columns})
    given = {"hoodie.metadata.enable": "false", **options}
    write_hudi(str(path), rows, record_key="id", partition_by=list(columns), options=given)
    table = HudiTable.open(path)
    table.export_metadata("delta")
    assert_equal(table)
    assert len(by_delta(path)) == count

    table.upsert(pa.table({**{name: rows[name][:1] for name in columns}, "id": pa.array([99])}), options=given)
    table.export_metadata("delta")
    assert_equal(table)
    return DeltaTable(path)


@pytest.mark.parametrize(
    "options", [{}, HIVE, ENCODED, {**HIVE, **ENCODED}], ids=["plain", "hive", "encoded", "hive encoded"]
)
@pytest.mark.parametrize(
    "values",
    [pa.array(ODD), pa.array([1, -5, None]), pa.array(DAYS), pa.array([True, False, None])],
    ids=["text", "number", "day", "flag"],
)
def test_a_partition_column_has_its_values_and_its_type(
    values: pa.Array, options: dict[str, str], tmp_path: Path
) -> None:
    table = exported(tmp_path, values, options)

    assert table.metadata().partition_columns == ["p"]


@pytest.mark.parametrize("options", [{}, {**HIVE, **ENCODED}], ids=["plain", "hive encoded"])
def test_two_levels_have_both_values(options: dict[str, str], tmp_path: Path) -> None:
    table = exported(tmp_path, {"day": pa.array(DAYS), "city": pa.array(["a b", "c%", None])}, options)

    assert table.metadata().partition_columns == ["day", "city"]


@pytest.mark.parametrize("options", [DROPPED, {**DROPPED, **HIVE, **ENCODED}], ids=["plain", "hive encoded"])
def test_columns_that_files_leave_out_have_the_values_of_the_paths(options: dict[str, str], tmp_path: Path) -> None:
    table = exported(tmp_path, pa.array(["a b", "c%d", None]), options)

    assert table.metadata().partition_columns == ["p"]
    assert {row["p"] for row in table.to_pyarrow_table().to_pylist()} == {"a b", "c%d", None}


@pytest.mark.parametrize(
    ("values", "options"),
    [
        (pa.array([1_700_000_000_000, 1_800_000_000_000, None]), TIMES),
        (pa.array([1.5, 2.0, None]), {}),
    ],
    ids=["formatted times", "floating point"],
)
def test_a_column_whose_values_paths_do_not_tell_is_a_plain_one(
    values: pa.Array, options: dict[str, str], tmp_path: Path
) -> None:
    table = exported(tmp_path, values, options)

    assert table.metadata().partition_columns == []
    assert "p" in [field.name for field in table.schema().fields]


def test_a_table_is_made_again_without_partition_columns_when_a_path_comes_that_tells_no_value(tmp_path: Path) -> None:
    exported(tmp_path, {"p": pa.array(["a", "b"]), "q": pa.array(["c", "d"])}, {})
    table = HudiTable.open(tmp_path)
    table.upsert(pa.table({"p": ["with/slash"], "q": ["e"], "id": pa.array([7])}))

    result = table.export_metadata("delta")

    assert "partition path" in result.replaced
    assert DeltaTable(tmp_path).metadata().partition_columns == []
    assert_equal(table)


def test_paths_are_encoded_once_in_the_log(tmp_path: Path) -> None:
    exported(tmp_path, pa.array(["50% off"]), {**HIVE, **ENCODED})

    log = (tmp_path / "_delta_log" / f"{0:020}.json").read_text()

    assert '"path":"p=50%2525%20off/' in log
    assert '"partitionValues":{"p":"50% off"}' in log
