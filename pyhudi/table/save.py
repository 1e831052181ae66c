"""The way of a write from the public API to the write path: a path, rows, options and a save mode.

`write` gives a save mode its meaning and chooses the engine. Either engine writes Spark DataFrames
(`spark/frame_input.py`). All other data is Arrow, and the LocalEngine writes it.
Source: Hudi's meaning of Spark's save modes; docs/formats/writers.md, "Steps of a write".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.actions.create_table import check_fields, create_from_options, is_written, new_table, options_for
from pyhudi.actions.replacement import aside, replacing
from pyhudi.actions.result import WriteResult
from pyhudi.actions.save_modes import (
    REPLACE,
    SAVE_MODES,
    canonical_mode,
    check_place,
    decide_save,
    operation_in_place,
    options_in_place,
    remove_table,
)
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.formats.avro.schema import avro_from_arrow, without_meta
from pyhudi.meta_client import MetaClient
from pyhudi.model.new_table import new_table_properties
from pyhudi.model.options import WriteOptions, canonical_keys
from pyhudi.schema.column_paths import check_twins
from pyhudi.storage import with_sync
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import SystemClock
from pyhudi.table.calls import Options, TableHandle, register, session_options
from pyhudi.table.input import TableInput, WriteInput, arrow_schema, input_of
from pyhudi.table.write import replace_table, write_table
from pyhudi.timeline.table_properties import table_exists

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession, StructType

__all__ = ["SAVE_MODES", "create", "write", "write_rows"]

_SYSTEM_CLOCK = SystemClock()
_NAME = "hoodie.table.name"
_OPERATION = "hoodie.datasource.write.operation"
_PARTITION_FIELDS = "hoodie.datasource.write.partitionpath.field"
_COLUMN_KEYS = {"hoodie.datasource.write.recordkey.field", _PARTITION_FIELDS, "hoodie.table.ordering.fields"}
_NAME_KEYS = (_NAME, "hoodie.datasource.write.table.name")


def create(
    storage: Storage,
    schema: pa.Schema | StructType,
    options: Options,
    spark: SparkSession | None,
    *,
    replaces_table: bool = False,
) -> MetaClient:
    """Make an empty table of these columns. Raises TableExists, unless it replaces a table, and ConfigError."""
    columns = without_meta(arrow_schema(schema))
    check_twins(columns, pa.schema([]))
    session = session_options(spark)
    parsed = WriteOptions.parse(_with_name(options, storage, session), session, None)
    check_fields(parsed, columns.names)
    assert parsed.table_name is not None
    text = avro_from_arrow(columns, parsed.table_name, with_meta=False)
    storage = with_sync(storage, parsed.storage_sync)
    if replaces_table:
        with replacing(storage, parsed, _SYSTEM_CLOCK) as staged:
            create_from_options(staged, aside(parsed), _SYSTEM_CLOCK, text)
    else:
        create_from_options(storage, parsed, _SYSTEM_CLOCK, text)
    return MetaClient.load(storage)


def write_rows(
    handle: TableHandle, data: TableInput, operation: str, options: Options | None, arguments: Options | None = None
) -> WriteResult:
    """Write rows to an existing table: `HudiTable.upsert`, `insert` and their like."""
    write_options = handle.options(options, {**(arguments or {}), "operation": operation})
    result = write(handle.storage, data, write_options, "append", handle.spark)
    assert result is not None
    return result


def write(
    storage: Storage,
    data: TableInput,
    options: Options,
    mode: str,
    spark: SparkSession | None,
    partition_by: Sequence[str] = (),
    *,
    keeps_history: bool = False,
) -> WriteResult | None:
    """Write rows to a table, which is made when there is none.

    Args:
        data: as for `write_hudi`.
        options: Hudi's keys, the operation among them.
        mode: one of SAVE_MODES.
        partition_by: the partition fields, if the options don't name them.
        keeps_history: mode overwrite replaces the rows of a table that is there, and mode replace the table; else
            overwrite replaces the table, as in Hudi, and there is no mode replace.
    Returns: None when mode is ignore and there is a table.
    """
    word = canonical_mode(mode, has_replace=keeps_history)
    source = input_of(data, spark, _columns_named(options))
    session = source.session_options
    write_options = _with_partition_by(options, partition_by)
    in_place = None
    if word in ("overwrite", REPLACE):
        unbound = WriteOptions.parse(write_options, session, None)
        in_place = operation_in_place(unbound)
        if word == "overwrite" and keeps_history and table_exists(storage):
            return _overwritten(storage, source, options_in_place(write_options, unbound))
    written = word in ("ignore", "error") and is_written(storage)
    decision = decide_save(mode, is_written=written, operation_in_place=in_place, root=storage.root)
    if decision.skips:
        return None
    check_place(storage, overwrite=decision.replaces_table)
    if decision.operation is not None:
        write_options = {**write_options, _OPERATION: decision.operation}
    return _written(storage, source, write_options, replaces_table=decision.replaces_table)


def _overwritten(storage: Storage, source: WriteInput, options: Options) -> WriteResult:
    """Rows in the place of all rows of a table that is there. What doesn't fit it is refused, and the way out named."""
    try:
        return _written(storage, source, options)
    except (SchemaMismatch, ConfigError) as error:
        raise type(error)(
            f"{error} Mode overwrite keeps the table, its columns and its history; mode='replace' makes a new table in "
            "its place, and the history goes."
        ) from error


def _written(storage: Storage, source: WriteInput, options: Options, *, replaces_table: bool = False) -> WriteResult:
    session = source.session_options
    # A table that is to be replaced need not be readable.
    meta = MetaClient.load(storage) if not replaces_table and table_exists(storage) else None
    for_new = _with_name(options, storage, session)
    if meta is None:
        parsed, is_new = WriteOptions.parse(for_new, session, None), True
    else:
        parsed, is_new = options_for(storage, options, session, meta.config, for_new)
    names = source.column_names(None if is_new else meta)
    if is_new:
        # What can be refused is refused before the old table goes.
        new_table_properties(new_table(parsed))
        check_fields(parsed, names)
    rows, engine = source.rows(parsed, options)
    if replaces_table and table_exists(storage):
        result = replace_table(storage, parsed, engine, lambda place, aside: write_table(place, rows, engine, aside))
        register(storage, parsed)
        return result
    if replaces_table:
        remove_table(with_sync(storage, parsed.storage_sync), parsed.lock)  # what a removal that died has left
    return write_table(storage, rows, engine, parsed)


def _columns_named(options: Options) -> frozenset[str]:
    """The columns that the options name as keys, partition fields and ordering fields."""
    values = [options[key] for key in options if canonical_keys([key]) & _COLUMN_KEYS]
    texts = [part for value in values for part in (value if isinstance(value, list | tuple) else str(value).split(","))]
    return frozenset(str(text).strip().partition(":")[0] for text in texts)


def _with_partition_by(options: Options, columns: Sequence[str]) -> dict[str, object]:
    """The options with `partitionBy` as the partition fields."""
    with_fields = dict(options)
    if not columns:
        return with_fields
    keys = [key for key in with_fields if canonical_keys([key]) == {_PARTITION_FIELDS} and with_fields[key]]
    for key in keys:
        if [text.strip().partition(":")[0] for text in str(with_fields[key]).split(",")] != list(columns):
            raise ConfigError(
                f"partitionBy names {', '.join(columns)}, but {key}={with_fields[key]}. Give one of them, or the "
                "same columns."
            )
    if not keys:
        with_fields[_PARTITION_FIELDS] = ",".join(columns)
    return with_fields


def _with_name(options: Options, storage: Storage, session: Options) -> dict[str, object]:
    """The options of a new table; without a name it gets its folder's."""
    if any(options.get(key) or session.get(key) for key in _NAME_KEYS):
        return dict(options)
    return {**options, _NAME: storage.root.rstrip("/").rpartition("/")[2]}
