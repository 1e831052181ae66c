"""Key and partition columns that bring more than the key and the path: another moment of the day, the rest of a struct,
another partition under a global index.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import ConfigError, DuckDbSession, HudiTable, WriteResult

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
TIMEBASED = "hoodie.keygen.timebased."


def upsert(table: HudiTable, row: dict[str, Any], options: dict[str, str]) -> WriteResult:
    return table.upsert([{name: value for name, value in row.items() if name != "w"}], options=options)


def merge(table: HudiTable, row: dict[str, Any], options: dict[str, str]) -> WriteResult:
    return table.merge([row], options=options).when_matched_update_all().when_not_matched_insert_all().execute()


def overwrite(table: HudiTable, row: dict[str, Any], options: dict[str, str]) -> WriteResult:
    return table.overwrite([row], where="v IN (1, 5)", options=options)


DOORS: dict[str, Callable[[HudiTable, dict[str, Any], dict[str, str]], WriteResult]] = {
    door.__name__: door for door in (upsert, merge, overwrite)
}


def moments(path: Path, kind: str, generator: str) -> tuple[HudiTable, dict[str, str]]:
    """A table with a partition for each day, and one row of the first; and its options."""
    options = {
        f"{TIMEBASED}timestamp.type": "EPOCHMILLISECONDS",
        f"{TIMEBASED}output.dateformat": "yyyy-MM-dd",
        "hoodie.datasource.write.keygenerator.type": generator,
    }
    field = "ts" if generator == "TIMESTAMP" else "ts:TIMESTAMP"
    schema = pa.schema([(name, pa.int64()) for name in ("id", "ts", "v", "w")])
    table = HudiTable.create(path / "t", schema, record_key="id", partition_by=field, table_type=kind, options=options)
    table.upsert([{"id": 1, "ts": 1000, "v": 1, "w": 1}], options=options)
    return table, options


@KINDS
@pytest.mark.parametrize("generator", ["TIMESTAMP", "CUSTOM"])
@pytest.mark.parametrize("door", DOORS)
def test_another_moment_of_the_same_day_is_stored(tmp_path: Path, kind: str, generator: str, door: str) -> None:
    table, options = moments(tmp_path, kind, generator)
    result = DOORS[door](table, {"id": 1, "ts": 2000, "v": 5, "w": 5}, options)
    assert result.inserted == 0
    expected = [{"id": 1, "ts": 2000, "v": 5, "w": 1 if door == "upsert" else 5}]
    assert table.to_arrow(["id", "ts", "v", "w"]).to_pylist() == expected
    if kind == "MERGE_ON_READ":
        table.compact(options=options)
        assert table.to_arrow(["id", "ts", "v", "w"]).to_pylist() == expected


def test_a_slash_date_of_the_same_folder_is_stored(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.string()), ("v", pa.int64()), ("w", pa.int64())])
    options = {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}
    table = HudiTable.create(tmp_path / "t", schema, record_key="id", partition_by="day", options=options)
    table.upsert([{"id": 1, "day": "2024-01-05", "v": 1, "w": 1}])
    assert table.upsert([{"id": 1, "day": "2024/01/05", "v": 5}]).updated == 1
    stored = table.to_arrow(["v", "w", "_hoodie_partition_path"]).to_pylist()
    assert stored == [{"v": 5, "w": 1, "_hoodie_partition_path": "2024/01/05"}]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_merge_into_by_the_moment_inserts_no_second_row_of_the_key(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("duckdb")
    table, _ = moments(tmp_path, kind, "TIMESTAMP")
    pyhudi.sql(
        f"MERGE INTO hudi.`{table.path}` t USING (SELECT 1 AS id, 2000 AS ts, 5 AS v, 5 AS w) s "
        "ON t.id = s.id AND t.ts = s.ts WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert table.to_arrow(["id", "ts", "v", "w"]).to_pylist() == [{"id": 1, "ts": 2000, "v": 5, "w": 5}]


NESTED = [{"record_key": "id", "partition_by": "addr.city"}, {"record_key": "addr.city"}]


def nested(path: Path, kind: str, fields: dict[str, str]) -> HudiTable:
    address = pa.struct([("city", pa.string()), ("zip", pa.string()), ("at", pa.struct([("x", pa.int64())]))])
    schema = pa.schema([("id", pa.int64()), ("addr", address), ("v", pa.int64()), ("w", pa.int64())])
    given: dict[str, Any] = {**fields, "table_type": kind}
    table = HudiTable.create(path / "t", schema, **given)
    table.upsert([{"id": 1, "addr": {"city": "oslo", "zip": "0", "at": {"x": 3}}, "v": 1, "w": 1}])
    return table


@KINDS
@pytest.mark.parametrize("fields", NESTED, ids=["partition", "key"])
@pytest.mark.parametrize("door", DOORS)
def test_the_rest_of_a_struct_with_the_key_is_stored(
    tmp_path: Path, kind: str, fields: dict[str, str], door: str
) -> None:
    table = nested(tmp_path, kind, fields)
    address = {"city": "oslo", "zip": "9", "at": {"x": 4}}
    assert DOORS[door](table, {"id": 1, "addr": address, "v": 5, "w": 5}, {}).inserted == 0
    expected = [{"id": 1, "addr": address, "v": 5, "w": 1 if door == "upsert" else 5}]
    assert table.to_arrow(["id", "addr", "v", "w"]).to_pylist() == expected


@KINDS
@pytest.mark.parametrize("fields", NESTED, ids=["partition", "key"])
@pytest.mark.parametrize("as_arrow", [False, True], ids=["dicts", "arrow"])
def test_fields_of_a_struct_with_the_key_that_rows_lack_stay(
    tmp_path: Path, kind: str, fields: dict[str, str], as_arrow: bool
) -> None:
    table = nested(tmp_path, kind, fields)
    rows: Any = [{"id": 1, "addr": {"city": "oslo", "zip": None}, "v": 5}]
    if as_arrow:
        city = pa.struct([("city", pa.string()), ("zip", pa.string())])
        rows = pa.table({"id": [1], "addr": pa.array([rows[0]["addr"]], city), "v": [5]})
    table.upsert(rows)
    [row] = table.to_arrow(["addr", "v", "w"]).to_pylist()
    assert row == {"addr": {"city": "oslo", "zip": None, "at": {"x": 3}}, "v": 5, "w": 1}


@pytest.mark.parametrize("fields", NESTED, ids=["partition", "key"])
def test_merge_into_refuses_a_star_with_a_struct_of_the_key(tmp_path: Path, fields: dict[str, str]) -> None:
    pytest.importorskip("duckdb")
    table = nested(tmp_path, "COPY_ON_WRITE", fields)
    addr = "named_struct('city', 'oslo', 'zip', '9', 'at', named_struct('x', 4))"
    source = f"SELECT 1 AS id, {addr} AS addr, 5 AS v, 5 AS w"
    with pytest.raises(ConfigError, match="name the other columns where"):
        pyhudi.sql(f"MERGE INTO hudi.`{table.path}` t USING ({source}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *")
    assert table.to_arrow(["v"]).to_pylist() == [{"v": 1}]


INDEXES = {
    "GLOBAL_SIMPLE": "simple",
    "GLOBAL_BLOOM": "bloom",
    "GLOBAL_RECORD_LEVEL_INDEX": "record",
}


def with_global_index(path: Path, kind: str, index: str, stays: bool) -> tuple[HudiTable, dict[str, str]]:
    options = {"hoodie.index.type": index}
    if index == "GLOBAL_RECORD_LEVEL_INDEX":
        options["hoodie.metadata.global.record.level.index.enable"] = "true"
    options[f"hoodie.{INDEXES[index]}.index.update.partition.path"] = "false" if stays else "true"
    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64()), ("w", pa.int64())])
    table = HudiTable.create(path / "t", schema, record_key="id", partition_by="p", table_type=kind, options=options)
    table.upsert([{"id": 1, "p": "x", "v": 1, "w": 1}], options=options)
    return table, options


@KINDS
@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("door", ["upsert", "overwrite"])
def test_a_row_without_all_columns_does_not_stay_behind_when_it_would_move(
    tmp_path: Path, kind: str, index: str, door: str
) -> None:
    table, options = with_global_index(tmp_path, kind, index, stays=False)
    with pytest.raises(ConfigError, match=r"key '1' is in the partition 'x'.*has it in 'y'.*with all columns"):
        DOORS[door](table, {"id": 1, "p": "y", "v": 5, "w": 5}, options)
    assert table.to_arrow(["p", "v", "w"]).to_pylist() == [{"p": "x", "v": 1, "w": 1}]
    assert len(table.history()) == 1
    table.upsert([{"id": 1, "p": "y", "v": 5, "w": 5}], options=options)
    assert table.to_arrow(["p", "v", "w"]).to_pylist() == [{"p": "y", "v": 5, "w": 5}]


@pytest.mark.parametrize("index", INDEXES)
def test_a_row_stays_where_the_index_says_so(tmp_path: Path, index: str) -> None:
    table, options = with_global_index(tmp_path, "COPY_ON_WRITE", index, stays=True)
    assert upsert(table, {"id": 1, "p": "y", "v": 5}, options).updated == 1
    stored = table.to_arrow(["_hoodie_partition_path", "v", "w"]).to_pylist()
    assert stored == [{"_hoodie_partition_path": "x", "v": 5, "w": 1}]


@KINDS
def test_a_merge_leaves_the_row_and_its_partition_value(tmp_path: Path, kind: str) -> None:
    table, options = with_global_index(tmp_path, kind, "GLOBAL_SIMPLE", stays=False)
    assert merge(table, {"id": 1, "p": "y", "v": 5}, options).updated == 1
    assert table.to_arrow(["p", "v"]).to_pylist() == [{"p": "x", "v": 5}]
    [stored] = {row["p"] for file in Path(table.path).glob("x/*.parquet") for row in pq.read_table(file).to_pylist()}
    assert stored == "x"


def test_a_merge_does_not_put_the_moment_of_another_day_into_a_partition(tmp_path: Path) -> None:
    table, options = moments(tmp_path, "COPY_ON_WRITE", "TIMESTAMP")
    options["hoodie.index.type"] = "GLOBAL_SIMPLE"
    with pytest.raises(ConfigError, match=r"in the partition '1970-01-01'.*has it in '1970-01-02'"):
        merge(table, {"id": 1, "ts": 86_400_000, "v": 5}, options)
    assert merge(table, {"id": 1, "ts": 3000, "v": 5}, options).updated == 1
    assert table.to_arrow(["ts", "v", "w"]).to_pylist() == [{"ts": 3000, "v": 5, "w": 1}]


def test_rows_without_the_partition_column_are_found_by_a_global_index(tmp_path: Path) -> None:
    table, options = with_global_index(tmp_path, "COPY_ON_WRITE", "GLOBAL_SIMPLE", stays=False)
    assert table.merge([{"id": 1, "v": 5}], options=options).when_matched_update_all().execute().updated == 1
    assert table.to_arrow(["p", "v"]).to_pylist() == [{"p": "x", "v": 5}]


@pytest.mark.parametrize("condition", ["t.id = s.id AND t.p = s.p", "t.id = s.id AND t.p = s.p AND t.v < s.v"])
def test_merge_into_does_not_take_a_row_of_another_partition_for_its_own(tmp_path: Path, condition: str) -> None:
    pytest.importorskip("duckdb")
    table, options = with_global_index(tmp_path, "COPY_ON_WRITE", "GLOBAL_SIMPLE", stays=False)
    session = DuckDbSession(options=options)
    with pytest.raises(ConfigError, match="row of key '1' is in the partition 'x'"):
        session.sql(
            f"MERGE INTO hudi.`{table.path}` t USING (SELECT 1 AS id, 'y' AS p, 5 AS v, 5 AS w) s ON {condition} "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
    assert table.to_arrow(["p", "v"]).to_pylist() == [{"p": "x", "v": 1}]
