"""Golden tables' timelines, one by one or all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyhudi.storage import MemoryStorage
from tests.support.golden.timelines import GoldenTimeline, load_golden


@pytest.fixture
def golden_timeline(shared: Path) -> Callable[[str, str], GoldenTimeline]:
    """`golden_timeline(hudi_version, name)`."""
    return lambda version, name: load_golden(shared / "golden" / version / f"{name}.zip")


@pytest.fixture
def golden_timelines(shared: Path) -> Callable[[], Iterator[tuple[str, MemoryStorage, dict[str, Any]]]]:
    """All golden tables, as ("release/name", storage, description)."""

    def all_of_them() -> Iterator[tuple[str, MemoryStorage, dict[str, Any]]]:
        for archive in sorted((shared / "golden").glob("*/*.zip")):
            storage, description = load_golden(archive)
            yield f"{archive.parent.name}/{archive.stem}", storage, description

    return all_of_them
