"""Random histories of merge-on-read writes and rollbacks end like a dict that was written to in the same way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.actions.merge_on_read import BLOCK_FORMATS, COMMIT_TIME, EVENT_TIME, VERSIONS, MergeOnRead
from tests.actions.tables import Row, rows_of, sorted_rows

KEYS = st.sampled_from([f"k{n}" for n in range(8)])
ROWS: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(KEYS, st.sampled_from(["x", "y"]), st.integers(0, 9), st.integers(0, 1000)),
    min_size=1,
    max_size=6,
    unique_by=lambda row: row[0],
)
OPERATIONS = ("upsert", "upsert", "mark_deleted", "delete", "insert", "bulk_insert", "roll_back")
STEPS = st.lists(st.tuples(st.sampled_from(OPERATIONS), ROWS), min_size=2, max_size=8)
# Below version 8 the payload class says the mode.
PAYLOADS = {EVENT_TIME: "DefaultHoodieRecordPayload", COMMIT_TIME: "OverwriteWithLatestAvroPayload"}


class Model:
    """A table as a dict, by key (and partition, unless keys are unique in the table).

    A delete hides late rows until the file group is compacted or the key moves, so what a late row after a delete does
    depends on where it lands: such rows are left out (`too_late`).
    """

    def __init__(self, *, event_time: bool, is_global: bool) -> None:
        self.event_time, self.is_global = event_time, is_global
        self.rows: dict[Any, Row] = {}
        self.seen: dict[Any, int] = {}  # greatest ordering value of a key that was ever deleted

    def key(self, row: Row) -> Any:
        return row[0] if self.is_global else row[:2]

    def state(self) -> tuple[dict[Any, Row], dict[Any, int]]:
        return dict(self.rows), dict(self.seen)

    def too_late(self, row: Row) -> bool:
        return self.event_time and self.key(row) not in self.rows and row[2] <= self.seen.get(self.key(row), -1)

    def wins(self, row: Row) -> bool:
        stored = self.rows.get(self.key(row))
        return stored is None or not self.event_time or row[2] >= stored[2]

    def upsert(self, rows: list[Row]) -> None:
        for row in rows:
            if self.wins(row):
                self.rows[self.key(row)] = row

    insert = bulk_insert = upsert

    def mark_deleted(self, rows: list[Row]) -> None:
        self.delete([row for row in rows if self.wins(row)])

    def delete(self, rows: list[Row]) -> None:
        for row in rows:
            stored = self.rows.pop(self.key(row), None)
            greatest = max(row[2], stored[2] if stored else -1, self.seen.get(self.key(row), -1))
            self.seen[self.key(row)] = greatest


@pytest.mark.parametrize("mode", [EVENT_TIME, COMMIT_TIME])
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "BUCKET"])
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, version=st.sampled_from(VERSIONS), block_format=st.sampled_from(BLOCK_FORMATS))
def test_a_history_of_writes_and_rollbacks_ends_like_a_dict(
    index: str, mode: str, version: str, block_format: str, steps: list[Any]
) -> None:
    table = MergeOnRead(
        version,
        index_type=index,
        bucket_index_num_buckets="2",
        logfile_data_block_format=block_format,
        datasource_write_payload_class=f"org.apache.hudi.common.model.{PAYLOADS[mode]}",
        # A compaction on top of a write keeps it from being rolled back.
        compact_inline="false" if any(operation == "roll_back" for operation, _ in steps) else "true",
        compact_inline_max_delta_commits="3",
    )
    model = Model(event_time=mode == EVENT_TIME, is_global=index.startswith("GLOBAL"))
    before = []
    for operation, given_rows in steps:
        if operation == "roll_back":
            if before:
                table.roll_back_last()
                model.rows, model.seen = before.pop()
            continue
        rows = [row for row in given_rows if operation == "delete" or not model.too_late(row)]
        if operation.endswith("insert"):
            rows = [row for row in rows if model.key(row) not in model.rows]
        if not rows:
            continue
        before.append(model.state())
        getattr(model, operation)(rows)
        if operation == "delete":
            table.delete(*(row[:2] for row in rows))
        elif operation == "mark_deleted":
            table.mark_deleted(*rows)
        else:
            table.write(operation, rows_of(*rows))

        assert table.rows() == sorted_rows(model.rows.values()), operation
