"""At which rows of a slice's base file keys are, for the headers of log blocks.

Source: docs/formats/log.md, "Record positions".
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.formats.base import open_base_file
from pyhudi.formats.log.envelope import HeaderKey
from pyhudi.formats.log.positions import encode_positions
from pyhudi.merge.combine import single_array
from pyhudi.model.file_group import BaseFile
from pyhudi.model.keys import BASE_ROW, RECORD_KEY
from pyhudi.storage.base import Storage

__all__ = ["BasePositions"]

Positions = npt.NDArray[np.int64]

_NOT_THERE = -1


class BasePositions:
    """Positions in one base file: those that rows bring along (BASE_ROW), or by a look at its keys.

    The keys are read on first access, and kept. `may_look` False leaves blocks of rows that bring none
    without positions.
    """

    def __init__(self, storage: Storage, base_file: BaseFile, *, may_look: bool = True) -> None:
        self._storage, self._base_file, self._may_look = storage, base_file, may_look
        self._keys: pa.ChunkedArray | None = None

    def in_order(self, rows: pa.Table) -> tuple[pa.Table, Mapping[HeaderKey, str]]:
        """The rows by position, and the header entries that say so.

        As they came and without entries when one of the keys is not in the base file, or is there twice.
        """
        positions = self._positions(rows)
        order = np.argsort(positions, kind="stable")
        ordered = positions[order]
        if not len(ordered) or ordered[0] == _NOT_THERE or not (np.diff(ordered) > 0).all():
            return rows, {}
        header = {
            HeaderKey.RECORD_POSITIONS: encode_positions(ordered),
            HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: self._base_file.instant_time,
        }
        return rows.take(pa.array(order)), header

    def _positions(self, rows: pa.Table) -> Positions:
        if BASE_ROW in rows.column_names:
            known: Positions = pc.fill_null(single_array(rows.column(BASE_ROW)), _NOT_THERE).to_numpy()
            return known
        if not self._may_look:
            return np.full(len(rows), _NOT_THERE, np.int64)
        return self._looked_up(single_array(rows.column(RECORD_KEY)))

    def _looked_up(self, keys: pa.Array) -> Positions:
        if self._keys is None:
            with open_base_file(self._storage, self._base_file.path) as base:
                batches = [batch.column(0) for batch in base.batches([RECORD_KEY])]
            self._keys = pa.chunked_array(batches, pa.string())
        # By position of the base row: the few keys of a block are the table that is looked up.
        found = pc.fill_null(pc.index_in(self._keys, value_set=keys), _NOT_THERE).to_numpy()
        rows = np.flatnonzero(found != _NOT_THERE)
        positions = np.full(len(keys), _NOT_THERE, np.int64)
        if len(np.unique(found[rows])) == len(rows):
            positions[found[rows]] = rows
        return positions
