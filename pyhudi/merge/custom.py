"""Custom mergers: a user's own rule for what two versions of a row become.

    class LatestParts:                                  # vectorised: all pairs of a batch at once
        strategy_id = "5c2d9a3e-8f1b-4c6d-9e0f-1a2b3c4d5e6f"
        def merge(self, older: pa.RecordBatch, newer: pa.RecordBatch, context: MergeContext) -> pa.RecordBatch: ...

    class LatestParts(RowMerger):                       # one pair at a time, rows as dicts
        strategy_id = "5c2d9a3e-8f1b-4c6d-9e0f-1a2b3c4d5e6f"
        def merge(self, older, newer, context) -> dict | None: ...

The table stores the strategy id; the class is named by the caller alone, in
`hoodie.write.record.merge.custom.implementation.classes`: opening a table imports nothing. See docs/merging.md.
Source: the merge strategies of Hudi's RFC-46 and RFC-101; docs/formats/merging.md, "Modes and ids".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.registry import Registry

__all__ = ["MergeContext", "Merged", "Merger", "RowMerger", "find_merger", "merger_class"]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MergeContext:
    """A merger's information about its pairs.

    `ordering_fields` and `record_key_fields` are the table's; `properties` its settings for mergers
    (`hoodie.record.merge.property.*`, without this prefix). `older_is_delete`, `newer_is_delete`: bool arrays, one
    value per pair, false throughout unless the merger `sees_deletes`.
    """

    ordering_fields: tuple[str, ...]
    record_key_fields: tuple[str, ...]
    properties: Mapping[str, str]
    older_is_delete: pa.BooleanArray
    newer_is_delete: pa.BooleanArray


@dataclass(frozen=True, slots=True)
class Merged:
    """A merger's answer with deletes: `rows` are deleted where `is_delete` is true, regardless of their values."""

    rows: pa.RecordBatch
    is_delete: pa.BooleanArray


class Merger(Protocol):
    """Merges pairs of rows, column-wise. Made without arguments; keep no state between calls.

    `strategy_id`: UUID text, as stored by the table. An optional class attribute `sees_deletes = True` asks for pairs
    with deletes as well; otherwise a delete and a row are decided by their ordering values (the later on a tie, or when
    there are none). A delete by key (operation `delete`) always removes earlier versions.
    """

    strategy_id: str

    def merge(
        self, older: pa.RecordBatch, newer: pa.RecordBatch, context: MergeContext
    ) -> pa.RecordBatch | pa.Table | Merged:
        """Return one row per pair: `older[i]` and `newer[i]` have one key, `newer[i]` was written later.

        Both have all data columns of the table. The answer has the same columns and types, keys as they were, and an
        ordering value wherever one of the two rows has one. Must be associative: versions are merged in groups
        (batches, log files, compactions) that can't be foreseen.
        """
        ...


class RowMerger:
    """Base of mergers that look at one pair at a time. Much slower than arrays; fine for small updates."""

    strategy_id: str
    sees_deletes: bool = False

    def merge(self, older: Row | None, newer: Row | None, context: MergeContext) -> Row | None:
        """Return the merged row, column name → value; None deletes it. A side is None for a delete (`sees_deletes`)."""
        raise TypeError(f"{type(self).__name__} has no method merge(older, newer, context).")


_MergerClass: TypeAlias = type[Merger] | type[RowMerger]
_MERGERS: Registry[_MergerClass] = Registry(kind="record merger", entries={})


def find_merger(paths: Sequence[str], strategy_id: str) -> str | None:
    """Find the first path whose class has this `strategy_id` (ignoring case), None without one.

    Paths without ":" are Java classes for other engines; they are ignored. Raises ConfigError for a Python class that
    can't be imported or has no strategy id.
    """
    for path in paths:
        if ":" in path and str(merger_class(path).strategy_id).lower() == strategy_id.lower():
            return path
    return None


def merger_class(path: str) -> _MergerClass:
    """Return the class behind "module:Class". Raises ConfigError when it can't be imported or is not a merger."""
    merger = _MERGERS.load(path)
    if not isinstance(getattr(merger, "strategy_id", None), str) or not callable(getattr(merger, "merge", None)):
        raise ConfigError(
            f"{path} is not a record merger: expected a class with the text strategy_id (a UUID) and a method "
            f"merge(older, newer, context); see docs/merging.md."
        )
    return merger
