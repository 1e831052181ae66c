"""The table's metadata table before a write: made, kept, built anew or taken out, as the options and its state say.

Source: docs/formats/metadata-table.md, "Building", "Is it up to date?".
"""

from __future__ import annotations

from pyhudi.caller_warnings import warn_caller
from pyhudi.errors import HudiError, MetadataTableDamaged
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.listing import missing_instants
from pyhudi.metadata.maintenance import (
    MetadataTableRebuilt,
    build,
    build_anew,
    build_missing,
    built,
    missing_partitions,
    unkept_partitions,
    wanted_partitions,
)
from pyhudi.metadata.removal import drop_partitions, has_metadata_table, remove_metadata_table
from pyhudi.metadata.table import MetadataTable, check_log_files
from pyhudi.model.options.metadata import REFUSE, MetadataOptions

__all__ = ["MetadataTableRebuilt", "needs_no_change", "with_metadata_table"]


def with_metadata_table(meta: MetaClient, options: MetadataOptions) -> MetaClient:
    """The table as a write may begin on it: with a metadata table that is up to date, or with none.

    Hold the table's lock. Raises: MetadataTableDamaged when it is not up to date and the options say to refuse.
    """
    to_build = meta.config.metadata_to_build
    if not has_metadata_table(meta) and not to_build:
        return build(meta, wanted_partitions(meta.config, options), options) if options.enable else meta
    if options.enable is False:
        remove_metadata_table(meta, why="hoodie.metadata.enable=false was given.")
        return meta.reload()
    if to_build and not set(to_build) <= set(meta.config.metadata_partitions):
        return build_anew(meta, options)  # a process died that had begun to
    if to_build:
        meta = built(meta)
    unkept = unkept_partitions(meta)
    for name, why in unkept.items():
        drop_partitions(meta, (name,), why)
        meta = meta.reload()
    fault = _fault(meta)
    meta = meta if fault is None else _built_anew(meta, fault, options)
    return build_missing(meta, missing_partitions(meta, options), options)


def needs_no_change(meta: MetaClient, options: MetadataOptions) -> bool:
    """True when a write may begin as it is: looked at without the lock, so that most writes need not take it."""
    if meta.config.metadata_to_build:
        return False
    if not has_metadata_table(meta):
        return not options.enable
    if options.enable is False or unkept_partitions(meta) or missing_partitions(meta, options):
        return False
    return _fault(meta) is None


def _fault(meta: MetaClient) -> HudiError | None:
    """Why the metadata table must not be kept up from here; None when it may."""
    try:
        table = MetadataTable.open(meta)
        if table is None:
            return MetadataTableDamaged(
                f"{meta.storage.root}: there is a metadata table without the partition 'files'."
            )
        table.load_slices(table.partitions)
        for partition in table.partitions:
            check_log_files(table, partition)
        read_index_definitions(meta.storage)  # a death may have left a half of them
        missing = missing_instants(table)
    except HudiError as error:
        return error
    if not missing:
        return None
    return MetadataTableDamaged(
        f"{meta.storage.root}: the metadata table lacks the instant {missing[0]}: another writer did not keep it up."
    )


def _built_anew(meta: MetaClient, fault: HudiError, options: MetadataOptions) -> MetaClient:
    listed = (*meta.config.metadata_partitions, *meta.config.metadata_partitions_inflight)
    if listed and options.if_stale == REFUSE:
        raise MetadataTableDamaged(
            f"{fault} Nothing was written, as hoodie.pyhudi.metadata.stale=refuse says; with `rebuild` a write builds "
            f"it anew."
        ) from fault
    if listed:
        warn_caller(f"{fault} It was built anew before this write.", MetadataTableRebuilt)
        return build_anew(meta, options)
    remove_metadata_table(meta)
    meta = meta.reload()
    return build(meta, wanted_partitions(meta.config, options), options) if options.enable else meta
