"""The file that says that the ring of a resize counts."""

from __future__ import annotations

import pytest

from pyhudi.index.consistent_bucket import mark_ring
from pyhudi.storage import MemoryStorage


@pytest.mark.parametrize("version", [6, 9])
def test_a_marker_of_a_ring_is_an_empty_file_and_the_second_one_is_the_first(version: int) -> None:
    storage = MemoryStorage()
    for _ in range(2):
        mark_ring(storage, "p", "20260101000000000", version)
    (marker,) = storage.walk("")
    assert "20260101000000000" in marker.name
    assert storage.read(marker.path) == b""
