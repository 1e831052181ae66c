"""Paths inside a table: the check that they stay in its folder, and the names of our temporary files.

Paths come from timeline bodies, file footers and partition values, which are untrusted.
"""

from __future__ import annotations

import os

from pyhudi.errors import ConfigError, StorageError
from pyhudi.redaction import holds_credentials, is_text, quoted

__all__ = ["TEMPORARY_PREFIX", "TEMPORARY_SUFFIX", "check_no_credentials", "child", "inside", "is_temporary", "parent"]

# The leading dot hides it from readers of data folders, the unknown extension from readers of timelines.
TEMPORARY_PREFIX = ".pyhudi-"
TEMPORARY_SUFFIX = ".tmp"

_FORBIDDEN_SEGMENTS = frozenset({"", ".", ".."})


def inside(path: str, root: str) -> str:
    """Return `path` if it stays below `root`; "" is the root.

    Raises StorageError for an absolute path, an empty, "." or ".." segment, a NUL, half of a UTF-16 pair, and on
    Windows for a backslash or a colon. Symbolic links inside the table are followed; the administrator makes them, not
    a file's content (docs/decisions/0011-what-a-symbolic-link-means.md).
    """
    if path == "":
        return path
    is_windows_path = os.sep != "/" and ("\\" in path or ":" in path)
    is_plain = _FORBIDDEN_SEGMENTS.isdisjoint(path.split("/")) and "\x00" not in path and is_text(path)
    if is_plain and not is_windows_path:
        return path
    raise StorageError(
        f"The path '{quoted(path)}' leaves the table's folder or is not a plain relative path (table: {root}). "
        f"Expected names joined by '/', without a leading '/' and without '.' or '..'. Nothing was touched; check the "
        f"value or file that named it."
    )


def check_no_credentials(uri: str) -> None:
    """Raise ConfigError for a URI with credentials: the table's path is in logs, commits, plans and messages."""
    if holds_credentials(uri):
        raise ConfigError(
            f"The table's path holds credentials: '{quoted(uri)}'. Nothing was opened. Give the path without them, and "
            f"them as options of the store (storage_options, spark.hadoop.fs.*; docs/storage.md lists them) or by its "
            f"environment variables."
        )


def parent(path: str) -> str:
    """Return the folder of a path; "" for an entry of the root."""
    return path.rpartition("/")[0]


def child(folder: str, name: str) -> str:
    """Return `name` below `folder`, which may be the root."""
    return f"{folder}/{name}" if folder else name


def is_temporary(name: str) -> bool:
    """True for the name of a half-written file of this package, which no listing shows.

    Call it only for files: a folder with such a name is a normal partition.
    """
    return name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX)
