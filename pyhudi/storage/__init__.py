"""Storage: the only access to file systems and to the clock."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType

from pyhudi.errors import ConfigError
from pyhudi.storage.base import FileInfo, Storage
from pyhudi.storage.clock import Clock, FixedClock, SystemClock
from pyhudi.storage.local import LocalStorage, with_sync
from pyhudi.storage.memory import MemoryStorage

__all__ = [
    "Clock",
    "FileInfo",
    "FixedClock",
    "LocalStorage",
    "MemoryStorage",
    "Storage",
    "SystemClock",
    "open_storage",
    "with_sync",
]

_NO_OPTIONS: Mapping[str, str] = MappingProxyType({})
_REMOTE_SCHEMES = frozenset({"s3", "s3a", "s3n", "gs", "abfs", "abfss", "hdfs"})


def open_storage(path: str | os.PathLike[str], options: Mapping[str, str] = _NO_OPTIONS) -> Storage:
    """The storage for a table's path.

    Args: `path`: a file path (also `~`, relative), a `file:` URI, `s3://`, `s3a://`, `gs://`, `abfs(s)://`, `hdfs://`
    or `memory://name`. `options`: Hadoop's keys for remote stores (`fs.s3a.endpoint` and so on); others are ignored.
    Raises ConfigError for another scheme, or when the store needs a package that is not installed.
    """
    text = os.fspath(path)
    if not text:
        raise ConfigError("The table's path is empty. Give a folder or a URI.")
    scheme, colon, rest = text.partition(":")
    if not colon or len(scheme) < 2 or "/" in scheme:  # one letter: a drive
        return LocalStorage(text)
    scheme = scheme.lower()
    if scheme == "file":
        return LocalStorage(_local_path(rest, text))
    if scheme == "memory":
        return MemoryStorage(rest.strip("/"))
    if scheme in _REMOTE_SCHEMES:
        from pyhudi.storage.arrow import ArrowStorage  # pyarrow.fs is slow to load and rarely needed

        return ArrowStorage(text, options)
    raise ConfigError(
        f"Unknown scheme {scheme!r} in the table's path {text!r}. Known: a plain path, file:, "
        f"{', '.join(sorted(f'{known}://' for known in _REMOTE_SCHEMES))} and memory://."
    )


def _local_path(rest: str, uri: str) -> str:
    """The path of a `file:` URI: `file:/a`, `file:///a` and `file://localhost/a` are the same.

    Nothing is percent-decoded, as in Hadoop's paths: `file:///a%20b` is the folder `a%20b`, so that Spark and PyHudi
    mean the same folder by the same text.
    """
    if not rest.startswith("//"):
        return rest
    host, _, path = rest[2:].partition("/")
    if host not in ("", "localhost"):
        raise ConfigError(f"The table's path {uri!r} names the host {host!r}; a file: URI can only name this machine.")
    return f"/{path}"
