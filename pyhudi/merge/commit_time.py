"""Merge mode COMMIT_TIME_ORDERING: the later version wins, regardless of ordering values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.merge.base import Mask

__all__ = ["CommitTimeOrdering"]


@dataclass(frozen=True, slots=True)
class CommitTimeOrdering:
    """The later version wins."""

    def replaces(
        self, existing: Sequence[pa.Array], incoming: Sequence[pa.Array], incoming_is_delete: Mask | None
    ) -> Mask:
        columns = (*existing, *incoming, *(() if incoming_is_delete is None else (incoming_is_delete,)))
        return np.ones(len(columns[0]) if columns else 0, np.bool_)

    def last_of_each(
        self, groups: npt.NDArray[np.int64], ordering: Sequence[pa.Array], is_delete: Mask
    ) -> npt.NDArray[np.int64]:
        order = np.argsort(groups, kind="stable")
        last = np.append(np.flatnonzero(np.diff(groups[order])), len(order) - 1) if len(order) else order
        return order[last].astype(np.int64)
