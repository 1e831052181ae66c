"""How a write lives with other writers: the mode, checked with what it needs, and signs of life.

Source: Hudi's documented keys; docs/formats/writers.md, "Conflicts", "Early conflict detection",
"Non-blocking writers"; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyhudi.errors import ConfigError
from pyhudi.model.options.declare import Values, option, parse
from pyhudi.model.options.index import INDEX_TYPE, IndexOptions
from pyhudi.model.options.operation import OperationOptions
from pyhudi.model.options.table import TableOptions

__all__ = ["ConcurrencyOptions", "LivenessOptions", "concurrency_options", "liveness_options"]

_MODE = "hoodie.write.concurrency.mode"
_POLICY = "hoodie.clean.failed.writes.policy"
_SINGLE, _OPTIMISTIC = "SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL"
_NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"
_RETRIES = "hoodie.write.num.retries.on.conflict.failures"
RETRIES_BY_DEFAULT = 20  # with pauses that grow, of writers that never named a mode
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
        "LAZY",
        "Which pending writes the next write considers dead and rolls back: all (EAGER), those without a sign of life "
        "(LAZY), none (NEVER). EAGER and NEVER make the mode SINGLE_WRITER, as in Hudi.",
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
        _OPTIMISTIC,
        "Optimistic: of two writers that changed one file group the second gives way. Non-blocking, for buckets of "
        "merge-on-read tables: both append. Single writer: every pending write counts as dead and is rolled back.",
        choices=(_SINGLE, _OPTIMISTIC, _NON_BLOCKING),
    )
    conflict_retries: int = option(
        _RETRIES,
        0,
        "With many writers: how often a write that gave way is run again, from the table as it is then. "
        f"{RETRIES_BY_DEFAULT} where {_MODE} is not given.",
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

    guards_new_keys: bool = False  # two upserts of one new key collide: where the caller names no mode

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
    """The options of a write. Raises ConfigError when a mode for many writers lacks what it needs.

    Who names no mode has optimistic writers and retries, unless the policy for failed writes is a single writer's.
    """
    options = parse(ConcurrencyOptions, values)
    if not values.is_given(_MODE):
        mode = _SINGLE if parse(LivenessOptions, values).failed_writes_policy != "LAZY" else options.mode
        retries = options.conflict_retries if values.is_given(_RETRIES) else RETRIES_BY_DEFAULT
        return replace(options, mode=mode, conflict_retries=retries, guards_new_keys=mode != _SINGLE)
    if options.is_non_blocking:
        _check_non_blocking(values)
    return options


def liveness_options(values: Values) -> LivenessOptions:
    """The options of a write. A mode for many writers goes with LAZY alone, a single writer's is EAGER unless given.

    Raises: ConfigError.
    """
    options, mode = parse(LivenessOptions, values), concurrency_options(values).mode
    if mode == _SINGLE:
        return options if values.is_given(_POLICY) else replace(options, failed_writes_policy="EAGER")
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
