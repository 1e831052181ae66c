"""Storage: the only access to file systems and to the clock."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType

from pyhudi.errors import ConfigError
from pyhudi.redaction import is_text, quoted
from pyhudi.storage.base import FileInfo, Storage
from pyhudi.storage.clock import Clock, FixedClock, SystemClock
from pyhudi.storage.local import LocalStorage, with_sync
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.paths import check_no_credentials
from pyhudi.storage.stores.options import REMOTE_SCHEMES, named_options, with_environment

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

_NO_OPTIONS: Mapping[str, object] = MappingProxyType({})


def open_storage(path: str | os.PathLike[str], options: Mapping[str, object] = _NO_OPTIONS) -> Storage:
    """Open the storage for a table's path.

    Args: `path`: a file path (also `~`, relative), a `file:` URI, `s3://`, `s3a://`, `gs://`, `abfs(s)://`, `az://`, `hdfs://`
    or `memory://name`. `options`: Hadoop's keys for remote stores (`fs.s3a.endpoint` and so on), or other libraries'
    names for them (`endpoint_url`). Without an S3 endpoint, that of the environment is used.
    Raises ConfigError for another scheme, an unknown option, a URI with credentials in it, or a missing package;
    StorageError when the store can't be opened.
    """
    text = _path_text(path)
    scheme, colon, rest = text.partition(":")
    named = with_environment(scheme.lower(), named_options(scheme.lower(), options))
    if not colon or len(scheme) < 2 or "/" in scheme:  # one letter: a drive
        return LocalStorage(text)
    scheme = scheme.lower()
    if scheme == "file":
        return LocalStorage(_local_path(rest, text))
    check_no_credentials(text)
    if scheme == "memory":
        return MemoryStorage(rest.strip("/"))
    if scheme in REMOTE_SCHEMES:
        _check_place(scheme, rest, text)
        from pyhudi.storage.arrow import ArrowStorage  # pyarrow.fs is slow to load and rarely needed

        if scheme in ("abfs", "abfss", "az"):
            from pyhudi.storage.stores.azure import with_account

            text, named = with_account(text, named)

        return ArrowStorage(text, named)
    near = get_close_matches(scheme, [*REMOTE_SCHEMES, "file", "memory"], n=1)
    hint = f"Did you mean {near[0]}:? " if near else ""
    raise ConfigError(
        f"Unknown scheme '{quoted(scheme)}' in the table's path '{quoted(text)}'. {hint}Known: a plain path, file:, "
        f"{', '.join(sorted(f'{known}://' for known in REMOTE_SCHEMES))} and memory://."
    )


def _path_text(path: str | os.PathLike[str]) -> str:
    """Return the path as text. Raises ConfigError for an impossible path, before any system call."""
    try:
        text = os.fspath(path)
    except TypeError:
        text = None
    if isinstance(text, str) and not isinstance(path, str):
        scheme, colon, rest = text.partition(":/")
        if colon and scheme.lower() in {*REMOTE_SCHEMES, "memory"}:
            text = f"{scheme}://{rest.lstrip('/')}"  # pathlib reduces two slashes to one
    if not isinstance(text, str):
        raise ConfigError(f"The table's path is of type {type(path).__name__}; give text or a pathlib.Path.")
    if not text:
        raise ConfigError("The table's path is empty. Give a folder or a URI.")
    if "\x00" in text or not is_text(text):
        raise ConfigError(
            f"The table's path '{quoted(text)}' has a character that is no text: a NUL, or half of a UTF-16 pair. "
            "Give another path."
        )
    return text


def _check_place(scheme: str, rest: str, uri: str) -> None:
    """Raise ConfigError for a store's URI without bucket, container or host."""
    if rest.startswith("//") and (rest[2:3] not in ("", "/") or scheme == "hdfs"):
        return
    azure = "container@account.dfs.core.windows.net"
    place = {"hdfs": "host:port", "abfs": azure, "abfss": azure, "az": "container"}.get(scheme, "bucket")
    raise ConfigError(
        f"The table's path '{quoted(uri)}' names no {place.partition('@')[0].partition(':')[0]}: write "
        f"{scheme}://{place}/{rest.strip('/') or 'path'}, with two slashes."
    )


def _local_path(rest: str, uri: str) -> str:
    """Return the path of a `file:` URI: `file:/a`, `file:///a` and `file://localhost/a` are the same.

    Nothing is percent-decoded, as in Hadoop's paths: `file:///a%20b` is the folder `a%20b`, so that Spark and PyHudi
    use the same folder for the same text.
    """
    if not rest.startswith("//"):
        return rest
    host, _, path = rest[2:].partition("/")
    if host not in ("", "localhost"):
        raise ConfigError(f"The table's path {uri!r} names the host {host!r}; a file: URI can only name this machine.")
    return f"/{path}"
