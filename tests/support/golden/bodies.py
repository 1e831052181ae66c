"""Instant bodies that real Hudi wrote, straight out of the zipped golden tables."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

AVRO_MAGIC = b"Obj\x01"


@dataclass(frozen=True)
class Body:
    """One file of a golden table's timeline that is not empty."""

    hudi: str  # version that the folder names
    table: str
    path: str  # inside the table
    data: bytes

    @property
    def where(self) -> str:
        return f"{self.hudi}/{self.table}/{self.path}"

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def is_avro(self) -> bool:
        return self.data[:4] == AVRO_MAGIC

    @property
    def is_json_commit(self) -> bool:
        return self.data[:1] == b"{" and self.name.endswith(("commit", "inflight")) and "/.schema/" not in self.path


@cache
def golden_bodies(shared: Path) -> tuple[Body, ...]:
    """All of them, of all three versions, tables and their metadata tables."""
    bodies = []
    for archive_path in sorted((shared / "golden").glob("*/*.zip")):
        with zipfile.ZipFile(archive_path) as archive:
            for entry in archive.infolist():
                table, _, path = entry.filename.partition("/")
                if ".hoodie/" not in path or entry.is_dir() or not entry.file_size:
                    continue
                if path.endswith((".parquet", ".hfile", ".log", ".properties")) or ".log." in path:
                    continue
                with archive.open(entry) as file:
                    head = file.read(4)
                    if head == AVRO_MAGIC or head[:1] == b"{":
                        bodies.append(Body(archive_path.parent.name, table, path, head + file.read()))
    return tuple(bodies)
