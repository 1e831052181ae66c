"""What cleaning is going to delete, and what it deleted: bodies of the clean action.

Source: docs/formats/timeline.md, "Records"; docs/formats/table-services.md, "Cleaning plan".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = [
    "KEEP_LATEST_BY_HOURS",
    "KEEP_LATEST_COMMITS",
    "KEEP_LATEST_FILE_VERSIONS",
    "PARTITION_FILTER",
    "READABLE_SINCE",
    "REPLACED_NEEDED",
    "SAVEPOINTED",
    "CleanMetadata",
    "CleanPlan",
    "CleanedPartition",
    "RetainedInstant",
]

KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"
KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"

# Extra metadata: savepoints that a clean saw, with commas; and ours: by versions, since when the table can be read; the
# filter of a clean that was not allowed to look at all partitions; the oldest replacecommit whose replaced files stayed
# because a pending plan reads them.
SAVEPOINTED = "savepointed_timestamps"
READABLE_SINCE = "pyhudi.readable_since"
PARTITION_FILTER = "pyhudi.partition_filter"
REPLACED_NEEDED = "pyhudi.replaced_needed"


@dataclass(frozen=True, slots=True)
class RetainedInstant:
    """The oldest instant whose files a clean keeps, as plans name it."""

    requested_time: str
    action: str
    state: str


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """Body of `<T>.clean.requested`.

    `files`: partition path → names of the files to delete. `partitions`: paths that are no partitions any more.
    `last_commit`: the newest completed commit when the plan was made, "" for none.
    """

    policy: str
    earliest: RetainedInstant | None
    last_commit: str
    files: Mapping[str, tuple[str, ...]]
    partitions: tuple[str, ...] = ()
    extra_metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def earliest_time(self) -> str:
        """The requested time of `earliest`, "" for none."""
        return "" if self.earliest is None else self.earliest.requested_time

    @property
    def file_count(self) -> int:
        return sum(len(names) for names in self.files.values())


@dataclass(frozen=True, slots=True)
class CleanedPartition:
    """What a clean did in one partition. Files are bare names."""

    policy: str
    deleted: tuple[str, ...]
    failed: tuple[str, ...] = ()
    is_partition_deleted: bool = False


@dataclass(frozen=True, slots=True)
class CleanMetadata:
    """Body of `<T>.clean`. `earliest` is "" for a policy that names no instant."""

    start_time: str
    time_taken_ms: int
    earliest: str
    last_commit: str
    partitions: Mapping[str, CleanedPartition]
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
