"""Files that count as settled at once: what was made of them is kept without a wait."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyhudi.storage import FixedClock, file_cache

__all__ = ["settled_files"]

FAR = 1 << 45  # ms: long after any file of a test was written


def settled_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The body of a fixture: nothing that was kept before is there, and nothing is left for other tests."""
    monkeypatch.setattr(file_cache, "_CLOCK", FixedClock(FAR))
    file_cache.FILES.clear()
    yield
    file_cache.FILES.clear()
