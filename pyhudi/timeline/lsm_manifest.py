"""The manifests of the archived timeline from table version 8 on: its files, by version.

    _version_       the number N of the newest version, as text
    manifest_<N>    {"files": [{"fileName": ..., "fileLen": ...}]}
    <first>_<last>_<level>.parquet

A manifest never changes; a change makes the next one and then moves `_version_`. Source: docs/formats/history.md,
"Merge tree".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pyhudi.errors import CorruptFile, PathNotFound
from pyhudi.formats.json_text import parse_json, pretty_json
from pyhudi.formats.timeline.bodies import Fields, fields_of
from pyhudi.storage.base import FileInfo, Storage

__all__ = ["HistoryFile", "Manifest", "clean_manifests", "is_history_file", "load_manifest", "write_manifest"]

_FILE_NAME = re.compile(r"(\d+)_(\d+)_(\d)\.parquet", re.ASCII)
_VERSION = re.compile(r"\d{1,10}", re.ASCII)  # Java's ints, counted up from 1
_MANIFEST_NAME = re.compile(r"manifest_(\d{1,10})", re.ASCII)
_VERSION_NAME = "_version_"
_MANIFEST_BYTES_MAX = 64 << 20  # a line of 100 bytes for each file: a history of some hundred million instants


@dataclass(frozen=True, slots=True, order=True)
class HistoryFile:
    """One Parquet file of the history. `first`, `last`: the instant times in its name."""

    name: str
    size_bytes: int

    @property
    def first(self) -> str:
        return min(self._parts()[:2])

    @property
    def last(self) -> str:
        return max(self._parts()[:2])

    @property
    def level(self) -> int:
        return int(self._parts()[2])

    def _parts(self) -> tuple[str, str, str]:
        match = _FILE_NAME.fullmatch(self.name)
        assert match is not None, self.name
        return match[1], match[2], match[3]

    @staticmethod
    def name_of(first: str, last: str, level: int) -> str:
        """Return the name of a file with instants from `first` to `last`."""
        return f"{first}_{last}_{level}.parquet"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of one version; version 0 is the empty history of a table without archived instants."""

    version: int = 0
    files: tuple[HistoryFile, ...] = ()


def load_manifest(storage: Storage, folder: str) -> Manifest:
    """The newest version; the greatest manifest when there is no readable `_version_` (a writer died replacing it).

    Raises CorruptFile for a manifest that can't be read.
    """
    version = _stored_version(storage, folder)
    if version is not None:
        manifest = _read(storage, folder, version)
        if manifest is not None:
            return manifest
    for version in sorted(_versions(storage.list(folder)), reverse=True):
        try:
            return _read(storage, folder, version) or Manifest()
        except CorruptFile:
            continue  # its writer died
    return Manifest()


def write_manifest(storage: Storage, folder: str, manifest: Manifest, files: Iterable[HistoryFile] = ()) -> None:
    """Make a version the newest one; `files`: its new files. Hold the table's lock."""
    body = {"files": [{"fileName": file.name, "fileLen": file.size_bytes} for file in manifest.files]}
    # An existing file of this name belongs to a writer that died before it moved the version.
    path, version_path = f"{folder}/manifest_{manifest.version}", f"{folder}/{_VERSION_NAME}"
    # First: without a version file, the newest manifest is in effect.
    storage.sync([f"{folder}/{file.name}" for file in files])
    storage.write(path, pretty_json(body).encode())
    storage.sync([path])
    storage.write(version_path, str(manifest.version).encode())
    storage.sync([version_path])  # the files of older versions may be deleted next


def clean_manifests(storage: Storage, folder: str, keep: int) -> tuple[str, ...]:
    """Delete all but the newest `keep` versions, then the files in none of these; return the deleted names."""
    current = load_manifest(storage, folder).version
    entries = [entry for entry in storage.list(folder) if not entry.is_dir]
    versions = sorted(version for version in _versions(entries) if version <= current)
    stale, newest = versions[: -max(1, keep)], versions[-max(1, keep) :]
    in_use = {file.name for version in newest for file in (_read(storage, folder, version) or Manifest()).files}
    deleted = [f"manifest_{version}" for version in stale]
    deleted += [entry.name for entry in entries if is_history_file(entry.name) and entry.name not in in_use]
    for name in deleted:
        storage.delete(f"{folder}/{name}")
    return tuple(deleted)


def is_history_file(name: str) -> bool:
    """True for the name of a Parquet file of the history."""
    return _FILE_NAME.fullmatch(name) is not None


def _stored_version(storage: Storage, folder: str) -> int | None:
    try:
        text = storage.read(f"{folder}/{_VERSION_NAME}", _MANIFEST_BYTES_MAX).decode("ascii", "replace").strip()
    except (PathNotFound, CorruptFile):  # too large for a number: treated as other text
        return None
    return int(text) if _VERSION.fullmatch(text) else None


def _versions(entries: Iterable[FileInfo]) -> list[int]:
    matches = (_MANIFEST_NAME.fullmatch(entry.name) for entry in entries)
    return [int(match[1]) for match in matches if match is not None]


def _read(storage: Storage, folder: str, version: int) -> Manifest | None:
    path = f"{folder}/manifest_{version}"
    try:
        data = storage.read(path, _MANIFEST_BYTES_MAX)
    except PathNotFound:
        return None
    if not data:
        return Manifest(version)
    where = f"{storage.root}/{path}"
    try:
        return Manifest(version, tuple(_files(fields_of(parse_json(data, where, "JSON"), where))))
    except CorruptFile as error:
        raise CorruptFile(
            f"{where}: expected a manifest of archived instants, found {data[:40]!r} ({error}). "
            f"The table itself can be read; delete the manifest to go back to the version before it."
        ) from error


def _files(body: Fields) -> Iterable[HistoryFile]:
    if not isinstance(body.body.get("files"), list):
        raise CorruptFile("no list of files")
    for file in body.records("files"):
        name, size_bytes = file.text("fileName"), file.number("fileLen")
        if not is_history_file(name) or size_bytes < 0:
            raise CorruptFile(f"{name!r:.100} of {size_bytes} bytes is not a file of archived instants")
        yield HistoryFile(name, size_bytes)
