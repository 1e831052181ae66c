"""The archived timeline: manifests and files of the merge tree, and the log of earlier table versions."""

from __future__ import annotations

import pyarrow as pa

from fuzz.golden import golden_files
from fuzz.mutation import json_shape
from fuzz.target import Target
from fuzz.targets.base_files import parquet_footer
from fuzz.targets.logs import block_shape
from pyhudi.errors import HudiError
from pyhudi.formats.timeline.archive_entries import archive_entry, encode_entries
from pyhudi.formats.timeline.history_files import HISTORY_SCHEMA, write_history_file
from pyhudi.formats.timeline.instant_files import encode_commit
from pyhudi.model.commit import CommitMetadata, WriteStat
from pyhudi.model.instant import ActionKind, State
from pyhudi.storage import MemoryStorage
from pyhudi.timeline.archived_timeline import ArchiveLog
from pyhudi.timeline.lsm_history import LsmHistory
from pyhudi.timeline.lsm_manifest import HistoryFile, Manifest, clean_manifests, load_manifest, write_manifest

__all__ = ["TARGETS"]

_TIME, _LATER = "20240101000000000", "20240102000000000"
_NAME = HistoryFile.name_of(_TIME, _LATER, 0)
_COMMIT = CommitMetadata({"p": (WriteStat("a-0", "p/x", "p", num_writes=1),)}, {"schema": "{}"}, "UPSERT")


def _manifest(data: bytes) -> None:
    """As the text of the version, and as the manifest."""
    storage = MemoryStorage()
    storage.write("h/_version_", data[:100])
    storage.write("h/manifest_1", data)
    _files(load_manifest(storage, "h"))
    storage.write("h/_version_", b"1")
    _files(load_manifest(storage, "h"))
    LsmHistory(storage, "h", names_are_ranges=True).files(_TIME, _LATER)
    clean_manifests(storage, "h", 1)


def _files(manifest: Manifest) -> None:
    for file in manifest.files:
        _ = file.first, file.last, file.level


def _manifests() -> list[bytes]:
    storage = MemoryStorage()
    write_manifest(storage, "h", Manifest(1, (HistoryFile(_NAME, 1000), HistoryFile(f"{_TIME}_{_TIME}_1.parquet", 5))))
    return [storage.read("h/manifest_1"), b"12", *golden_files(r".*/manifest_\d+")]


def _history_file(data: bytes) -> None:
    storage = MemoryStorage()
    storage.write(f"h/{_NAME}", data)
    write_manifest(storage, "h", Manifest(1, (HistoryFile(_NAME, len(data)),)))
    history = LsmHistory(storage, "h", names_are_ranges=True)
    for until in (None, _TIME):
        try:
            history.times(until, until)
        except HudiError:
            continue
    for found in history.instants():
        _ = found.plan
        try:
            found.commit()
        except HudiError:
            continue


def _history_files() -> list[bytes]:
    storage = MemoryStorage()
    body = encode_commit(_COMMIT, ActionKind.COMMIT, 9)
    rows = [
        {"instantTime": time, "completionTime": time, "action": action, "metadata": body, "plan": None, "version": 1}
        for time, action in ((_TIME, "commit"), (_LATER, "deltacommit"))
    ]
    write_history_file(storage, "x", [pa.Table.from_pylist(rows, HISTORY_SCHEMA)])
    return [storage.read("x"), *golden_files(r".*/\d+_\d+_\d\.parquet")]


def _archive_log(data: bytes) -> None:
    storage = MemoryStorage()
    storage.write(".hoodie/archived/.commits_.archive.1_1-0-1", data)
    log = ArchiveLog(storage, ".hoodie/archived")
    log.times()
    log.newest_keys()
    for found in log.instants():
        try:
            found.commit()
        except HudiError:
            continue


def _archive_logs() -> list[bytes]:
    body = encode_commit(_COMMIT, ActionKind.COMMIT, 6)
    entries = [archive_entry(_TIME, ActionKind.COMMIT, state, body, _LATER) for state in State]
    return [encode_entries(entries), *golden_files(r".*/\.commits_\.archive\.\d+.*")]


TARGETS = (
    Target(
        "manifests", _manifest, _manifests, (json_shape,), (b"[" * 5000, b"9" * 5000, b"\xd9\xa3", b"..", b"\\ud800")
    ),
    Target("history-files", _history_file, _history_files, (parquet_footer,), (b"PAR1",)),
    Target("archive-logs", _archive_log, _archive_logs, (block_shape,), (b"#HUDI#",)),
)
