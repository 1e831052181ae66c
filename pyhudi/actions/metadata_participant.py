"""The metadata table as a participant of a commit: it records an instant's changes before the instant completes.

Source: docs/metadata-table-life.md; docs/formats/metadata-table.md, "Writing".
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.written_keys import replaced_keys
from pyhudi.metadata.apply_commit import apply_commit
from pyhudi.metadata.partitions.base import TableCommit
from pyhudi.metadata.schema import keeps_record_index
from pyhudi.model.commit import Body, CommitMetadata, OperationType, TableChange, WriteStatus
from pyhudi.model.instant import Instant

__all__ = ["METADATA_TABLE", "MetadataParticipant"]


class MetadataParticipant:
    """The metadata table of the changed table, if it has one."""

    def write_changes(
        self, inflight: Instant, body: Body, change: TableChange, statuses: tuple[WriteStatus, ...], now: ActionContext
    ) -> str | None:
        """Update it; return the completion time. Raises WriteConflict when another writer did not update it."""
        keys = _replaced_keys(body, change, now)
        schema_json = body.schema_json if isinstance(body, CommitMetadata) else None
        return apply_commit(now.meta, TableCommit(inflight, change, statuses, keys, now.options.metadata, schema_json))


METADATA_TABLE = MetadataParticipant()


def _replaced_keys(body: Body, change: TableChange, now: ActionContext) -> Mapping[str, pa.Array]:
    """The keys in replaced file groups, if a record index has to delete them."""
    rewrites = isinstance(body, CommitMetadata) and body.operation_type == OperationType.CLUSTER
    return replaced_keys(change.groups_replaced, now) if keeps_record_index(now.meta.config) and not rewrites else {}
