"""Random histories of writes, compactions and changes of version end like a dict, and time travel finds each moment."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.sweeps import examples
from tests.support.tables.merge_on_read import BLOCK_FORMATS, EVENT_TIME, VERSIONS, MergeOnRead
from tests.support.tables.model import PAYLOADS, ROWS, Model
from tests.support.tables.small import rows_of, sorted_rows
from tests.support.tables.versioned import take_to

WRITES = st.tuples(st.sampled_from(("upsert", "upsert", "mark_deleted", "delete", "compact")), ROWS)
CHANGES = st.tuples(st.just("version"), st.sampled_from((6, 8, 9)))
STEPS = st.lists(st.one_of(WRITES, WRITES, CHANGES), min_size=3, max_size=9)


@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, version=st.sampled_from(VERSIONS), block_format=st.sampled_from(BLOCK_FORMATS))
def test_a_history_of_writes_and_versions_ends_like_a_dict(
    index: str, version: str, block_format: str, steps: list[tuple[str, Any]]
) -> None:
    table = MergeOnRead(
        version,
        index_type=index,
        bucket_index_num_buckets="2",
        logfile_data_block_format=block_format,
        datasource_write_payload_class=f"org.apache.hudi.common.model.{PAYLOADS[EVENT_TIME]}",
        clean_automatic="false",
    )
    model = Model(event_time=True, is_global=False)
    moments: dict[str, list[Any]] = {}
    started = False
    for operation, what in steps:
        if operation == "version":
            if started:
                take_to(table.storage, what)
                table.options = {**table.options, "hoodie.write.table.version": str(what)}
        elif operation == "compact":
            if started:
                table.compact_now()
        else:
            rows = [row for row in what if not model.too_late(row)]
            if not rows or (not started and operation != "upsert"):
                continue
            if operation == "upsert":
                result = table.upsert(*rows)
            elif operation == "mark_deleted":
                result = table.mark_deleted(*rows)
            else:
                result = table.write("delete", rows_of(*rows).select(["id", "p"]))
            getattr(model, operation)(rows)
            started = True
            if result.instant_time:  # a delete that finds no row makes no commit
                moments[result.instant_time] = sorted_rows(model.rows.values())
            assert table.rows() == sorted_rows(model.rows.values()), operation
        if started:
            assert table.rows() == sorted_rows(model.rows.values()), operation
    for time, expected in moments.items():
        assert table.rows(as_of=time) == expected, time
