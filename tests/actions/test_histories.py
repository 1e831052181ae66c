"""Random histories of writes end like a dict that was written to in the same way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.sweeps import examples
from tests.support.tables.small import Row, TestTable, rows_of, sorted_rows

KEYS = st.sampled_from([f"k{n}" for n in range(12)])
PARTITIONS = st.sampled_from(["x", "y"])
ROWS: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(KEYS, PARTITIONS, st.integers(0, 5), st.integers(0, 1000)), min_size=1, max_size=8
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("upsert"), ROWS),
        st.tuples(st.just("delete"), ROWS),
        st.tuples(st.just("insert new"), ROWS),
        st.tuples(st.just("bulk_insert new"), ROWS),
    ),
    min_size=1,
    max_size=6,
)
SLOW = settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Model:
    """A table as a dict. Globally unique keys make the partition part of the value."""

    def __init__(self, *, event_time: bool, is_global: bool) -> None:
        self.event_time, self.is_global = event_time, is_global
        self.rows: dict[Any, Row] = {}

    def key(self, row: Row) -> Any:
        return row[0] if self.is_global else row[:2]

    def upsert(self, rows: list[Row]) -> None:
        for row in rows:
            stored = self.rows.get(self.key(row))
            if stored is None or not self.event_time or row[2] >= stored[2]:
                self.rows[self.key(row)] = row

    def delete(self, rows: list[Row]) -> None:
        for row in rows:
            self.rows.pop(self.key(row), None)


@pytest.mark.parametrize("mode", ["COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"])
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "INMEMORY", "BUCKET"])
@SLOW
@given(steps=STEPS, version=st.sampled_from(["8", "9"]))
def test_a_history_of_writes_ends_like_a_dict(index: str, mode: str, version: str, steps: list[Any]) -> None:
    table = TestTable(
        options={
            "hoodie.write.table.version": version,
            "hoodie.index.type": index,
            "hoodie.write.record.merge.mode": mode,
            "hoodie.bucket.index.num.buckets": "3",
        }
    )
    is_global = index.startswith("GLOBAL") or index == "INMEMORY"
    model = Model(event_time=mode.startswith("EVENT"), is_global=is_global)
    for step, rows in steps:
        operation = step.split()[0]
        if step.endswith("new"):
            # Inserts look for no keys: only rows whose key is nowhere keep the table a dict.
            unique = {model.key(row): row for row in rows}
            rows = [row for key, row in unique.items() if key not in model.rows]
            if not rows:
                continue
            model.upsert(rows)
        else:
            getattr(model, operation)(rows)
        if operation == "delete":
            table.delete(*(row[:2] for row in rows))
        else:
            table.write(operation, rows_of(*rows))

    assert table.rows() == sorted_rows(model.rows.values())
