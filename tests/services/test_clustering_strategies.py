"""Which partitions, slices and groups the plan strategies choose."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from pyhudi.actions.action import ActionContext
from pyhudi.model.file_group import BaseFile, FileGroupId, FileSlice, LogFile
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.services import ClusteringOptions
from pyhudi.model.plans import NEW_GROUPS_MAX
from pyhudi.services.cluster.strategies import PLAN_STRATEGIES, partitions_to_cluster

MB = 1 << 20
DAYS = tuple(f"2024-01-{day:02d}" for day in range(1, 10))
NOON = datetime(2024, 1, 9, 12)


def base(name: str, size_mb: int, instant: str = "1") -> FileSlice:
    file = BaseFile(f"p/{name}_0-0-0_{instant}.parquet", "p", name, instant, size_mb * MB)
    return FileSlice(FileGroupId("p", name), instant, file)


def logs_only(name: str) -> FileSlice:
    log = LogFile(f"p/.{name}_1.log.1_0-0-0", "p", name, "1", 1, "0-0-0", 5)
    return FileSlice(FileGroupId("p", name), "1", None, (log,))


def groups(name: str, *slices: FileSlice, **options: Any) -> list[list[str]]:
    return [[s.file_id for s in group.slices] for group in made(name, *slices, **options)]


def made(name: str, *slices: FileSlice, **options: Any) -> list[Any]:
    strategy = PLAN_STRATEGIES.load(name)()
    own = strategy.options(replace(ClusteringOptions(), **options))
    context = ActionContext(None, WriteOptions(clustering=own), None, None, None)  # type: ignore[arg-type]
    return list(strategy.groups(list(slices), context))


def partitions(**options: Any) -> tuple[str, ...]:
    return partitions_to_cluster(DAYS, replace(ClusteringOptions(), **options), NOON)


def test_partitions_are_filtered_as_asked() -> None:
    assert partitions() == DAYS
    assert partitions(partition_filter="RECENT_DAYS") == ("2024-01-09", "2024-01-08")
    assert partitions(partition_filter="RECENT_DAYS", skip_latest_partitions=1, lookback_partitions=1) == (DAYS[7],)
    between = {"begin_partition": DAYS[2], "end_partition": DAYS[4]}
    assert partitions(partition_filter="SELECTED_PARTITIONS", **between) == DAYS[2:5]
    assert partitions(partition_filter="SELECTED_PARTITIONS", begin_partition=DAYS[7]) == DAYS[7:]
    assert partitions(partitions=(DAYS[3], "none")) == (DAYS[3],)
    assert partitions(partition_regex=r".*-0[12]") == DAYS[:2]
    assert partitions(partition_regex="2024") == (), "a path matches as a whole"
    many = [f"{number:02d}" for number in range(60)]
    assert partitions_to_cluster(many, ClusteringOptions(partition_filter="DAY_ROLLING"), NOON) == ("12", "36")


def test_small_slices_are_packed_largest_first() -> None:
    slices = (base("a", 100), base("b", 299), base("c", 300), base("d", 50), base("e", 200))
    assert groups("SIZE_BASED", *slices) == [["b", "e", "a", "d"]]
    assert groups("SIZE_BASED", *slices, group_bytes_max=350 * MB) == [["b"], ["e", "a", "d"]]
    assert groups("SIZE_BASED", *slices, group_bytes_max=350 * MB, single_slices=False) == [["e", "a", "d"]]
    assert groups("SIZE_BASED", *slices, group_bytes_max=1, groups_max=2) == [["b"], ["e"]]
    assert groups("SIZE_BASED", *slices, small_file_limit_bytes=60 * MB) == [["d"]]


def test_a_slice_of_logs_only_counts_as_a_full_file() -> None:
    (group,) = made("SIZE_BASED", base("a", 100), logs_only("l"), target_file_bytes=150 * MB)
    assert [s.file_id for s in group.slices] == ["l", "a"]
    assert group.output_file_groups == 2  # 120 and 100 MB
    assert group.metrics["TOTAL_LOG_FILES"] == 1.0


def test_slices_may_come_together_by_age() -> None:
    slices = (base("new", 5, "3"), base("old", 1, "1"), base("older", 9, "1"))
    assert groups("SIZE_BASED", *slices, slice_order="INSTANT_TIME") == [["old", "older", "new"]]
    assert groups("SIZE_BASED", *slices, slice_order="instant_time,size") == [["older", "old", "new"]]


def test_single_files_are_sorted_by_themselves() -> None:
    found = made("SINGLE_FILE_SORT", base("a", 1), base("b", 2), base("huge", 999))
    assert [[s.file_id for s in group.slices] for group in found] == [["b"], ["a"]]
    assert {group.output_file_groups for group in found} == {1}


def test_only_files_of_later_commits_are_taken() -> None:
    slices = (base("a", 1, "1"), base("b", 2, "2"), base("c", 3, "3"))
    assert groups("COMMIT_BASED", *slices, earliest_commit="1") == [["b", "c"]]


def test_slices_with_logs_are_not_stitched() -> None:
    assert groups("STREAM_COPY", base("a", 1), logs_only("l")) == [["a"]]


@pytest.mark.parametrize(
    "java",
    [
        "org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy",
        "org.apache.hudi.client.clustering.plan.strategy.SparkSingleFileSortPlanStrategy",
        "org.apache.hudi.client.clustering.plan.strategy.SparkRecentDaysClusteringPlanStrategy",
        "org.apache.hudi.client.clustering.plan.strategy.SparkSelectedPartitionsClusteringPlanStrategy",
        "org.apache.hudi.client.clustering.plan.strategy.SparkStreamCopyClusteringPlanStrategy",
        "org.apache.hudi.client.clustering.plan.strategy.SparkConsistentBucketClusteringPlanStrategy",
        "org.apache.hudi.table.action.cluster.strategy.CommitBasedClusteringPlanStrategy",
    ],
)
def test_strategies_go_by_hudis_names(java: str) -> None:
    strategy = PLAN_STRATEGIES.load(java)()
    assert strategy.execution_class.startswith("org.apache.hudi.client.clustering.run.strategy.")
    assert PLAN_STRATEGIES.canonical(java) == PLAN_STRATEGIES.canonical(java.rpartition(".")[2])


def test_a_tiny_size_of_files_asks_for_no_more_groups_than_a_plan_may_have() -> None:
    (group,) = made("SIZE_BASED", base("a", 1), base("b", 1), target_file_bytes=1)
    assert group.output_file_groups == NEW_GROUPS_MAX < 2 * MB
