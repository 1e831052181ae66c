"""The partitions `secondary_index_<name>`: the record keys that have each value of a column.

`SecondaryIndexPartition` builds and updates them. `secondary_keys` makes the keys of whole columns: the escaped text of
a value, `$`, and the escaped record key. `SecondaryPairs` streams the keys of slices, sorts them and compares them in
bounded memory.

Source: docs/formats/metadata-table.md, "Secondary index", "Building", "Writing", "Keys".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import HudiError, UnsupportedTable
from pyhudi.filegroup.read.slice import SliceSpec, read_file_slice
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import IndexDefinition, is_partitioned_record_index, read_index_definitions
from pyhudi.metadata.keys import BUILDING_BYTES, GroupStream, group_numbers, in_order
from pyhudi.metadata.partitions.base import PartitionUpdate, TableCommit, nothing_deleted
from pyhudi.metadata.partitions.record_index import record_index_group_count
from pyhudi.metadata.schema import MetadataKind, RecordType, file_group_id, keeps_record_index, record_fields
from pyhudi.metadata.table import MetadataTable
from pyhudi.metadata.table_slices import ChangedSlices, changed_slices, newest_slices, slice_reading, stored_rows
from pyhudi.model.file_group import FileSlice
from pyhudi.model.instant import COMPACTIONS, ActionKind
from pyhudi.model.keys import RECORD_KEY
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.model.table_format import TableFormat

__all__ = [
    "SecondaryIndexPartition",
    "SecondaryPairs",
    "has_secondary_text",
    "secondary_keys",
    "secondary_records",
    "secondary_texts",
    "why_no_secondary_index",
]


_NULL = "\x00"
_SEPARATOR = "$"
_ESCAPED = r"([\\$\x00])"


def has_secondary_text(kind: pa.DataType, table_version: int) -> bool:
    """True if Hudi's text of values of this type is known. Only columns of such types are indexed."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_date32(kind):
        return True
    if kind in (pa.int32(), pa.int64()):
        return True
    return TableFormat(table_version).has_secondary_nulls and (pa.types.is_timestamp(kind) or pa.types.is_time(kind))


def secondary_texts(values: pa.Array, table_version: int) -> pa.Array:
    """The text of each value, nulls left as they are. The type is one that `has_secondary_text`."""
    kind = values.type
    if pa.types.is_date32(kind) and TableFormat(table_version).has_secondary_nulls:
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        values = values.cast(pa.int64())
    elif pa.types.is_time32(kind):
        values = values.cast(pa.int32())
    return values.cast(pa.string())


def secondary_keys(values: pa.Array, record_keys: pa.Array, table_version: int) -> pa.Array:
    """The key of each row that has one: below version 9 rows without a value have none.

    Args:   values: of the indexed column; record_keys: text without nulls.
    """
    texts = secondary_texts(values, table_version)
    if not TableFormat(table_version).has_secondary_nulls and texts.null_count:
        has_value = texts.is_valid()
        texts, record_keys = texts.filter(has_value), record_keys.filter(has_value)
    values_escaped = pc.fill_null(_escaped(texts), _NULL)
    return pc.binary_join_element_wise(values_escaped, _escaped(record_keys), _SEPARATOR)


def _escaped(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, _ESCAPED, r"\\\1")


_READ_ROWS = 1 << 17
_KIND = MetadataKind.SECONDARY_INDEX
_GROUP, _KEY, _IS_NEW = "group", "key", "is_new"
_BY_GROUP = pa.schema([pa.field(_GROUP, pa.int32()), pa.field(_KEY, pa.string())])
_BY_KEY = pa.schema([pa.field(_KEY, pa.string()), pa.field(_IS_NEW, pa.bool_())])


def secondary_records(table_version: int, keys: pa.Array) -> pa.Table:
    """Records of a secondary index with these keys, in the columns of `record_fields` for the table version."""
    schema = record_fields(table_version, _KIND)
    kinds = pa.repeat(pa.scalar(RecordType.SECONDARY_INDEX.value, pa.int32()), len(keys))
    payload = schema.field(_KIND.payloads[0]).type
    live = pa.StructArray.from_arrays([pa.repeat(pa.scalar(False), len(keys))], fields=list(payload))
    return pa.table([keys.cast(schema.field("key").type), kinds, live], schema=schema)


@dataclass(frozen=True, slots=True)
class SecondaryPairs:
    """Pairs of (value, record key) in slices of the table, as keys of the index. `column`: the indexed one."""

    table_version: int
    reading: SliceSpec
    column: str
    memory_bytes: int = BUILDING_BYTES

    def files(self, partition: str, slices: Sequence[FileSlice], groups: int) -> dict[str, Iterator[pa.Table]]:
        """File id → its records, for `build_partition`. Read them in this order, each once.

        Raises: CorruptFile, UnsupportedTable.
        """
        stream = GroupStream(self._by_group(partition, slices, groups))
        return {file_group_id(partition, number): stream.of(number) for number in range(groups)}

    def changes(self, slices: ChangedSlices) -> PartitionUpdate:
        """The update with the new and the removed pairs; unchanged pairs are left out."""
        added, removed = [nothing_deleted()], [nothing_deleted()]
        for rows in _runs(in_order(_BY_KEY, self._both(slices), self.memory_bytes), 1):
            firsts = _firsts(rows.column(_KEY))
            is_new = rows.column(_IS_NEW).to_numpy(zero_copy_only=False)
            lasts = np.append(firsts[1:], len(rows)) - 1
            # Old rows of a key come first.
            keys = rows.column(_KEY).take(pa.array(firsts))
            added.append(keys.filter(pa.array(is_new[firsts])))
            removed.append(keys.filter(pa.array(~is_new[lasts])))
        return PartitionUpdate(
            secondary_records(self.table_version, pa.concat_arrays(added)), pa.concat_arrays(removed)
        )

    def _keys(self, slices: Iterable[FileSlice]) -> Iterator[pa.Array]:
        for file_slice in slices:
            for rows in read_file_slice(self.reading, file_slice, [RECORD_KEY, self.column], _READ_ROWS):
                yield secondary_keys(rows.column(1), rows.column(0), self.table_version)

    def _both(self, slices: ChangedSlices) -> Iterator[pa.RecordBatch]:
        for is_new, slices_of_side in ((False, slices.before), (True, slices.after)):
            for keys in self._keys(slices_of_side):
                flags = pa.repeat(pa.scalar(is_new), len(keys))
                yield pa.RecordBatch.from_arrays([keys, flags], schema=_BY_KEY)

    def _by_group(self, partition: str, slices: Sequence[FileSlice], groups: int) -> Iterator[tuple[int, pa.Table]]:
        for rows in _runs(in_order(_BY_GROUP, self._placed(partition, slices, groups), self.memory_bytes), 2):
            rows = rows.take(pa.array(_firsts(rows.column(_KEY))))
            numbers = rows.column(_GROUP).to_numpy()
            for number in np.unique(numbers).tolist():
                keys = rows.column(_KEY).filter(pa.array(numbers == number))
                yield number, secondary_records(self.table_version, keys)

    def _placed(self, partition: str, slices: Sequence[FileSlice], groups: int) -> Iterator[pa.RecordBatch]:
        for keys in self._keys(slices):
            numbers = pa.array(group_numbers(partition, keys, groups, self.table_version))
            yield pa.RecordBatch.from_arrays([numbers, keys], schema=_BY_GROUP)


def _runs(batches: Iterator[pa.RecordBatch], compared: int) -> Iterator[pa.RecordBatch]:
    """The same rows, cut so that rows equal in the first `compared` columns are in one batch."""
    last_run: pa.RecordBatch | None = None
    for batch in batches:
        if not len(batch):
            continue
        rows = batch if last_run is None else pa.Table.from_batches([last_run, batch]).combine_chunks().to_batches()[0]
        last = {name: rows.column(name)[-1] for name in rows.schema.names[:compared]}
        is_last_run = np.ones(len(rows), np.bool_)
        for name, value in last.items():
            is_last_run &= pc.equal(rows.column(name), value).to_numpy(zero_copy_only=False)
        cut = int(np.flatnonzero(is_last_run)[0])
        last_run = rows.slice(cut)
        if cut:
            yield rows.slice(0, cut)
    if last_run is not None:
        yield last_run


def _firsts(keys: pa.Array) -> npt.NDArray[np.int64]:
    """The first row of each distinct key in ordered keys. Equal keys belong to one file group."""
    first = np.ones(len(keys), np.bool_)
    if len(keys) > 1:
        first[1:] = pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1)).to_numpy(zero_copy_only=False)
    return np.flatnonzero(first).astype(np.int64)


_BY_VALUE = 9  # first table version whose indexes are of version V2
_MOVING_ONLY = frozenset({*COMPACTIONS, ActionKind.CLUSTERING})  # rows stay the same


@dataclass(frozen=True, slots=True)
class SecondaryIndexPartition:
    """Builds and updates the partitions `secondary_index_<name>`."""

    def define(self, table: MetadataTable, partition: str, options: MetadataOptions) -> int:
        """Write no definition: the call that creates the index writes it."""
        return record_index_group_count(
            stored_rows(table.data.storage, newest_slices(table.data)), options.record_index
        )

    def records(
        self, table: MetadataTable, partition: str, options: MetadataOptions, groups: int | None
    ) -> Mapping[str, Iterable[pa.Table]]:
        """The values and keys of all rows. Raises UnsupportedTable when the index can't be updated."""
        data = table.data
        pairs = _pairs(data, partition)
        count = groups or self.define(table, partition, options)
        return pairs.files(partition, newest_slices(data), count)

    def update(self, table: MetadataTable, partition: str, commit: TableCommit) -> PartitionUpdate:
        """Record the new and removed pairs in the file groups that the instant changes.

        An instant that undoes others changes no pairs: the updates of those are taken out. Raises UnsupportedTable.
        """
        change = commit.change
        if commit.instant.action in _MOVING_ONLY or not (change.stats or change.groups_replaced):
            version = table.data.config.table_version
            return PartitionUpdate(secondary_records(version, nothing_deleted()), nothing_deleted())
        return _pairs(table.data, partition).changes(changed_slices(table, commit))


def _pairs(data: MetaClient, partition: str) -> SecondaryPairs:
    why = why_no_secondary_index(data, partition)
    if why is not None:
        raise UnsupportedTable(f"{data.storage.root}: the partition {partition!r} can't be kept up: {why}.")
    column = read_index_definitions(data.storage).by_name[partition].source_fields[0]
    return SecondaryPairs(data.config.table_version, slice_reading(data), column)


def why_no_secondary_index(data: MetaClient, partition: str, definition: IndexDefinition | None = None) -> str | None:
    """Why this release can't build or update a secondary index, as part of a sentence; None when it can.

    Args:   definition: of an index about to be made; None: the table's definition.
    """
    config = data.config
    if not config.format.has_secondary_indexes:
        first = TableFormat.has_secondary_indexes.first
        return f"the table has version {config.table_version}, and secondary indexes begin with {first}"
    try:
        definitions = read_index_definitions(data.storage)
        slice_reading(data)
    except HudiError as error:
        return str(error)
    if not keeps_record_index(config):
        return "it needs the record index, which the table does not have"
    if is_partitioned_record_index(definitions):
        return "keys are unique in their partition only: the record index is one per partition of the table"
    index = definition or definitions.by_name.get(partition)
    return f"index.json has no definition of {partition}" if index is None else _why_not_of(data, index)


def _why_not_of(data: MetaClient, definition: IndexDefinition) -> str | None:
    version, schema = data.config.table_version, data.stored_schema()
    if definition.version != ("V2" if version >= _BY_VALUE else None):
        return f"it is of version {definition.version}, which tables of version {version} do not have"
    if len(definition.source_fields) != 1 or definition.function not in ("", "identity"):
        return f"it is of {definition.function!r} of the columns {', '.join(definition.source_fields)}"
    (column,) = definition.source_fields
    if column not in schema.names:
        return f"the table stores no column {column!r}"
    kind = schema.field(column).type
    if not has_secondary_text(kind, version):
        return f"it is not known what text Apache Hudi makes of {kind} ({column})"
    return None
