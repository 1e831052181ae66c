"""Clustering: rows stay, file groups become fewer and ordered, plans wait for whoever runs them."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.actions.action import ActionContext
from pyhudi.errors import ConfigError, CorruptFile, TableError
from pyhudi.filegroup.rewrite.cluster import ClusterGroups
from pyhudi.formats.timeline.plans import decode_clustering_plan
from pyhudi.locks import open_lock
from pyhudi.model.instant import ActionKind, State
from pyhudi.model.options import WriteOptions
from pyhudi.services.cluster import clustering
from pyhudi.services.cluster.clustering import StalePlan, check_fresh
from pyhudi.storage.clock import FixedClock, SystemClock
from tests.support.tables.clustered import ROWS, TYPES, Clustered, made
from tests.support.tables.merge_on_read import VERSIONS
from tests.support.tables.rings import as_hudi_stores_it
from tests.support.tables.small import Row, TestTable, rows_of

META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path", "id", "v")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
def test_rows_and_their_meta_columns_stay_while_file_groups_become_one(version: str, table_type: str) -> None:
    table = made(version, table_type)
    before = table.rows(META)
    assert table.rows() == ROWS
    assert table.groups() == {"x": 3, "y": 1}
    result = table.cluster()
    assert table.rows() == ROWS
    assert table.rows(META) == before
    assert table.groups() == {"x": 1, "y": 1}
    (run,) = result.runs
    assert (run.file_slices, run.files_written, run.rows_written) == (4, 2, 5)
    assert "2 groups, 4 slices → 2 files, 5 rows" in str(result)
    body = table.clustering_body()
    assert (body.operation_type, body.compacted) == ("CLUSTER", False)
    replaced = body.partition_to_replace_file_ids
    assert replaced is not None
    assert {path: len(ids) for path, ids in replaced.items()} == {"x": 3, "y": 1}
    assert not table.pending()
    table.upsert(("b", "x", 3, 21), ("g", "y", 1, 8))
    assert table.rows() == [ROWS[0], ("b", "x", 3, 21), *ROWS[2:], ("g", "y", 1, 8)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_reader_of_an_earlier_instant_sees_the_rows_as_they_were(version: str) -> None:
    table = made(version)
    last = table.meta.timeline.last_commit()
    assert last is not None
    table.cluster()
    table.upsert(("a", "x", 3, 12))
    assert table.rows(as_of=last.requested_time) == ROWS


def values_in_files(table: Clustered, path: str, column: str) -> list[list[int]]:
    """Values by file that the last clustering wrote."""
    found = []
    for stat in table.clustering_body().partition_to_write_stats[path]:
        assert stat.path is not None
        with table.storage.open_input(stat.path) as file:
            found.append(pq.read_table(file, columns=[column]).column(column).to_pylist())
    return found


def test_rows_stand_in_the_order_of_the_sort_columns() -> None:
    table = made()
    table.cluster(clustering_plan_strategy_sort_columns="v")
    assert values_in_files(table, "x", "v") == [[1, 5, 11, 20]]


def test_rows_may_be_sorted_by_their_keys() -> None:
    table = made()
    table.cluster(clustering_plan_strategy_sort_columns="_hoodie_record_key")
    assert values_in_files(table, "x", "id") == [["a", "b", "c", "e"]]


@pytest.mark.parametrize("layout", ["ZORDER", "HILBERT"])
@pytest.mark.parametrize("method", ["DIRECT", "SAMPLE"])
def test_a_curve_keeps_rows_together_that_are_alike(layout: str, method: str) -> None:
    table = Clustered()
    rows: list[Row] = [(f"k{ts}{v}", "x", ts, v) for ts in range(8) for v in range(8)]
    table.bulk_insert(*rows)
    table.cluster(
        clustering_plan_strategy_sort_columns="ts,v", layout_optimize_strategy=layout,
        layout_optimize_curve_build_method=method,
    )  # fmt: skip
    assert table.rows() == sorted(rows)
    (ts,), (v,) = values_in_files(table, "x", "ts"), values_in_files(table, "x", "v")
    for first in range(0, 64, 16):  # a quarter of the rows is a quarter of the square
        assert max(ts[first : first + 16]) - min(ts[first : first + 16]) == 3
        assert max(v[first : first + 16]) - min(v[first : first + 16]) == 3


@pytest.mark.parametrize(("version", "action"), [("6", "replacecommit"), ("8", "clustering"), ("9", "clustering")])
def test_a_plan_waits_for_another_process(version: str, action: str) -> None:
    table = made(version, "MERGE_ON_READ")
    planned = table.cluster(schedule_only=True, clustering_plan_strategy_sort_columns="v")
    assert planned.scheduled is not None
    assert "scheduled as" in str(planned)
    assert table.pending() == [f"{action}.requested"]
    assert table.cluster(schedule_only=True).planned == (), "what a plan has is not planned again"
    table.insert(("z", "x", 1, 0))
    assert table.groups() == {"x": 4, "y": 1}
    with pytest.raises(ConfigError, match="executed as it was made"):
        table.cluster(instant_time=planned.scheduled, clustering_plan_strategy_sort_columns="id")
    (run,) = table.cluster(instant_time=planned.scheduled).runs
    assert run.instant_time == planned.scheduled
    assert table.groups() == {"x": 2, "y": 1}, "what was inserted meanwhile is not in the plan"
    assert table.rows() == [*ROWS, ("z", "x", 1, 0)]
    assert sorted(values_in_files(table, "x", "v")) == [[1, 5, 11, 20]], "the plan says how to sort"
    with pytest.raises(TableError, match="no pending clustering"):
        table.cluster(instant_time=planned.scheduled)


def test_a_plan_says_what_hudi_has_to_know() -> None:
    table = made("9", "MERGE_ON_READ")
    table.cluster(
        schedule_only=True,
        clustering_plan_strategy_sort_columns="v,ts",
        layout_optimize_strategy="zorder",
        layout_optimize_curve_build_method="sample",
    )
    (instant,) = table.meta.timeline.pending()
    plan = decode_clustering_plan(table.meta.reader.read_body(instant, State.REQUESTED))
    assert plan is not None
    assert plan.strategy_class.endswith(".SparkSortAndSizeExecutionStrategy")
    assert plan.strategy_params == {
        "hoodie.clustering.plan.strategy.sort.columns": "v,ts",
        "hoodie.layout.optimize.strategy": "ZORDER",
        "hoodie.layout.optimize.curve.build.method": "SAMPLE",
    }
    assert [(group.partition_path, len(group.slices)) for group in plan.groups] == [("x", 3), ("y", 1)]


@pytest.mark.thorough
def test_a_dry_run_only_looks() -> None:
    table = made()
    before = [info.path for info in table.storage.walk("")]
    result = table.cluster(dry_run=True)
    assert str(result) == "cluster would take: 2 groups, 4 slices → 2 files"
    assert [info.path for info in table.storage.walk("")] == before


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
def test_writes_cluster_when_commits_enough_were_made(version: str, table_type: str) -> None:
    options = {"clustering_inline": "true", "clustering_inline_max_commits": "3"}
    table = Clustered(version, table_type, **options)
    done = [table.insert((f"k{n}", "x", 1, n)).services.get("clustering", ()) for n in range(7)]
    # The clustering itself is no commit to wait for.
    assert [len(instants) for instants in done] == [0, 0, 1, 0, 0, 1, 0]
    assert table.groups() == {"x": 2}
    assert len(table.rows()) == 7


@pytest.mark.parametrize("key", ["clustering_schedule_inline", "clustering_async_enabled"])
def test_writes_schedule_when_commits_enough_were_made(key: str) -> None:
    table = Clustered(**{key: "true", "clustering_async_max_commits": "2"})
    for number in range(3):
        table.insert((f"k{number}", "x", 1, number))
    assert table.pending() == ["clustering.requested"]
    assert len(table.cluster().runs) == 2
    assert table.groups() == {"x": 1}


def test_a_call_that_names_a_number_of_commits_waits_for_them() -> None:
    table = made()
    assert not table.cluster(clustering_inline_max_commits="6").runs
    assert table.cluster(clustering_inline_max_commits="5").runs


def test_large_groups_become_files_of_the_target_size() -> None:
    table = Clustered()
    table.bulk_insert(*((f"k{n:04d}", "x", 1, n) for n in range(3000)))
    size = sum(stat.file_size_in_bytes for stat in table.first_body().stats())
    result = table.cluster(
        clustering_plan_strategy_sort_columns="v", clustering_plan_strategy_target_file_max_bytes=str(size // 3 + 1)
    )
    assert result.runs[0].files_written == 3
    assert [(min(v), max(v)) for v in sorted(values_in_files(table, "x", "v"))] == [
        (0, 999),
        (1000, 1999),
        (2000, 2999),
    ]
    assert len(table.rows()) == 3000


def test_what_a_log_only_writer_finds_is_not_in_the_way() -> None:
    table = made("9", "MERGE_ON_READ")
    table.compact_now(schedule_only=True)
    planned = table.cluster(dry_run=True)
    assert [len(group.slices) for group in planned.planned] == [1, 1], "slices of a compaction that waits are left"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clustering_plan_strategy_sort_columns": "nothing"}, "which the table doesn't have; its columns: id, p, ts"),
        ({"clustering_plan_strategy_class": "SIZE_BASE"}, "Did you mean"),
        ({"clustering_plan_strategy_file_slices_sort_by": "AGE"}, "expected SIZE, INSTANT_TIME"),
        ({"clustering_plan_strategy_class": "COMMIT_BASED"}, "earliest.commit.to.cluster"),
        ({"clustering_plan_strategy_class": "SELECTED_PARTITIONS"}, "cluster.begin.partition"),
        (
            {"clustering_plan_strategy_class": "STREAM_COPY", "clustering_plan_strategy_sort_columns": "v"},
            "does not sort",
        ),
        ({"clustering_plan_strategy_partition_regex_pattern": "("}, "partition.regex.pattern"),
        ({"layout_optimize_enable": "true"}, "needs columns to sort by"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(options: dict[str, str], message: str) -> None:
    table = made()
    with pytest.raises(ConfigError, match=message):
        table.cluster(**options)
    assert not table.pending()


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
def test_a_plan_that_was_overtaken_is_dropped(version: str, table_type: str) -> None:
    table = made(version, table_type)
    table.cluster(schedule_only=True)
    changed = ("b", "x", 5, 22)
    table.upsert(changed, clustering_updates_strategy="ALLOW")
    with pytest.raises(StalePlan, match=r"changed .* since it was planned"):
        table.cluster()
    assert not table.pending()
    rows = [ROWS[0], changed, *ROWS[2:]]
    assert table.rows() == rows
    table.cluster()
    assert table.rows() == rows
    assert table.groups() == {"x": 1, "y": 1}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_completed_clustering_can_be_rolled_back(version: str) -> None:
    table = made(version, "MERGE_ON_READ")
    table.cluster()
    table.roll_back_last()
    assert table.groups() == {"x": 3, "y": 1}
    assert table.rows() == ROWS
    assert all(i.action is not ActionKind.REPLACECOMMIT for i in table.meta.timeline)


@pytest.mark.parametrize("table_type", TYPES)
def test_tables_without_meta_columns_are_clustered_too(table_type: str) -> None:
    table = made("9", table_type, populate_meta_fields="false")
    assert TestTable.rows(table) == ROWS
    table.cluster(clustering_plan_strategy_sort_columns="v")
    assert table.groups() == {"x": 1, "y": 1}
    assert TestTable.rows(table) == ROWS


@pytest.mark.thorough
@pytest.mark.parametrize("layout", ["LINEAR", "HILBERT"])
@pytest.mark.parametrize("table_type", TYPES)
def test_groups_that_do_not_fit_into_memory_are_sorted_all_the_same(
    layout: str, table_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for work in (ClusterGroups, partial(ClusterGroups, memory_bytes=1)):
        monkeypatch.setattr(clustering, "ClusterGroups", work)
        table = made("9", table_type)
        table.bulk_insert(*((f"k{n:03d}", "x", 1, n * 37 % 101) for n in range(100)))
        before = table.rows(META)
        table.cluster(clustering_plan_strategy_sort_columns="v,ts", layout_optimize_strategy=layout)
        assert table.rows(META) == before
        found.append([values_in_files(table, path, "v") for path in ("x", "y")])
    assert found[0] == found[1]


def test_an_empty_table_has_nothing_to_cluster() -> None:
    table = Clustered()
    table.insert(("a", "x", 1, 1))
    table.delete(("a", "x"))
    table.cluster()
    assert table.rows() == []
    assert str(table.cluster()) == "cluster: nothing to do"
    table.insert(("b", "x", 1, 1))
    assert table.rows() == [("b", "x", 1, 1)]


@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_BLOOM"])
def test_bloom_filters_and_key_ranges_of_new_files_know_all_keys(index: str) -> None:
    table = Clustered()
    rows: list[Row] = [(f"k{n:03d}", "xy"[n % 2], 1, n * 37 % 101) for n in range(200)]
    for first in range(0, 200, 50):
        table.insert(*rows[first : first + 50])
    half = str(2 * table.first_body().stats()[0].file_size_in_bytes + 100)
    table.cluster(clustering_plan_strategy_sort_columns="v", clustering_plan_strategy_target_file_max_bytes=half)
    assert table.groups() == {"x": 2, "y": 2}
    later: list[Row] = [(key, path, 2, v) for key, path, _, v in rows]
    result = table.upsert(*later, index_type=index)
    assert (result.updated, result.inserted) == (200, 0)
    assert table.rows() == later


@pytest.mark.thorough
@pytest.mark.parametrize("counts", [(70_000, 70_000, 10), (122_880, 50), (130_000,)])
def test_unsorted_rows_of_any_slices_come_through_in_row_groups_of_the_usual_size(counts: tuple[int, ...]) -> None:
    table = Clustered()
    for number, count in enumerate(counts):
        keys = pa.array([f"k{number}{n:06d}" for n in range(count)])
        columns = {"id": keys, "p": pa.repeat("x", count), "ts": pa.repeat(1, count), "v": pa.array(range(count))}
        table.write("bulk_insert", pa.table(columns))
    before = table.read().column("id").combine_chunks()
    run = table.cluster()

    assert table.groups() == {"x": 1}
    assert run.runs[0].files_written == 1
    after = table.read().column("id").combine_chunks()
    assert len(after) == sum(counts)
    assert after.sort().equals(before.sort())


def test_an_overwrite_in_the_place_of_a_clustering_is_named() -> None:
    table = made("9", "COPY_ON_WRITE")
    table.write("insert_overwrite", rows_of(("a", "x", 9, 9)))
    overwrite = table.meta.timeline.last_commit()
    assert overwrite is not None
    with pytest.raises(CorruptFile, match=f"{overwrite.requested_time}.*found an overwrite"):
        clustering.Clustering().read(overwrite, table.meta)


class Ids(FixedClock):
    """Gives file groups this id first, and then others."""

    def __init__(self, first: str) -> None:
        super().__init__(SystemClock().now_ms())
        self._first = [first]

    def new_uuid(self) -> str:
        return self._first.pop() if self._first else super().new_uuid()


BUCKET_LIKE = "00000001-5e7c-4a1b-9c2d-000000000000"


@pytest.mark.parametrize("others", [(), ("abcdef01-5e7c-4a1b-9c2d-000000000000",)])
def test_file_groups_are_buckets_when_all_of_them_have_such_ids(others: tuple[str, ...]) -> None:
    table = Clustered()
    for number, file_id in enumerate((*others, BUCKET_LIKE)):
        table.clock = Ids(file_id)
        table.write("bulk_insert", rows_of((f"k{number}", "x", 1, number)), bulkinsert_shuffle_parallelism="1")
    assert {path.split("/")[1][:8] for path in table.data_files()} == {i[:8] for i in (BUCKET_LIKE, *others)}

    if others:
        assert table.cluster().runs[0].files_written == 1
    else:
        with pytest.raises(ConfigError, match="are buckets of its index"):
            table.cluster(clustering_plan_strategy_single_group_clustering_enabled="true")


def test_the_first_of_the_file_groups_that_a_write_changed_unseen_is_named() -> None:
    table = made("9", "MERGE_ON_READ")
    began = table.meta
    table.upsert(*(("abcef"[n], "xxxxy"[n], 9, 9) for n in range(5)))
    options = WriteOptions.parse({}, table=table.meta.config)
    context = ActionContext(
        table.meta, options, open_lock(options.lock, table.storage, table.clock), table.clock, table.engine
    )
    plan = clustering.Clustering().plan(context)
    assert plan is not None
    write = table.meta.timeline.last_commit()
    assert write is not None
    check_fresh(write, plan, table.meta, table.meta)
    first = min(file_slice.group for file_slice in plan.slices)

    with pytest.raises(StalePlan, match=f"the deltacommit {write.requested_time} changed {first.file_id} in"):
        check_fresh(write, plan, table.meta, began)


def test_rows_that_only_log_files_hold_do_not_make_more_file_groups_than_planned() -> None:
    table = Clustered("9", "MERGE_ON_READ", index_type="BUCKET", bucket_index_num_buckets="2")
    for start in (0, 400):
        table.upsert(*((f"k{n:04d}", "x", 1, n) for n in range(start, start + 400)))
    size = sum(info.size_bytes for info in table.storage.walk("x") if ".log." in info.name)
    as_hudi_stores_it(table.storage)
    result = table.cluster(index_type="SIMPLE", clustering_plan_strategy_target_file_max_bytes=str(size // 2 + 1))

    assert result.runs[0].files_written <= 2
    assert len(table.rows()) == 800
