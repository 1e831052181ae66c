"""Random histories with compactions, log compactions and rollbacks, in tables whose rows merge column by column.

Rows come in the order of their ordering values: which of several late rows fills a null depends on what was merged
before, in real Hudi as here, and a dict can't tell it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi.model.options import WriteOptions
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches
from tests.support.sweeps import examples
from tests.support.tables.compacted import Compacted
from tests.support.tables.merge_on_read import BLOCK_FORMATS, VERSIONS
from tests.support.tables.small import DEFAULTS, rollback_write

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("a", pa.int64()), ("b", pa.string())])
MODEL = "org.apache.hudi.common.model."
CLASSES = "write_record_merge_custom_implementation_classes"
Row = tuple[str, str, int, Any, Any]


class Greatest:
    """Keeps the greater `a`, the smaller `b`, and the newer ordering value."""

    strategy_id = "5b0f3d5e-6c5e-4f0e-9a43-0d6b2a1c7e11"

    def merge(self, older: pa.RecordBatch, newer: pa.RecordBatch, context: Any) -> pa.RecordBatch:
        columns = {name: newer[name] for name in older.schema.names}
        columns["a"] = pc.max_element_wise(older["a"], newer["a"])
        columns["b"] = pc.min_element_wise(older["b"], newer["b"])
        return pa.RecordBatch.from_pydict(columns, schema=older.schema)


def filled(older: Row, newer: Row) -> Row:
    a, b = (old if new is None else new for old, new in zip(older[3:], newer[3:], strict=True))
    return (*newer[:3], a, b)


def greatest(older: Row, newer: Row) -> Row:
    a = max((value for value in (older[3], newer[3]) if value is not None), default=None)
    b = min((value for value in (older[4], newer[4]) if value is not None), default=None)
    return (*newer[:3], a, b)


def payload(name: str) -> dict[str, str]:
    return {"datasource_write_payload_class": MODEL + name}


CUSTOM = {
    "write_record_merge_mode": "CUSTOM",
    "write_record_merge_strategy_id": Greatest.strategy_id,
    CLASSES: f"{__name__}:Greatest",
}
KINDS = [
    *(pytest.param(v, payload("PartialUpdateAvroPayload"), filled, id=f"v{v}-event time") for v in VERSIONS),
    *(
        pytest.param(v, payload("OverwriteNonDefaultsWithLatestAvroPayload"), filled, id=f"v{v}-commit time")
        for v in VERSIONS
    ),
    *(pytest.param(v, CUSTOM, greatest, id=f"v{v}-custom") for v in ("8", "9")),
]
VALUES = st.tuples(
    st.sampled_from([f"k{n}" for n in range(5)]),
    st.sampled_from(["x", "y"]),
    st.one_of(st.none(), st.integers(0, 99)),
    st.one_of(st.none(), st.sampled_from(["m", "n", "o"])),
)
BATCHES = st.lists(VALUES, min_size=1, max_size=5, unique_by=lambda row: row[:2])
OPERATIONS = ("upsert", "upsert", "upsert", "compact", "log_compact", "roll_back")
STEPS = st.lists(st.tuples(st.sampled_from(OPERATIONS), BATCHES), min_size=3, max_size=10)


def rows_of(table: Compacted, classes: str | None) -> list[Row]:
    plan = plan_snapshot(table.meta, Query(columns=SCHEMA.names, merger_classes=(classes,) if classes else ()))
    batches = read_batches(plan, table.storage)
    return sorted((tuple(row[name] for name in SCHEMA.names) for b in batches for row in b.to_pylist()), key=repr)


def roll_back_last(table: Compacted) -> None:
    last = table.meta.timeline.last_commit()
    assert last is not None
    options = WriteOptions.parse({**DEFAULTS, **table.options}, table=table.meta.config)
    rollback_write(table.storage, last.requested_time, options, table.engine)


@pytest.mark.parametrize(("version", "options", "merged"), KINDS)
@settings(max_examples=examples(6), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, block_format=st.sampled_from(BLOCK_FORMATS), index=st.sampled_from(["SIMPLE", "BUCKET"]))
def test_a_history_ends_like_a_dict_that_merges_each_row_as_it_comes(
    version: str, options: dict[str, str], merged: Any, steps: list[Any], block_format: str, index: str
) -> None:
    given_options = {"logfile_data_block_format": block_format, "index_type": index, "bucket_index_num_buckets": "2"}
    if options is CUSTOM:
        given_options["datasource_write_payload_class"] = ""
    table = Compacted(version, **{**given_options, **options})
    state: dict[Any, Row] = {}
    before: list[dict[Any, Row]] = []  # of writes that no service has built upon
    for ts, (operation, values) in enumerate(steps):
        if operation == "upsert":
            before.append(dict(state))
            rows = [(id_, p, ts, a, b) for id_, p, a, b in values]
            for row in rows:
                stored = state.get(row[:2])
                state[row[:2]] = row if stored is None else merged(stored, row)
            data = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
            table.write("upsert", data)
        elif operation == "roll_back":
            if not before:
                continue
            roll_back_last(table)
            state = before.pop()
        elif state:
            service = table.compact if operation == "compact" else table.log_compact
            if service().runs:
                before = []
        if state or before:
            assert rows_of(table, options.get(CLASSES)) == sorted(state.values(), key=repr), operation
