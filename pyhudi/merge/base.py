"""The protocol of merge modes, and deletes without ordering value.

Source: docs/formats/merging.md, "Deletes", "Two versions of a key".
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["EVERYWHERE", "Mask", "MergeMode", "Place", "commit_time_deletes"]

Mask = npt.NDArray[np.bool_]


class Place(Enum):
    """The place where two versions of a row meet. Only payload classes decide differently by place."""

    INPUT = "rows of one batch that is written"
    FILE = "a written row and the stored one, copy-on-write"
    LOGS = "records of a slice's log files"
    SLICE = "what the log files say and the stored row: queries and compaction"


EVERYWHERE = frozenset(Place)


class MergeMode(Protocol):
    """A rule that decides which version of a row wins. Stateless."""

    def replaces(
        self, existing: Sequence[pa.Array], incoming: Sequence[pa.Array], incoming_is_delete: Mask | None
    ) -> Mask:
        """Return, pair by pair, whether the incoming, later row replaces the stored one. See `merge.winners`."""
        ...

    def last_of_each(
        self, groups: npt.NDArray[np.int64], ordering: Sequence[pa.Array], is_delete: Mask
    ) -> npt.NDArray[np.int64]:
        """Return positions of the winners, one per group, among rows in order of arrival.

        Args:    groups: the number of each row's key; ordering: one array per field, empty when there is none.
        Returns: positions sorted by group.
        """
        ...


def commit_time_deletes(ordering: Sequence[pa.Array], is_delete: Mask) -> Mask:
    """Return deletes without ordering value: they remove earlier versions, and any later version replaces them.

    That is a delete with no ordering field, with null in all of them, or with the int (not long) 0 in the only one,
    which is how Hudi marks the deletes of its `delete` operation.
    """
    bare = is_delete.copy()
    for values in ordering if bare.any() else ():
        none: pa.Array = values.is_null()
        if len(ordering) == 1 and pa.types.is_integer(values.type) and values.type.bit_width <= 32:
            none = pc.or_kleene(none, pc.fill_null(pc.equal(values, pa.scalar(0, values.type)), True))
        bare &= none.to_numpy(zero_copy_only=False)
    return bare
