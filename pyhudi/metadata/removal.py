"""The removal of the metadata table, or of its partitions, from a table: a stale one loses rows silently.

A write with `hoodie.metadata.enable=false` removes it, as in Hudi; a write also removes partitions that this release
can't update. The order survives a crash at every step: first the properties, then the folder. Readers that find no
partition in the properties list files; a remaining folder is garbage, which the next write removes. The other order
would leave properties that name a deleted folder, and Apache Hudi then fails every write. index.json stays: Apache Hudi
rebuilds the indexes defined there.
Source: docs/decisions/0012-the-metadata-table-is-kept-up.md; docs/formats/metadata-table.md, "Building".
"""

from __future__ import annotations

from collections.abc import Collection

from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import METADATA_TABLE_FOLDER
from pyhudi.model.table_config import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT, METADATA_TO_BUILD
from pyhudi.storage.paths import child, inside
from pyhudi.timeline.table_properties import update_table_config
from pyhudi.warnings import warn_caller

__all__ = [
    "MetadataTableRemoved",
    "drop_partitions",
    "remove_metadata_table",
    "unlist_partitions",
]


class MetadataTableRemoved(UserWarning):
    """A write has removed the table's metadata table."""


def remove_metadata_table(meta: MetaClient, *, why: str = "", to_build: Collection[str] = ()) -> None:
    """Remove it, with a warning if `why` gives a reason. The caller holds the table's lock and reloads afterwards.

    Args:   to_build: partitions to rebuild afterwards; if this process dies first, the next write rebuilds them.
    """
    partitions = meta.config.metadata_partitions
    changed = {METADATA_TO_BUILD: ",".join(to_build)} if to_build else {}
    forgotten = () if to_build else (METADATA_TO_BUILD,)
    if partitions or meta.config.metadata_partitions_inflight:
        changed |= {METADATA_PARTITIONS: "", METADATA_PARTITIONS_INFLIGHT: ""}
    update_table_config(meta.storage, changed, forgotten)
    meta.storage.delete_tree(METADATA_TABLE_FOLDER)
    if partitions and why:
        warn_caller(
            f"{meta.storage.root}: the metadata table ({', '.join(partitions)}) was taken out: {why} Readers list "
            f"folders until there is one again, and data skipping and lookups through it are off.",
            MetadataTableRemoved,
        )


def unlist_partitions(meta: MetaClient, partitions: Collection[str]) -> None:
    """Make readers ignore these partitions; if this process dies, the next write rebuilds them."""
    names = meta.config.metadata_partitions
    remaining = ",".join(name for name in names if name not in partitions)
    to_build = ",".join(dict.fromkeys((*names, *partitions)))
    update_table_config(meta.storage, {METADATA_PARTITIONS: remaining, METADATA_TO_BUILD: to_build}, ())


def drop_partitions(meta: MetaClient, partitions: Collection[str], why: str = "") -> None:
    """Remove single partitions, with a warning if `why` gives a reason: first from the properties, then their folders.
    The caller holds the table's lock.
    """
    changes = {
        key: ",".join(name for name in names if name not in partitions)
        for key, names in (
            (METADATA_PARTITIONS, meta.config.metadata_partitions),
            (METADATA_PARTITIONS_INFLIGHT, meta.config.metadata_partitions_inflight),
        )
        if names
    }
    update_table_config(meta.storage, changes, ())
    for name in partitions:
        meta.storage.delete_tree(child(METADATA_TABLE_FOLDER, inside(name, meta.storage.root)))
    if why:
        warn_caller(
            f"{meta.storage.root}: the metadata table's partitions {', '.join(partitions)} were taken out: {why}",
            MetadataTableRemoved,
        )
