"""Random histories with compactions, log compactions and plans that wait end like a dict that was written to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi.view.file_system_view import FileSystemView
from tests.support.sweeps import examples
from tests.support.tables.compacted import Compacted
from tests.support.tables.merge_on_read import BLOCK_FORMATS, COMMIT_TIME, EVENT_TIME, VERSIONS
from tests.support.tables.model import PAYLOADS, ROWS, Model
from tests.support.tables.small import sorted_rows

WRITES = ("upsert", "upsert", "upsert", "mark_deleted", "delete")
SERVICES = ("compact", "schedule", "log_compact", "schedule_logs")
STEPS = st.lists(st.tuples(st.sampled_from(WRITES + SERVICES), ROWS), min_size=3, max_size=12)


@pytest.mark.parametrize("mode", [EVENT_TIME, COMMIT_TIME])
@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=STEPS,
    block_format=st.sampled_from(BLOCK_FORMATS),
    index=st.sampled_from(["SIMPLE", "BUCKET"]),
    data=st.data(),
)
def test_services_change_nothing(
    version: str, mode: str, block_format: str, index: str, steps: list[Any], data: st.DataObject
) -> None:
    table = Compacted(
        version,
        index_type=index,
        bucket_index_num_buckets="2",
        logfile_data_block_format=block_format,
        datasource_write_payload_class=f"org.apache.hudi.common.model.{PAYLOADS[mode]}",
    )
    model = Model(event_time=mode == EVENT_TIME, is_global=False)
    began = False
    for operation, given_rows in steps:
        if operation in SERVICES:
            if began:
                _serve(table, operation, data)
        else:
            rows = [row for row in given_rows if operation == "delete" or not model.too_late(row)]
            if not rows:
                continue
            began = True
            getattr(model, operation)(rows)
            if operation == "delete":
                table.delete(*(row[:2] for row in rows))
            else:
                getattr(table, operation)(*rows)
        if began:
            assert table.rows() == sorted_rows(model.rows.values()), operation
    if began:
        table.log_compact()
        table.compact()
        assert table.rows() == sorted_rows(model.rows.values())
        assert not any(s.log_files for s in FileSystemView.load(table.meta).all_slices())
        assert not table.pending()


def _serve(table: Compacted, operation: str, data: st.DataObject) -> None:
    """One call of a service; a plan that waits may be run instead."""
    waiting = table.meta.timeline.pending().instants
    if waiting and data.draw(st.booleans(), "run a plan that waits"):
        instant = data.draw(st.sampled_from(waiting))
        run = table.compact if instant.action.value == "compaction" else table.log_compact
        run(instant=instant.requested_time)
    elif operation == "schedule":
        table.compact(schedule_only=True)
    elif operation == "schedule_logs":
        table.log_compact(schedule_only=True)
    else:
        getattr(table, operation)()
