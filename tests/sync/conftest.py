"""A catalog in memory for the tests of this room that sync through the public API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.catalogs import MemoryCatalog, catalogs_in_memory


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryCatalog]:
    with catalogs_in_memory(monkeypatch) as catalog:
        yield catalog
