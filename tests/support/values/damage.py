"""Damaged files: every byte changed, every length cut; what reading them may do, and how much memory it may take."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator

import pyarrow as pa

from pyhudi.errors import CorruptFile, UnsupportedTable
from tests.support.sweeps import stride

CHANGES = (0xFF, 0x01, 0x80)  # bits to flip
REFUSALS = (CorruptFile, UnsupportedTable)
MAX_BYTES = 64 << 20  # the files have a few kB; no forged length may take more than this


def damaged(data: bytes, step: int = 1, changes: tuple[int, ...] = CHANGES) -> Iterator[tuple[str, bytes]]:
    """(what was done, bytes) for every `step`-th byte changed and every `step`-th length cut."""
    for at in range(0, len(data), step):
        for change in changes:
            yield f"byte {at} xor {change:#x}", data[:at] + bytes((data[at] ^ change,)) + data[at + 1 :]
        yield f"cut at {at}", data[:at]


def assert_refused_or_read(data: bytes, read: Callable[[bytes], object], step: int = 1) -> set[str]:
    """Read every damaged variant, in `make test` every third: it is read, or refused with an error of ours.

    Returns: what happened, by name.
    """
    outcomes: set[str] = set()
    tracemalloc.start()
    try:
        for what, variant in damaged(data, stride(step)):
            arrow_before = pa.default_memory_pool().max_memory()
            tracemalloc.reset_peak()
            try:
                read(variant)
                outcomes.add("read")
            except REFUSALS as error:
                outcomes.add(type(error).__name__)
            except BaseException as error:
                raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
            assert tracemalloc.get_traced_memory()[1] < MAX_BYTES, what
            grown = pa.default_memory_pool().max_memory() - arrow_before
            assert grown < MAX_BYTES, f"{what}: {grown} bytes of Arrow"
    finally:
        tracemalloc.stop()
    return outcomes
