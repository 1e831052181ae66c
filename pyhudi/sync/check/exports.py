"""The age of exports: the commits that the metadata of another format lack. Its readers see the table as of before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from pyhudi.errors import PathNotFound
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import EXPORTS_FOLDER
from pyhudi.sync.check.result import SyncFinding

__all__ = ["findings_of_exports"]


def findings_of_exports(meta: MetaClient) -> Iterator[SyncFinding]:
    """A finding for each export that lacks commits. Raises StorageError."""
    for entry in meta.storage.list(EXPORTS_FOLDER):
        name = entry.name
        if "." in name:  # the oldest snapshot of one
            continue
        with suppress(PathNotFound, UnicodeDecodeError):
            instant = meta.storage.read(entry.path).decode()
            later = meta.timeline.commits().after(instant)
            since = meta.timeline.active_since
            if later.first_time is None:
                continue
            least = "at least " if since is not None and instant < since else ""
            count = len(later)
            yield SyncFinding(
                name,
                "wrong",
                "age of the export",
                f"readers of the {name} export see the table as of {instant}: it is {least}{count:,} "
                f"commit{'' if count == 1 else 's'} behind, since {later.first_time}",
                since=later.first_time,
                run=f"table.export_metadata({name!r}), or hoodie.pyhudi.export.formats={name} with each write; of an "
                f"export that nobody reads delete {entry.path}",
                source="docs/exports.md",
            )
