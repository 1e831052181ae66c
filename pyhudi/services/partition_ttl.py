"""Partition time to live: partitions older than a number of days are deleted by one delete_partition commit.

    KEEP_BY_TIME            age since the newest base instant of the partition's slices: appended logs don't count
    KEEP_BY_CREATION_TIME   age since the commit that made the partition, from its partition metadata

Source: docs/formats/table-services.md, "Partition time to live".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from pyhudi.actions.action import ActionContext
from pyhudi.actions.result import WriteResult
from pyhudi.actions.runner import run
from pyhudi.actions.writes.delete_partition import DeletePartitions
from pyhudi.errors import CorruptFile, TableError
from pyhudi.filegroup.write.partition_metadata import partition_creation_time
from pyhudi.model.instant import parse_instant_time
from pyhudi.model.options.retention import KEEP_BY_CREATION_TIME
from pyhudi.result import Result
from pyhudi.view.file_system_view import FileSystemView
from pyhudi.warnings import warn_caller

__all__ = ["ExpiredPartition", "TtlResult", "expire_after_write", "expire_partitions", "expired_partitions"]

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class ExpiredPartition:
    """A partition past its time to live. `since`: the instant from which its age counts."""

    partition_path: str
    since: str


@dataclass(frozen=True, slots=True, repr=False)
class TtlResult(Result):
    """`expired`: the partitions that were, or would be (dry run), deleted. `deleted`: the commit that deleted them, if
    any.
    """

    table: str
    strategy: str
    days_retained: int
    expired: tuple[ExpiredPartition, ...] = ()
    deleted: WriteResult | None = None

    def __str__(self) -> str:
        if self.days_retained <= 0:
            return "partition ttl: off (hoodie.partition.ttl.strategy.days.retain is not above 0)"
        state = (
            f"deleted by {self.deleted.instant_time}"
            if self.deleted
            else "would be deleted"
            if self.expired
            else "expired"
        )
        head = f"partition ttl ({self.strategy}, {self.days_retained} days): {len(self.expired):,} partitions {state}"
        lines = [f"  {partition.partition_path}: since {partition.since}" for partition in self.expired[:_SHOWN]]
        more = [f"  and {len(self.expired) - _SHOWN:,} more"] if len(self.expired) > _SHOWN else []
        return "\n".join([head, *lines, *more])


def expire_partitions(context: ActionContext, *, dry_run: bool = False) -> TtlResult:
    """Delete the partitions that have expired.

    Args:    dry_run: only return the partitions.
    Raises:  WriteConflict for a partition that a pending compaction or clustering is going to rewrite.
    """
    options, expired = context.options.ttl, expired_partitions(context)
    deleted = None
    if expired and not dry_run:
        paths = tuple(partition.partition_path for partition in expired)
        deleted = run(DeletePartitions(paths), context)
    return TtlResult(context.meta.storage.root, options.strategy, options.days_retained, expired, deleted)


def expire_after_write(context: ActionContext) -> tuple[str, ...]:
    """Expire partitions after a complete write, if its options ask for it. Returns the instant of the deletion."""
    options = context.options.ttl
    if not options.inline or options.days_retained <= 0:
        return ()
    deleted = expire_partitions(context.reloaded()).deleted
    return () if deleted is None else (deleted.instant_time,)


def expired_partitions(context: ActionContext) -> tuple[ExpiredPartition, ...]:
    """The expired partitions, oldest first, as many as may be deleted at once."""
    options, meta = context.options.ttl, context.meta
    if options.days_retained <= 0 or not meta.config.partition_fields or not meta.timeline.commits().instants:
        return ()
    now = datetime.fromtimestamp(context.clock.now_ms() / 1000, timezone.utc)
    retained, zone = timedelta(days=options.days_retained), meta.config.timeline_zone
    expired = [partition for partition in _ages(context) if now - parse_instant_time(partition.since, zone) > retained]
    expired.sort(key=lambda partition: (partition.since, partition.partition_path))
    return tuple(expired[: options.partitions_max])


def _ages(context: ActionContext) -> Iterator[ExpiredPartition]:
    """Every partition that may expire, with the start of its age; a partition of unknown age never expires."""
    options = context.options.ttl
    view = FileSystemView.load(context.meta, partitions=options.partitions or None)
    for path in view.partitions():
        slices = view.slices(path)
        if not slices:
            continue  # already empty
        try:
            if options.strategy == KEEP_BY_CREATION_TIME:
                since = partition_creation_time(context.meta.storage, path)
            else:
                since = max(file_slice.base_instant for file_slice in slices)
            if since is None:
                continue
            parse_instant_time(since, context.meta.config.timeline_zone)
        except (CorruptFile, TableError) as error:
            # The other partitions can still expire.
            warn_caller(f"{context.meta.storage.root}: partition {path!r} is kept, because its age is unknown. {error}")
            continue
        yield ExpiredPartition(path, since)
