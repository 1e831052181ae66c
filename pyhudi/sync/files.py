"""The current files of a table, from an up-to-date metadata table, else from its folders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyhudi.errors import HudiError
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.listing import listed_files, missing_instants
from pyhudi.metadata.table import MetadataTable
from pyhudi.storage.base import FileInfo
from pyhudi.view.consistent_read import read_consistently
from pyhudi.view.file_system_view import FileSystemView, listed_partitions

__all__ = ["newest_files", "partition_files"]


def partition_files(meta: MetaClient, paths: list[str] | None) -> Iterable[tuple[str, Sequence[FileInfo]]]:
    """Partition paths with their files; `paths` None: all partitions."""
    return _by_metadata(meta, paths) or listed_partitions(meta.storage, paths)


def newest_files(meta: MetaClient, *, by_metadata: bool = True) -> FileSystemView:
    """The visible files of the table. Raises StaleRead if files keep being deleted during the listing.

    Args:   by_metadata: False: always list folders.
    """

    def read(now: MetaClient) -> FileSystemView:
        return FileSystemView.load(now, listed=dict(partition_files(now, None)) if by_metadata else None)

    return read_consistently(meta, read)


def _by_metadata(meta: MetaClient, paths: list[str] | None) -> Iterable[tuple[str, Sequence[FileInfo]]] | None:
    """The files from the metadata table; None if folders have to be listed."""
    try:
        table = MetadataTable.open(meta)
        return None if table is None or missing_instants(table) else listed_files(table, paths).items()
    except HudiError:
        return None  # it is damaged: folders have the same files
