"""Rows of the option table: clustering, which is called, or follows a write that asks for it.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from pyhudi.model.options.row import honoured
from pyhudi.model.options.spec import Kind, OptionSpec

__all__ = ["CLUSTERING_OPTIONS"]

FLAG, INTEGER, NAMES, TEXT = Kind.FLAG, Kind.INTEGER, Kind.NAMES, Kind.TEXT

_GROUP = "Clustering"
_PLAN = "hoodie.clustering.plan.strategy."
_JAVA = "org.apache.hudi.client.clustering."


def _row(
    key: str, kind: Kind, default: str | None, doc: str, *aliases: str, choices: tuple[str, ...] = ()
) -> OptionSpec:
    return honoured(_GROUP, key, kind, default, doc, *aliases, choices=choices)


CLUSTERING_OPTIONS: tuple[OptionSpec, ...] = (
    _row(
        "hoodie.clustering.inline",
        FLAG,
        "false",
        "Writes cluster when `hoodie.clustering.inline.max.commits` were made since the last clustering.",
        "hoodie.datasource.clustering.inline.enable",
    ),
    _row("hoodie.clustering.inline.max.commits", INTEGER, "4", "Commits between two clusterings of writes."),
    _row(
        "hoodie.clustering.schedule.inline",
        FLAG,
        "false",
        "Writes only plan a clustering, every `hoodie.clustering.async.max.commits`; any process may execute it.",
    ),
    _row(
        "hoodie.clustering.async.enabled",
        FLAG,
        "false",
        "As `hoodie.clustering.schedule.inline`: a writer has no threads that live on; execute the plan with "
        "`HudiTable.cluster`, from any process.",
        "hoodie.datasource.clustering.async.enable",
    ),
    _row("hoodie.clustering.async.max.commits", INTEGER, "4", "Commits between two plans that writes schedule."),
    _row(
        "hoodie.clustering.plan.strategy.class",
        TEXT,
        f"{_JAVA}plan.strategy.SparkSizeBasedClusteringPlanStrategy",
        "Which slices a clustering takes: Hudi's class names, or SIZE_BASED, SINGLE_FILE_SORT, RECENT_DAYS, "
        "SELECTED_PARTITIONS, COMMIT_BASED, STREAM_COPY, CONSISTENT_BUCKET, or your own class as `module:Class`.",
    ),
    _row(
        "hoodie.clustering.execution.strategy.class",
        TEXT,
        None,
        "Stands in the plan for engines that choose by it; unset: the one that goes with the plan strategy. PyHudi "
        "rewrites rows whichever it is.",
    ),
    _row(
        "hoodie.clustering.updates.strategy",
        TEXT,
        f"{_JAVA}update.strategy.SparkRejectUpdateStrategy",
        "Writes to file groups that a clustering waits for: SparkRejectUpdateStrategy (REJECT) refuses them, "
        "SparkAllowUpdateStrategy (ALLOW) lets them, and the clustering is dropped. "
        "SparkConsistentBucketDuplicateUpdateStrategy (DUPLICATE) refuses them too: PyHudi does not write rows twice.",
    ),
    _row(
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
        FLAG,
        "false",
        "Writes to file groups that a clustering waits for roll that clustering back and go on.",
    ),
    _row(
        "hoodie.clustering.enable.expirations",
        FLAG,
        "false",
        "Writes and clusterings roll back plans that have waited for too long and that nobody is executing.",
    ),
    _row(
        "hoodie.clustering.expiration.threshold.mins", INTEGER, "60", "How many minutes plans may wait, if they expire."
    ),
    _row(
        "hoodie.clustering.plan.partition.filter.mode",
        TEXT,
        "NONE",
        "Which partitions are looked into.",
        choices=("NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING"),
    ),
    _row(f"{_PLAN}daybased.lookback.partitions", INTEGER, "2", "RECENT_DAYS: how many partitions, last names first."),
    _row(f"{_PLAN}daybased.skipfromlatest.partitions", INTEGER, "0", "RECENT_DAYS: how many to leave out first."),
    _row(f"{_PLAN}cluster.begin.partition", TEXT, None, "SELECTED_PARTITIONS: the first partition path."),
    _row(f"{_PLAN}cluster.end.partition", TEXT, None, "SELECTED_PARTITIONS: the last partition path."),
    _row(f"{_PLAN}partition.selected", NAMES, None, "Just these partition paths."),
    _row(f"{_PLAN}partition.regex.pattern", TEXT, None, "Only partition paths that match as a whole."),
    _row(f"{_PLAN}small.file.limit", INTEGER, "314572800", "Slices with base files of this size or more are left."),
    _row(f"{_PLAN}target.file.max.bytes", INTEGER, "1073741824", "How large new base files may get."),
    _row(f"{_PLAN}max.bytes.per.group", INTEGER, "2147483648", "How much is sorted together, in bytes of base files."),
    _row(f"{_PLAN}max.num.groups", INTEGER, "30", "How many groups one clustering takes."),
    _row(
        f"{_PLAN}single.group.clustering.enabled",
        FLAG,
        "true",
        "Rewrite slices that are alone in their group: good for sorting, not for larger files.",
    ),
    _row(
        f"{_PLAN}file.slices.sort.by",
        TEXT,
        "SIZE",
        "Which slices come together in groups: SIZE largest first, INSTANT_TIME oldest first, or both with a comma.",
    ),
    _row(f"{_PLAN}earliest.commit.to.cluster", TEXT, None, "COMMIT_BASED: only base files written after this instant."),
    _row(
        f"{_PLAN}sort.columns",
        NAMES,
        None,
        "Columns to sort rows by; nested ones with dots. They go into the plan, with the layout.",
    ),
    _row(
        "hoodie.layout.optimize.strategy",
        TEXT,
        "LINEAR",
        "LINEAR sorts by the columns in turn; ZORDER and HILBERT keep rows together that are alike in all of them.",
        choices=("LINEAR", "ZORDER", "HILBERT"),
    ),
    _row(
        "hoodie.layout.optimize.curve.build.method",
        TEXT,
        "DIRECT",
        "How values become coordinates of a curve: DIRECT by the values themselves, SAMPLE by their ranks in a sample.",
        choices=("DIRECT", "SAMPLE"),
    ),
    _row("hoodie.layout.optimize.build.curve.sample.size", INTEGER, "200000", "SAMPLE: how many rows a sample has."),
    _row(
        "hoodie.layout.optimize.enable",
        FLAG,
        "false",
        "Old switch for layouts; the strategy and the sort columns decide, which this demands.",
    ),
)
