"""What queries take from the metadata table, as long as it can be trusted; whatever is wrong with it, they go without.

Source: docs/formats/metadata-table.md, "Is it up to date?"; docs/reading.md, "The metadata table".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.caller_warnings import warn_caller
from pyhudi.errors import HudiError, MetadataTableDamaged, PathNotFound
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.listing import listed_files, missing_instants
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileGroupId, FileSlice
from pyhudi.model.predicate import Predicate
from pyhudi.queries.data_skipping import FileRanges, load_file_ranges, partitions_left
from pyhudi.queries.expression_blooms import slices_without
from pyhudi.queries.key_pruning import groups_with_keys
from pyhudi.queries.value_pruning import groups_with_values
from pyhudi.storage.base import FileInfo

__all__ = ["MetadataTableIgnored", "TrustedMetadata", "trusted_metadata"]

_SHOWN = 3  # instants in a message


class MetadataTableIgnored(UserWarning):
    """The metadata table is damaged or not up to date: folders were listed and files opened instead."""


@dataclass(frozen=True, slots=True)
class TrustedMetadata:
    """A metadata table that has all completed instants."""

    table: MetadataTable

    def files(self) -> Mapping[str, list[FileInfo]] | None:
        """Partition path → its files; None (with a warning) when the records can't be read."""
        try:
            return listed_files(self.table)
        except HudiError as error:
            _ignored(self.table.data, error)
            return None

    def groups_with_values(
        self, predicate: Predicate, schema: pa.Schema, from_path: Collection[str]
    ) -> frozenset[FileGroupId] | None:
        """See the function of this name; None (with a warning) when the records can't be read."""
        try:
            return groups_with_values(self.table, predicate, schema, from_path)
        except HudiError as error:
            _ignored(self.table.data, error)
            return None

    def file_ranges(self, predicate: Predicate, schema: pa.Schema, partitions: Sequence[str]) -> FileRanges | None:
        """See `load_file_ranges`; None (with a warning) when the records can't be read."""
        try:
            return load_file_ranges(self.table, predicate, schema, partitions)
        except HudiError as error:
            _ignored(self.table.data, error)
            return None

    def slices_without(
        self, predicate: Predicate, schema: pa.Schema, slices: Mapping[FileSlice, Collection[str]]
    ) -> frozenset[FileSlice]:
        """See the function of this name; none (with a warning) when the records can't be read."""
        try:
            return slices_without(self.table, predicate, schema, slices)
        except HudiError as error:
            _ignored(self.table.data, error)
            return frozenset()

    def partitions_left(
        self, predicate: Predicate, schema: pa.Schema, from_path: Mapping[str, Collection[str]]
    ) -> frozenset[str] | None:
        """See `data_skipping.partitions_left`; None (with a warning) when the records can't be read."""
        try:
            return partitions_left(self.table, predicate, schema, from_path)
        except HudiError as error:
            _ignored(self.table.data, error)
            return None

    def groups_with_keys(self, keys: frozenset[str]) -> frozenset[FileGroupId] | None:
        """See the function of this name; None (with a warning) when the records can't be read."""
        try:
            return groups_with_keys(self.table, keys)
        except HudiError as error:
            _ignored(self.table.data, error)
            return None


def trusted_metadata(meta: MetaClient) -> TrustedMetadata | None:
    """The table's metadata table, None when it has none; None with a warning when it lacks a completed instant."""
    try:
        table = MetadataTable.open(meta)
        if table is None:
            return None
        missing = missing_instants(table)
        if not missing:
            return TrustedMetadata(table)
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise MetadataTableDamaged(
            f"{meta.storage.root}: the metadata table lacks the instants {', '.join(missing[:_SHOWN])}{more}; "
            f"another writer did not keep it up."
        )
    except HudiError as error:
        _ignored(meta, error)
        return None


def _ignored(meta: MetaClient, error: HudiError) -> None:
    """Warn, unless files went away because the table has moved on: then the read starts again anyway."""
    if isinstance(error, PathNotFound) and not meta.is_current():
        return
    warn_caller(
        f"{error} This query lists folders instead. The next write builds the metadata table anew.",
        MetadataTableIgnored,
    )
