"""Golden tables' `.hoodie` folders in memory: no unzipping to disk for tests that read only the timeline."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyhudi.storage import FixedClock, MemoryStorage

GoldenTimeline = tuple[MemoryStorage, dict[str, Any]]

START_MS = 1_760_000_000_000  # 2025-10-09 08:53:20 UTC


def load_golden(archive: Path) -> GoldenTimeline:
    """One golden table: what lies directly in `.hoodie` and `.hoodie/timeline`, and the description."""
    storage = MemoryStorage(clock=FixedClock(START_MS))
    with zipfile.ZipFile(archive) as table:
        for entry in table.namelist():
            path = entry.removeprefix(f"{archive.stem}/")
            if not entry.endswith("/") and path.rpartition("/")[0] in (".hoodie", ".hoodie/timeline"):
                storage.write(path, table.read(entry))
    storage.reset_faults()
    return storage, json.loads(archive.with_suffix(".json").read_text())


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
