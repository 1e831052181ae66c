"""Bodies of savepoints and restores. Source: docs/formats/timeline.md, "Records", "Savepoint and restore"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.model.plans import InstantInfo, RollbackMetadata

__all__ = ["RestoreMetadata", "RestorePlan", "SavepointMetadata"]


@dataclass(frozen=True, slots=True)
class SavepointMetadata:
    """Body of `<T>.savepoint`. `files`: partition path → names of the files that must stay."""

    savepointed_by: str
    savepointed_at_ms: int
    comments: str
    files: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """Body of `<R>.restore.requested`: what is rolled back, in this order, to come to the instant `restore_to`."""

    instants: tuple[InstantInfo, ...]
    restore_to: str | None


@dataclass(frozen=True, slots=True)
class RestoreMetadata:
    """Body of `<R>.restore`. `rollbacks`: instant time → what its rollback did."""

    start_restore_time: str
    time_taken_ms: int
    instants: tuple[InstantInfo, ...]
    rollbacks: Mapping[str, tuple[RollbackMetadata, ...]]
