"""CompactionOptions: what a write or a call of a service asks of compaction and log compaction.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyhudi.model.options.declare import Values, option, parse

__all__ = ["CompactionOptions", "compaction_options"]

_TRIGGER = "hoodie.compact.inline.trigger.strategy"
_DELTA_COMMITS = "hoodie.compact.inline.max.delta.commits"
_DELTA_SECONDS = "hoodie.compact.inline.max.delta.seconds"
_STRATEGY = "org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy"


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Options of the two services. `trigger_is_given`: the caller said what to wait for."""

    inline: bool = option(
        "hoodie.compact.inline",
        True,
        "Merge-on-read: writes compact when the trigger says so. Unset means true, as in Hudi's Spark writers.",
        default_text="",
    )
    schedule_inline: bool = option(
        "hoodie.compact.schedule.inline",
        False,
        "With `hoodie.compact.inline=false`: writes only schedule a compaction when the trigger says so.",
    )
    trigger: str = option(
        _TRIGGER,
        "NUM_COMMITS",
        "What a compaction waits for. `HudiTable.compact` waits only if this or one of its two numbers is given.",
        choices=("NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_AND_TIME", "NUM_OR_TIME"),
    )
    delta_commits_max: int = option(
        _DELTA_COMMITS, 5, "Delta commits since the last compaction that trigger one.", minimum=1
    )
    delta_seconds_max: int = option(
        _DELTA_SECONDS, 3600, "Seconds since the last compaction that trigger one.", minimum=0
    )
    trigger_is_given: bool = False
    strategies: tuple[str, ...] = option(
        "hoodie.compaction.strategy",
        (_STRATEGY,),
        "Which slices a compaction takes: Hudi's class names, or LOG_FILE_SIZE, LOG_FILE_NUM, DAY_BASED, "
        "PARTITION_REGEX, BOUNDED_IO, BOUNDED_PARTITION_AWARE, UNBOUNDED_PARTITION_AWARE, UNBOUNDED, or your own "
        "class as `module:Class`; several are applied one after the other.",
    )
    target_io_mb: int = option(
        "hoodie.compaction.target.io",
        512000,
        "MB that one compaction may read and write; the slice that passes it is the last one.",
        minimum=1,
    )
    log_size_threshold_bytes: int = option(
        "hoodie.compaction.logfile.size.threshold", 0, "Slices with fewer bytes of logs are left.", minimum=0
    )
    log_num_threshold: int = option(
        "hoodie.compaction.logfile.num.threshold", 0, "Slices with fewer log files are left.", minimum=0
    )
    day_partitions: int = option(
        "hoodie.compaction.daybased.target.partitions",
        10,
        "Strategies by day: how many partitions, or days, to take.",
        minimum=1,
    )
    partition_regex: str | None = option(
        "hoodie.compaction.partition.path.regex", None, "PARTITION_REGEX: which partitions to take."
    )
    log_inline: bool = option(
        "hoodie.log.compaction.inline",
        False,
        "Writes to merge-on-read tables merge log blocks of slices that have enough of them, if they did not compact.",
    )
    log_blocks_min: int = option(
        "hoodie.log.compaction.blocks.threshold",
        5,
        "Log blocks of a slice that a log compaction merges; slices with fewer are left.",
        minimum=1,
    )


def compaction_options(values: Values) -> CompactionOptions:
    """The options of a write or of a call of a service."""
    options = parse(CompactionOptions, values)
    return replace(options, trigger_is_given=values.is_given(_TRIGGER, _DELTA_COMMITS, _DELTA_SECONDS))
