"""Rows of the option table: compaction and log compaction, which run by themselves or at the end of a write.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from pyhudi.model.options.row import honoured
from pyhudi.model.options.spec import Kind, OptionSpec

__all__ = ["COMPACTION_OPTIONS"]

FLAG, INTEGER, NAMES, TEXT = Kind.FLAG, Kind.INTEGER, Kind.NAMES, Kind.TEXT

_GROUP = "Compaction"

COMPACTION_OPTIONS: tuple[OptionSpec, ...] = (
    honoured(
        _GROUP,
        "hoodie.compact.inline",
        FLAG,
        None,
        "Merge-on-read: writes compact when the trigger says so. Unset means true, as in Hudi's Spark writers.",
    ),
    honoured(
        _GROUP,
        "hoodie.compact.schedule.inline",
        FLAG,
        "false",
        "With `hoodie.compact.inline=false`: writes only schedule a compaction when the trigger says so.",
    ),
    honoured(
        _GROUP,
        "hoodie.compact.inline.trigger.strategy",
        TEXT,
        "NUM_COMMITS",
        "What a compaction waits for. `HudiTable.compact` waits only if this or one of its two numbers is given.",
        choices=("NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_AND_TIME", "NUM_OR_TIME"),
    ),
    honoured(
        _GROUP,
        "hoodie.compact.inline.max.delta.commits",
        INTEGER,
        "5",
        "Delta commits since the last compaction that trigger one.",
    ),
    honoured(
        _GROUP,
        "hoodie.compact.inline.max.delta.seconds",
        INTEGER,
        "3600",
        "Seconds since the last compaction that trigger one.",
    ),
    honoured(
        _GROUP,
        "hoodie.compaction.strategy",
        NAMES,
        "org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy",
        "Which slices a compaction takes: Hudi's class names, or LOG_FILE_SIZE, LOG_FILE_NUM, DAY_BASED, "
        "PARTITION_REGEX, BOUNDED_IO, BOUNDED_PARTITION_AWARE, UNBOUNDED_PARTITION_AWARE, UNBOUNDED, or your own class "
        "as `module:Class`; several are applied one after the other.",
    ),
    honoured(
        _GROUP,
        "hoodie.compaction.target.io",
        INTEGER,
        "512000",
        "MB that one compaction may read and write; the slice that passes it is the last one.",
    ),
    honoured(
        _GROUP, "hoodie.compaction.logfile.size.threshold", INTEGER, "0", "Slices with fewer bytes of logs are left."
    ),
    honoured(_GROUP, "hoodie.compaction.logfile.num.threshold", INTEGER, "0", "Slices with fewer log files are left."),
    honoured(
        _GROUP,
        "hoodie.compaction.daybased.target.partitions",
        INTEGER,
        "10",
        "Strategies by day: how many partitions, or days, to take.",
    ),
    honoured(
        _GROUP, "hoodie.compaction.partition.path.regex", TEXT, None, "PARTITION_REGEX: which partitions to take."
    ),
    honoured(
        _GROUP,
        "hoodie.log.compaction.inline",
        FLAG,
        "false",
        "Writes to merge-on-read tables fold log blocks of slices that have enough of them, if they did not compact.",
    ),
    honoured(
        _GROUP,
        "hoodie.log.compaction.blocks.threshold",
        INTEGER,
        "5",
        "Log blocks of a slice that a log compaction folds; slices with fewer are left.",
    ),
)
