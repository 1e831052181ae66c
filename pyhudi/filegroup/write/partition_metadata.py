"""`.hoodie_partition_metadata`: the file that makes a folder a partition of the table.

Java properties text with `commitTime` (the instant that made the partition) and `partitionDepth` (folders below the
table). Never overwritten. Source: docs/formats/file-names.md, "Partition metadata".
"""

from __future__ import annotations

from datetime import datetime, timezone

from pyhudi.errors import PathExists, PathNotFound
from pyhudi.formats.properties import PROPERTIES_BYTES_MAX, parse_properties
from pyhudi.model.filenames import PARTITION_METADATA_NAME, PARTITION_METADATA_NAMES, data_path, partition_depth
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock

__all__ = ["ensure_partition_metadata", "partition_creation_time", "rewrite_partition_metadata"]

_LAST_KEY = b"partitionDepth="  # Hudi, too, writes it after `commitTime`


def ensure_partition_metadata(storage: Storage, partition_path: str, instant_time: str, clock: Clock) -> None:
    """Make a folder a partition before its first data file. An existing file in any form is kept, unless a power cut
    has emptied it: in that case no commit has named a file in its folder yet.
    """
    path = data_path(partition_path, PARTITION_METADATA_NAME)
    names = [name for name in PARTITION_METADATA_NAMES if storage.stat(data_path(partition_path, name)) is not None]
    is_cut = names == [PARTITION_METADATA_NAME] and not storage.keeps_order and not _is_whole(storage, path)
    if names and not is_cut:
        return
    text = _text(partition_path, instant_time, clock)
    if is_cut:
        storage.write(path, text)
        return
    try:
        storage.create_new(path, text)
    except PathExists:
        return  # another task has already written the same content


def rewrite_partition_metadata(storage: Storage, partition_path: str, instant_time: str, clock: Clock) -> None:
    """Overwrite the file in place, so that readers never miss the partition."""
    path = data_path(partition_path, PARTITION_METADATA_NAME)
    storage.write(path, _text(partition_path, instant_time, clock))


def _text(partition_path: str, instant_time: str, clock: Clock) -> bytes:
    now = datetime.fromtimestamp(clock.now_ms() / 1000, timezone.utc)
    text = (
        "#partition metadata\n"
        f"#{now:%a %b %d %H:%M:%S} UTC {now:%Y}\n"
        f"commitTime={instant_time}\n"
        f"partitionDepth={partition_depth(partition_path)}\n"
    )
    return text.encode("ascii")


def _is_whole(storage: Storage, path: str) -> bool:
    try:
        data = storage.read(path, PROPERTIES_BYTES_MAX)
    except PathNotFound:
        return False
    return _LAST_KEY in data and data.endswith(b"\n")


def partition_creation_time(storage: Storage, partition_path: str) -> str | None:
    """The instant that created a partition; None if its metadata lacks it or is not text."""
    path = data_path(partition_path, PARTITION_METADATA_NAME)
    try:
        return parse_properties(storage.read(path, PROPERTIES_BYTES_MAX), path).get("commitTime")
    except PathNotFound:
        return None
