"""Which stored rows the rows of a delete mean: by key and partition, by key alone, or by their meta columns.

Rows without the table's partition columns are looked up in all partitions, and every row with the key is deleted: the
index finds them as its global form does. Rows with some of the columns only are refused. A bucket index needs key and
partition, so there the columns are required.
Source: docs/formats/merging.md, "Deletes"; docs/formats/indexes.md, "Finding keys", "Global indexes".
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.table_keys import is_automatic, stored_generator, table_keygen
from pyhudi.actions.writes.index_lookup import table_index
from pyhudi.errors import ConfigError, KeyGenError
from pyhudi.index.base import Index
from pyhudi.keygen import KeyColumns, KeyGenerator
from pyhudi.keygen.base import BuiltInKey, read_field, top_level
from pyhudi.keygen.partition_path import constant_path
from pyhudi.model.keys import PARTITION_PATH, RECORD_KEY

__all__ = ["delete_index", "delete_keygen"]


@dataclass(frozen=True, slots=True)
class KeysFromMetaColumns:
    """The keys that rows bring along in their meta columns: how rows of a table with automatic keys are named."""

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
    """The record keys of a generator, for rows that do not say where they are."""

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
        # Only the rows themselves can say what their keys are.
        raise ConfigError(
            f"{root}: the table has no key fields, so a delete needs the rows' own {RECORD_KEY} and {PARTITION_PATH}. "
            "Read the rows to delete from the table and pass them with these columns."
        )
    generator, missing = table_keygen(context, instant_time), _missing(rows, context)
    if not missing:
        return generator
    given = [name for name in config.partition_fields if name not in (*missing, *config.record_key_fields)]
    _check_found_by_key(missing, given, context)
    keys = stored_generator(generator)
    if not isinstance(keys, BuiltInKey):
        raise ConfigError(
            f"{root}: the rows to delete lack the partition column {', '.join(missing)}, and the key generator "
            f"{generator.type_name} makes keys from whole rows only. Add it, or delete by a filter, delete(where=...)."
        )
    return RecordKeysOnly(keys, config.record_key_fields)


def delete_index(rows: pa.Schema, context: ActionContext) -> Index:
    """The index that finds the rows of a delete: in all partitions when they don't say theirs."""
    index = table_index(context)
    if index.is_global or is_automatic(context.meta.config) or not _missing(rows, context):
        return index
    return index.everywhere() or index  # delete_keygen has refused rows that it can't find so


def _missing(rows: pa.Schema, context: ActionContext) -> list[str]:
    """Partition fields of the table that the rows lack."""
    nothing = rows.empty_table()
    return [name for name in context.meta.config.partition_fields if read_field(nothing, name) is None]


def _check_found_by_key(missing: list[str], given: list[str], context: ActionContext) -> None:
    """Raises ConfigError when rows without these partition fields can't be looked for by their keys alone."""
    lacking = f"{context.meta.storage.root}: the rows to delete lack the partition column {', '.join(missing)}"
    index = table_index(context)
    if index.is_global:
        return
    if index.everywhere() is None:
        raise ConfigError(
            f"{lacking}, without which the index {context.options.index_type} can't find them. Add it, or delete "
            "by a filter, delete(where=...). Nothing was deleted."
        )
    if given:
        raise ConfigError(
            f"{lacking}, but have {', '.join(given)}. Give all partition columns to delete in these partitions, or "
            "none of them to delete the keys wherever they are. Nothing was deleted."
        )
