"""Splits of merge-on-read slices for the next frame of the same files.

    key       the session, the files in their states, and everything that decides their rows
    entry     the frames of a split; Spark's driver holds their rows

A session often runs several queries of one snapshot, and each one makes a frame. Spark's frames never change, so
the next frame reuses the relations of the previous one: the log files are read, merged and transferred once.
Source: docs/decisions/0015-what-is-kept-of-files.md; measured in docs/measurements.md.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from pyhudi.merge.rules import MergeRules
from pyhudi.model.table_format import TableFormat
from pyhudi.queries.plan import ReadPlan, ReadSlice
from pyhudi.schema.internal import InternalSchema
from pyhudi.storage.base import Storage
from pyhudi.storage.file_cache import FileState, settled_state

__all__ = ["SplitCache", "SplitKey", "split_key"]

_ENTRIES = 4
_BYTES = 64 << 20  # of all entries together; the largest may have half of it

Split = TypeVar("Split")


@dataclass(frozen=True, slots=True)
class SplitKey:
    """Everything that decides the rows of a split. Sessions are equal only to themselves."""

    session: SparkSession
    storage: Storage
    files: tuple[FileState, ...]
    schema: pa.Schema
    stored: pa.Schema
    latest_instant: str | None
    merge: MergeRules
    history: tuple[InternalSchema, ...]
    check_pages: bool
    memory: tuple[int, str | None]  # so that errors of another limit or spill folder are raised


def split_key(spark: SparkSession, plan: ReadPlan, reads: Sequence[ReadSlice]) -> SplitKey | None:
    """The key of a split of these slices, made before their files are read.

    Returns: None if a split is not cached: filtered rows, changes, keys or rows that user code makes, versions below 8,
             and files whose state is unknown or may be changing.
    """
    spec = plan.merge
    if spec is None or not plan.keeps_all_rows or not TableFormat(spec.blocks.table_version).has_own_log_files:
        return None
    if spec.whole is not None or spec.blocks.instants is not None:
        return None
    if spec.key_generator is not None or spec.merge.merger is not None:
        return None
    files = list[FileState]()
    for read in reads:
        for path in (read.base_file.path, *(log.path for log in read.file_slice.log_files)):
            state = settled_state(spec.storage, path)
            if state is None:
                return None
            files.append(state)
    return SplitKey(
        spark,
        spec.storage,
        tuple(files),
        plan.schema,
        spec.schema,
        spec.blocks.latest_instant,
        spec.merge,
        spec.history,
        plan.check_pages,
        (spec.memory_bytes, spec.spill_folder),
    )


class SplitCache(Generic[Split]):
    """A few splits by key; the least recently used one is evicted first. Thread-safe."""

    def __init__(self) -> None:
        self._entries: list[tuple[SplitKey, Split, int]] = []
        self._lock = threading.Lock()

    def get(self, key: SplitKey) -> Split | None:
        """The split of a key, None if missing."""
        with self._lock:
            entry = next((entry for entry in self._entries if entry[0] == key), None)
            if entry is None:
                return None
            self._entries.remove(entry)
            self._entries.append(entry)
            return entry[1]

    def put(self, key: SplitKey, split: Split, size_bytes: int) -> None:
        """Cache the split of a key, unless it is too large."""
        if size_bytes > _BYTES // 2:
            return
        with self._lock:
            self._entries = [entry for entry in self._entries if entry[0] != key]  # another thread may have made it
            self._entries.append((key, split, size_bytes))
            while len(self._entries) > _ENTRIES or sum(size for _, _, size in self._entries) > _BYTES:
                del self._entries[0]

    def clear(self) -> None:
        """Drop all splits."""
        with self._lock:
            self._entries.clear()
