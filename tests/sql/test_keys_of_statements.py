"""Keys and partition values of statements are refused where a cast would make others of them; so are texts that a
condition compares with whole numbers.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import ConfigError, HudiTable, SchemaMismatch

duckdb = pytest.importorskip("duckdb")
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.int32()), ("v", pa.int64())])
STORED = [{"id": 1, "p": 1, "v": 1}, {"id": 2, "p": 1, "v": 2}]


def made(path: Path) -> HudiTable:
    table = HudiTable.create(path / "t", SCHEMA, record_key="id", partition_by="p")
    table.upsert(STORED)
    return table


def run(table: HudiTable, statement: str) -> list[dict[str, object]]:
    pyhudi.sql(statement.replace("{t}", f"hudi.`{table.path}`"))
    return table.to_arrow(["id", "p", "v"]).sort_by("id").to_pylist()


@pytest.mark.parametrize(
    ("statement", "column", "value"),
    [
        ("INSERT INTO {t} (id, v, p) VALUES (1.4, 9, 1)", "id", r"Decimal\('1.4'\)"),
        ("INSERT INTO {t} (id, v, p) VALUES (1.4D, 9, 1)", "id", r"1\.4"),
        ("INSERT INTO {t} (id, v, p) VALUES (7, 9, 1.6)", "p", r"Decimal\('1.6'\)"),
        ("INSERT INTO {t} BY NAME SELECT 1.4 AS id, 9 AS v, 1 AS p", "id", r"Decimal\('1.4'\)"),
        ("INSERT INTO {t} PARTITION (p = 1.4) VALUES (7, 9)", "p", r"Decimal\('1.4'\)"),
        ("INSERT INTO {t} PARTITION (p = '01') VALUES (7, 9)", "p", "'01'"),
        ("INSERT OVERWRITE {t} PARTITION (p = 1.4) VALUES (7, 9)", "p", r"Decimal\('1.4'\)"),
        (
            "MERGE INTO {t} t USING (SELECT 7 AS id, '1.5' AS p) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
            "p",
            r"'1\.5'",
        ),
        (
            "MERGE INTO {t} t USING (SELECT 1 AS id, '1.5' AS p) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET p = s.p",
            "p",
            r"'1\.5'",
        ),
    ],
)
def test_a_statement_whose_key_a_cast_would_change_is_refused(
    tmp_path: Path, statement: str, column: str, value: str
) -> None:
    table = made(tmp_path)
    with pytest.raises(SchemaMismatch, match=rf"Column '{column}' makes keys or partition paths: .*such as {value}"):
        run(table, statement)
    assert table.to_arrow(["id", "p", "v"]).sort_by("id").to_pylist() == STORED


def test_keys_of_another_type_with_the_same_value_are_written(tmp_path: Path) -> None:
    table = made(tmp_path)
    run(table, "INSERT INTO {t} (id, v, p) VALUES (3.0, 3, CAST(1 AS BIGINT)), (4, 4, 1)")
    new = [{"id": number, "p": 1, "v": number} for number in (3, 4, 5)]
    assert run(table, "INSERT INTO {t} PARTITION (p = '1') VALUES (5D, 5)") == [*STORED, *new]


def test_a_key_inside_a_struct_is_refused_too(tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.struct([("a", pa.int64()), ("b", pa.int64())])), ("v", pa.int64())])
    table = HudiTable.create(tmp_path / "t", schema, record_key="k.a")
    with pytest.raises(SchemaMismatch, match=r"Column 'k\.a' makes keys.*Decimal\('1.4'\)"):
        pyhudi.sql(f"INSERT INTO hudi.`{table.path}` VALUES (named_struct('a', 1.4, 'b', 2), 3)")
    pyhudi.sql(f"INSERT INTO hudi.`{table.path}` VALUES (named_struct('a', 1, 'b', 2), 3)")
    assert table.to_arrow(["k"]).to_pylist() == [{"k": {"a": 1, "b": 2}}]


@pytest.mark.parametrize(
    "condition",
    [
        "id = '1.5'",
        "'1.5' = id",
        "v < 9 AND id IN (1, '1.5')",
        "id NOT IN ('x')",
        "id BETWEEN '0.6' AND '1'",
        "t.id <=> ''",
    ],
)
@pytest.mark.parametrize("statement", ["DELETE FROM {t} AS t", "UPDATE {t} AS t SET v = 100"])
def test_whole_numbers_are_not_compared_with_other_texts(tmp_path: Path, statement: str, condition: str) -> None:
    table = made(tmp_path)
    with pytest.raises(ConfigError, match=r"compares the column id of type int64 with '.*', which is no whole number"):
        run(table, f"{statement} WHERE {condition}")
    assert table.to_arrow(["id", "p", "v"]).sort_by("id").to_pylist() == STORED


@pytest.mark.parametrize(
    "condition",
    [
        "id = '1'",
        "id IN ('1', 5)",
        "v = 1 AND CAST(id AS STRING) = '1'",
        "id IN (SELECT w.id FROM (SELECT 1 AS id, 'x' AS w) w WHERE w = 'x')",
    ],
)
def test_texts_of_whole_numbers_and_other_texts_are_compared(tmp_path: Path, condition: str) -> None:
    assert run(made(tmp_path), f"DELETE FROM {{t}} WHERE {condition}") == STORED[1:]


def test_a_merge_by_texts_of_the_source_says_the_cast(tmp_path: Path) -> None:
    table = made(tmp_path)
    merge = "MERGE INTO {t} t USING (SELECT '1.5' AS id, 9 AS v) s ON t.id = %s WHEN MATCHED THEN UPDATE SET v = s.v"
    with pytest.raises(ConfigError, match=r"the column id of type int64 with texts of the source.*CAST\(… AS bigint\)"):
        run(table, merge % "s.id")
    with pytest.raises(ConfigError, match=r"no whole number: '1\.5'"):
        run(table, merge % "CAST(s.id AS BIGINT)")
    with pytest.raises(ConfigError, match=r"with '1\.5', which is no whole number"):
        run(table, merge.replace(" WHEN", " AND t.v <> '1.5' WHEN") % "s.v")
    assert table.to_arrow(["id", "p", "v"]).sort_by("id").to_pylist() == STORED
    assert run(table, merge.replace("1.5", "1") % "CAST(s.id AS BIGINT)")[0] == {"id": 1, "p": 1, "v": 9}


@pytest.mark.parametrize(
    ("kind", "value", "stays"),
    [
        (pa.string(), "NULL", ["2", "3"]),
        (pa.string(), "'a b'", ["1", "3"]),
        (pa.int32(), "NULL", ["2", "3"]),
        (pa.int32(), "07", ["1", "3"]),
        (pa.int32(), "3 + 4", ["1", "3"]),
        (pa.date32(), "DATE'1970-01-08'", ["1", "3"]),
        (pa.date32(), "NULL", ["2", "3"]),
        (pa.bool_(), "TRUE", ["1", "3"]),
        (pa.decimal128(5, 2), "7.0", ["1", "3"]),
        (pa.int64(), "7", ["1", "3"]),
    ],
)
def test_an_overwrite_without_rows_empties_the_partition_that_it_names(
    tmp_path: Path, kind: pa.DataType, value: str, stays: list[str]
) -> None:
    stored = {pa.string(): ["a b", "c"], pa.bool_(): [True, False]}.get(kind, [7, 8])
    schema = pa.schema([("id", pa.string()), ("p", kind)])
    table = HudiTable.create(tmp_path / "t", schema, record_key="id", partition_by="p")
    table.upsert(pa.table({"id": ["1", "2", "3"], "p": pa.array([None, *stored], kind)}))
    pyhudi.sql(f"INSERT OVERWRITE hudi.`{table.path}` PARTITION (p = {value}) SELECT 'x' AS id WHERE false")
    assert sorted(table.to_arrow(["id"]).column("id").to_pylist()) == stays
    pyhudi.sql(f"INSERT OVERWRITE hudi.`{table.path}` PARTITION (p = {value}) SELECT 'x' AS id")
    assert sorted(table.to_arrow(["id"]).column("id").to_pylist()) == [*stays, "x"]


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("clauses", "values"),
    [
        ("WHEN MATCHED THEN UPDATE SET v = s.v", [1, 20]),
        ("WHEN MATCHED THEN DELETE", [1]),
        ("WHEN MATCHED AND s.v > 0 THEN UPDATE SET v = 0 - s.v WHEN NOT MATCHED THEN INSERT *", [10, -20, 30]),
        ("WHEN NOT MATCHED THEN INSERT *", [10, 2, 30]),
        ("WHEN NOT MATCHED AND s.v > 10 THEN INSERT *", [1, 2, 30]),
    ],
)
def test_a_null_partition_value_does_not_match_in_a_merge(
    tmp_path: Path, table_type: str, clauses: str, values: list[int]
) -> None:
    table = HudiTable.create(tmp_path / "t", SCHEMA, record_key="id", partition_by="p", table_type=table_type)
    table.upsert([{"id": 1, "p": None, "v": 1}, {"id": 2, "p": 1, "v": 2}])
    source = "SELECT * FROM VALUES (1L, CAST(NULL AS INT), 10L), (2L, 1, 20L), (3L, 1, 30L) AS q(id, p, v)"
    rows = run(table, f"MERGE INTO {{t}} t USING ({source}) s ON t.id = s.id AND t.p = s.p {clauses}")
    assert [row["v"] for row in rows] == values
