"""Random histories of merge-on-read writes and rollbacks end like a dict that was written to in the same way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.sweeps import examples
from tests.support.tables.merge_on_read import BLOCK_FORMATS, COMMIT_TIME, EVENT_TIME, VERSIONS, MergeOnRead
from tests.support.tables.model import PAYLOADS, ROWS, Model
from tests.support.tables.small import rows_of, sorted_rows

OPERATIONS = ("upsert", "upsert", "mark_deleted", "delete", "insert", "bulk_insert", "roll_back")
STEPS = st.lists(st.tuples(st.sampled_from(OPERATIONS), ROWS), min_size=2, max_size=8)


@pytest.mark.parametrize("mode", [EVENT_TIME, COMMIT_TIME])
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "BUCKET"])
@settings(max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.too_slow])
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
                model.rows, model.greatest_deleted = before.pop()
            continue
        rows = [row for row in given_rows if operation == "delete" or not model.too_late(row)]
        if operation.endswith("insert"):
            rows = [row for row in rows if model.key(row) not in model.rows]
        if not rows:
            continue
        before.append(model.state())
        getattr(model, operation)(rows)
        if operation == "delete":
            if not table.delete(*(row[:2] for row in rows)).instant_time:
                before.pop()  # none of the keys was there, so there is no commit to roll back
        elif operation == "mark_deleted":
            table.mark_deleted(*rows)
        else:
            table.write(operation, rows_of(*rows))

        assert table.rows() == sorted_rows(model.rows.values()), operation
