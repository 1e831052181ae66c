"""A walk over many Avro binaries of one schema: one position per record, and what a reader of a field is.

Source: Avro specification 1.11, "Binary encoding".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import CorruptFile
from pyhudi.formats.avro.varint import Buffer, Positions, decode_varints

__all__ = ["Found", "Reader", "Walk"]

# What a reader of a field returns: the array, None when it was not built, and the positions behind the field.
Found: TypeAlias = tuple[pa.Array | None, Positions]


@dataclass(frozen=True, slots=True)
class Walk:
    """The bytes that are walked over. `where`: for messages."""

    buffer: Buffer
    where: str

    def check(self, positions: Positions, limits: Positions) -> Positions:
        """The positions. Raises CorruptFile for one beyond the end of its record."""
        if (positions > limits).any():
            raise CorruptFile(f"{self.where}: an Avro record ends in the middle of a field.")
        return positions

    def varints(self, positions: Positions, limits: Positions) -> tuple[npt.NDArray[np.int64], Positions]:
        """The numbers at the positions, and the positions behind them. Raises CorruptFile."""
        self.check(positions + 1, limits)
        values, behind = decode_varints(self.buffer, positions, self.where)
        return values, self.check(behind, limits)


# Reads one field: (walk, positions, limits, build).
Reader: TypeAlias = Callable[[Walk, Positions, Positions, bool], Found]
