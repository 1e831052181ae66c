"""Record positions of a log block: the row numbers of its keys in the base file.

They are in the block's header, or, in a Parquet block, in the metadata of the Parquet file, which Hudi ignores. In a
header they would mislead Hudi 1.2.0: in an incremental query it drops rows of such a block by the query's filter,
assigns the positions of dropped rows to the next ones, and returns old rows next to the new.

They are the Base64 text of a 64-bit Roaring bitmap in the portable form: the k-th set bit belongs to the k-th record of
the block.

Source: docs/formats/log.md, "Record positions"; Roaring's format specification.
"""

from __future__ import annotations

import base64
import binascii

import numpy as np
import numpy.typing as npt

from pyhudi.errors import CorruptFile
from pyhudi.formats.log.envelope import HeaderKey
from pyhudi.formats.log.roaring import Bitmap, bitmap_bytes, read_bitmap

__all__ = ["POSITION_NOTES", "decode_positions", "encode_positions", "positions_of"]

POSITION_NOTES = {
    HeaderKey.RECORD_POSITIONS: b"pyhudi.record_positions",
    HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: b"pyhudi.record_positions.base_instant",
}

_MAX_POSITIONS = 1 << 31  # rows of a file; a forged run must not exhaust the memory
_MAX_POSITION = (1 << 63) - 1
# The largest form of a position: a separate bitmap (key 4, head 9, container 8, run 6 bytes), in Base64.
_MAX_CHARS_OF_A_POSITION = 36
_MAX_CHARS = 16  # of a bitmap without positions

Positions = npt.NDArray[np.int64]


def encode_positions(positions: Positions) -> str:
    """Encode the header's text for distinct positions in ascending order."""
    return base64.b64encode(bitmap_bytes(positions)).decode("ascii")


def decode_positions(text: str, where: str) -> Positions:
    """Decode the positions in a header's text, ascending. Raises CorruptFile."""
    bitmap = _bitmap(text, where)
    if len(bitmap) > _MAX_POSITIONS:
        raise CorruptFile(f"{where}: expected at most {_MAX_POSITIONS} record positions, found {len(bitmap)}.")
    return bitmap.positions()


def positions_of(records: int, text: str, where: str) -> Positions | None:
    """Like `decode_positions`, for a block of `records` records; None if the number of positions differs.

    A few bytes can encode billions of positions, so they are counted before they are decoded. Raises CorruptFile.
    """
    if len(text) > _MAX_CHARS + records * _MAX_CHARS_OF_A_POSITION:
        return None
    bitmap = _bitmap(text, where)
    return bitmap.positions() if len(bitmap) == records else None


def _bitmap(text: str, where: str) -> Bitmap:
    """Return the bitmap that the whole text encodes, with positions below 2^63."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CorruptFile(f"{where}: the record positions are not Base64 ({error}).") from error
    try:
        bitmap = read_bitmap(data) if data else None
    except ValueError as error:
        raise CorruptFile(f"{where}: the record positions are not a Roaring bitmap: {error}.") from error
    size_bytes = bitmap.size_bytes if bitmap is not None else 8
    if bitmap is None or size_bytes != len(data):
        raise CorruptFile(f"{where}: expected record positions of {size_bytes} bytes, found {len(data)}.")
    if bitmap and bitmap.max() > _MAX_POSITION:
        raise CorruptFile(f"{where}: expected record positions below 2^63, found {bitmap.max()}.")
    return bitmap
