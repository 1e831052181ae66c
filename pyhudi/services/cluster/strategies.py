"""The choice of slices that a clustering rewrites, and of those that are sorted together.

    partitions   partitions that are named, match a pattern, or pass the filter mode
    slices       the newest ones with a small base file, depending on the strategy
    groups       one partition each, filled up to a number of bytes

Source: docs/formats/table-services.md, "Clustering plan".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from pyhudi.actions.action import ActionContext
from pyhudi.errors import ConfigError
from pyhudi.model.file_group import FileSlice
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.services import ClusteringOptions
from pyhudi.model.plans import NEW_GROUPS_MAX, ClusteringGroup, ClusteringSlice
from pyhudi.registry import Registry
from pyhudi.view.pending_plans import metrics_of

__all__ = ["PLAN_STRATEGIES", "ClusteringStrategy", "group_of", "partitions_to_cluster"]

_JAVA = "org.apache.hudi.client.clustering.plan.strategy."
_BASE = "org.apache.hudi.table.action.cluster.strategy."
_RUN = "org.apache.hudi.client.clustering.run.strategy."
_HERE = "pyhudi.services.cluster.strategies:"
_NAMES = {
    "SIZE_BASED": (f"{_JAVA}SparkSizeBasedClusteringPlanStrategy", f"{_JAVA}FlinkSizeBasedClusteringPlanStrategy"),
    "SINGLE_FILE_SORT": (f"{_JAVA}SparkSingleFileSortPlanStrategy",),
    "RECENT_DAYS": (
        f"{_JAVA}SparkRecentDaysClusteringPlanStrategy",
        f"{_JAVA}FlinkRecentDaysClusteringPlanStrategy",
    ),
    "SELECTED_PARTITIONS": (
        f"{_JAVA}SparkSelectedPartitionsClusteringPlanStrategy",
        f"{_JAVA}FlinkSelectedPartitionsClusteringPlanStrategy",
    ),
    "COMMIT_BASED": (f"{_BASE}CommitBasedClusteringPlanStrategy",),
    "STREAM_COPY": (f"{_JAVA}SparkStreamCopyClusteringPlanStrategy",),
    "CONSISTENT_BUCKET": (f"{_JAVA}SparkConsistentBucketClusteringPlanStrategy",),
}

PLAN_STRATEGIES: Registry[type[ClusteringStrategy]] = Registry(
    "clustering plan strategy",
    {
        "SIZE_BASED": f"{_HERE}SizeBased",
        "SINGLE_FILE_SORT": f"{_HERE}SingleFileSort",
        "RECENT_DAYS": f"{_HERE}RecentDays",
        "SELECTED_PARTITIONS": f"{_HERE}SelectedPartitions",
        "COMMIT_BASED": f"{_HERE}CommitBased",
        "STREAM_COPY": f"{_HERE}StreamCopy",
        "CONSISTENT_BUCKET": "pyhudi.services.cluster.buckets:ConsistentBucket",
    },
    {
        spelling: name
        for name, classes in _NAMES.items()
        for java in classes
        for spelling in (java, java.rpartition(".")[2])
    },
)


class ClusteringStrategy(Protocol):
    """Chooses the work of one clustering. Made without arguments.

    `execution_class`: name of the execution strategy in the plan. `whole_partitions`: leave out partitions with another
    pending plan.
    """

    execution_class: str
    whole_partitions: bool

    def options(self, options: ClusteringOptions) -> ClusteringOptions:
        """The options as this strategy uses them. Raises ConfigError for unsuitable ones."""
        ...

    def groups(self, slices: Sequence[FileSlice], context: ActionContext) -> list[ClusteringGroup]:
        """Groups of one partition. `slices`: its newest ones outside pending plans; the context has the options that
        `options` returned. Raises HudiError.
        """
        ...


# ---- partitions ------------------------------------------------------------------------------------------------------


def partitions_to_cluster(paths: Iterable[str], options: ClusteringOptions, now: datetime) -> tuple[str, ...]:
    """The partition paths that a plan covers. Raises ConfigError."""
    paths = tuple(paths)
    if options.partitions:
        chosen = frozenset(options.partitions)
        paths = tuple(path for path in paths if path in chosen)
    elif options.partition_regex:
        try:
            pattern = re.compile(options.partition_regex)
        except re.error as error:
            raise ConfigError(
                f"hoodie.clustering.plan.strategy.partition.regex.pattern={options.partition_regex!r}: {error}."
            ) from error
        paths = tuple(path for path in paths if pattern.fullmatch(path))
    return tuple(_FILTERS[options.partition_filter](paths, options, now))


def _recent(paths: Sequence[str], options: ClusteringOptions, now: datetime) -> Sequence[str]:
    newest_first = sorted(paths, reverse=True)[options.skip_latest_partitions :]
    return newest_first[: options.lookback_partitions]


def _selected(paths: Sequence[str], options: ClusteringOptions, now: datetime) -> Sequence[str]:
    begin, end = options.begin_partition, options.end_partition
    return [path for path in paths if (begin is None or path >= begin) and (end is None or path <= end)]


def _rolling(paths: Sequence[str], options: ClusteringOptions, now: datetime) -> Sequence[str]:
    """Every 24th partition, starting with another one each hour of the day."""
    return sorted(paths)[now.hour :: 24]


_FILTERS: Mapping[str, Callable[[Sequence[str], ClusteringOptions, datetime], Sequence[str]]] = {
    "NONE": lambda paths, options, now: paths,
    "RECENT_DAYS": _recent,
    "SELECTED_PARTITIONS": _selected,
    "DAY_ROLLING": _rolling,
}


# ---- slices and groups -----------------------------------------------------------------------------------------------


def group_of(
    slices: Sequence[FileSlice], output_file_groups: int, extra_metadata: Mapping[str, str] | None = None
) -> ClusteringGroup:
    """A group of a plan."""
    metrics: dict[str, float] = {}
    for file_slice in slices:
        for name, number in metrics_of(file_slice).items():
            metrics[name] = metrics.get(name, 0.0) + number
    planned = tuple(
        ClusteringSlice(
            s.group.partition_path,
            s.group.file_id,
            s.base_file.name if s.base_file is not None else None,
            tuple(log.name for log in s.log_files),
        )
        for s in slices
    )
    return ClusteringGroup(planned, output_file_groups, metrics, extra_metadata)


def _base_bytes(file_slice: FileSlice, otherwise: int) -> int:
    return file_slice.base_file.size_bytes if file_slice.base_file is not None else otherwise


class SizeBased:
    """Slices with small base files, packed into groups."""

    execution_class = f"{_RUN}SparkSortAndSizeExecutionStrategy"
    whole_partitions = False

    def options(self, options: ClusteringOptions) -> ClusteringOptions:
        return options

    def groups(self, slices: Sequence[FileSlice], context: ActionContext) -> list[ClusteringGroup]:
        options, clustering = context.options, context.options.clustering
        packed = self._packed(self._ordered(self._eligible(slices, clustering), options), options)
        return [
            group_of(group, min(max(1, -(-size_bytes // clustering.target_file_bytes)), NEW_GROUPS_MAX))
            for group, size_bytes in packed
            if len(group) > 1 or clustering.single_slices
        ]

    def _eligible(self, slices: Sequence[FileSlice], options: ClusteringOptions) -> list[FileSlice]:
        return [s for s in slices if _base_bytes(s, 0) < options.small_file_limit_bytes]

    def _ordered(self, slices: list[FileSlice], options: WriteOptions) -> list[FileSlice]:
        """The slices in the order of `file.slices.sort.by`; later words break ties of earlier ones."""
        for word in reversed(options.clustering.slice_order.upper().split(",")):
            if word.strip() == "SIZE":
                slices.sort(key=lambda s: _base_bytes(s, options.max_file_size_bytes), reverse=True)
            elif word.strip() == "INSTANT_TIME":
                slices.sort(key=lambda s: s.base_instant)
            else:
                raise ConfigError(
                    f"hoodie.clustering.plan.strategy.file.slices.sort.by={options.clustering.slice_order}: expected "
                    f"SIZE, INSTANT_TIME, or both with a comma."
                )
        return slices

    def _packed(self, slices: list[FileSlice], options: WriteOptions) -> list[tuple[list[FileSlice], int]]:
        """Groups of limited size, with their bytes; a slice without base file counts as a full one."""
        groups: list[tuple[list[FileSlice], int]] = []
        group: list[FileSlice] = []
        size_bytes = 0
        for file_slice in slices:
            more = _base_bytes(file_slice, options.max_file_size_bytes)
            if group and size_bytes + more > options.clustering.group_bytes_max:
                groups.append((group, size_bytes))
                group, size_bytes = [], 0
                if len(groups) >= options.clustering.groups_max:
                    break
            group.append(file_slice)
            size_bytes += more
        if group:
            groups.append((group, size_bytes))
        return groups


class SingleFileSort(SizeBased):
    """Each slice by itself: it is sorted and becomes one new file group."""

    execution_class = f"{_RUN}SparkSingleFileSortExecutionStrategy"

    def groups(self, slices: Sequence[FileSlice], context: ActionContext) -> list[ClusteringGroup]:
        options = context.options
        return [group_of([s], 1) for s in self._ordered(self._eligible(slices, options.clustering), options)]


class RecentDays(SizeBased):
    """`SizeBased` in the last partitions by name."""

    def options(self, options: ClusteringOptions) -> ClusteringOptions:
        return replace(options, partition_filter="RECENT_DAYS")


class SelectedPartitions(SizeBased):
    """`SizeBased` in a range of partitions."""

    def options(self, options: ClusteringOptions) -> ClusteringOptions:
        if options.begin_partition is None and options.end_partition is None:
            raise ConfigError(
                "The clustering plan strategy by selected partitions needs "
                "hoodie.clustering.plan.strategy.cluster.begin.partition, cluster.end.partition, or both."
            )
        return replace(options, partition_filter="SELECTED_PARTITIONS")


class CommitBased(SizeBased):
    """Slices whose base files were written after an instant, oldest first."""

    def options(self, options: ClusteringOptions) -> ClusteringOptions:
        if options.earliest_commit is None:
            raise ConfigError(
                "The clustering plan strategy by commits needs "
                "hoodie.clustering.plan.strategy.earliest.commit.to.cluster."
            )
        return replace(options, slice_order="INSTANT_TIME")

    def _eligible(self, slices: Sequence[FileSlice], options: ClusteringOptions) -> list[FileSlice]:
        assert options.earliest_commit is not None
        return [s for s in super()._eligible(slices, options) if s.base_instant > options.earliest_commit]


class StreamCopy(SizeBased):
    """`SizeBased` for engines that concatenate files without reading rows: no logs, no order."""

    execution_class = f"{_RUN}SparkStreamCopyClusteringExecutionStrategy"

    def options(self, options: ClusteringOptions) -> ClusteringOptions:
        if options.layout.columns:
            raise ConfigError(
                "The clustering plan strategy by stream copy does not sort; leave out "
                "hoodie.clustering.plan.strategy.sort.columns, or choose another strategy."
            )
        return options

    def _eligible(self, slices: Sequence[FileSlice], options: ClusteringOptions) -> list[FileSlice]:
        return [s for s in super()._eligible(slices, options) if not s.log_files]
