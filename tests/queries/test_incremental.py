"""Incremental queries: the rows that the commits of a range wrote."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi import HudiTable, RangeNotReadable, UnsupportedTable
from pyhudi.errors import ConfigError
from pyhudi.model.instant import ActionKind, format_instant_time
from pyhudi.model.options.queries import IncrementalOptions
from pyhudi.queries.incremental import plan_incremental
from pyhudi.queries.incremental_range import incremental_range
from pyhudi.queries.plan import ReadPlan
from pyhudi.queries.snapshot import read_batches
from pyhudi.storage import open_storage
from pyhudi.storage.clock import FixedClock
from pyhudi.transaction.instants import TimelineWriter
from tests.support.golden.folder import SHARED, GoldenTable
from tests.support.golden.rows import differences
from tests.support.sweeps import examples
from tests.support.tables.clustered import TYPES, Clustered
from tests.support.tables.model import ROWS
from tests.support.tables.small import Row, TestTable, rows_of
from tests.support.tables.versioned import BY_VALUE

Golden = Callable[[str, str], GoldenTable]
FULL_SCAN = IncrementalOptions(full_scan=True)
# 0.15.0 merges late rows and deletes in other ways than 1.2.0, whose snapshots are ours (docs/compatibility.md).
OTHER_MERGING = {("0.15.0", "g2_bucket_simple", "000"), ("0.15.0", "g2_merge_event_time", "000")}


def golden_names() -> Iterator[tuple[str, str]]:
    for path in sorted((SHARED / "golden").glob("*/*.zip")):
        if json.loads(path.with_suffix(".json").read_text())["expected"].get("incremental"):
            yield path.parent.name, path.stem


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "name"), golden_names())
def test_tables_of_real_hudi_return_what_real_hudi_returns(golden: Golden, version: str, name: str) -> None:
    path, description = golden(version, name)
    table = HudiTable.open(path)
    compared = 0
    for query in description["expected"]["incremental"]:
        begin, rows = query["begin"], query.get("rows")
        if not isinstance(rows, list) or (version, name, begin if query["end"] is None else "") in OTHER_MERGING:
            continue
        # 1.0.2 returns the commit that completed at the begin once more.
        first = str(int(begin) - 1) if version == "1.0.2" and begin != "000" else begin
        full_scan = query.get("fallback_full_scan", "false")
        options = {"hoodie.datasource.read.incr.fallback.fulltablescan.enable": full_scan}
        data = table.changes(first, query["end"], options=options).to_arrow()
        assert differences(rows, data) == [], query
        compared += 1
    assert compared


@pytest.mark.thorough
def test_rows_of_partial_updates_of_real_hudi_are_whole_as_of_the_end_of_the_range(golden: Golden) -> None:
    """Real Hudi fails where the range lacks the insert; its snapshots of these moments say what the rows are."""
    path, description = golden("1.2.0", "g2_merge_partial")
    table, found = HudiTable.open(path), []
    commits = {i.completion_time: i.requested_time for i in table.state().timeline.commits()}
    failed = [query for query in description["expected"]["incremental"] if "error" in query]
    for query in failed:
        changes = table.changes(query["begin"], query["end"])
        written = commits[query["end"]]
        snapshot = table.scan(as_of=written, where=f"_hoodie_commit_time = '{written}'").to_arrow()
        assert by_key(changes.to_arrow()) == by_key(snapshot), query
        found.append(changes.to_arrow()["id"].to_pylist())
    assert [sorted(ids) for ids in found] == [[], ["k000", "k003", "k006"]], "one came late, one did not"


def by_key(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=lambda row: row["_hoodie_record_key"])


def plan(table: TestTable, begin: str, end: str | None = None, options: IncrementalOptions | None = None) -> ReadPlan:
    meta = table.meta
    wanted = incremental_range(meta, "incremental", begin, end, options=options or IncrementalOptions())
    assert wanted is not None
    return plan_incremental(meta, wanted)


def changed(
    table: TestTable, begin: str, end: str | None = None, options: IncrementalOptions | None = None
) -> list[Any]:
    """Rows as (id, p, ts, v)."""
    planned = plan(table, begin, end, options)
    rows = pa.Table.from_batches(read_batches(planned, table.storage), planned.schema).to_pylist()
    return sorted((row["id"], row["p"], row["ts"], row["v"]) for row in rows)


def times(table: TestTable) -> list[str]:
    """Of the commits, in the order of ranges."""
    meta = table.meta
    by_completion = meta.config.table_version >= 8
    return sorted((i.completion_time or "") if by_completion else i.requested_time for i in meta.timeline.commits())


VERSIONS = ("6", "8", "9")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
def test_the_begin_is_left_out_and_the_end_is_in(version: str, table_type: str) -> None:
    table = Clustered(version, table_type)
    table.insert(("a", "x", 1, 1), ("b", "y", 1, 1))
    table.upsert(("a", "x", 2, 2))
    table.delete(("b", "y"))
    first, second, third = times(table)

    assert changed(table, "earliest", first) == [("a", "x", 1, 1), ("b", "y", 1, 1)]
    assert changed(table, first, second) == changed(table, first) == [("a", "x", 2, 2)]
    assert changed(table, second, third) == changed(table, third) == changed(table, first, first) == []
    assert changed(table, "000") == changed(table, "0", third) == [("a", "x", 2, 2)], "a delete is no row"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_checkpoint_is_where_the_next_range_begins(version: str) -> None:
    table = Clustered(version)
    table.insert(("a", "x", 1, 1))
    mark = plan(table, "earliest").checkpoint or ""
    assert plan(table, mark).checkpoint == mark, "nothing was committed since"

    table.upsert(("b", "x", 1, 1))
    assert changed(table, mark) == [("b", "x", 1, 1)]
    assert plan(table, mark).checkpoint == times(table)[-1]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
def test_a_range_opens_only_the_files_of_its_commits(version: str, table_type: str) -> None:
    table = Clustered(version, table_type)
    for n in range(6):
        table.insert((f"k{n}", f"p{n}", 1, n))
    table.upsert(("k3", "p3", 2, 30))
    before, last = times(table)[-2:]
    newest = table.meta.timeline.last_commit()
    assert newest is not None
    named = {stat.path for stat in table.meta.commits.metadata(newest).stats()}

    table.memory.reset_faults()
    assert changed(table, before, last) == [("k3", "p3", 2, 30)]
    data = {path for verb, path in table.memory.log if path.startswith("p")}
    assert data == named
    assert not [path for verb, path in table.memory.log if verb == "list" and not path.startswith(".hoodie")]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_row_that_came_late_and_lost_is_returned_until_a_compaction_takes_it_out(version: str) -> None:
    table = Clustered(version, "MERGE_ON_READ", compact_inline="false", datasource_write_payload_class=BY_VALUE)
    old, late, new = ("a", "x", 8, 1), ("a", "x", 4, 40), ("b", "x", 9, 20)
    table.bulk_insert(old, ("b", "x", 8, 2))
    table.upsert(late, new)
    first = times(table)[0]
    assert table.rows() == [old, new]
    assert changed(table, first) == [late, new]

    HudiTable(table.meta).compact(options={"hoodie.compact.inline.max.delta.commits": "1"})

    assert table.rows() == [old, new]
    assert changed(table, first) == [new]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
def test_clustering_and_compaction_add_no_rows_and_hide_none(version: str, table_type: str) -> None:
    table = Clustered(version, table_type)
    table.insert(("a", "x", 1, 1), ("b", "x", 1, 1))
    begin = times(table)[-1]
    table.upsert(("a", "x", 2, 2))
    if table_type == "MERGE_ON_READ":
        table.compact_now()
    table.insert(("c", "x", 1, 3))
    before = times(table)[-1]
    table.cluster()
    after = times(table)[-1]
    table.upsert(("b", "x", 2, 4))

    assert changed(table, before, after) == []
    assert changed(table, begin, after) == [("a", "x", 2, 2), ("c", "x", 1, 3)]
    assert changed(table, begin) == [("a", "x", 2, 2), ("b", "x", 2, 4), ("c", "x", 1, 3)]
    assert changed(table, after) == [("b", "x", 2, 4)]


@pytest.mark.parametrize("version", VERSIONS)
def test_files_that_were_cleaned_are_an_error_that_names_the_oldest_begin_or_a_full_scan(version: str) -> None:
    table = Clustered(version)
    table.insert(("a", "x", 1, 1))
    table.upsert(("a", "x", 2, 2))
    table.insert(("b", "x", 1, 1))
    one, two, three = times(table)
    body = table.meta.commits.metadata(table.meta.timeline.commits().instants[1])
    table.storage.delete(body.stats()[0].path or "")

    with pytest.raises(RangeNotReadable, match=rf"deleted by cleaning.*oldest begin that can be read is {two}"):
        changed(table, one)
    assert changed(table, two, three) == [("b", "x", 1, 1)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_full_scan_finds_the_rows_that_still_stand(version: str) -> None:
    table = Clustered(version)
    table.insert(("a", "x", 1, 1), ("b", "x", 1, 1))
    table.upsert(("a", "x", 2, 2))
    table.upsert(("b", "x", 3, 3))
    one, two, _ = times(table)
    body = table.meta.commits.metadata(table.meta.timeline.commits().instants[1])
    table.storage.delete(body.stats()[0].path or "")

    with pytest.raises(RangeNotReadable):
        changed(table, one, two)
    assert changed(table, one, two, FULL_SCAN) == [("a", "x", 2, 2)]


def begun(table: TestTable, time: str) -> None:
    """A write that was begun then, and is not complete."""
    writer = TimelineWriter(table.storage, table.meta.config)
    writer.start(writer.request(time, ActionKind.COMMIT, b""))


def test_below_version_8_a_hole_in_the_range_is_met_as_the_policy_says() -> None:
    table = Clustered("6")
    table.insert(("a", "x", 1, 1))
    table.insert(("b", "x", 1, 1))
    first = times(table)[0]
    begun(table, str(int(first) + 1))

    with pytest.raises(RangeNotReadable, match=r"timeline\.holes\.resolution\.policy"):
        changed(table, first)
    assert changed(table, "earliest", first) == [("a", "x", 1, 1)]
    blocked = IncrementalOptions(holes="BLOCK")
    assert changed(table, "earliest", options=blocked) == [("a", "x", 1, 1)]
    assert plan(table, "earliest", options=blocked).checkpoint == first
    assert len(changed(table, "earliest", options=IncrementalOptions(holes="USE_TRANSITION_TIME"))) == 2


@pytest.mark.parametrize("version", ["8", "9"])
def test_from_version_8_on_a_running_write_is_no_hole(version: str) -> None:
    table = Clustered(version)
    table.insert(("a", "x", 1, 1))
    table.insert(("b", "x", 1, 1))
    first = times(table)[0]
    begun(table, str(int(first) + 1))

    assert changed(table, first) == [("b", "x", 1, 1)]


def test_filters_and_patterns_of_paths_leave_rows_out() -> None:
    table = Clustered("9")
    table.insert(("a", "x", 1, 1), ("b", "y", 1, 2), ("c", "y", 1, 3))
    before = str(int(times(table)[0]) - 1)

    assert changed(table, before, options=IncrementalOptions(filters=("v > 1", "id <> 'b'"))) == [("c", "y", 1, 3)]
    for begin in ("earliest", before):
        assert changed(table, begin, options=IncrementalOptions(path_glob="/x/*.parquet")) == [("a", "x", 1, 1)]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"since": "soon"}, "since='soon' is no moment"),
        ({"since": "20240102", "until": "20240101"}, "is no moment"),
        ({"since": "20240102000000", "until": "20240101000000"}, "is before begin"),
        ({"options": {"as.of.instant": "2024-01-01"}}, "give end='2024-01-01' instead"),
        ({"format": "cdc"}, "does not log changes"),
        ({"options": {"hoodie.datasource.read.incr.table.version": "6"}}, "incr.table.version"),
        ({"options": {"hoodie.datasource.read.end.instanttime": "x"}}, "end='x' is no moment"),
    ],
)
def test_a_range_that_can_not_be_meant_is_refused(tmp_path: Path, arguments: dict[str, Any], says: str) -> None:
    table = HudiTable.create(tmp_path / "t", pa.schema([("id", pa.string())]), record_key="id")
    with pytest.raises(ConfigError, match=says):
        table.changes(**arguments)


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["8", "9"])
def test_a_range_of_partial_updates_has_the_rows_that_a_snapshot_has_of_its_commits(version: str) -> None:
    """Whatever became of the slice since: more partial updates, a compaction, archived commits."""
    path = f"memory://partial-{version}"
    options = {"hoodie.write.table.version": version, "hoodie.compact.inline": "false"}
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("a", pa.int64()), ("b", pa.int64())])
    table = HudiTable.create(path, schema, record_key="id", ordering="ts", table_type="MERGE_ON_READ", options=options)
    in_part = {"hoodie.spark.sql.merge.into.partial.updates": "true"}
    table.insert([{"id": f"k{n}", "ts": 1, "a": n, "b": n} for n in range(6)])
    table.update("id IN ('k0', 'k1')", set={"a": 10}, options=in_part)
    table.update("id IN ('k1', 'k2')", set={"b": 20}, options=in_part)
    table.compact()
    table.update("id IN ('k2', 'k3')", set={"a": 30, "ts": 2}, options=in_part)
    table.upsert([{"id": "k2", "ts": 3, "a": 40, "b": 40}, {"id": "k9", "ts": 1, "a": 9, "b": 9}])
    table.update("id = 'k9'", set={"b": 90}, options=in_part)
    writes = [i for i in table.state().timeline.commits() if i.action is ActionKind.DELTACOMMIT]
    for first, begin in enumerate(writes):
        for last in range(first + 1, len(writes)):
            names = ", ".join(f"'{i.requested_time}'" for i in writes[first + 1 : last + 1])
            as_of = writes[last].requested_time
            expected = table.scan(as_of=as_of, where=f"_hoodie_commit_time IN ({names})").to_arrow()
            changes = table.changes(begin.completion_time or "", writes[last].completion_time)
            sent = pickle.loads(pickle.dumps(changes.plan))
            read = pa.Table.from_batches(read_batches(sent, open_storage(path)), sent.schema)
            assert values_by_key(read) == values_by_key(expected), (first, last)
            assert len(read)


def values_by_key(rows: pa.Table) -> list[tuple[Any, ...]]:
    names = ("_hoodie_commit_time", "id", "ts", "a", "b")
    return sorted(tuple(row[name] for name in names) for row in rows.to_pylist())


def test_a_range_of_partial_updates_whose_slice_is_gone_is_refused_by_name(golden: Golden) -> None:
    path, description = golden("1.2.0", "g2_merge_partial")
    query = description["expected"]["incremental"][2]
    changes = HudiTable.open(path).changes(query["begin"], query["end"])
    assert changes.plan.merge is not None
    plan = replace(changes.plan, merge=replace(changes.plan.merge, whole=None))

    with pytest.raises(UnsupportedTable, match=r"partial update.*no longer exist"):
        list(read_batches(plan, open_storage(path)))


OPERATIONS = st.sampled_from(["upsert", "insert", "insert_overwrite", "compact", "cluster"])
LIFE = st.lists(st.tuples(OPERATIONS, ROWS), min_size=2, max_size=5)


@pytest.mark.thorough
@settings(max_examples=examples(12))
@given(LIFE, st.sampled_from(VERSIONS), st.sampled_from(TYPES), st.data())
def test_ranges_of_any_cut_applied_in_order_give_the_snapshot(
    life: list[tuple[str, list[Row]]], version: str, table_type: str, data: st.DataObject
) -> None:
    """Each row of the snapshot is what the ranges said last of its key; overwritten rows are no changes."""
    table = Clustered(version, table_type, datasource_write_payload_class=LATEST)
    table.upsert(("first", "x", 0, 0))
    for operation, rows in life:
        if operation == "compact":
            if table_type == "MERGE_ON_READ":
                table.compact_now()
        elif operation == "cluster":
            table.cluster()
        else:
            known = {(row[0], row[1]) for row in table.rows()} if operation == "insert" else set()
            fresh = [row for row in rows if (row[0], row[1]) not in known]
            if fresh:
                table.write(operation, rows_of(*fresh))
    ends = times(table)
    cuts = sorted(data.draw(st.sets(st.sampled_from(ends))) | {ends[-1]})

    target: dict[tuple[str, str], Row] = {}
    begin = str(int(ends[0]) - 1)
    for end in cuts:
        rows = changed(table, begin, end)
        assert len({row[:2] for row in rows}) == len(rows), "each key once"
        target.update({row[:2]: row for row in rows})
        begin = end
    snapshot = {(row[0], row[1]): row for row in table.rows()}
    assert {key: target.get(key) for key in snapshot} == snapshot


LATEST = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"


@pytest.mark.thorough
def test_a_write_that_ran_for_weeks_is_in_the_range_in_which_it_completed_when_it_is_archived() -> None:
    now_ms = 1_760_000_000_000
    day_ms = 24 * 3_600_000
    clock = FixedClock(now_ms - 30 * day_ms)
    table = TestTable(clock=clock, options={"hoodie.write.table.version": "9"})
    table.upsert(("a", "x", 1, 1))
    slow = table.upsert(("slow", "x", 1, 1))
    (begun,) = (i for i in table.meta.timeline.commits() if i.requested_time == slow.instant_time)
    completed = f".hoodie/timeline/{begun.requested_time}_{begun.completion_time}.commit"
    late = completed_time(now_ms - day_ms)
    table.memory.write(f".hoodie/timeline/{begun.requested_time}_{late}.commit", table.memory.read(completed))
    table.memory.delete(completed)
    clock.sleep_s(30 * 24 * 3600)
    for n in range(5):
        table.upsert((f"k{n}", "x", 1, n))
    keep = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1}
    assert HudiTable(table.meta).maintenance.archive(options=keep).archived
    assert slow.instant_time not in {i.requested_time for i in table.meta.timeline}

    before, after = completed_time(now_ms - 2 * day_ms), completed_time(now_ms - day_ms // 2)
    assert [row[0] for row in changed(table, before)] == ["k0", "k1", "k2", "k3", "k4", "slow"]
    assert [row[0] for row in changed(table, before, after)] == ["slow"]
    assert [row[0] for row in changed(table, late)] == ["k0", "k1", "k2", "k3", "k4"]


def completed_time(ms: int) -> str:
    return format_instant_time(datetime.fromtimestamp(ms / 1000, timezone.utc), None)
