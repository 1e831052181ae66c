"""From the public API to the write path: what a save mode means, and which engine takes the data.

Spark DataFrames are written by either engine (`spark/frame_input.py`), everything else is Arrow and is written by the
LocalEngine. Source: Hudi's meaning of Spark's save modes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.actions.create import check_fields, create_from_options, new_table
from pyhudi.actions.first_write import is_written, options_for
from pyhudi.actions.overwrite import check_place, operation_in_place, options_in_place, remove_table
from pyhudi.actions.result import WriteResult
from pyhudi.actions.save_modes import REPLACE, SAVE_MODES, canonical_mode, decide_save
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.formats.avro.schema import avro_from_arrow, without_meta
from pyhudi.meta_client import MetaClient
from pyhudi.model.new_table import new_table_properties
from pyhudi.model.options import WriteOptions, canonical_keys
from pyhudi.storage import with_sync
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import SystemClock
from pyhudi.table.arrow_input import ArrowInput, TableInput, WriteInput, is_spark_frame
from pyhudi.table.calls import Options, session_options
from pyhudi.table.write_table import write_table
from pyhudi.timeline.table_properties import table_exists

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession, StructType

__all__ = ["SAVE_MODES", "create", "write"]

_NAME = "hoodie.table.name"
_OPERATION = "hoodie.datasource.write.operation"
_PARTITION_FIELDS = "hoodie.datasource.write.partitionpath.field"
_NAME_KEYS = (_NAME, "hoodie.datasource.write.table.name")


def create(storage: Storage, schema: pa.Schema | StructType, options: Options, spark: SparkSession | None) -> None:
    """Make an empty table of these columns. Raises TableExists, ConfigError."""
    columns = without_meta(_arrow_schema(schema))
    if not len(columns):
        raise ConfigError("The schema has no columns; a table needs one at least.")
    parsed = WriteOptions.parse(_with_name(options, storage), session_options(spark), None)
    check_fields(parsed, columns.names)
    assert parsed.table_name is not None
    text = avro_from_arrow(columns, parsed.table_name, with_meta=False)
    create_from_options(with_sync(storage, parsed.storage_sync), parsed, SystemClock(), text)


def write(
    storage: Storage,
    data: TableInput,
    options: Options,
    mode: str,
    spark: SparkSession | None,
    partition_by: Sequence[str] = (),
    *,
    is_named: bool = True,
    keeps_history: bool = False,
) -> WriteResult | None:
    """Write rows to a table, which is made when there is none.

    Args:
        data: as for `write_hudi`.
        options: Hudi's keys, the operation among them.
        mode: one of SAVE_MODES.
        partition_by: the partition fields, if the options don't name them.
        is_named: a new table without a name gets its folder's.
        keeps_history: mode overwrite replaces the rows of a table that is there, and mode replace the table; else
            overwrite replaces the table, as in Hudi, and there is no mode replace.
    Returns: None when mode is ignore and there is a table.
    """
    word = canonical_mode(mode, has_replace=keeps_history)
    source = _input(data, spark)
    session = source.session_options
    given = _with_partition_by(options, partition_by)
    in_place = None
    if word in ("overwrite", REPLACE):
        unbound = WriteOptions.parse(given, session, None)
        in_place = operation_in_place(unbound)
        if word == "overwrite" and keeps_history and table_exists(storage):
            return _overwritten(storage, source, options_in_place(given, unbound), is_named)
    written = word in ("ignore", "error") and is_written(storage)
    decision = decide_save(mode, is_written=written, operation_in_place=in_place, root=storage.root)
    if decision.skips:
        return None
    check_place(storage, overwrite=decision.replaces_table)
    if decision.operation is not None:
        given = {**given, _OPERATION: decision.operation}
    return _written(storage, source, given, is_named, replaces_table=decision.replaces_table)


def _overwritten(storage: Storage, source: WriteInput, given: Options, is_named: bool) -> WriteResult:
    """Rows in the place of all rows of a table that is there. What doesn't fit it is refused, and the way out named."""
    try:
        return _written(storage, source, given, is_named)
    except (SchemaMismatch, ConfigError) as error:
        raise type(error)(
            f"{error} Mode overwrite keeps the table, its columns and its history; mode='replace' makes a new table in "
            "its place, and the history goes."
        ) from error


def _written(
    storage: Storage, source: WriteInput, given: Options, is_named: bool, *, replaces_table: bool = False
) -> WriteResult:
    session = source.session_options
    # A table that is to be replaced need not be readable.
    meta = MetaClient.load(storage) if not replaces_table and table_exists(storage) else None
    for_new = _with_name(given, storage) if is_named else given
    if meta is None:
        parsed, is_new = WriteOptions.parse(for_new, session, None), True
    else:
        parsed, is_new = options_for(storage, given, session, meta.config, for_new)
    names = source.column_names(None if is_new else meta)
    if is_new:
        # What can be refused is refused before the old table goes.
        new_table_properties(new_table(parsed))
        check_fields(parsed, names)
    rows, engine = source.rows(parsed, given)
    if replaces_table:
        source.check_outlives(storage, rows)
        remove_table(with_sync(storage, parsed.storage_sync), parsed.lock)
    return write_table(storage, rows, engine, parsed)


def _input(data: TableInput, spark: SparkSession | None) -> WriteInput:
    if not is_spark_frame(data):
        return ArrowInput(data, session_options(spark))
    from pyhudi.spark.frame_input import FrameInput  # pyspark is loaded only when it is used

    return FrameInput(data)


def _with_partition_by(options: Options, columns: Sequence[str]) -> dict[str, object]:
    """The options with `partitionBy` as the partition fields."""
    given = dict(options)
    if not columns:
        return given
    named = [key for key in given if canonical_keys([key]) == {_PARTITION_FIELDS} and given[key]]
    for key in named:
        if [text.strip().partition(":")[0] for text in str(given[key]).split(",")] != list(columns):
            raise ConfigError(
                f"partitionBy names {', '.join(columns)}, but {key}={given[key]}. Give one of them, or the "
                "same columns."
            )
    if not named:
        given[_PARTITION_FIELDS] = ",".join(columns)
    return given


def _arrow_schema(schema: pa.Schema | StructType) -> pa.Schema:
    if isinstance(schema, pa.Schema):
        return schema
    if type(schema).__module__.startswith("pyspark"):
        from pyhudi.spark.types import arrow_from_spark

        return arrow_from_spark(schema)
    raise ConfigError(f"The schema is of type {type(schema).__name__}; give a pyarrow.Schema or a Spark StructType.")


def _with_name(options: Options, storage: Storage) -> dict[str, object]:
    """The options of a new table; without a name it gets its folder's."""
    if any(options.get(key) for key in _NAME_KEYS):
        return dict(options)
    return {**options, _NAME: storage.root.rstrip("/").rpartition("/")[2]}
