"""The files that metadata of other formats still needs: those of the instant up to which a table was exported.

Each format has a file `.hoodie/.aux/pyhudi_exports/<format>` that names the instant. A clean keeps the files of that
instant until a later one is exported. An abandoned export does not hold up cleaning for long: it counts while the
first commit that it lacks is no older than `hoodie.pyhudi.export.retain.hours`. Source: docs/exports.md.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from pyhudi.errors import PathNotFound, TableError
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import EXPORTS_FOLDER
from pyhudi.model.instant import parse_instant_time
from pyhudi.storage.base import Storage

__all__ = ["needed_by_exports", "note_export"]


def note_export(storage: Storage, name: str, instant: str) -> None:
    """Save the instant up to which the table was exported to a format."""
    path = f"{EXPORTS_FOLDER}/{name}"
    with suppress(PathNotFound):
        if storage.read(path) == instant.encode():
            return
    storage.write(path, instant.encode())


def needed_by_exports(meta: MetaClient, retain_hours: int, now: datetime) -> str:
    """The oldest instant whose files an export still uses; "" for none. `now`: in the timeline's zone."""
    needed = []
    for entry in meta.storage.list(EXPORTS_FOLDER):
        with suppress(PathNotFound, UnicodeDecodeError, TableError):
            instant = meta.storage.read(entry.path).decode()
            lacks = meta.timeline.commits().after(instant).first_time
            since = now if lacks is None else parse_instant_time(lacks, now.tzinfo)
            if now - since <= timedelta(hours=retain_hours):
                needed.append(instant)
    return min(needed, default="")
