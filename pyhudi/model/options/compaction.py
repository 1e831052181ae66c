"""CompactionOptions: what a write or a call of a service asks of compaction and log compaction, typed."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.values import Values

__all__ = ["CompactionOptions", "compaction_options"]

_TRIGGER_KEYS = (
    "hoodie.compact.inline.trigger.strategy",
    "hoodie.compact.inline.max.delta.commits",
    "hoodie.compact.inline.max.delta.seconds",
)


_DEFAULT_STRATEGY = "org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy"


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Options of the two services. `trigger_is_given`: the caller said what to wait for."""

    inline: bool = True
    schedule_inline: bool = False
    trigger: str = "NUM_COMMITS"
    delta_commits_max: int = 5
    delta_seconds_max: int = 3600
    trigger_is_given: bool = False
    strategies: tuple[str, ...] = (_DEFAULT_STRATEGY,)
    target_io_mb: int = 512000
    log_size_threshold_bytes: int = 0
    log_num_threshold: int = 0
    day_partitions: int = 10
    partition_regex: str | None = None
    log_inline: bool = False
    log_blocks_min: int = 5


def compaction_options(values: Values) -> CompactionOptions:
    """The options of a write or of a call of a service."""
    return CompactionOptions(
        inline=values.text("hoodie.compact.inline") != "false",
        schedule_inline=values.flag("hoodie.compact.schedule.inline"),
        trigger=values.must("hoodie.compact.inline.trigger.strategy"),
        delta_commits_max=values.integer("hoodie.compact.inline.max.delta.commits", minimum=1),
        delta_seconds_max=values.integer("hoodie.compact.inline.max.delta.seconds", minimum=0),
        trigger_is_given=any(key in values.given for key in _TRIGGER_KEYS),
        strategies=values.names("hoodie.compaction.strategy"),
        target_io_mb=values.integer("hoodie.compaction.target.io", minimum=1),
        log_size_threshold_bytes=values.integer("hoodie.compaction.logfile.size.threshold", minimum=0),
        log_num_threshold=values.integer("hoodie.compaction.logfile.num.threshold", minimum=0),
        day_partitions=values.integer("hoodie.compaction.daybased.target.partitions", minimum=1),
        partition_regex=values.text("hoodie.compaction.partition.path.regex"),
        log_inline=values.flag("hoodie.log.compaction.inline"),
        log_blocks_min=values.integer("hoodie.log.compaction.blocks.threshold", minimum=1),
    )
