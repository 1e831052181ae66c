"""ConcurrencyOptions: how a write lives beside other writers, typed and checked as a set.

Source: docs/formats/writers.md, "Conflicts", "Early conflict detection", "Non-blocking writers".
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.errors import ConfigError
from pyhudi.model.options.values import Values

__all__ = ["ConcurrencyOptions", "concurrency_options", "failed_writes_policy"]

_MODE = "hoodie.write.concurrency.mode"
_POLICY = "hoodie.clean.failed.writes.policy"
_PROVIDER = "hoodie.write.lock.provider"
_SINGLE, _OPTIMISTIC = "SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL"
_NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"
_REPLACING = ("insert_overwrite", "insert_overwrite_table", "delete_partition")


@dataclass(frozen=True, slots=True)
class ConcurrencyOptions:
    """Options of a write. `conflict_strategy` None: by bucket with the bucket index, else by file group."""

    mode: str = _SINGLE
    conflict_strategy: str | None = None
    conflict_retries: int = 0
    detects_early: bool = False
    detects_commits_early: bool = False
    guards_schema: bool = True

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
    """The options of a write. Raises ConfigError when a mode for many writers lacks what it stands on."""
    options = ConcurrencyOptions(
        mode=values.must(_MODE),
        conflict_strategy=values.text("hoodie.write.lock.conflict.resolution.strategy"),
        conflict_retries=values.integer("hoodie.write.num.retries.on.conflict.failures", minimum=0),
        detects_early=values.flag("hoodie.write.concurrency.early.conflict.detection.enable"),
        detects_commits_early=values.flag("hoodie.write.concurrency.early.conflict.check.commit.conflict"),
        guards_schema=values.flag("hoodie.write.concurrency.schema.conflict.resolution.enable"),
    )
    if options.has_many_writers and values.text(_PROVIDER) is None:
        raise ConfigError(
            f"{_MODE}={options.mode} needs {_PROVIDER}: without a lock that all writers share they would draw the same "
            f"instant times and miss each other's commits. Name the provider that the table's other writers use, too "
            f"(docs/locks.md); threads of one process may use IN_PROCESS. Nothing was written."
        )
    if options.is_non_blocking:
        _check_non_blocking(values)
    return options


def failed_writes_policy(values: Values) -> str:
    """EAGER, LAZY or NEVER; with many writers LAZY, as in Hudi. Raises ConfigError for another one given with these."""
    mode = values.must(_MODE)
    if mode == _SINGLE:
        return values.must(_POLICY)
    given = values.given.get(_POLICY, "LAZY")
    if given != "LAZY":
        raise ConfigError(
            f"{_MODE}={mode} and {_POLICY}={given}: with many writers a pending write may well be alive, so only those "
            f"without a heartbeat may be rolled back (LAZY). Leave {_POLICY} out; nothing was written."
        )
    return "LAZY"


def _check_non_blocking(values: Values) -> None:
    """Only log files of buckets can be written side by side by everybody. Raises ConfigError."""
    table_type, version = values.must("hoodie.datasource.write.table.type"), values.must("hoodie.write.table.version")
    wrong = []
    if table_type != "MERGE_ON_READ":
        wrong.append(f"the table is {table_type}, expected MERGE_ON_READ")
    if int(version) < 8:
        wrong.append(f"the table has version {version}, expected 8 or 9")
    if values.must("hoodie.index.type") != "BUCKET":
        wrong.append(f"hoodie.index.type={values.must('hoodie.index.type')}, expected BUCKET")
    operation = values.must("hoodie.datasource.write.operation").lower()
    if operation in _REPLACING:
        wrong.append(f"{operation} replaces file groups that others append to")
    if wrong:
        raise ConfigError(
            f"{_MODE}={_NON_BLOCKING}: {'; '.join(wrong)}. Use OPTIMISTIC_CONCURRENCY_CONTROL; nothing was written."
        )
