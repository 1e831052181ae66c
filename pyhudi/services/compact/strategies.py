"""Triggers and strategies of compaction: when it is due, and which file slices it merges. Pure.

A strategy narrows the partitions first, then orders the slices and cuts the list. Several strategies, separated by
commas, are applied one after the other. Source: docs/formats/table-services.md, "Compaction plan".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Protocol

from pyhudi.errors import ConfigError
from pyhudi.model.options.services import CompactionOptions
from pyhudi.model.plans import CompactionOperation
from pyhudi.registry import Registry

__all__ = ["STRATEGIES", "CompactionStrategy", "DeltaCommits", "is_due", "narrowed", "ordered"]

_JAVA = "org.apache.hudi.table.action.compact.strategy."
_HERE = "pyhudi.services.compact.strategies:"
_JAVA_NAMES = {
    "LOG_FILE_SIZE": "LogFileSizeBasedCompactionStrategy",
    "LOG_FILE_NUM": "LogFileNumBasedCompactionStrategy",
    "DAY_BASED": "DayBasedCompactionStrategy",
    "PARTITION_REGEX": "PartitionRegexBasedCompactionStrategy",
    "BOUNDED_IO": "BoundedIOCompactionStrategy",
    "BOUNDED_PARTITION_AWARE": "BoundedPartitionAwareCompactionStrategy",
    "UNBOUNDED_PARTITION_AWARE": "UnBoundedPartitionAwareCompactionStrategy",
    "UNBOUNDED": "UnBoundedCompactionStrategy",
}

STRATEGIES: Registry[type[CompactionStrategy]] = Registry(
    "compaction strategy",
    {
        "LOG_FILE_SIZE": f"{_HERE}LogFileSizeBased",
        "LOG_FILE_NUM": f"{_HERE}LogFileNumBased",
        "DAY_BASED": f"{_HERE}DayBased",
        "PARTITION_REGEX": f"{_HERE}PartitionRegexBased",
        "BOUNDED_IO": f"{_HERE}BoundedIO",
        "BOUNDED_PARTITION_AWARE": f"{_HERE}BoundedPartitionAware",
        "UNBOUNDED_PARTITION_AWARE": f"{_HERE}UnBoundedPartitionAware",
        "UNBOUNDED": f"{_HERE}UnBounded",
    },
    {spelling: name for name, java in _JAVA_NAMES.items() for spelling in (java, _JAVA + java)},
)

_MB = 1024 * 1024


# ---- when ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeltaCommits:
    """The numbers that triggers compare: delta commits and seconds since the last completed compaction, or since the
    first delta commit when there was none; `since_request` counts from the last scheduled one, run or not.
    """

    since_compaction: int
    since_request: int
    elapsed_s: float


_TRIGGERS: Mapping[str, Callable[[DeltaCommits, int, int], bool]] = {
    "NUM_COMMITS": lambda counts, commits, seconds: counts.since_compaction >= commits,
    "NUM_COMMITS_AFTER_LAST_REQUEST": lambda counts, commits, seconds: counts.since_request >= commits,
    "TIME_ELAPSED": lambda counts, commits, seconds: counts.elapsed_s >= seconds,
    "NUM_AND_TIME": lambda counts, commits, seconds: counts.since_compaction >= commits and counts.elapsed_s >= seconds,
    "NUM_OR_TIME": lambda counts, commits, seconds: counts.since_compaction >= commits or counts.elapsed_s >= seconds,
}


def is_due(counts: DeltaCommits, options: CompactionOptions) -> bool:
    """True if the trigger strategy asks for a compaction; False without a delta commit since the last one."""
    if not counts.since_compaction:
        return False
    return _TRIGGERS[options.trigger](counts, options.delta_commits_max, options.delta_seconds_max)


# ---- what ------------------------------------------------------------------------------------------------------------


class CompactionStrategy(Protocol):
    """Chooses the work of one compaction. Made without arguments."""

    def partitions(self, paths: Sequence[str], options: CompactionOptions, today: date) -> Sequence[str]:
        """The partitions to cover."""
        ...

    def operations(
        self, operations: Sequence[CompactionOperation], options: CompactionOptions
    ) -> Sequence[CompactionOperation]:
        """The slices to merge, in the order of work."""
        ...


def narrowed(paths: Iterable[str], options: CompactionOptions, today: date) -> tuple[str, ...]:
    """The partitions that the strategies of `options` cover. Raises ConfigError."""
    for strategy in _strategies(options):
        paths = strategy.partitions(tuple(paths), options, today)
    return tuple(paths)


def ordered(operations: Iterable[CompactionOperation], options: CompactionOptions) -> tuple[CompactionOperation, ...]:
    """The operations that the strategies of `options` choose, in their order. Raises ConfigError."""
    for strategy in _strategies(options):
        operations = strategy.operations(tuple(operations), options)
    return tuple(operations)


def _strategies(options: CompactionOptions) -> tuple[CompactionStrategy, ...]:
    return tuple(STRATEGIES.load(name)() for name in options.strategies)


class UnBounded:
    """All slices."""

    def partitions(self, paths: Sequence[str], options: CompactionOptions, today: date) -> Sequence[str]:
        return paths

    def operations(
        self, operations: Sequence[CompactionOperation], options: CompactionOptions
    ) -> Sequence[CompactionOperation]:
        return operations


class BoundedIO(UnBounded):
    """Slices until `hoodie.compaction.target.io` MB are read and written; the one that exceeds it is still included."""

    def operations(
        self, operations: Sequence[CompactionOperation], options: CompactionOptions
    ) -> Sequence[CompactionOperation]:
        left_mb, chosen = options.target_io_mb, []
        for operation in operations:
            chosen.append(operation)
            left_mb -= int(operation.metrics.get("TOTAL_IO_MB", 0))
            if left_mb <= 0:
                break
        return chosen


class LogFileSizeBased(BoundedIO):
    """Slices with the most log bytes first, without those below `hoodie.compaction.logfile.size.threshold`."""

    def operations(
        self, operations: Sequence[CompactionOperation], options: CompactionOptions
    ) -> Sequence[CompactionOperation]:
        large = [op for op in operations if _log_bytes(op) >= options.log_size_threshold_bytes]
        return super().operations(sorted(large, key=_log_bytes, reverse=True), options)


class LogFileNumBased(BoundedIO):
    """Slices with the most log files first, without those below `hoodie.compaction.logfile.num.threshold`."""

    def operations(
        self, operations: Sequence[CompactionOperation], options: CompactionOptions
    ) -> Sequence[CompactionOperation]:
        eligible = [op for op in operations if len(op.log_file_names) >= options.log_num_threshold]
        return super().operations(sorted(eligible, key=lambda op: len(op.log_file_names), reverse=True), options)


class PartitionRegexBased(UnBounded):
    """Partitions whose path contains a match of `hoodie.compaction.partition.path.regex`."""

    def partitions(self, paths: Sequence[str], options: CompactionOptions, today: date) -> Sequence[str]:
        if not options.partition_regex:
            raise ConfigError("The compaction strategy by regex needs hoodie.compaction.partition.path.regex.")
        try:
            pattern = re.compile(options.partition_regex)
        except re.error as error:
            raise ConfigError(
                f"hoodie.compaction.partition.path.regex={options.partition_regex!r}: {error}."
            ) from error
        return [path for path in paths if pattern.search(path)]


class DayBased(UnBounded):
    """The newest `hoodie.compaction.daybased.target.partitions` partitions named by day, newest first."""

    def partitions(self, paths: Sequence[str], options: CompactionOptions, today: date) -> Sequence[str]:
        return sorted(paths, key=_day_of, reverse=True)[: options.day_partitions]


class BoundedPartitionAware(UnBounded):
    """Partitions of the last `hoodie.compaction.daybased.target.partitions` days and of future days, newest first."""

    def partitions(self, paths: Sequence[str], options: CompactionOptions, today: date) -> Sequence[str]:
        earliest = today - timedelta(days=options.day_partitions)
        return sorted((path for path in paths if _day_of(path) >= earliest), key=_day_of, reverse=True)


class UnBoundedPartitionAware(UnBounded):
    """The partitions that `BoundedPartitionAware` leaves out."""

    def partitions(self, paths: Sequence[str], options: CompactionOptions, today: date) -> Sequence[str]:
        recent = frozenset(BoundedPartitionAware().partitions(paths, options, today))
        return [path for path in paths if path not in recent]


_DAY = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})")


def _day_of(path: str) -> date:
    """The day that a partition path names: `2024/01/31`, `2024-01-31`, with or without `column=` in front of parts."""
    plain = "/".join(part.partition("=")[2] or part for part in path.split("/"))
    match = _DAY.fullmatch(plain)
    try:
        if match is not None:
            return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        pass
    raise ConfigError(
        f"A compaction strategy by day needs partitions named year/month/day or year-month-day, found {path!r}. Choose "
        f"another hoodie.compaction.strategy."
    )


def _log_bytes(operation: CompactionOperation) -> float:
    return operation.metrics.get("TOTAL_LOG_FILES_SIZE", 0.0)
