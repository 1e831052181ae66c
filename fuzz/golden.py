"""Seeds out of tables that real Hudi wrote, where they are next to the project."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["golden_files"]

_GOLDEN = Path(__file__).resolve().parents[2] / "shared" / "golden"
_TABLES = (
    "1.2.0/cow_operations", "1.2.0/upgrade_a_mor_5_v8", "1.2.0/hfile_blocks", "0.15.0/cow_operations",
    "0.15.0/g2_savepoint_restore", "0.15.0/g2_clustering_pending", "0.15.0/g2_compaction_pending",
    "0.15.0/evolution_schema_on_read", "0.15.0/g2_bucket_consistent", "1.2.0/state_failed_writer",
    "0.15.0/g2_logs_rollback",
)  # fmt: skip
_MOST_BYTES = 64 << 10  # of a seed: small ones are damaged where it matters
_MOST_FILES = 6


def golden_files(pattern: str, most: int = _MOST_FILES) -> tuple[bytes, ...]:
    """Some files whose path in a table matches all of `pattern`; () without golden tables."""
    found: list[bytes] = []
    for path, data in _files():
        if re.fullmatch(pattern, path) and 0 < len(data) <= _MOST_BYTES and data not in found:
            found.append(data)
            if len(found) == most:
                break
    return tuple(found)


@cache
def _files() -> tuple[tuple[str, bytes], ...]:
    return tuple(found for name in _TABLES for found in _files_of(_GOLDEN / f"{name}.zip"))


def _files_of(archive: Path) -> Iterator[tuple[str, bytes]]:
    if not archive.is_file():
        return
    with zipfile.ZipFile(archive) as table:
        for entry in sorted(table.namelist()):
            if not entry.endswith("/") and table.getinfo(entry).file_size <= _MOST_BYTES:
                yield entry.partition("/")[2], table.read(entry)
