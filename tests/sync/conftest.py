"""Catalogs for the tests of this room that sync through the public API: one in memory, and moto's Glue."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.catalogs import MemoryCatalog, catalogs_in_memory
from tests.support.glue import WatchedGlue, glue_in_process


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryCatalog]:
    with catalogs_in_memory(monkeypatch) as catalog:
        yield catalog


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch) -> Iterator[WatchedGlue]:
    with glue_in_process(monkeypatch) as watched:
        yield watched
