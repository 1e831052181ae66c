"""xxHash64, as Hudi names things by it (names of locks from a table's path). Pure Python: for short texts.

Source: the xxHash specification; Hudi's HashID (seed 0xdabadaba as a signed int, sixteen hexadecimal digits).
"""

from __future__ import annotations

__all__ = ["hash_id_64", "xx_hash_64"]

_MASK = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_HUDI_SEED = 0xDABADABA - (1 << 32)


def hash_id_64(text: str) -> str:
    """The 64-bit id that Hudi gives a text."""
    return f"{xx_hash_64(text.encode('utf-8'), _HUDI_SEED):016X}"


def xx_hash_64(data: bytes, seed: int = 0) -> int:
    """The hash of some bytes, unsigned."""
    seed &= _MASK
    at, size = 0, len(data)
    if size >= 32:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while at + 32 <= size:
            lanes = [_round(lane, _word(data, at + 8 * n, 8)) for n, lane in enumerate(lanes)]
            at += 32
        value = sum(_rotated(lane, turn) for lane, turn in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        value = (seed + _P5) & _MASK
    value = (value + size) & _MASK
    while at + 8 <= size:
        value = (_rotated(value ^ _round(0, _word(data, at, 8)), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= size:
        value = (_rotated(value ^ (_word(data, at, 4) * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        value = _rotated(value ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    value = (value ^ value >> 33) * _P2 & _MASK
    value = (value ^ value >> 29) * _P3 & _MASK
    return value ^ value >> 32


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (64 - bits)) & _MASK


def _word(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
