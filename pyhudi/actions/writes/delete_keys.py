"""The stored rows that a delete's rows identify: by key and partition, by key alone, or by their meta columns.

Rows without the table's partition columns are looked up in all partitions, and every row with the key is deleted: the
index finds them as its global form does. Rows with only some of the columns are refused. A bucket index needs key and
partition, so there the columns are required.

In log files such a delete has the ordering value of the row that it removes, so that a late row can't bring it back.
Source: docs/formats/merging.md, "Deletes"; docs/formats/indexes.md, "Finding keys", "Global indexes".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.action import ActionContext
from pyhudi.actions.rows import table_rules
from pyhudi.actions.table_keys import is_automatic, stored_generator, table_keygen
from pyhudi.actions.writes.index_lookup import stored_slices, table_index
from pyhudi.errors import ConfigError, KeyGenError
from pyhudi.filegroup.read.matching import KeyFilter
from pyhudi.filegroup.read.slice import SliceSpec, read_file_slice
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.formats.log.blocks.delete import can_hold
from pyhudi.index.base import Index
from pyhudi.keygen import KeyColumns, KeyGenerator
from pyhudi.keygen.base import BuiltInKey, read_field, top_level
from pyhudi.keygen.partition_path import constant_path
from pyhudi.merge import merge_mode
from pyhudi.merge.combine import ordering_columns, single_array
from pyhudi.model.file_group import FileGroupId, FileSlice
from pyhudi.model.keys import PARTITION_PATH, RECORD_KEY
from pyhudi.model.table_format import TableFormat
from pyhudi.view.file_system_view import FileSystemView
from pyhudi.view.pending_plans import pending_compactions

__all__ = ["DeletedRows", "delete_index", "delete_keygen", "deleted_rows", "ordered_deletes"]

_FEW_KEYS = 1000  # up to this number, only parts of a base file are read


@dataclass(frozen=True, slots=True)
class KeysFromMetaColumns:
    """The keys in the rows' meta columns, which identify rows of a table with automatic keys."""

    type_name: str = "SIMPLE"
    input_columns: tuple[str, ...] = (RECORD_KEY, PARTITION_PATH)

    def columns(self, batch: pa.RecordBatch, *, partition_id: int = 0, first_row: int = 0) -> KeyColumns:
        arrays = [batch.column(name).cast(pa.string()) for name in self.input_columns]
        for name, array in zip(self.input_columns, arrays, strict=True):
            if array.null_count:
                raise KeyGenError(f"{array.null_count} rows have no {name}; read the rows to delete from the table.")
        return KeyColumns(*arrays)


@dataclass(frozen=True, slots=True)
class RecordKeysOnly:
    """The record keys of a generator, for rows without a partition."""

    generator: BuiltInKey
    key_fields: tuple[str, ...]

    @property
    def type_name(self) -> str:
        return self.generator.type_name

    @property
    def input_columns(self) -> tuple[str, ...]:
        return top_level(self.key_fields)

    def columns(self, batch: pa.RecordBatch, *, partition_id: int = 0, first_row: int = 0) -> KeyColumns:
        return KeyColumns(self.generator.record_key(batch, first_row), constant_path("", batch.num_rows))


def delete_keygen(rows: pa.Schema, context: ActionContext, instant_time: str) -> KeyGenerator:
    """The generator for a delete. Raises ConfigError, naming the columns that the rows need."""
    config, root = context.meta.config, context.meta.storage.root
    if is_automatic(config):
        if RECORD_KEY in rows.names and PARTITION_PATH in rows.names:
            return KeysFromMetaColumns()
        # Automatic keys are stored in the rows only.
        raise ConfigError(
            f"{root}: the table has no key fields, so a delete needs the rows' own {RECORD_KEY} and {PARTITION_PATH}. "
            "Read the rows to delete from the table and pass them with these columns."
        )
    generator, missing = table_keygen(context, instant_time), _missing(rows, context)
    if not missing:
        return generator
    partition_columns = [name for name in config.partition_fields if name not in (*missing, *config.record_key_fields)]
    _check_found_by_key(missing, partition_columns, context)
    keys = stored_generator(generator)
    if not isinstance(keys, BuiltInKey):
        raise ConfigError(
            f"{root}: the rows to delete lack the partition column {', '.join(missing)}, and the key generator "
            f"{generator.type_name} makes keys from whole rows only. Add it, or delete by a filter, delete(where=...)."
        )
    return RecordKeysOnly(keys, config.record_key_fields)


def delete_index(rows: pa.Schema, context: ActionContext) -> Index:
    """The index that finds the rows of a delete: in all partitions when they don't name theirs."""
    index = table_index(context)
    if index.is_global or is_automatic(context.meta.config) or not _missing(rows, context):
        return index
    return index.everywhere() or index  # delete_keygen has refused rows that can't be found this way


def _missing(rows: pa.Schema, context: ActionContext) -> list[str]:
    """Partition fields of the table that the rows lack."""
    nothing = rows.empty_table()
    return [name for name in context.meta.config.partition_fields if read_field(nothing, name) is None]


def _check_found_by_key(missing: list[str], partition_columns: list[str], context: ActionContext) -> None:
    """Raise ConfigError when rows without these partition fields can't be found by their keys alone."""
    lacking = f"{context.meta.storage.root}: the rows to delete lack the partition column {', '.join(missing)}"
    index = table_index(context)
    if index.is_global:
        return
    if index.everywhere() is None:
        raise ConfigError(
            f"{lacking}, without which the index {context.options.index_type} can't find them. Add it, or delete "
            "by a filter, delete(where=...). Nothing was deleted."
        )
    if partition_columns:
        raise ConfigError(
            f"{lacking}, but have {', '.join(partition_columns)}. Give all partition columns to delete in these "
            "partitions, or none of them to delete the keys wherever they are. Nothing was deleted."
        )


def ordered_deletes(spec: WriteSpec, context: ActionContext) -> tuple[str, ...]:
    """The columns with the ordering values that deletes by key carry in log files; none where they need no value or
    can't have one.

    A delete without a value removes all earlier versions, but loses its effect as soon as a row follows it, even a row
    that would lose against the deleted row of the base file. A merger never decides about deletes by key; and where
    the first of equal values wins, the row would win against its delete.
    """
    rules, stored = table_rules(context), spec.stored_schema
    if not context.meta.config.is_merge_on_read or not rules.by_ordering:
        return ()
    if rules.first_wins or rules.merger is not None:
        return ()
    columns = top_level(rules.ordering_fields)
    if rules.ordering_fields != spec.ordering_fields or not set(columns) <= set(stored.names):
        return ()
    kinds = [column.type for column in ordering_columns(stored.empty_table(), rules.ordering_fields)]
    unread = not TableFormat(spec.table_version).has_decimals_in_delete_blocks and any(map(pa.types.is_decimal, kinds))
    return () if unread or not all(map(can_hold, kinds)) else tuple(columns)


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Finds the rows that deletes by key remove. Picklable.

    `reading`: how slices are read; `columns`: see `ordered_deletes`. `slices`: the existing slices of file groups whose
    log files go to a slice opened by a pending compaction.
    """

    reading: SliceSpec
    columns: tuple[str, ...]
    slices: Mapping[FileGroupId, FileSlice]

    def with_rows(self, file_slice: FileSlice, deletes: pa.Table) -> pa.Table:
        """The deletes whose keys the slice has, with columns of their rows; for several rows the greatest values."""
        keys = single_array(deletes.column(RECORD_KEY))
        rows = self._rows(self.slices.get(file_slice.group, file_slice), keys)
        at = pc.index_in(single_array(rows.column(RECORD_KEY)), value_set=keys).to_numpy().astype(np.int64)
        rules = self.reading.merge
        mode = merge_mode(rules.mode, rules.ordering_fields)
        greatest = mode.last_of_each(at, ordering_columns(rows, rules.ordering_fields), np.zeros(len(at), np.bool_))
        removed, stored = deletes.take(pa.array(at[greatest])), rows.take(pa.array(greatest))
        for name in self.columns:
            removed = removed.append_column(stored.schema.field(name), stored.column(name))
        return removed

    def _rows(self, file_slice: FileSlice, keys: pa.Array) -> pa.Table:
        """The rows of a slice that have one of these keys."""
        names = [RECORD_KEY, *self.columns]
        key_filter = None
        # Only stored keys can be looked up; keys of tables without meta columns are made from the rows read.
        if len(keys) <= _FEW_KEYS and not self.reading.history and self.reading.key_generator is None:
            key_filter = KeyFilter(RECORD_KEY, tuple(keys.to_pylist()), pa.string())
        parts = [pa.schema([self.reading.schema.field(name) for name in names]).empty_table()]
        for batch in read_file_slice(self.reading, file_slice, names, key_filter=key_filter):
            is_deleted = pc.is_in(batch.column(RECORD_KEY), value_set=keys)
            parts.append(pa.Table.from_batches([batch.filter(is_deleted)]))
        return pa.concat_tables(parts)


def deleted_rows(spec: WriteSpec, context: ActionContext) -> DeletedRows | None:
    """The way deletes by key find their rows; None if they need not."""
    columns = ordered_deletes(spec, context)
    if not columns:
        return None
    reading = replace(stored_slices(spec.key_generator, context), history=spec.history)
    compacting = {} if context.meta.config.format.has_own_log_files else pending_compactions(context.meta)
    if not compacting:
        return DeletedRows(reading, columns, {})
    view = FileSystemView.load(context.meta, partitions={group.partition_path for group in compacting})
    return DeletedRows(reading, columns, {s.group: s for s in view.all_slices() if s.group in compacting})
