"""RestoreResult and RollbackResult: the undone writes, for the caller."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import Instant, State
from pyhudi.model.plans import InstantInfo, RollbackMetadata
from pyhudi.result import Result
from pyhudi.transaction.undo import requests_of

__all__ = ["RestoreResult", "RollbackResult"]


@dataclass(frozen=True, slots=True, repr=False)
class RollbackResult(Result):
    """`rolled_back`: the undone writes, newest first. `files_deleted`: data files. `logs_written`: log files that take
    back blocks in other files (table version 6, merge-on-read). `dry_run`: the result is a prediction; nothing was
    changed.
    """

    table: str
    rolled_back: tuple[InstantInfo, ...] = ()
    files_deleted: int = 0
    logs_written: int = 0
    dry_run: bool = False

    @classmethod
    def of(cls, table: str, bodies: Iterable[RollbackMetadata]) -> RollbackResult:
        """Add up rollbacks."""
        bodies = tuple(bodies)
        return cls(
            table,
            tuple(instant for metadata in bodies for instant in metadata.instants_rollback),
            sum(metadata.total_files_deleted for metadata in bodies),
            sum(len(p.rollback_log_files) for metadata in bodies for p in metadata.partitions.values()),
        )

    @classmethod
    def planned(cls, targets: Sequence[Instant], meta: MetaClient) -> RollbackResult:
        """The result that undoing `targets` (newest first) would have. Nothing is changed."""
        requests = [
            request
            for target in targets
            if target.state is not State.REQUESTED  # it has no files yet
            for request in requests_of(target, meta)
        ]
        return cls(
            meta.storage.root,
            tuple(InstantInfo(target.requested_time, target.action.value) for target in targets),
            len({path for request in requests for path in request.files_to_be_deleted}),
            sum(1 for request in requests if request.log_blocks_to_be_deleted),
            dry_run=True,
        )

    @property
    def instant_times(self) -> tuple[str, ...]:
        """The undone instants, newest first."""
        return tuple(instant.commit_time for instant in self.rolled_back)

    def __str__(self) -> str:
        if not self.rolled_back:
            return "rollback: nothing to do"
        undone = ", ".join(f"{instant.commit_time} ({instant.action})" for instant in self.rolled_back)
        logs = f", {self.logs_written:,} log files written" if self.logs_written else ""
        if self.dry_run:
            return f"would roll back {undone}: {self.files_deleted:,} files deleted{logs}"
        return f"rolled back {undone}: {self.files_deleted:,} files deleted{logs}"


@dataclass(frozen=True, slots=True, repr=False)
class RestoreResult(Result):
    """`restored_to`: the instant whose state the table has now. `instant_time`: the restore itself, None when there was
    nothing to undo, and for a dry run.
    """

    table: str
    restored_to: str
    instant_time: str | None
    undone: RollbackResult

    @property
    def rolled_back(self) -> tuple[InstantInfo, ...]:
        """The undone instants."""
        return self.undone.rolled_back

    @property
    def dry_run(self) -> bool:
        """True when the result is a prediction, and nothing was changed."""
        return self.undone.dry_run

    def __str__(self) -> str:
        if self.undone.dry_run:
            return f"would restore to {self.restored_to}; {self.undone}"
        if self.instant_time is None:
            return f"restore: the table is as of {self.restored_to} already"
        return f"restored to {self.restored_to} by {self.instant_time}; {self.undone}"
