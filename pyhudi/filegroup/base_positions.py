"""At which rows of a slice's base file keys stand, for the headers of log blocks.

Source: spec, files and records 2.6.
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
from pyhudi.merge.combine import whole
from pyhudi.model.file_group import BaseFile
from pyhudi.model.keys import META_COLUMNS, RECORD_KEY
from pyhudi.storage.base import Storage

__all__ = ["BasePositions"]

_STORED_KEY = META_COLUMNS[2]
_NOT_THERE = -1


class BasePositions:
    """Positions in one base file; its keys are read when they are first asked for, and kept."""

    def __init__(self, storage: Storage, base_file: BaseFile) -> None:
        self._storage, self._base_file = storage, base_file
        self._keys: pa.ChunkedArray | None = None

    def in_order(self, rows: pa.Table) -> tuple[pa.Table, Mapping[HeaderKey, str]]:
        """The rows by position, and the header entries that say so.

        As they came and without entries when one of the keys is not in the base file, or is there twice.
        """
        positions = self._positions(whole(rows.column(RECORD_KEY)))
        order = np.argsort(positions, kind="stable")
        ordered = positions[order]
        if not len(ordered) or ordered[0] == _NOT_THERE or not (np.diff(ordered) > 0).all():
            return rows, {}
        header = {
            HeaderKey.RECORD_POSITIONS: encode_positions(ordered),
            HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: self._base_file.instant_time,
        }
        return rows.take(pa.array(order)), header

    def _positions(self, keys: pa.Array) -> npt.NDArray[np.int64]:
        if self._keys is None:
            with open_base_file(self._storage, self._base_file.path) as base:
                batches = [batch.column(0) for batch in base.batches([_STORED_KEY])]
            self._keys = pa.chunked_array(batches, pa.string())
        # By position of the base row: the few keys of a block are the table that is looked up.
        found = pc.fill_null(pc.index_in(self._keys, value_set=keys), _NOT_THERE).to_numpy()
        rows = np.flatnonzero(found != _NOT_THERE)
        positions = np.full(len(keys), _NOT_THERE, np.int64)
        if len(np.unique(found[rows])) == len(rows):
            positions[found[rows]] = rows
        return positions
