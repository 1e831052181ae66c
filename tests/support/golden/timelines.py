"""Golden tables' `.hoodie` folders in memory: no unzipping to disk for tests that read only the timeline."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

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
