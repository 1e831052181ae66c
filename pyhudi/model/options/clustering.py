"""ClusteringOptions: what a write or a call of the service asks of clustering, typed."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.errors import ConfigError
from pyhudi.model.options.values import Values

__all__ = ["LAYOUT", "LAYOUT_KEYS", "SORT_COLUMNS", "ClusteringOptions", "LayoutOptions", "clustering_options"]

_PLAN = "hoodie.clustering.plan.strategy."
_TRIGGER_KEYS = ("hoodie.clustering.inline.max.commits", "hoodie.clustering.async.max.commits")
_PLAN_CLASS = "org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy"
_UPDATE_CLASS = "org.apache.hudi.client.clustering.update.strategy.SparkRejectUpdateStrategy"

SORT_COLUMNS = f"{_PLAN}sort.columns"
LAYOUT = "hoodie.layout.optimize.strategy"
LAYOUT_KEYS = (
    SORT_COLUMNS,
    LAYOUT,
    "hoodie.layout.optimize.curve.build.method",
    "hoodie.layout.optimize.build.curve.sample.size",
)


@dataclass(frozen=True, slots=True)
class LayoutOptions:
    """The order of rows in new files. `columns` empty: as they are read."""

    columns: tuple[str, ...] = ()
    strategy: str = "LINEAR"
    curve_method: str = "DIRECT"
    sample_size: int = 200_000


@dataclass(frozen=True, slots=True)
class ClusteringOptions:
    """Options of clustering. `trigger_is_given`: the caller said how many commits to wait for."""

    inline: bool = False
    inline_commits_max: int = 4
    schedule_inline: bool = False
    async_enabled: bool = False
    async_commits_max: int = 4
    trigger_is_given: bool = False
    plan_strategy: str = _PLAN_CLASS
    execution_strategy: str | None = None
    update_strategy: str = _UPDATE_CLASS
    rollback_pending_on_conflict: bool = False
    plans_expire: bool = False
    expiration_min: int = 60
    # Which partitions
    partition_filter: str = "NONE"
    lookback_partitions: int = 2
    skip_latest_partitions: int = 0
    begin_partition: str | None = None
    end_partition: str | None = None
    partitions: tuple[str, ...] = ()
    partition_regex: str | None = None
    # Which slices, in which groups
    small_file_limit_bytes: int = 314_572_800
    target_file_bytes: int = 1_073_741_824
    group_bytes_max: int = 2_147_483_648
    groups_max: int = 30
    single_slices: bool = True
    slice_order: str = "SIZE"
    earliest_commit: str | None = None
    layout: LayoutOptions = LayoutOptions()


def clustering_options(values: Values) -> ClusteringOptions:
    """The options of a write or of a call of the service. Raises ConfigError."""
    sample_size = values.integer(LAYOUT_KEYS[3], minimum=1)
    layout = LayoutOptions(
        values.names(SORT_COLUMNS), values.must(LAYOUT_KEYS[1]), values.must(LAYOUT_KEYS[2]), sample_size
    )
    if values.flag("hoodie.layout.optimize.enable") and not layout.columns:
        raise ConfigError(f"hoodie.layout.optimize.enable=true needs columns to sort by: give {SORT_COLUMNS}.")
    return ClusteringOptions(
        inline=values.flag("hoodie.clustering.inline"),
        inline_commits_max=values.integer("hoodie.clustering.inline.max.commits", minimum=1),
        schedule_inline=values.flag("hoodie.clustering.schedule.inline"),
        async_enabled=values.flag("hoodie.clustering.async.enabled"),
        async_commits_max=values.integer("hoodie.clustering.async.max.commits", minimum=1),
        trigger_is_given=any(key in values.given for key in _TRIGGER_KEYS),
        plan_strategy=values.must("hoodie.clustering.plan.strategy.class"),
        execution_strategy=values.text("hoodie.clustering.execution.strategy.class"),
        update_strategy=values.must("hoodie.clustering.updates.strategy"),
        rollback_pending_on_conflict=values.flag("hoodie.clustering.rollback.pending.replacecommit.on.conflict"),
        plans_expire=values.flag("hoodie.clustering.enable.expirations"),
        expiration_min=values.integer("hoodie.clustering.expiration.threshold.mins", minimum=0),
        partition_filter=values.must("hoodie.clustering.plan.partition.filter.mode"),
        lookback_partitions=values.integer(f"{_PLAN}daybased.lookback.partitions", minimum=1),
        skip_latest_partitions=values.integer(f"{_PLAN}daybased.skipfromlatest.partitions", minimum=0),
        begin_partition=values.text(f"{_PLAN}cluster.begin.partition"),
        end_partition=values.text(f"{_PLAN}cluster.end.partition"),
        partitions=values.names(f"{_PLAN}partition.selected"),
        partition_regex=values.text(f"{_PLAN}partition.regex.pattern"),
        small_file_limit_bytes=values.integer(f"{_PLAN}small.file.limit", minimum=0),
        target_file_bytes=values.integer(f"{_PLAN}target.file.max.bytes", minimum=1),
        group_bytes_max=values.integer(f"{_PLAN}max.bytes.per.group", minimum=1),
        groups_max=values.integer(f"{_PLAN}max.num.groups", minimum=1),
        single_slices=values.flag(f"{_PLAN}single.group.clustering.enabled"),
        slice_order=values.must(f"{_PLAN}file.slices.sort.by"),
        earliest_commit=values.text(f"{_PLAN}earliest.commit.to.cluster"),
        layout=layout,
    )
