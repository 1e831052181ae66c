"""Bodies of indexing instants. Source: docs/formats/timeline.md, "Records"."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["IndexPlan"]


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """What `<T>.indexing.requested` says is to be built, and `<T>.indexing` that it was.

    `partitions`: of the metadata table; `up_to`: the newest instant of the table that they have then.
    """

    partitions: tuple[str, ...]
    up_to: str
