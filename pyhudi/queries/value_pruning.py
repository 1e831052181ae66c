"""File groups that a query for values of a column need not open, by a secondary index and the record index.

    v = 5, v IN (5, 6)      also within AND and OR, as long as no row with another value can pass
    secondary index         the record keys with these values
    record index            the file groups with these keys; a slice of any other is left out

Both are of the newest snapshot, and of rows that are alive, so that other queries go without them. The record index has
one place for a key, and rows of one key that inserts left in several file groups would be lost: it is used where the
caller says that there are none (`hoodie.pyhudi.read.unique.keys`).
Source: docs/formats/metadata-table.md, "Secondary index", "Record index".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import reduce

import pyarrow as pa

from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.partitions import MetadataKind, kind_of
from pyhudi.metadata.record_keys import secondary_parts
from pyhudi.metadata.secondary_index_partition import why_no_secondary_index
from pyhudi.metadata.secondary_keys import secondary_texts
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.predicate import Column, Predicate, columns_of
from pyhudi.queries.index_lookups import groups_of_places, only_values

__all__ = ["MAX_KEYS_OF_VALUES", "MAX_VALUES", "groups_with_values"]

# Values that a query looks up: each costs a block of the index, and predicates with many leave few files out.
MAX_VALUES = 1000
# Record keys that values may lead to: beyond some thousands the look-ups in the record index cost more than the files.
MAX_KEYS_OF_VALUES = 10000
_RECORD_INDEX = MetadataKind.RECORD_INDEX.value.prefix


def groups_with_values(
    table: MetadataTable, predicate: Predicate, schema: pa.Schema, from_path: Collection[str]
) -> frozenset[FileGroupId] | None:
    """The file groups that have rows with the values that the predicate wants of indexed columns; None when no index
    can say it of the table as it was loaded.

    Args:   predicate: bound to `schema`; from_path: columns whose values are not those in the files.
    Raises: CorruptFile, MetadataTableDamaged.
    """
    wanted = {column.path[0] for column in columns_of(predicate) if len(column.path) == 1}
    indexes = {column: name for column, name in _indexes(table, wanted).items() if column not in from_path}
    if not indexes or _RECORD_INDEX not in table.partitions:
        return None
    found = [
        groups
        for column, name in indexes.items()
        for texts in (_texts(predicate, schema.field(column), table.data.config.table_version),)
        if texts is not None
        for groups in (_groups(table, name, texts),)
        if groups is not None
    ]
    # A write that this query does not see may have moved rows, or changed their values.
    return reduce(frozenset.intersection, found) if found and table.data.is_current() else None


def _indexes(table: MetadataTable, columns: Collection[str]) -> Mapping[str, str]:
    """Column → the partition of its index, for those of the columns that have one which can be followed."""
    names = [name for name in table.partitions if kind_of(name) is MetadataKind.SECONDARY_INDEX] if columns else []
    definitions = read_index_definitions(table.data.storage).by_name if names else {}
    return {
        definitions[name].source_fields[0]: name
        for name in names
        if name in definitions
        and set(definitions[name].source_fields) <= set(columns)
        and why_no_secondary_index(table.data, name) is None
    }


def _texts(predicate: Predicate, field: pa.Field, table_version: int) -> list[str] | None:
    """The texts of the only values of the column with which a row can pass; None when there may be others."""
    values = only_values(predicate, Column((field.name,)))
    plain = pa.types.is_string(field.type) or pa.types.is_integer(field.type) or pa.types.is_date32(field.type)
    if values is None or len(values) > MAX_VALUES or not plain:
        return None
    try:
        return [str(text) for text in secondary_texts(pa.array(values, field.type), table_version).to_pylist()]
    except (pa.ArrowException, TypeError, OverflowError):
        return None  # values that are none of the column's type: the files are read


def _groups(table: MetadataTable, partition: str, texts: list[str]) -> frozenset[FileGroupId] | None:
    keys = set(_record_keys(table, partition, texts))
    if not keys:
        return frozenset()
    if len(keys) > MAX_KEYS_OF_VALUES:
        return None
    records = table.lookup(_RECORD_INDEX, keys)
    if records.num_rows < len(keys):
        return None  # keys that the record index does not know: one of both is wrong
    return groups_of_places(records)


def _record_keys(table: MetadataTable, partition: str, texts: list[str]) -> Iterator[str]:
    found = table.with_values(partition, texts) if texts else None
    for key in [] if found is None else found.column("key").to_pylist():
        yield secondary_parts(str(key))[1]
