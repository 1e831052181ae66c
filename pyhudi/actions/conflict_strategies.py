"""Which writes conflict: a strategy is a small class, and one row of CONFLICT_STRATEGIES.

SIMPLE         the same file group; plans of table services made since the write began count, too
PREFER_WRITER  the same file group; a write ignores such plans, and it is the service that gives way
BUCKET         the same bucket of a partition, so that two writers don't both make its first file group

Source: docs/formats/writers.md, "Conflicts"; Hudi's conflict resolution strategies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pyhudi.index.bucket import BUCKET_DIGITS, bucket_of_file_id
from pyhudi.index.chosen import index_class
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.options import WriteOptions
from pyhudi.registry import Registry

__all__ = ["CONFLICT_STRATEGIES", "BucketStrategy", "ConflictStrategy", "SimpleStrategy", "conflict_strategy"]

_PACKAGE = "org.apache.hudi.client.transaction."


class ConflictStrategy(Protocol):
    """What the runner checks before it completes a write. Created without arguments."""

    @property
    def yields_to_plans(self) -> bool:
        """Does a write give way to plans of table services that were made since it began?"""
        ...

    def unit(self, group: FileGroupId) -> FileGroupId:
        """What is compared instead of a file group; two writes that share one collide."""
        ...


@dataclass(frozen=True, slots=True)
class SimpleStrategy:
    """By file group."""

    yields_to_plans: bool = True

    def unit(self, group: FileGroupId) -> FileGroupId:
        """The file group itself."""
        return group


@dataclass(frozen=True, slots=True)
class PreferWriterStrategy(SimpleStrategy):
    """By file group; table services give way."""

    yields_to_plans: bool = False


@dataclass(frozen=True, slots=True)
class BucketStrategy:
    """By bucket: the eight digits at the head of a file id."""

    yields_to_plans: bool = True

    def unit(self, group: FileGroupId) -> FileGroupId:
        """The bucket; a file group of none stands for itself."""
        if bucket_of_file_id(group.file_id) is None:
            return group
        return FileGroupId(group.partition_path, group.file_id[:BUCKET_DIGITS])


CONFLICT_STRATEGIES: Registry[type[ConflictStrategy]] = Registry(
    kind="conflict resolution strategy",
    entries={
        "SIMPLE": f"{__name__}:SimpleStrategy",
        "PREFER_WRITER": f"{__name__}:PreferWriterStrategy",
        "BUCKET": f"{__name__}:BucketStrategy",
    },
    aliases={
        f"{_PACKAGE}SimpleConcurrentFileWritesConflictResolutionStrategy": "SIMPLE",
        f"{_PACKAGE}PreferWriterConflictResolutionStrategy": "PREFER_WRITER",
        f"{_PACKAGE}IngestionPrimaryWriterBasedConflictResolutionStrategy": "PREFER_WRITER",
        f"{_PACKAGE}BucketIndexConcurrentFileWritesConflictResolutionStrategy": "BUCKET",
    },
)


def conflict_strategy(options: WriteOptions) -> ConflictStrategy:
    """The strategy that the options name; by bucket with an index that hashes keys. Raises ConfigError."""
    usual = "BUCKET" if index_class(options).hashes_keys else "SIMPLE"
    name = options.concurrency.conflict_strategy or usual
    strategy: ConflictStrategy = CONFLICT_STRATEGIES.load(name)()
    return strategy
