"""Options of compaction, log compaction and clustering, for a write or a call of a service.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyhudi.errors import ConfigError
from pyhudi.model.options.declare import Values, option, parse, part, row

__all__ = [
    "LAYOUT",
    "LAYOUT_ENABLE",
    "LAYOUT_KEYS",
    "SORT_COLUMNS",
    "ClusteringOptions",
    "CompactionOptions",
    "LayoutOptions",
    "clustering_options",
    "compaction_options",
]


_TRIGGER = "hoodie.compact.inline.trigger.strategy"
_DELTA_COMMITS = "hoodie.compact.inline.max.delta.commits"
_DELTA_SECONDS = "hoodie.compact.inline.max.delta.seconds"
_STRATEGY = "org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy"


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Options of the two services. `trigger_is_given`: the caller set a trigger."""

    inline: bool = option(
        "hoodie.compact.inline",
        True,
        "Merge-on-read: writes compact if the trigger fires. Unset: `true`, as in Hudi's Spark writers.",
        default_text="",
    )
    schedule_inline: bool = option(
        "hoodie.compact.schedule.inline",
        False,
        "With `hoodie.compact.inline=false`: writes only schedule a compaction if the trigger fires.",
    )
    trigger: str = option(
        _TRIGGER,
        "NUM_COMMITS",
        "The trigger of compactions. `HudiTable.compact` obeys it only if this or one of its two numbers is set.",
        choices=("NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_AND_TIME", "NUM_OR_TIME"),
    )
    delta_commits_max: int = option(
        _DELTA_COMMITS, 5, "Delta commits since the last compaction that trigger a new one.", minimum=1
    )
    delta_seconds_max: int = option(
        _DELTA_SECONDS, 3600, "Seconds since the last compaction that trigger a new one.", minimum=0
    )
    trigger_is_given: bool = False
    strategies: tuple[str, ...] = option(
        "hoodie.compaction.strategy",
        (_STRATEGY,),
        "The choice of slices to compact: Hudi's class names, or LOG_FILE_SIZE, LOG_FILE_NUM, DAY_BASED, "
        "PARTITION_REGEX, BOUNDED_IO, BOUNDED_PARTITION_AWARE, UNBOUNDED_PARTITION_AWARE, UNBOUNDED, or your own "
        "class as `module:Class`; several are applied one after the other.",
        keyword="strategy",
    )
    target_io_mb: int = option(
        "hoodie.compaction.target.io",
        512000,
        "MB that one compaction may read and write; the slice that exceeds it is the last one.",
        minimum=1,
        keyword="target_io_mb",
    )
    log_size_threshold_bytes: int = option(
        "hoodie.compaction.logfile.size.threshold", 0, "Skip slices with fewer bytes of log files.", minimum=0
    )
    log_num_threshold: int = option(
        "hoodie.compaction.logfile.num.threshold", 0, "Skip slices with fewer log files.", minimum=0
    )
    day_partitions: int = option(
        "hoodie.compaction.daybased.target.partitions",
        10,
        "Strategies by day: number of partitions, or days, to compact.",
        minimum=1,
    )
    partition_regex: str | None = option(
        "hoodie.compaction.partition.path.regex", None, "PARTITION_REGEX: the partitions to compact."
    )
    log_inline: bool = option(
        "hoodie.log.compaction.inline",
        False,
        "Writes to merge-on-read tables that don't compact merge the log blocks of slices that have enough of them.",
    )
    log_blocks_min: int = option(
        "hoodie.log.compaction.blocks.threshold",
        5,
        "Minimum number of log blocks in a slice for a log compaction to merge them.",
        minimum=1,
        keyword="min_log_blocks",
    )


def compaction_options(values: Values) -> CompactionOptions:
    """The options of a write or of a call of a service."""
    options = parse(CompactionOptions, values)
    return replace(options, trigger_is_given=values.is_given(_TRIGGER, _DELTA_COMMITS, _DELTA_SECONDS))


_PLAN = "hoodie.clustering.plan.strategy."
_INLINE_COMMITS = "hoodie.clustering.inline.max.commits"
_ASYNC_COMMITS = "hoodie.clustering.async.max.commits"
_PLAN_CLASS = "org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy"
_UPDATE_CLASS = "org.apache.hudi.client.clustering.update.strategy.SparkRejectUpdateStrategy"

SORT_COLUMNS = f"{_PLAN}sort.columns"
LAYOUT = "hoodie.layout.optimize.strategy"
_CURVE = "hoodie.layout.optimize.curve.build.method"
_SAMPLE = "hoodie.layout.optimize.build.curve.sample.size"
LAYOUT_KEYS = (SORT_COLUMNS, LAYOUT, _CURVE, _SAMPLE)

LAYOUT_ENABLE = row(
    "hoodie.layout.optimize.enable",
    False,
    "Old switch for layouts; `true` requires sort columns. The strategy and the sort columns decide.",
)


@dataclass(frozen=True, slots=True)
class LayoutOptions:
    """The order of rows in new files. No `columns`: rows are in the order in which they were read."""

    columns: tuple[str, ...] = option(
        SORT_COLUMNS, (), "Columns to sort rows by; nested columns with dots. The plan stores them, with the layout."
    )
    strategy: str = option(
        LAYOUT,
        "LINEAR",
        "LINEAR sorts by one column after the other; ZORDER and HILBERT keep rows together that are similar in all "
        "columns.",
        choices=("LINEAR", "ZORDER", "HILBERT"),
    )
    curve_method: str = option(
        _CURVE,
        "DIRECT",
        "Coordinates of a curve: the values themselves (DIRECT), or their ranks in a sample (SAMPLE).",
        choices=("DIRECT", "SAMPLE"),
    )
    sample_size: int = option(_SAMPLE, 200_000, "SAMPLE: number of rows in the sample.", minimum=1)


@dataclass(frozen=True, slots=True)
class ClusteringOptions:
    """Options of clustering. `trigger_is_given`: the caller set the number of commits."""

    inline: bool = option(
        "hoodie.clustering.inline",
        False,
        "Writes cluster after `hoodie.clustering.inline.max.commits` commits since the last clustering.",
        aliases=("hoodie.datasource.clustering.inline.enable",),
    )
    inline_commits_max: int = option(_INLINE_COMMITS, 4, "Commits between two clusterings by writes.", minimum=1)
    schedule_inline: bool = option(
        "hoodie.clustering.schedule.inline",
        False,
        "Writes only plan a clustering, every `hoodie.clustering.async.max.commits` commits; any process may execute "
        "it.",
    )
    async_enabled: bool = option(
        "hoodie.clustering.async.enabled",
        False,
        "Like `hoodie.clustering.schedule.inline`. Streams execute their plans next to their batches; any process can "
        "execute plans of other writes with `HudiTable.cluster`.",
        aliases=("hoodie.datasource.clustering.async.enable",),
    )
    async_commits_max: int = option(_ASYNC_COMMITS, 4, "Commits between two plans that writes schedule.", minimum=1)
    trigger_is_given: bool = False
    plan_strategy: str = option(
        "hoodie.clustering.plan.strategy.class",
        _PLAN_CLASS,
        "The choice of slices to cluster: Hudi's class names, or SIZE_BASED, SINGLE_FILE_SORT, RECENT_DAYS, "
        "SELECTED_PARTITIONS, COMMIT_BASED, STREAM_COPY, CONSISTENT_BUCKET, or your own class as `module:Class`.",
    )
    execution_strategy: str | None = option(
        "hoodie.clustering.execution.strategy.class",
        None,
        "Stored in the plan for other engines. Unset: the one that belongs to the plan strategy. PyHudi itself ignores "
        "it.",
    )
    update_strategy: str = option(
        "hoodie.clustering.updates.strategy",
        _UPDATE_CLASS,
        "Writes to file groups of a pending clustering: SparkRejectUpdateStrategy (REJECT) refuses them, "
        "SparkAllowUpdateStrategy (ALLOW) allows them and drops the clustering. "
        "SparkConsistentBucketDuplicateUpdateStrategy (DUPLICATE) allows them and rolls back a plan that no process is "
        "executing, as PyHudi does not write rows twice.",
    )
    rollback_pending_on_conflict: bool = option(
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
        False,
        "Writes to file groups of a pending clustering roll that clustering back.",
    )
    plans_expire: bool = option(
        "hoodie.clustering.enable.expirations",
        False,
        "Writes and clusterings roll back expired plans that no process is executing.",
    )
    expiration_min: int = option(
        "hoodie.clustering.expiration.threshold.mins", 60, "Minutes after which plans expire, if they do.", minimum=0
    )
    # Which partitions
    partition_filter: str = option(
        "hoodie.clustering.plan.partition.filter.mode",
        "NONE",
        "The choice of partitions.",
        choices=("NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING"),
    )
    lookback_partitions: int = option(
        f"{_PLAN}daybased.lookback.partitions", 2, "RECENT_DAYS: number of partitions, last names first.", minimum=1
    )
    skip_latest_partitions: int = option(
        f"{_PLAN}daybased.skipfromlatest.partitions", 0, "RECENT_DAYS: number of last partitions to skip.", minimum=0
    )
    begin_partition: str | None = option(
        f"{_PLAN}cluster.begin.partition", None, "SELECTED_PARTITIONS: the first partition path."
    )
    end_partition: str | None = option(
        f"{_PLAN}cluster.end.partition", None, "SELECTED_PARTITIONS: the last partition path."
    )
    partitions: tuple[str, ...] = option(f"{_PLAN}partition.selected", (), "Only these partition paths.")
    partition_regex: str | None = option(
        f"{_PLAN}partition.regex.pattern", None, "Only partition paths that match this pattern as a whole."
    )
    # Which slices, in which groups
    small_file_limit_bytes: int = option(
        f"{_PLAN}small.file.limit", 314_572_800, "Skip slices with base files of at least this size.", minimum=0
    )
    target_file_bytes: int = option(
        f"{_PLAN}target.file.max.bytes",
        1_073_741_824,
        "Maximum size in bytes of new base files.",
        minimum=1,
        keyword="target_file_size_bytes",
    )
    group_bytes_max: int = option(
        f"{_PLAN}max.bytes.per.group", 2_147_483_648, "Maximum bytes of base files sorted together.", minimum=1
    )
    groups_max: int = option(
        f"{_PLAN}max.num.groups",
        30,
        "Maximum number of groups in one clustering.",
        minimum=1,
        keyword="max_groups",
    )
    single_slices: bool = option(
        f"{_PLAN}single.group.clustering.enabled",
        True,
        "Also rewrite slices that are alone in their group, which sorts them but makes no larger files.",
    )
    slice_order: str = option(
        f"{_PLAN}file.slices.sort.by",
        "SIZE",
        "Order in which slices are grouped: SIZE (largest first), INSTANT_TIME (oldest first), or both with a comma.",
    )
    earliest_commit: str | None = option(
        f"{_PLAN}earliest.commit.to.cluster", None, "COMMIT_BASED: only base files written after this instant."
    )
    layout: LayoutOptions = part(LayoutOptions)


def clustering_options(values: Values) -> ClusteringOptions:
    """The options of a write or of a call of the service. Raises ConfigError."""
    options = parse(ClusteringOptions, values)
    if values.flag(LAYOUT_ENABLE) and not options.layout.columns:
        raise ConfigError(f"{LAYOUT_ENABLE.key}=true needs columns to sort by: give {SORT_COLUMNS}.")
    return replace(options, trigger_is_given=values.is_given(_INLINE_COMMITS, _ASYNC_COMMITS))
