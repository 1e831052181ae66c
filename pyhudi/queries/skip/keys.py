"""Skipping file groups without the keys, or the values, of the filter: `RecordIndex` and `SecondaryIndexes`.

Each of them takes two steps:

    RecordIndex           key = 'a', key IN ('a', 'b'), and the same on the fields that keys are made of
      exact keys          as the table's key generator makes them
      record index        their file groups; slices of all others are skipped

    SecondaryIndexes      v = 5, v IN (5, 6), as long as no row with another value can pass
      secondary index     the record keys with these values
      record index        the file groups of these keys; slices of all others are skipped

Both work within AND and OR. Both indexes describe only the live rows of the newest snapshot, so other queries don't
use them. The record index has one location for a key. If inserts put rows with one key into several file groups, a
query would lose rows. So queries use the index only if the caller states that no such keys exist
(`hoodie.pyhudi.read.unique.keys`).
Source: docs/formats/metadata-table.md, "Record index", "Secondary index"; docs/reading.md, "The metadata table".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from math import prod

import pyarrow as pa

from pyhudi.errors import HudiError
from pyhudi.expressions.predicates import Column, Predicate, Value, columns_of
from pyhudi.expressions.statistics.ranges import exact_values
from pyhudi.keygen import from_options
from pyhudi.keygen.base import BuiltInKey
from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.keys import secondary_parts
from pyhudi.metadata.locations import file_ids, partition_paths
from pyhudi.metadata.partitions.secondary_index import secondary_texts, why_no_secondary_index
from pyhudi.metadata.schema import MetadataKind, kind_of
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.keys import RECORD_KEY
from pyhudi.model.table_config import TableConfig
from pyhudi.queries.read_slice import ReadSlice
from pyhudi.queries.skip.skipper import Answer, SkipRequest

__all__ = [
    "MAX_KEYS",
    "MAX_KEYS_OF_VALUES",
    "MAX_VALUES",
    "RecordIndex",
    "SecondaryIndexes",
    "exact_keys",
    "groups_with_keys",
    "sole_key_field",
]


def _groups_of_locations(records: pa.Table) -> frozenset[FileGroupId]:
    """The file groups that records of the record index name."""
    if not records.num_rows:
        return frozenset()
    locations = records.column(MetadataKind.RECORD_INDEX.payloads[0]).combine_chunks()
    rows = zip(partition_paths(locations).to_pylist(), file_ids(locations).to_pylist(), strict=True)
    return frozenset(FileGroupId(str(path), str(file_id)) for path, file_id in rows)


# The limit for keys that a query looks up. A look-up decompresses a block of the index for each key, so from some
# thousands on opening the files costs less. The limit also bounds the combinations of values of several fields.
MAX_KEYS = 10000
_RECORD_INDEX = MetadataKind.RECORD_INDEX.value.prefix


class RecordIndex:
    """Skips the file groups without any of the keys that the filter asks for."""

    name = "the record index"

    def ask(self, request: SkipRequest, slices: Sequence[ReadSlice]) -> Answer | None:
        if request.keys is None or request.groups is None:
            return None
        groups = groups_with_keys(request.table, request.keys)
        if groups is None or not groups <= set(request.groups):
            return None  # the index is wrong
        return Answer([read.file_slice.group in groups for read in slices], is_final=True)


def groups_with_keys(table: MetadataTable, keys: frozenset[str]) -> frozenset[FileGroupId] | None:
    """The file groups that have these keys; None if the index does not describe the table as it was loaded.

    Raises: CorruptFile, MetadataTableDamaged.
    """
    if _RECORD_INDEX not in table.partitions:
        return None
    groups = _groups_of_locations(table.lookup(_RECORD_INDEX, keys))
    # A write that this query does not see may have moved rows; an index that was rebuilt since does not show it.
    return groups if table.data.is_current() else None


def exact_keys(predicate: Predicate, config: TableConfig, schema: pa.Schema) -> frozenset[str] | None:
    """The keys of all rows that can pass; None if the predicate does not name them, or names too many.

    Args:   predicate: bound to `schema`.
    """
    keys = _keys_of_column(predicate)
    return keys if keys is not None else _keys_of_fields(predicate, config, schema)


def _keys_of_column(predicate: Predicate) -> frozenset[str] | None:
    """The keys that the filter compares the column of record keys with."""
    values = _values(predicate, Column((RECORD_KEY,)))
    return None if values is None else frozenset(map(str, values))


def _keys_of_fields(predicate: Predicate, config: TableConfig, schema: pa.Schema) -> frozenset[str] | None:
    """The keys made of the values that the filter compares all key fields with."""
    fields = config.record_key_fields
    if not fields or not all(_is_plain(name, schema) for name in fields):
        return None
    by_field = [_values(predicate, Column((name,))) for name in fields]
    values = [texts for texts in by_field if texts is not None]
    count = prod(map(len, values))
    if len(values) < len(fields) or count > MAX_KEYS:
        return None
    if not count:
        return frozenset()
    rows = list(product(*values))
    types = [schema.field(name).type for name in fields]
    try:
        columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(types)]
        batch = pa.RecordBatch.from_arrays(columns, names=list(fields))
        return frozenset(_made(batch, config))
    except (HudiError, pa.ArrowException, TypeError, OverflowError):
        return None  # values that can't be keys, or a generator that needs whole rows: the files are read


def _made(batch: pa.RecordBatch, config: TableConfig) -> Iterator[str]:
    """The keys of these rows; for a single field also in the other form of COMPLEX (`name:value`)."""
    generator = from_options(config.properties, table_version=config.table_version)
    if not isinstance(generator, BuiltInKey):
        raise pa.ArrowInvalid(f"{generator.type_name} makes keys of whole rows")
    yield from map(str, generator.record_key(batch).to_pylist())
    if batch.num_columns == 1:
        (name,), texts = batch.schema.names, batch.column(0).cast(pa.string()).to_pylist()
        yield from (form for text in texts for form in (str(text), f"{name}:{text}"))


def sole_key_field(config: TableConfig, schema: pa.Schema) -> str | None:
    """The only column of the record key, if rows have the same key exactly when they have the same value."""
    fields = config.record_key_fields
    if len(fields) != 1 or not _is_plain(fields[0], schema):
        return None
    try:
        generator = from_options(config.properties, table_version=config.table_version)
    except HudiError:
        return None  # a generator of an unknown kind
    return fields[0] if isinstance(generator, BuiltInKey) else None


def _is_plain(name: str, schema: pa.Schema) -> bool:
    """True for columns whose equal values make equal keys with any options; not for floats (-0.0) and times."""
    at = schema.get_field_index(name)
    kind = schema.field(at).type if at >= 0 else pa.null()
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)


def _values(predicate: Predicate, column: Column) -> tuple[Value, ...] | None:
    """The only values of the column with which a row can pass; None if there may be others."""
    values = exact_values(predicate, column)
    return values if values is None or len(values) <= MAX_KEYS else None


# The limit for values that a query looks up: each costs a block of the index, and predicates with many skip few files.
MAX_VALUES = 1000
# The limit for record keys of these values: beyond some thousands the look-ups cost more than opening the files.
MAX_KEYS_OF_VALUES = 10000


class SecondaryIndexes:
    """Skips the file groups without the values that the filter asks for in indexed columns."""

    name = "secondary indexes"

    def ask(self, request: SkipRequest, slices: Sequence[ReadSlice]) -> Answer | None:
        if request.groups is None or len(slices) <= 1:
            return None
        from_path = {name for read in slices for name in read.from_path}
        groups = _groups_with_values(request.table, request.predicate, request.schema, from_path)
        if groups is None:
            return None
        existing = {read.file_slice.group for read in slices}
        partitions = {group.partition_path for group in existing}
        if not {group for group in groups if group.partition_path in partitions} <= existing:
            return None  # the index names file groups that do not exist
        return Answer([read.file_slice.group in groups for read in slices])


def _groups_with_values(
    table: MetadataTable, predicate: Predicate, schema: pa.Schema, from_path: Collection[str]
) -> frozenset[FileGroupId] | None:
    """The file groups that have rows with the predicate's values in indexed columns; None when no index
    describes the table as it was loaded.

    Args:   predicate: bound to `schema`; from_path: columns whose values are not those in the files.
    Raises: CorruptFile, MetadataTableDamaged.
    """
    columns = {column.path[0] for column in columns_of(predicate) if len(column.path) == 1}
    indexes = {column: name for column, name in _indexes(table, columns).items() if column not in from_path}
    if not indexes or _RECORD_INDEX not in table.partitions:
        return None
    by_index = [
        groups
        for column, name in indexes.items()
        for texts in (_texts(predicate, schema.field(column), table.data.config.table_version),)
        if texts is not None
        for groups in (_groups(table, name, texts),)
        if groups is not None
    ]
    # A write that this query does not see may have moved rows, or changed their values.
    return reduce(frozenset.intersection, by_index) if by_index and table.data.is_current() else None


def _indexes(table: MetadataTable, columns: Collection[str]) -> Mapping[str, str]:
    """Column → the partition of its index, for columns with a usable one."""
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
    """The texts of the only values of the column with which a row can pass; None if there may be others."""
    values = exact_values(predicate, Column((field.name,)))
    plain = pa.types.is_string(field.type) or pa.types.is_integer(field.type) or pa.types.is_date32(field.type)
    if values is None or len(values) > MAX_VALUES or not plain:
        return None
    try:
        return [str(text) for text in secondary_texts(pa.array(values, field.type), table_version).to_pylist()]
    except (pa.ArrowException, TypeError, OverflowError):
        return None  # the values are not of the column's type: the files are read


def _groups(table: MetadataTable, partition: str, texts: list[str]) -> frozenset[FileGroupId] | None:
    keys = set(_record_keys(table, partition, texts))
    if not keys:
        return frozenset()
    if len(keys) > MAX_KEYS_OF_VALUES:
        return None
    records = table.lookup(_RECORD_INDEX, keys)
    if records.num_rows < len(keys):
        return None  # the record index lacks some of the keys, so one of the two indexes is wrong
    return _groups_of_locations(records)


def _record_keys(table: MetadataTable, partition: str, texts: list[str]) -> Iterator[str]:
    records = table.with_values(partition, texts) if texts else None
    for key in [] if records is None else records.column("key").to_pylist():
        yield secondary_parts(str(key))[1]
