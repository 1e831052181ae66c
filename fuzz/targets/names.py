"""Names of files and the times in them."""

from __future__ import annotations

from datetime import timezone

from fuzz.target import Target
from pyhudi.errors import HudiError
from pyhudi.model.filenames import BaseFileName, InstantFileName, LogFileName, MarkerName
from pyhudi.model.table_config import TableConfig
from pyhudi.storage import FixedClock, MemoryStorage
from pyhudi.timeline.instant_time import InstantTimes
from pyhudi.timeline.listing import load_timeline

__all__ = ["TARGETS"]

_NOW_MS = 1_760_000_000_000
_CONFIGS = (
    TableConfig({"hoodie.table.name": "t", "hoodie.table.version": "9", "hoodie.timeline.layout.version": "2"}),
    TableConfig({"hoodie.table.name": "t", "hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"}),
)
_WORDS = (
    b".parquet",
    b".log.",
    b".commit",
    b".inflight",
    b".requested",
    b"_",
    b".",
    b"-",
    b"/",
    b"..",
    b"\x00",
    b"9" * 17,
    b"9" * 5000,
    b"0" * 17,
    b"99999999999999",
    b"\xd9\xa3",
    b"\xef\xbc\x91",
    b".marker.",
    b"\xff",
)


def _file_names(data: bytes) -> None:
    """Parsed names are printed as they were, as far as their kind keeps everything."""
    name = data.decode("utf-8", "surrogateescape")
    for parse in (BaseFileName.parse, LogFileName.parse, MarkerName.parse):
        found = parse(name)
        if found is not None and parse(str(found)) != found:
            raise AssertionError(f"{name!r} is {found!r}, which is printed as {str(found)!r}")
    for layout in (1, 2):
        instant = InstantFileName.parse(name, layout)
        if instant is not None:
            instant.text(layout)


def _timeline(data: bytes) -> None:
    """A timeline folder with these names, one a line; a writer draws its time after them."""
    for config in _CONFIGS:
        storage = MemoryStorage(clock=FixedClock(_NOW_MS))
        for name in data.decode("utf-8", "replace").split("\n")[:50]:
            try:
                storage.write(f"{config.timeline_path}/{name}", b"")
            except HudiError:
                continue
        try:
            timeline = load_timeline(storage, config)
            timeline.commits()
            InstantTimes(FixedClock(_NOW_MS), timezone.utc).draw(after=timeline.latest_time)
        except HudiError:
            continue


_BASE, _LOG = "a7f1-0_0-1-2_20240101000000000.parquet", ".a7f1-0_20240101000000000.log.3_0-1-2"
_INSTANTS = (
    "20240101000000000.commit.requested",
    "20240101000000000.inflight",
    "20240101000000000_20240101000001000.commit",
    "20240102000000000.compaction.requested",
    "20240103000000.deltacommit",
    "20240104000000000.savepoint",
    "20240105000000000_20240105000000100.replacecommit",
)

TARGETS = (
    Target(
        "file-names",
        _file_names,
        lambda: [n.encode() for n in (_BASE, _LOG, f"p/{_BASE}.marker.CREATE", f"{_LOG}.cdc", *_INSTANTS)],
        words=_WORDS,
    ),
    Target("timeline-names", _timeline, lambda: ["\n".join(_INSTANTS).encode(), _INSTANTS[0].encode()], words=_WORDS),
)
