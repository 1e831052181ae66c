"""A dry run of undoing writes: the result that it would have."""

from __future__ import annotations

from collections.abc import Sequence

from pyhudi.actions.undo.restore_result import RollbackResult
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import Instant, State
from pyhudi.model.plans import InstantInfo
from pyhudi.transaction.undo import requests_of

__all__ = ["would_undo"]


def would_undo(targets: Sequence[Instant], meta: MetaClient) -> RollbackResult:
    """The result that undoing `targets` (newest first) would have, with `dry_run` set. Nothing is changed."""
    requests = [
        request
        for target in targets
        if target.state is not State.REQUESTED  # it has no files yet
        for request in requests_of(target, meta)
    ]
    return RollbackResult(
        meta.storage.root,
        tuple(InstantInfo(target.requested_time, target.action.value) for target in targets),
        len({path for request in requests for path in request.files_to_be_deleted}),
        sum(1 for request in requests if request.log_blocks_to_be_deleted),
        dry_run=True,
    )
