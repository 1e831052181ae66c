"""Base files that a filter by values of a function need not open, by the bloom filters of expression indexes.

    lower(city) = 'bern'    base files without log files whose filter surely lacks the text 'bern' are left out

Source: docs/formats/metadata-table.md, "Expression index".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from pyhudi.formats.bloom import BloomFilter
from pyhudi.java.spark_functions import FUNCTIONS
from pyhudi.metadata.partitions import MetadataKind
from pyhudi.metadata.record_keys import bloom_filter_key, stored_partition
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileSlice
from pyhudi.model.predicate import Call, Predicate, is_opaque
from pyhudi.queries.expression_skipping import expression_indexes
from pyhudi.queries.filters import resolve, resolve_operand
from pyhudi.queries.index_lookups import only_values

__all__ = ["MAX_BLOOM_VALUES", "slices_without"]

# Values that a query looks up in bloom filters: with more of them every filter has one by chance, or by right.
MAX_BLOOM_VALUES = 1000
_FILTERS_AT_ONCE = 64  # in memory; Hudi's own have some 430 kB each
_PAYLOAD = MetadataKind.BLOOM_FILTERS.payloads[0]


def slices_without(
    table: MetadataTable, predicate: Predicate, schema: pa.Schema, slices: Mapping[FileSlice, Collection[str]]
) -> frozenset[FileSlice]:
    """Those of the slices that surely have no row that the predicate keeps.

    Args:   predicate: bound to `schema`; slices: those of which only the base file is read → its columns whose values
            are not those in the file.
    Raises: CorruptFile, MetadataTableDamaged.
    """
    left_out: set[FileSlice] = set()
    indexes = {} if is_opaque(predicate) else expression_indexes(table, predicate, blooms=True)
    for call, index in indexes.items():
        texts = _texts(predicate, call, schema)
        if texts is None:
            continue
        own = [one for one, from_path in slices.items() if call.column.path[0] not in from_path]
        for at in range(0, len(own), _FILTERS_AT_ONCE):
            left_out |= _without(table, index, own[at : at + _FILTERS_AT_ONCE], texts)
    return frozenset(left_out)


def _texts(predicate: Predicate, call: Call, schema: pa.Schema) -> pa.Array | None:
    """The texts of the only values with which a row can pass; None when there may be others."""
    values = only_values(predicate, call)
    of_times = FUNCTIONS[call.function].depends_on_zone and not pa.types.is_date32(resolve(call.column, schema)[1])
    if values is None or len(values) > MAX_BLOOM_VALUES or of_times:
        return None  # nothing tells in which time zone Spark made the filters
    try:
        return pa.array(values, resolve_operand(call, schema)[1]).cast(pa.string())
    except (pa.ArrowException, TypeError, OverflowError):
        return None  # values that are none of the function's type


def _without(table: MetadataTable, index: str, slices: Sequence[FileSlice], texts: pa.Array) -> set[FileSlice]:
    keys = {
        bloom_filter_key(stored_partition(one.group.partition_path), one.base_file.name): one
        for one in slices
        if one.base_file is not None
    }
    found = table.lookup(index, keys)
    if not found.num_rows:
        return set()
    stored = found.column(_PAYLOAD).to_pylist()
    known = zip(found.column("key").to_pylist(), stored, strict=True)
    return {
        keys[str(key)]
        for key, one in known
        if one is not None
        and not BloomFilter.from_base64(one["bloomFilter"].decode(), one["type"]).might_contain(texts).any()
    }
