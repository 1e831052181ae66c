"""How a write lives with other writers: the mode, checked with what it needs, and signs of life.

Source: Hudi's documented keys; docs/formats/writers.md, "Conflicts", "Early conflict detection",
"Non-blocking writers"; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyhudi.errors import ConfigError
from pyhudi.model.options.declare import Values, option, parse
from pyhudi.model.options.index import INDEX_TYPE, IndexOptions
from pyhudi.model.options.locks import LOCK_PROVIDER
from pyhudi.model.options.operation import OperationOptions
from pyhudi.model.options.table import TableOptions

__all__ = ["ConcurrencyOptions", "LivenessOptions", "concurrency_options", "liveness_options"]

_MODE = "hoodie.write.concurrency.mode"
_POLICY = "hoodie.clean.failed.writes.policy"
_SINGLE, _OPTIMISTIC = "SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL"
_NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"
_REPLACING = ("insert_overwrite", "insert_overwrite_table", "delete_partition")


@dataclass(frozen=True)  # no slots: WriteOptions has several bases
class LivenessOptions:
    """How instants of several machines are kept apart, and which pending writes count as dead."""

    max_clock_skew_ms: int = option(
        "hoodie.time.generator.max_expected_clock_skew_ms",
        200,
        "Wait under the lock after an instant time was drawn, in milliseconds.",
        minimum=0,
    )
    failed_writes_policy: str = option(
        _POLICY,
        "EAGER",
        "Which pending writes the next write considers dead and rolls back: all, those without a sign of life, "
        "none. With many writers always LAZY.",
        aliases=("hoodie.cleaner.policy.failed.writes",),
        choices=("EAGER", "LAZY", "NEVER"),
    )
    heartbeat_interval_ms: int = option(
        "hoodie.client.heartbeat.interval_in_ms",
        60000,
        "Time between two signs of life of a writer, in milliseconds.",
        minimum=1000,
    )
    heartbeat_misses: int = option(
        "hoodie.client.heartbeat.tolerable.misses",
        2,
        "Missed signs of life after which a writer counts as dead.",
        minimum=0,
    )


@dataclass(frozen=True, slots=True)
class ConcurrencyOptions:
    """Options of a write. `conflict_strategy` None: by bucket with the bucket index, else by file group."""

    mode: str = option(
        _MODE,
        _SINGLE,
        "Many writers: optimistic (the second of two that changed one file group gives way) or, for buckets of "
        "merge-on-read tables, non-blocking (both append). They need a lock provider, and roll back only writers "
        "without a heartbeat.",
        choices=(_SINGLE, _OPTIMISTIC, _NON_BLOCKING),
    )
    conflict_retries: int = option(
        "hoodie.write.num.retries.on.conflict.failures",
        0,
        "With many writers: how often a write that gave way is run again, from the table as it is then.",
        minimum=0,
    )
    conflict_strategy: str | None = option(
        "hoodie.write.lock.conflict.resolution.strategy",
        None,
        "What counts as a conflict: SIMPLE (same file group), PREFER_WRITER (plans of table services made "
        "meanwhile give way), BUCKET (same bucket), Hudi's class names of these, or `module:Class`. Default: "
        "BUCKET with that index, else SIMPLE.",
    )
    detects_early: bool = option(
        "hoodie.write.concurrency.early.conflict.detection.enable",
        False,
        "Before a file is made, look whether another live writer has announced one of its file group, and give way.",
    )
    detects_commits_early: bool = option(
        "hoodie.write.concurrency.early.conflict.check.commit.conflict",
        False,
        "Before files are made, look also at commits completed since the write began.",
    )
    guards_schema: bool = option(
        "hoodie.write.concurrency.schema.conflict.resolution.enable",
        True,
        "Two writes may not change the schema in different ways; one that did not change it takes over the other's.",
    )

    @property
    def has_many_writers(self) -> bool:
        """Other processes write to the table, too."""
        return self.mode != _SINGLE

    @property
    def is_optimistic(self) -> bool:
        """Writers look for conflicts, and the second of two gives way."""
        return self.mode == _OPTIMISTIC

    @property
    def is_non_blocking(self) -> bool:
        """Writers append log files side by side and never give way to each other."""
        return self.mode == _NON_BLOCKING


def concurrency_options(values: Values) -> ConcurrencyOptions:
    """The options of a write. Raises ConfigError when a mode for many writers lacks what it needs."""
    options = parse(ConcurrencyOptions, values)
    if options.has_many_writers and not values.is_given(LOCK_PROVIDER):
        raise ConfigError(
            f"{_MODE}={options.mode} needs {LOCK_PROVIDER}: without a lock that all writers share they would draw the "
            f"same instant times and miss each other's commits. Name the provider that the table's other writers use, "
            f"too (docs/locks.md); threads of one process may use IN_PROCESS. Nothing was written."
        )
    if options.is_non_blocking:
        _check_non_blocking(values)
    return options


def liveness_options(values: Values) -> LivenessOptions:
    """The options of a write; with many writers the policy is LAZY, as in Hudi. Raises ConfigError for another one."""
    options, mode = parse(LivenessOptions, values), parse(ConcurrencyOptions, values).mode
    if mode == _SINGLE:
        return options
    if values.is_given(_POLICY) and options.failed_writes_policy != "LAZY":
        raise ConfigError(
            f"{_MODE}={mode} and {_POLICY}={options.failed_writes_policy}: with many writers a pending write may well "
            f"be alive, so only those without a heartbeat may be rolled back (LAZY). Leave {_POLICY} out; nothing was "
            f"written."
        )
    return replace(options, failed_writes_policy="LAZY")


def _check_non_blocking(values: Values) -> None:
    """Only log files of buckets can be written side by side by everybody. Raises ConfigError."""
    table, index_type = parse(TableOptions, values), parse(IndexOptions, values).index_type
    wrong = []
    if table.table_type != "MERGE_ON_READ":
        wrong.append(f"the table is {table.table_type}, expected MERGE_ON_READ")
    if table.table_version < 8:
        wrong.append(f"the table has version {table.table_version}, expected 8 or 9")
    if index_type != "BUCKET":
        wrong.append(f"{INDEX_TYPE}={index_type}, expected BUCKET")
    operation = parse(OperationOptions, values).operation.lower()
    if operation in _REPLACING:
        wrong.append(f"{operation} replaces file groups that others append to")
    if wrong:
        raise ConfigError(
            f"{_MODE}={_NON_BLOCKING}: {'; '.join(wrong)}. Use OPTIMISTIC_CONCURRENCY_CONTROL; nothing was written."
        )
