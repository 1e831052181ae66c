"""What tasks report of keys adds up to the places of all rows, after every kind of action."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pyhudi.actions.writes import preparation
from tests.support.tables.model import KEYS
from tests.support.tables.noted_keys import NotedKeys
from tests.support.tables.small import Row, rows_of

MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
EVENT_TIME = {"hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING"}
COMMIT_TIME = {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}
TABLES: dict[str, dict[str, str]] = {
    "copy on write": {},
    "copy on write, global": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "copy on write, virtual keys": {"hoodie.populate.meta.fields": "false"},
    "merge on read": {**MERGE_ON_READ, **EVENT_TIME},
    "merge on read, commit time": {**MERGE_ON_READ, **COMMIT_TIME},
    "merge on read, global": {**MERGE_ON_READ, "hoodie.index.type": "GLOBAL_SIMPLE"},
    "merge on read, version 6": {**MERGE_ON_READ, "hoodie.write.table.version": "6"},
    "buckets": BUCKETS,
    "buckets, merge on read": {**MERGE_ON_READ, **BUCKETS},
    "buckets, merge on read, version 6": {**MERGE_ON_READ, **BUCKETS, "hoodie.write.table.version": "6"},
}
ROW = st.tuples(KEYS, st.sampled_from(["x", "y"]), st.integers(0, 9), st.integers(0, 1000))
OLD: Row = ("k0", "x", 0, 0)  # its ordering value is less than that of the first row
ROWS = st.lists(ROW, min_size=1, max_size=6, unique_by=lambda row: row[0])
OPERATIONS = (
    *("upsert", "upsert", "flagged", "delete", "insert", "bulk_insert"),
    *("overwrite", "drop", "cluster", "compact"),
)
STEPS = st.lists(st.tuples(st.sampled_from(OPERATIONS), ROWS), min_size=3, max_size=8)


@pytest.fixture(autouse=True)
def _reporting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "keeps_record_index", lambda config: True)


def play(table: NotedKeys, operation: str, rows: list[Row]) -> None:
    known = {key for _, key in table.places}
    fresh = [row for row in rows if row[0] not in known]
    data: Any = rows_of(*rows)
    if operation == "flagged":
        table.write("upsert", data.append_column("_hoodie_is_deleted", pa.repeat(True, len(data))))
    elif operation == "delete":
        table.write("delete", data.select(["id", "p"]))
    elif operation in ("insert", "bulk_insert"):
        if fresh:  # other rows would be there twice
            table.write(operation, rows_of(*fresh))
    elif operation == "overwrite":
        table.write("insert_overwrite", rows_of(*(row for row in rows if row[1] == rows[0][1])))
    elif operation == "drop":
        if table.places:
            table.write("delete_partition", data.slice(0, 1))
    elif operation == "cluster":
        if table.places and "BUCKET" not in table.options.get("hoodie.index.type", ""):
            table.cluster()
    elif operation == "compact":
        if table.places and table.meta.config.is_merge_on_read:
            table.compact()
    else:
        table.write(operation, data)


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
@example(steps=[("delete", [OLD]), ("upsert", [("k0", "x", 20, 1)])])  # dead in the log, and alive again
@example(steps=[("delete", [OLD]), ("flagged", [OLD])])  # dead, and deleted again
@example(steps=[("flagged", [OLD]), ("upsert", [OLD]), ("compact", [OLD])])  # a delete that loses by its ordering value
@example(steps=[("flagged", [("k0", "x", 9, 1)]), ("upsert", [("k0", "x", 5, 1)]), ("compact", [OLD])])
@example(steps=[("upsert", [("k0", "y", 9, 1)]), ("upsert", [("k0", "x", 9, 2)]), ("delete", [OLD])])  # moves
@example(
    steps=[("delete", [OLD]), ("cluster", [OLD]), ("overwrite", [("k2", "x", 9, 1)]), ("drop", [("k0", "y", 1, 1)])]
)
def test_the_places_that_commits_report_are_those_of_the_live_rows(name: str, steps: list[Any]) -> None:
    table = NotedKeys(**TABLES[name])
    table.write("upsert", rows_of(*((f"k{n}", "xy"[n % 2], 4, n) for n in range(4))))
    for operation, rows in steps:
        play(table, operation, rows)
        assert table.places == table.live(), operation
