"""Filters beyond the predicate tree: an engine of SQL evaluates them, and the other terms still skip files."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from pyhudi import ConfigError, HudiTable, write_hudi
from pyhudi.errors import MissingLibrary
from pyhudi.expressions.binding import bind
from pyhudi.expressions.engines import zone_name
from pyhudi.expressions.filters import to_arrow, truth_of
from pyhudi.expressions.predicates import Not, SqlText
from pyhudi.expressions.values import EngineValue, sql_value
from pyhudi.expressions.where import parse_where
from tests.support.values.conditions import ANSWERS, ROWS

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    path = tmp_path_factory.mktemp("conditions") / "t"
    write_hudi(path, ROWS, record_key="id", partition_by="City")
    return HudiTable.open(path)


@pytest.mark.thorough
@pytest.mark.parametrize("where", ANSWERS)
def test_a_condition_keeps_the_rows_that_spark_keeps(table: HudiTable, where: str) -> None:
    assert sorted(table.scan(["id"], where=where).to_arrow()["id"].to_pylist()) == ANSWERS[where]
    assert table.count(where) == len(ANSWERS[where])
    assert table.head(2, ["id"], where).num_rows == min(2, len(ANSWERS[where]))


def test_terms_that_the_tree_knows_skip_files_and_explain_names_the_other_ones(table: HudiTable) -> None:
    scan = table.scan(["id"], where="city = 'oslo' AND n + 1 > 15 AND id < 18")
    assert scan.files().num_rows == 1
    lines = scan.explain().splitlines()
    assert "  not pushed  n + 1 > 15: evaluated for each row" in lines
    assert (
        "  filter      City = 'oslo' AND (n + 1 > 15) AND id < 18 (row groups by their statistics, then each row)"
        in lines
    )
    assert "(each row)" in table.scan(where="n + 1 > 15").explain()
    assert "not pushed" not in table.scan(where="n > 15").explain()


@pytest.mark.thorough
def test_the_terms_of_the_tree_come_first_so_that_they_guard_the_others(table: HudiTable) -> None:
    assert table.count("d <> 0 AND 6 / d > 5") == 7
    with pytest.raises(ConfigError, match="Division by zero"):
        table.count("6 / d > 5")


def test_names_are_found_in_any_case_and_the_exact_one_wins(
    tmp_path: Path, table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyhudi.actions.writes.new_columns.check_twins", lambda *_: None)  # other writers make them
    assert table.count("CITY = 'oslo' AND ID < 4") == 2
    assert table.count([("cItY", "=", "oslo"), ("st.x", "<", 4)]) == 2
    write_hudi(tmp_path / "t", pa.table({"id": [1, 2], "a": [1, 2], "A": [2, 1]}), record_key="id")
    cased = HudiTable.open(tmp_path / "t")
    assert cased.to_arrow(["id"], "A = 1")["id"].to_pylist() == [2]
    assert cased.to_arrow(["id"], "a = 1")["id"].to_pylist() == [1]
    with pytest.raises(ConfigError, match="does not have"):
        cased.count("iD = 1 AND Aa = 1")


@pytest.mark.thorough
def test_rows_are_deleted_and_updated_by_such_conditions(tmp_path: Path) -> None:
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        rows = pa.table({"id": range(10), "d": [i % 3 for i in range(10)], "n": [0] * 10})
        write_hudi(tmp_path / kind, rows, record_key="id", table_type=kind)
        table = HudiTable.open(tmp_path / kind)
        assert table.delete(where="d <> 0 AND 2 / d > 1").deleted == 3
        assert table.update("id % 2 = 1 AND d = 0", set={"n": 5}).updated == 2
        assert sorted(table.to_arrow(["id", "n"]).to_pylist(), key=lambda row: row["id"]) == [
            {"id": i, "n": 5 if i in (3, 9) else 0} for i in range(10) if i % 3 != 1
        ]


@pytest.mark.thorough
def test_merged_rows_are_filtered_as_they_are_now(tmp_path: Path) -> None:
    options = {"hoodie.compact.inline": "false"}
    for n in (1, 100):
        rows = pa.table({"id": range(5), "n": range(n, n + 5)})
        write_hudi(tmp_path / "t", rows, record_key="id", table_type="MERGE_ON_READ", options=options)
    table = HudiTable.open(tmp_path / "t")
    assert table.count("n + 0 < 50") == 0
    assert table.to_arrow(["id"], "n + 0 = 103")["id"].to_pylist() == [3]


def test_a_condition_is_an_arrow_expression_among_others() -> None:
    rows = pa.table({"n": [1, 2, None, 4], "m": [1, 1, 1, 1]})
    bound = bind(Not(SqlText("N % 2 = 0")), rows.schema)
    assert rows.filter(to_arrow(bound, rows.schema))["n"].to_pylist() == [1]
    assert rows.filter(to_arrow(bind(parse_where("1 + 1 = 2"), rows.schema), rows.schema)).num_rows == 4


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("n + 1", "is of type int64; expected true or false"),
        ("nosuch + 1 = 2", "where names the column 'nosuch', which the table does not have"),
        ("nosuch(n, d) = 2", "nosuch"),
        ("Cit = 'x' OR n + 1 = 2", "where names the column 'Cit', which the table does not have. Did you mean 'City'"),
    ],
)
def test_what_no_engine_knows_is_refused_before_a_row_is_read(table: HudiTable, where: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _ = table.scan(where=where).plan
    assert says in str(caught.value)


def test_without_an_engine_the_error_names_the_extra(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyhudi.sql import duckdb_values

    for name in [name for name in sys.modules if name.partition(".")[0] in ("duckdb", "pyspark")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.setattr(duckdb_values, "_databases", {})
    with pytest.raises(MissingLibrary, match=r"where: 'n % 7 > 5'.*pip install 'pyhudi\[sql\]'"):
        table.count("n % 7 > 5")
    assert table.count("n > 5") == table.count("n + 1 > 6") > 0


@pytest.mark.thorough
def test_parts_of_moments_are_those_of_the_zone(tmp_path: Path) -> None:
    midnight = datetime(2024, 1, 1, tzinfo=timezone.utc)
    rows = pa.table({"t": [midnight], "n": [1]})
    wheres = ["hour(t) + 1 = 2", "hour(t) = 1", "hour(t) IN (1, 5)", "n = 1 AND date_format(t, 'HH') LIKE '01%'"]
    for where in map(parse_where, wheres):
        for zone, kept in ((timezone.utc, 0), (ZoneInfo("Europe/Berlin"), 1), (timezone(timedelta(hours=1)), 1)):
            assert truth_of(bind(where, rows.schema, zone), rows).to_pylist() == [bool(kept)]
            assert rows.filter(to_arrow(bind(where, rows.schema, zone), rows.schema)).num_rows == kept
    with pytest.raises(ConfigError, match="whole hours"):
        zone_name(timezone(timedelta(minutes=30)))
    write_hudi(tmp_path / "t", pa.table({"id": [1], "t": [midnight]}), record_key="id")
    with pytest.raises(ConfigError, match="says no time zone"):
        HudiTable.open(tmp_path / "t").delete(where="t + INTERVAL 1 DAY > TIMESTAMP '2024-01-01 00:00:00'")


def test_a_value_of_set_is_that_of_the_zone() -> None:
    rows = pa.table({"t": [datetime(2024, 1, 1, tzinfo=timezone.utc)], "n": [5]})
    for zone, hour in ((None, 0), (ZoneInfo("Europe/Berlin"), 1), (timezone(timedelta(hours=1)), 1)):
        value = sql_value("hour(t)", rows.schema, "set=", zone=zone)
        assert isinstance(value, EngineValue)
        assert value(rows).to_pylist() == [hour]
    odd = timezone(timedelta(hours=5, minutes=30))
    assert not isinstance(sql_value("n + 1", rows.schema, "set=", zone=odd), EngineValue)
    with pytest.raises(ConfigError, match=r"set=: 'hour\(t\)'.*whole hours"):
        sql_value("hour(t)", rows.schema, "set=", zone=odd)


def test_a_guard_before_a_text_holds_where_unknown_answers_count() -> None:
    rows = pa.table({"d": [0, 1, 3, None], "n": [1, None, 1, 1]})
    bound = bind(parse_where("d <> 0 AND 6 / d > 5"), rows.schema)
    assert truth_of(bound, rows).to_pylist() == [False, True, False, None]
    bound = bind(parse_where("n = 1 AND d + 1 = 4"), rows.schema)
    assert truth_of(bound, rows).to_pylist() == [False, False, True, None]
