"""Taking the metadata table out of a table, the way real Hudi does with `hoodie.metadata.enable=false`.

This release does not maintain the metadata table, and nothing in Hudi notices a stale one: its readers would silently
miss the rows that we wrote. So a write of ours takes it out first; real Hudi builds it again on its next write.

The order survives a crash at every step: first the properties, then the folder. Readers that find no partition in
the properties list files; a folder that is left is garbage, which our next write removes and real Hudi rebuilds in
place. The other order would leave properties that name a deleted folder, and real Hudi then fails every write.
index.json stays: real Hudi rebuilds the indexes defined there.
Source: docs/decisions/0004-metadata-table-is-taken-out.md.
"""

from __future__ import annotations

from pyhudi.caller_warnings import warn_caller
from pyhudi.errors import HudiError
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import METADATA_TABLE_FOLDER
from pyhudi.timeline.table_properties import update_table_config

__all__ = ["MetadataTableRemoved", "has_metadata_table", "remove_metadata_table"]

_PARTITIONS = "hoodie.table.metadata.partitions"
_INFLIGHT = "hoodie.table.metadata.partitions.inflight"


class MetadataTableRemoved(UserWarning):
    """A write has taken out the table's metadata table."""


def has_metadata_table(meta: MetaClient) -> bool:
    """True when the properties list partitions of it, or its folder exists."""
    listed = meta.config.metadata_partitions or meta.config.metadata_partitions_inflight
    return bool(listed) or bool(meta.storage.list(METADATA_TABLE_FOLDER))


def remove_metadata_table(meta: MetaClient) -> None:
    """Take it out, and say so. The caller holds the table's lock and reloads afterwards."""
    listed = meta.config.metadata_partitions
    if listed or meta.config.metadata_partitions_inflight:
        update_table_config(meta.storage, {_PARTITIONS: "", _INFLIGHT: ""}, ())
    meta.storage.delete_tree(METADATA_TABLE_FOLDER)
    if listed:
        warn_caller(
            f"{meta.storage.root}: the metadata table ({', '.join(listed)}) was taken out before this write, because "
            f"this release of PyHudi does not maintain it and a stale one makes Hudi's readers lose rows silently. "
            f"Until Apache Hudi writes to the table again and rebuilds it, its readers list folders instead, and data "
            f"skipping and record-level lookups through it are off.",
            MetadataTableRemoved,
        )


def check_no_metadata_table(meta: MetaClient) -> None:
    """Raises HudiError when a metadata table is there: for the moment before an instant completes."""
    if has_metadata_table(meta):
        raise HudiError(
            f"{meta.storage.root}: another writer made a metadata table while this one was running. To complete "
            "without it would hide what changed from Hudi's readers, so nothing was completed; write again, which "
            "takes it out."
        )
