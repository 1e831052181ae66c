"""The places of a pipeline: what it writes is never what it reads, however their paths are spelled."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyhudi.errors import ConfigError
from pyhudi.model.options.streamer.streamer import StreamerOptions
from pyhudi.storage import open_storage

__all__ = ["check_places", "place_of"]

_REMOTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
_HIDDEN = (".", "_")


def place_of(path: str) -> str:
    """The place that a path names: one text for `/a/./b`, `file:///a/b` and `/a//b/`. Opens no connection."""
    matched = _REMOTE.fullmatch(path)
    if matched is None or matched[1].lower() == "file":
        return open_storage(path).root
    scheme = "s3" if matched[1].lower() in ("s3a", "s3n") else matched[1].lower()
    return f"{scheme}://{'/'.join(part for part in matched[2].split('/') if part not in ('', '.'))}"


def check_places(options: StreamerOptions) -> None:
    """Raise ConfigError, which names the key, for a pipeline that would read its own rows, or mix two tables."""
    for key, path, problem in _overlaps(options):
        raise ConfigError(f"{key}={path}: {problem}. Nothing was written.")


def _overlaps(options: StreamerOptions) -> Iterator[tuple[str, str, str]]:
    assert options.target is not None
    target, aside = place_of(options.target), options.quarantine.path
    if aside and place_of(aside) == target:
        yield (
            "hoodie.errortable.base.path",
            aside,
            "rows that don't fit need a table of their own",
        )
    table = options.hudi.path
    if table and place_of(table) == target:
        yield "hoodie.streamer.source.hoodieincr.path", table, "each round would read the rows of the one before"
    root = options.files.root
    if root and options.source.endswith("DFSSource"):
        for written, what in ((options.target, "the table"), (aside, "the quarantine table")):
            if written and _is_listed(place_of(root), place_of(written)):
                problem = f"{what}, {written}, is in this folder: its files would be read as rows, round after round"
                yield "hoodie.streamer.source.dfs.root", root, problem
        if _is_listed(target, place_of(root)):
            problem = f"it is in the folder of the table, {options.target}, whose files would be read as rows"
            yield "hoodie.streamer.source.dfs.root", root, problem


def _is_listed(folder: str, place: str) -> bool:
    """Is a place in a folder, and not below a name that is left alone?"""
    if place == folder:
        return True
    inside = place.removeprefix(f"{folder.rstrip('/')}/")
    return inside != place and not any(part.startswith(_HIDDEN) for part in inside.split("/"))
