"""What an instant writes into `bloom_filters`: the filters in the footers of base files.

Source: docs/formats/metadata-table.md, "Keys", "Bloom filters".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa

from pyhudi.formats.base import Footer
from pyhudi.formats.bloom import SIMPLE
from pyhudi.metadata.partitions import MetadataKind, RecordType
from pyhudi.metadata.record_keys import bloom_filter_key, stored_partition
from pyhudi.metadata.schema import record_fields
from pyhudi.metadata.updates import PartitionUpdate, nothing_deleted
from pyhudi.model.new_table import DELETE_BLOCKS

__all__ = ["bloom_filter_deletions", "bloom_filters_update"]


def bloom_filters_update(
    table_version: int, instant_time: str, footers: Mapping[str, Mapping[str, Footer]]
) -> PartitionUpdate:
    """The records of new base files; files without a filter have none.

    Args: footers: partition path → name of a base file, without folders → its footer.
    """
    named = [
        (bloom_filter_key(stored_partition(path), name), footer.bloom_type or SIMPLE, footer.bloom_base64.encode())
        for path, files in footers.items()
        for name, footer in files.items()
        if footer.bloom_base64 is not None
    ]
    keys, kinds, filters = zip(*named, strict=True) if named else ((), (), ())
    return PartitionUpdate(_records(table_version, keys, kinds, instant_time, filters), nothing_deleted())


def bloom_filter_deletions(
    table_version: int, instant_time: str, files: Mapping[str, Collection[str]]
) -> PartitionUpdate:
    """What takes the records of deleted base files away; below version 8 records that say so.

    Args: files: partition path → names of the deleted base files, without folders.
    """
    keys = [bloom_filter_key(stored_partition(path), name) for path, names in files.items() for name in sorted(names)]
    if table_version >= DELETE_BLOCKS:
        nothing = record_fields(table_version, MetadataKind.BLOOM_FILTERS).empty_table()
        return PartitionUpdate(nothing, pa.array(keys, pa.string()))
    deleted = _records(table_version, keys, [""] * len(keys), instant_time, [b""] * len(keys), is_deleted=True)
    return PartitionUpdate(deleted, nothing_deleted())


def _records(
    table_version: int,
    keys: Collection[str],
    kinds: Iterable[str],
    instant_time: str,
    filters: Iterable[bytes],
    *,
    is_deleted: bool = False,
) -> pa.Table:
    schema = record_fields(table_version, MetadataKind.BLOOM_FILTERS)
    payload = schema.field(MetadataKind.BLOOM_FILTERS.payloads[0]).type
    columns = {
        "type": pa.array(list(kinds), pa.string()),
        "timestamp": pa.repeat(pa.scalar(instant_time, pa.string()), len(keys)),
        "bloomFilter": pa.array(list(filters), pa.binary()),
        "isDeleted": pa.repeat(pa.scalar(is_deleted), len(keys)),
    }
    values = pa.StructArray.from_arrays([columns[field.name] for field in payload], fields=list(payload))
    types = pa.repeat(pa.scalar(RecordType.BLOOM_FILTERS.value, pa.int32()), len(keys))
    return pa.Table.from_arrays([pa.array(list(keys), pa.string()), types, values], schema=schema)
