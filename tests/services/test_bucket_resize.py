"""Consistently hashed buckets are split and merged by clustering: no row changes, later writes find every key."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import ConfigError, HudiError, TableError, WriteConflict
from pyhudi.formats.hash_ring import MAX_HASH, HashNode, HashRing
from pyhudi.model.instant import ActionKind
from pyhudi.services.cluster.buckets import merge_runs, split_values
from pyhudi.services.cluster.clustering import StalePlan
from pyhudi.transaction.instants import TimelineWriter
from pyhudi.view.file_system_view import FileSystemView
from tests.support.sweeps import examples
from tests.support.tables.archived import active, archived, clean, history
from tests.support.tables.clustered import Clustered
from tests.support.tables.merge_on_read import VERSIONS
from tests.support.tables.rings import ENGINE, RESIZE, as_hudi_stores_it, many, resized, ringed, rings
from tests.support.tables.versioned import take_to
from tests.support.writers.dying import dies, on_clone

MERGE = {**RESIZE, "bucket_index_min_num_buckets": "2"}


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_large_buckets_are_split_as_far_as_allowed(version: str) -> None:
    table = ringed(version)
    table.upsert(*many(200))
    table.upsert(*many(20, ts=2))
    rows = [*many(20, ts=2), *many(200)[20:]]
    (run,) = resized(table).runs
    assert table.rows() == rows
    assert table.groups() == {"x": 6, "y": 6}
    assert (run.file_slices, run.files_written) == (8, 12)
    first, second = sorted(rings(table, "x"), key=lambda ring: ring.sequence)
    assert (second.sequence, second.instant, second.bucket_num, len(second.nodes)) == (1, run.instant_time, 4, 6)
    assert {node.value for node in first.nodes} < {node.value for node in second.nodes}
    folder = "x" if version == "6" else ".hoodie/.bucket_index/consistent_hashing_metadata/x"
    marked = [path for path in table.memory.paths() if path.endswith(f"/{run.instant_time}.commit")]
    assert f"{folder}/{run.instant_time}.commit" in marked
    assert len(marked) == 2, "one for each partition, where Hudi of the table's version has it"

    table.upsert(*many(200, ts=3), ("new", "x", 1, 1))
    assert table.rows() == [*many(200, ts=3), ("new", "x", 1, 1)]
    assert table.groups() == {"x": 6, "y": 6}
    resized(table, bucket_index_max_num_buckets="8")
    assert table.groups() == {"x": 8, "y": 8}
    assert table.rows() == [*many(200, ts=3), ("new", "x", 1, 1)]


@pytest.mark.parametrize("version", VERSIONS)
def test_small_neighbours_are_merged_as_far_as_allowed(version: str) -> None:
    table = ringed(version)
    table.upsert(*many(40))
    table.delete(("key000", "x"))
    table.cluster(**MERGE)
    assert table.groups() == {"x": 2, "y": 2}
    assert table.rows() == many(40)[1:]
    table.upsert(*many(40, ts=2))
    assert table.rows() == many(40, ts=2)
    assert table.groups() == {"x": 2, "y": 2}


@pytest.mark.thorough
def test_buckets_that_fit_are_rewritten_in_order() -> None:
    table = ringed()
    table.upsert(*many(40))
    table.cluster(**RESIZE, bucket_index_merge_threshold="0", clustering_plan_strategy_sort_columns="v")
    assert table.groups() == {"x": 4, "y": 4}
    for stats in table.clustering_body().partition_to_write_stats.values():
        for stat in stats:
            assert stat.path is not None
            with table.storage.open_input(stat.path) as file:
                values = pq.read_table(file, columns=["v"]).column("v").to_pylist()
            assert values == sorted(values)
    table.upsert(*many(40, ts=2))
    assert table.rows() == many(40, ts=2)


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_plan_gives_way_to_rows_that_are_written_to_its_buckets(version: str) -> None:
    table = ringed(version)
    table.upsert(*many(40))
    planned = resized(table, schedule_only=True)
    assert planned.scheduled
    table.upsert(*many(44, ts=2), clustering_updates_strategy="SparkConsistentBucketDuplicateUpdateStrategy")
    assert table.rows() == many(44, ts=2)
    assert not table.pending()
    resized(table)
    assert table.rows() == many(44, ts=2)
    assert sum(table.groups().values()) > 8
    table.delete(*[row[:2] for row in many(2)])
    assert table.rows() == many(44, ts=2)[2:]


@pytest.mark.thorough
def test_a_plan_waits_and_writes_to_its_buckets_are_refused() -> None:
    table = ringed()
    table.upsert(*many(40))
    planned = resized(table, schedule_only=True)
    with pytest.raises(WriteConflict, match="is going to replace"):
        table.upsert(*many(2, ts=2))
    assert not resized(table, schedule_only=True).planned, "a partition is resized by one plan at a time"
    table.cluster(instant_time=planned.scheduled)
    assert sum(table.groups().values()) > 8
    table.upsert(*many(40, ts=2))
    assert table.rows() == many(40, ts=2)


def test_the_strategy_need_not_be_named() -> None:
    table = ringed()
    table.upsert(*many(40))
    assert table.cluster(**ENGINE, bucket_index_min_num_buckets="1").runs
    assert table.groups() == {"x": 1, "y": 1}


def test_a_pending_write_keeps_buckets_from_being_resized() -> None:
    table = ringed()
    table.upsert(*many(4))
    TimelineWriter(table.storage, table.meta.config).request("29990101000000000", ActionKind.DELTACOMMIT)
    with pytest.raises(WriteConflict, match="while writes are pending: 29990101000000000"):
        resized(table)


def test_a_plan_for_a_ring_that_was_changed_since_is_dropped() -> None:
    table = ringed()
    table.upsert(*many(20))
    planned = resized(table, schedule_only=True)
    path = f".hoodie/.bucket_index/consistent_hashing_metadata/x/{'0' * 14}.hashing_meta"
    table.storage.write(path, table.storage.read(path).replace(b'"seqNo" : 0', b'"seqNo" : 7'))
    with pytest.raises(StalePlan, match="another resize"):
        table.cluster(instant_time=planned.scheduled, **ENGINE)
    assert not table.pending()


@pytest.mark.thorough
def test_other_hash_fields_are_noticed_before_rows_get_lost() -> None:
    options = {"datasource_write_recordkey_field": "id,v", "bucket_index_hash_field": "id"}
    for rows in (many(2), many(40)):
        table = ringed(**options)
        table.upsert(*rows)
        with pytest.raises(ConfigError, match=r"hash\.field=v, but the file groups of the table 'trips' are buckets"):
            resized(table, bucket_index_hash_field="v")
        as_hudi_stores_it(table.storage)
        with pytest.raises(TableError, match=r"same hoodie\.bucket\.index\.hash\.field"):
            resized(table, bucket_index_hash_field="v")
        assert table.rows() == rows
    resized(table, bucket_index_hash_field="id")
    table.upsert(*many(40, ts=2))
    assert table.rows() == many(40, ts=2)


@pytest.mark.parametrize("options", [{"index_type": "BUCKET"}, {}])
@pytest.mark.parametrize("engine", ["SIMPLE", "CONSISTENT_HASHING"])
def test_other_strategies_do_not_take_rows_out_of_their_buckets(engine: str, options: dict[str, str]) -> None:
    table = ringed(index_bucket_engine=engine)
    table.upsert(*many(10))
    if engine == "CONSISTENT_HASHING":
        table.cluster(**options)
        assert table.rows() == many(10)
        assert {f"{node.file_id}" for path in "xy" for node in rings(table, path)[-1].nodes} >= {
            s.group.file_id for s in FileSystemView.load(table.meta).all_slices()
        }
        as_hudi_stores_it(table.storage)
        if not options:
            return  # nothing tells such a table from others, but its index options
    with pytest.raises(ConfigError, match="are buckets of its index"):
        table.cluster(**options)
    with pytest.raises(ConfigError, match="give these options with it"):
        table.cluster(clustering_plan_strategy_class="CONSISTENT_BUCKET")


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_a_resize_that_is_rolled_back_takes_its_ring_along(version: str) -> None:
    table = ringed(version)
    table.upsert(*many(40))
    resized(table)
    table.roll_back_last()
    assert table.rows() == many(40)
    assert [ring.sequence for ring in rings(table, "x")] == [0]
    assert not [path for path in table.memory.paths() if path.endswith(".commit") and ".hoodie/2" not in path]
    table.upsert(*many(40, ts=2))
    assert table.rows() == many(40, ts=2)
    assert table.groups() == {"x": 4, "y": 4}


def markers(table: Clustered) -> set[str]:
    commits = table.meta.config.timeline_path
    return {path for path in table.memory.paths() if path.endswith(".commit") and path.rpartition("/")[0] != commits}


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_a_ring_that_lost_its_markers_gets_them_from_the_next_write(version: str) -> None:
    """Whoever comes when the resize is archived can't ask the timeline whether the ring counts."""
    table = ringed(version)
    table.upsert(*many(200))
    time = resized(table).runs[0].instant_time
    made = markers(table)
    for path in made:
        table.storage.delete(path)
    table.upsert(*many(200, ts=2))

    assert {path.rpartition("/")[2] for path in made} == {f"{time}.commit"}
    assert markers(table) == made
    assert table.rows() == many(200, ts=2)


def archived_before_marked(version: str) -> tuple[Clustered, set[str]]:
    """A table whose resize was archived: its writer died before it made a marker, and only y was written to since.

    Also the markers that it should have made.
    """
    table = ringed(version, metadata_enable="false")
    table.upsert(*many(200))
    rehearsal = on_clone(table)
    resized(rehearsal)
    calls = [n for n, (_, path) in enumerate(rehearsal.memory.log, 1) if path in markers(rehearsal)]
    with suppress(HudiError):
        dies(table, lambda: resized(table), "before", calls[0])
    resize = table.meta.timeline.commits().instants[-1]
    assert resize.action is ActionKind.REPLACECOMMIT
    assert not markers(table)
    for ts in range(2, 8):
        table.upsert(*many(200, ts)[1::2])
    clean(table, version, active(table)[-1])
    archived(table)
    assert resize not in table.meta.timeline.instants
    assert resize.requested_time in history(table)
    folder = "" if version == "6" else ".hoodie/.bucket_index/consistent_hashing_metadata/"
    return table, {f"{folder}{partition}/{resize.requested_time}.commit" for partition in "xy"}


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_archiving_marks_the_ring_of_a_writer_that_died_before_it_did(version: str) -> None:
    table, expected = archived_before_marked(version)
    assert markers(table) == expected
    rows = sorted([*many(200)[::2], *many(200, 7)[1::2]])
    assert table.rows() == rows
    table.upsert(*many(200, ts=8), ("new", "x", 1, 1))
    assert table.rows() == [*many(200, ts=8), ("new", "x", 1, 1)]
    assert table.groups() == {"x": 6, "y": 6}


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_a_ring_without_marker_counts_by_the_history_when_others_have_archived_its_resize(version: str) -> None:
    table, expected = archived_before_marked(version)
    for path in expected:
        table.storage.delete(path)
    table.upsert(*many(200, ts=8))
    assert table.rows() == many(200, ts=8)
    assert table.groups() == {"x": 6, "y": 6}
    assert markers(table) == expected
    resized(table, bucket_index_max_num_buckets="8")
    assert table.rows() == many(200, ts=8)


@pytest.mark.thorough
@pytest.mark.parametrize("path", [(8, 6, 9), (6, 8, 6)])
def test_markers_of_rings_stand_where_hudi_of_each_version_has_them(path: tuple[int, ...]) -> None:
    table = ringed(str(path[0]))
    table.upsert(*many(200))
    time = resized(table).runs[0].instant_time
    initial = f".hoodie/.bucket_index/consistent_hashing_metadata/x/{'0' * 14}.commit"
    if path[0] == 8:  # Hudi marks the ring of the beginning too
        table.storage.write(initial, b"")
    for ts, version in enumerate(path[1:], start=2):
        take_to(table.storage, version)
        folder = "" if version == 6 else ".hoodie/.bucket_index/consistent_hashing_metadata/"
        expected = {f"{folder}{name}/{time}.commit" for name in "xy"}
        if path[0] == 8:
            expected.add(f"{folder}x/{'0' * 14}.commit")
        assert markers(table) == expected
        table.options = {**table.options, "hoodie.write.table.version": str(version)}
        table.upsert(*many(200, ts=ts))
        assert table.rows() == many(200, ts=ts)
        assert table.groups() == {"x": 6, "y": 6}
    resized(table, bucket_index_max_num_buckets="8")
    table.upsert(*many(200, ts=10))
    assert table.rows() == many(200, ts=10)
    assert table.groups() == {"x": 8, "y": 8}


SIZES = st.lists(st.integers(0, 100), min_size=1, max_size=12)


@settings(max_examples=examples(60), deadline=None)
@given(sizes=SIZES, room=st.integers(0, 12), limit=st.integers(0, 100), data=st.data())
def test_splits_and_merges_keep_within_their_limits(
    sizes: list[int], room: int, limit: int, data: st.DataObject
) -> None:
    values = sorted(data.draw(st.sets(st.integers(0, MAX_HASH - 1), min_size=len(sizes) - 1, max_size=len(sizes) - 1)))
    ring = HashRing("p", "0", 1, 0, tuple(HashNode(value, f"f{value}") for value in (*values, MAX_HASH)))
    by_value = {node.value: size for node, size in zip(ring.nodes, sizes, strict=True) if size}

    splits = split_values(ring, by_value, limit, room)
    assert len(splits) <= room
    assert all(by_value[value] > limit for value in splits)
    ring_after = ring.changed([HashNode(middle, "new") for middle in splits.values()], "1")
    assert len(ring_after.nodes) == len(ring.nodes) + len(splits)
    assert all(ring_after.before(value).value == middle for value, middle in splits.items())

    runs = merge_runs(ring, by_value, limit, room)
    position = {node.value: at for at, node in enumerate(ring.nodes)}
    assert sum(len(run) - 1 for run in runs) <= room
    merged = [value for run in runs for value in run]
    assert len(merged) == len(set(merged))
    for run in runs:
        assert len(run) > 1
        assert sum(by_value[value] for value in run) <= limit
        assert [position[value] for value in run] == list(range(position[run[0]], position[run[0]] + len(run)))


WRITES = st.lists(
    st.tuples(
        st.sampled_from(["upsert", "delete", "split", "merge", "compact"]), st.sets(st.integers(0, 30), max_size=12)
    ),
    max_size=6,
)


@pytest.mark.thorough
@settings(max_examples=examples(12), deadline=None)
@given(steps=WRITES, version=st.sampled_from(["6", "9"]))
def test_random_histories_with_resizes_hold_the_rows_that_were_written(steps: Any, version: str) -> None:
    table = ringed(version)
    expected = {row[0]: row for row in many(12)}
    table.upsert(*expected.values())
    resizes = {"split": partial(resized, table), "merge": partial(table.cluster, **MERGE)}
    for ts, (what, numbers) in enumerate(steps, start=2):
        if what in resizes:
            resizes[what]()
        elif what == "compact":
            table.compact_now()
        elif numbers:
            rows = [(f"key{number:03d}", "xy"[number % 2], ts, number + ts) for number in sorted(numbers)]
            if what == "upsert":
                table.upsert(*rows)
                expected |= {row[0]: row for row in rows}
            else:
                table.delete(*((key, path) for key, path, _, _ in rows))
                expected = {key: row for key, row in expected.items() if key not in {row[0] for row in rows}}
        assert table.rows() == sorted(expected.values())
