"""The bodies of completed rollbacks and restores, decoded."""

from __future__ import annotations

from collections.abc import Iterator

from pyhudi.formats.timeline.instant_files import decode_rollback_metadata
from pyhudi.formats.timeline.savepoints import decode_restore_metadata
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.plans import RollbackMetadata

__all__ = ["rollback_metadata", "rollbacks_of"]


def rollback_metadata(meta: MetaClient, instant: Instant) -> RollbackMetadata:
    """What a completed rollback did. Raises CorruptFile, PathNotFound."""
    body = meta.reader.read_body(instant, State.COMPLETED)
    return decode_rollback_metadata(body, f"{meta.storage.root}: {instant.requested_time}.rollback")


def rollbacks_of(meta: MetaClient, instant: Instant) -> Iterator[RollbackMetadata]:
    """What a completed rollback did, or each of those of a completed restore. Raises CorruptFile, PathNotFound."""
    if instant.action is not ActionKind.RESTORE:
        yield rollback_metadata(meta, instant)
        return
    body = meta.reader.read_body(instant, State.COMPLETED)
    for rollbacks in decode_restore_metadata(
        body, f"{meta.storage.root}: {instant.requested_time}.restore"
    ).rollbacks.values():
        yield from rollbacks
