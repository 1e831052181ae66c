"""A table as a dict, and the rows of random histories that are played on both."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.support.tables.merge_on_read import COMMIT_TIME, EVENT_TIME
from tests.support.tables.small import Row

KEYS = st.sampled_from([f"k{n}" for n in range(8)])
ROWS: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(KEYS, st.sampled_from(["x", "y"]), st.integers(0, 9), st.integers(0, 1000)),
    min_size=1,
    max_size=6,
    unique_by=lambda row: row[0],
)
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
        self.greatest_deleted: dict[Any, int] = {}  # greatest ordering value of a key that was ever deleted

    def key(self, row: Row) -> Any:
        return row[0] if self.is_global else row[:2]

    def state(self) -> tuple[dict[Any, Row], dict[Any, int]]:
        return dict(self.rows), dict(self.greatest_deleted)

    def too_late(self, row: Row) -> bool:
        return (
            self.event_time
            and self.key(row) not in self.rows
            and row[2] <= self.greatest_deleted.get(self.key(row), -1)
        )

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
            greatest = max(row[2], stored[2] if stored else -1, self.greatest_deleted.get(self.key(row), -1))
            self.greatest_deleted[self.key(row)] = greatest
