"""What a condition beyond the predicate tree says of columns skips files, and never one with a row that passes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from pyhudi import ConfigError, HudiTable, write_hudi
from pyhudi.expressions.binding import bind
from pyhudi.expressions.filters import truth_of
from pyhudi.expressions.predicates import Constant, Predicate, SqlText
from pyhudi.expressions.statistics.implied import implied_predicate
from pyhudi.expressions.text import typed_value
from pyhudi.expressions.where import parse_where
from pyhudi.expressions.where_text import to_sql
from tests.support.values.predicates import PREDICATES, ROWS, SCHEMA, keeps

COLUMNS = pa.schema(
    [("n", pa.int32()), ("m", pa.int64()), ("s", pa.string()), ("ok", pa.bool_()), ("day", pa.date32())]
)


@settings(deadline=None)
@given(ROWS, PREDICATES)
def test_a_row_for_which_a_condition_is_true_passes_what_it_implies(
    rows: list[dict[str, Any]], predicate: Predicate
) -> None:
    data = pa.Table.from_pylist(rows, schema=SCHEMA)
    for truth in (True, False):
        try:
            implied = bind(implied_predicate(typed_value(to_sql(predicate), SCHEMA), truth), SCHEMA)
        except ConfigError:
            continue  # it needs Spark, or a literal is no value of its column
        for row, answer in zip(rows, truth_of(implied, data).to_pylist(), strict=True):
            assert answer is True or keeps(predicate, row) is not truth, (implied, row)


@pytest.mark.parametrize(
    ("where", "implied"),
    [
        ("n = 1 OR m + 1 = 2 AND s = 'a'", "n = 1 OR s = 'a'"),
        ("NOT (n > 1 AND m + 1 = 2)", "TRUE"),
        ("NOT (n > 1 OR m + 1 = 2)", "n <= 1"),
        ("(m + 1 = 2 AND n IN (1, NULL)) OR n NOT IN (5, 6)", "n IN (1, NULL) OR NOT (n IN (5, 6))"),
        ("CAST(n AS BIGINT) = 7 AND m + 1 > 2", "n = 7"),
        ("7 < n AND (s LIKE 'a%' OR s IS NULL AND m + 1 = 2)", "n > 7 AND (s LIKE 'a%' OR s IS NULL)"),
        ("ok AND n + 1 = 2 OR day >= '2024-01-02'", "ok = TRUE OR day >= DATE '2024-01-02'"),
        ("s LIKE 'a|%' ESCAPE '|'", "TRUE"),
        ("s = 5 OR n = 1", "TRUE"),
        ("CAST(m AS INT) = 7", "TRUE"),
        ("CASE WHEN n = 1 THEN ok END", "TRUE"),
    ],
)
def test_what_is_no_comparison_of_a_column_with_a_constant_implies_nothing(where: str, implied: str) -> None:
    bound = bind(SqlText(where), COLUMNS)
    assert isinstance(bound, SqlText)
    assert bound.implied == bind(parse_where(implied), COLUMNS)
    assert (bound.implied == Constant(True)) is (implied == "TRUE")


def test_files_are_skipped_by_what_a_text_implies(tmp_path: Any) -> None:
    rows = pa.table({"id": range(100), "part": [i // 10 for i in range(100)], "n": range(100)})
    write_hudi(tmp_path / "t", rows, record_key="id", partition_by="part")
    table = HudiTable.open(tmp_path / "t")

    scan = table.scan(["id"], where="part = 1 AND n % 10 = 5 OR n + 0 = 27 AND part = 2")
    assert scan.files().num_rows == 2
    assert sorted(scan.to_arrow()["id"].to_pylist()) == [15, 27]
    assert table.count("n = 15 AND n + 0 < 20 OR n + 0 = 27 AND part = 3") == 1
