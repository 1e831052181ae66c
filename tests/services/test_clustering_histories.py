"""Random histories with clusterings of every strategy and layout: the table holds what was written, at any time."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import WriteConflict
from pyhudi.model.instant import Instant
from pyhudi.services.cluster.clustering import StalePlan
from tests.support.sweeps import examples
from tests.support.tables.clustered import TYPES, Clustered
from tests.support.tables.small import Row, rows_of

PLAN = "clustering_plan_strategy_"
STRATEGIES: list[dict[str, str]] = [
    {},
    {f"{PLAN}class": "SINGLE_FILE_SORT"},
    {f"{PLAN}class": "RECENT_DAYS", f"{PLAN}daybased_lookback_partitions": "1"},
    {f"{PLAN}class": "SELECTED_PARTITIONS", f"{PLAN}cluster_begin_partition": "y"},
    {f"{PLAN}class": "COMMIT_BASED", f"{PLAN}earliest_commit_to_cluster": "0"},
    {f"{PLAN}max_bytes_per_group": "1"},
    {f"{PLAN}single_group_clustering_enabled": "false"},
    {f"{PLAN}target_file_max_bytes": "1"},
]
LAYOUTS: list[dict[str, str]] = [
    {},
    {f"{PLAN}sort_columns": "v"},
    {f"{PLAN}sort_columns": "v,id,ts", "layout_optimize_strategy": "ZORDER"},
    {
        f"{PLAN}sort_columns": "id,v",
        "layout_optimize_strategy": "HILBERT",
        "layout_optimize_curve_build_method": "SAMPLE",
    },
]
KEYS = st.lists(st.integers(0, 14), max_size=8, unique=True)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["upsert", "insert", "delete"]), KEYS),
        st.tuples(st.sampled_from(["cluster", "schedule"]), st.sampled_from(STRATEGIES), st.sampled_from(LAYOUTS)),
        st.tuples(st.sampled_from(["run", "compact", "roll back"])),
    ),
    min_size=2,
    max_size=9,
)


@settings(max_examples=examples(25), deadline=None)
@given(steps=STEPS, version=st.sampled_from(["6", "8", "9"]), table_type=st.sampled_from(TYPES))
def test_the_table_holds_what_was_written(steps: Any, version: str, table_type: str) -> None:
    table = Clustered(version, table_type, clustering_updates_strategy="ALLOW")
    expected: dict[str, Row] = {}
    states: list[tuple[Instant, dict[str, Row]]] = []
    for ts, (what, *arguments) in enumerate([("insert", [0, 3, 5, 8]), *steps], start=1):
        before = dict(expected)
        if what in ("upsert", "insert", "delete"):
            _write(table, what, arguments[0], ts, expected)
        elif what in ("cluster", "schedule"):
            with suppress(StalePlan):  # a plan that waited was overtaken by a write
                table.cluster(schedule_only=what == "schedule", **arguments[0], **arguments[1])
        elif what == "run":
            with suppress(StalePlan):
                table.cluster()
        elif what == "compact" and table_type == "MERGE_ON_READ":
            table.compact_now()
        elif what == "roll back" and len(states) > 1 and not table.pending():
            expected = _rolled_back(table, states, expected)
        assert table.rows() == sorted(expected.values()), (what, arguments)
        last = table.meta.timeline.last_commit()
        assert last is not None
        if not states or states[-1][0] != last or before != expected:
            states = [(instant, rows) for instant, rows in states if instant.requested_time < last.requested_time]
            states.append((last, dict(expected)))
    if version != "6":  # completion of version 6 is a file's time, which tests are too fast for
        for instant, rows in states:
            assert table.rows(as_of=instant.requested_time) == sorted(rows.values())


def _write(table: Clustered, what: str, numbers: list[int], ts: int, expected: dict[str, Row]) -> None:
    rows: list[Row] = [(f"k{number:02d}", "xyz"[number % 3], ts, number * ts % 7) for number in numbers]
    if what == "insert":
        rows = [row for row in rows if row[0] not in expected]
    if not rows:
        return
    if what == "delete":
        table.delete(*((key, path) for key, path, _, _ in rows))
        for row in rows:
            expected.pop(row[0], None)
    else:
        table.write(what, rows_of(*rows))
        expected |= {row[0]: row for row in rows}


def _rolled_back(
    table: Clustered, states: list[tuple[Instant, dict[str, Row]]], expected: dict[str, Row]
) -> dict[str, Row]:
    """Undo the newest instant; clusterings and compactions leave the rows as they are."""
    try:
        table.roll_back_last()
    except WriteConflict:
        return expected
    last = table.meta.timeline.last_commit()
    assert last is not None
    return dict(next(rows for instant, rows in reversed(states) if instant.requested_time <= last.requested_time))
