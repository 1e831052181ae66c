"""Every key generator case of real Hudi, through Spark: rows go through the JVM, its workers make the keys.

All cases go in one job. Each of the 59 row types is a struct column of one DataFrame; a case's row fills the column of
its type, and `extend`, the verb that adds keys in every write, runs the case's generator on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import keygen
from pyhudi.engine.base import TaskContext
from pyhudi.errors import ConfigError
from pyhudi.spark.engine import SparkEngine
from tests.support.golden.key_cases import CASES, DIFFERENT, INSTANT, expected_of, refusal_of
from tests.support.values.ddl import batch_of, schema_from_ddl

KEYS = pa.schema([("record_key", pa.string()), ("partition_path", pa.string()), ("refused", pa.string())])


@dataclass(frozen=True)
class KeysOfCases:
    """Options by case id, and which column holds the case's row."""

    cases: dict[int, tuple[dict[str, str], str]]

    def __call__(self, context: TaskContext, batch: pa.RecordBatch) -> pa.RecordBatch:
        answers = [self.answer(case, batch.slice(row, 1)) for row, case in enumerate(batch.column("case").to_pylist())]
        return pa.RecordBatch.from_pylist(answers, schema=KEYS)

    def answer(self, case: int, row: pa.RecordBatch) -> dict[str, str | None]:
        options, column = self.cases[case]
        try:
            generator = keygen.from_options(options, current_year=2026, instant_time=INSTANT)
            fields = pa.RecordBatch.from_struct_array(row.column(column))
            found = generator.columns(fields, partition_id=3, first_row=7)
        except ConfigError as error:
            return {"record_key": None, "partition_path": None, "refused": str(error)}
        return {
            "record_key": found.record_key[0].as_py(),
            "partition_path": found.partition_path[0].as_py(),
            "refused": None,
        }


@pytest.fixture(scope="module")
def answers(spark: Any, shared: Any) -> dict[int, dict[str, Any]]:
    ddls = sorted({case["schema"] for case in CASES})
    columns: dict[str, pa.Array] = {"case": pa.array([case["id"] for case in CASES], pa.int32())}
    for index, ddl in enumerate(ddls):
        schema = schema_from_ddl(ddl)
        rows = [batch_of(schema, case["row"]).to_struct_array() if case["schema"] == ddl else None for case in CASES]
        empty = pa.nulls(1, pa.struct(list(schema)))
        columns[f"row_{index}"] = pa.concat_arrays([empty if row is None else row.cast(empty.type) for row in rows])
    work = KeysOfCases({c["id"]: (c["options"], f"row_{ddls.index(c['schema'])}") for c in CASES})
    engine = SparkEngine(spark)
    frame = engine.extend(engine.from_arrow(pa.table(columns)), list(columns), work, KEYS)
    return {row["case"]: row for row in engine.collect(engine.select(frame, ["case", *KEYS.names])).to_pylist()}


def test_every_case_was_asked(answers: dict[int, dict[str, Any]]) -> None:
    assert len(answers) == len(CASES) == 655


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_key_and_path_through_spark_are_those_of_real_hudi(
    case: dict[str, Any], answers: dict[int, dict[str, Any]]
) -> None:
    found, expected = answers[case["id"]], expected_of(case)
    automatic = "Auto" in expected.get("key_generator", "")

    if case["id"] in DIFFERENT:
        assert refusal_of(case) in found["refused"]
    elif not automatic and any(key.endswith("_error") for key in expected):
        assert found["refused"]
    else:
        assert (found["partition_path"], found["refused"]) == (expected["partition_path"], None)
        assert found["record_key"] == (f"{INSTANT}_3_7" if automatic else expected["record_key"])
