"""From the front desk to the write path: which engine takes the data, and what a save mode means.

Spark DataFrames go to `pyhudi.spark.writer`, everything else is Arrow and is written by the LocalEngine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pyhudi.actions.create import check_fields, create_from_options, new_table
from pyhudi.actions.first_write import is_written, options_for
from pyhudi.actions.overwrite import check_place, operation_in_place, remove_table
from pyhudi.actions.result import WriteResult
from pyhudi.arrow_input import is_spark_frame, to_arrow_rows
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError, TableExists
from pyhudi.formats.avro.schema import avro_from_arrow, without_meta
from pyhudi.meta_client import MetaClient
from pyhudi.model.new_table import new_table_properties
from pyhudi.model.options import WriteOptions
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import SystemClock
from pyhudi.table_calls import session_options
from pyhudi.timeline.table_properties import table_exists
from pyhudi.writing import write_table

__all__ = ["SAVE_MODES", "create", "write"]

SAVE_MODES = ("append", "overwrite", "ignore", "error", "errorifexists", "default")
_NAME = "hoodie.table.name"
_OPERATION = "hoodie.datasource.write.operation"
_NAME_KEYS = (_NAME, "hoodie.datasource.write.table.name")


def create(storage: Storage, schema: Any, options: Mapping[str, Any], spark: Any) -> None:
    """Make an empty table of these columns. Raises TableExists, ConfigError."""
    columns = without_meta(_arrow_schema(schema))
    if not len(columns):
        raise ConfigError("The schema has no columns; a table needs one at least.")
    parsed = WriteOptions.parse(_with_name(options, storage), session_options(spark), None)
    check_fields(parsed, columns.names)
    assert parsed.table_name is not None
    text = avro_from_arrow(columns, parsed.table_name, with_meta=False)
    create_from_options(storage, parsed, SystemClock(), text)


def write(storage: Storage, data: Any, options: Mapping[str, Any], mode: str, spark: Any) -> WriteResult | None:
    """Write `data` with these options (Hudi's keys, the operation among them). None: mode ignore, table there."""
    word = mode.lower()
    if word not in SAVE_MODES:
        raise ConfigError(f"Unknown mode {mode!r}; known: append, overwrite, ignore, error.")
    if is_spark_frame(data):
        from pyhudi.spark.writer import write_frame  # pyspark is loaded only when it is used

        named = _with_name(options, storage)
        given = named if word == "overwrite" or not table_exists(storage) else options
        return write_frame(data, storage, given, mode=word, new=named)

    there = table_exists(storage)
    check_place(storage, overwrite=word == "overwrite")
    if word == "ignore" and is_written(storage):
        return None
    if word in ("error", "errorifexists", "default") and is_written(storage):
        raise TableExists(f"There is a Hudi table at {storage.root} already and mode is {mode!r}; use mode='append'.")
    anew = word == "overwrite"
    if anew and (in_place := operation_in_place(WriteOptions.parse(options, session_options(spark), None))):
        anew, options = False, {**options, _OPERATION: in_place}
    meta = MetaClient.load(storage) if there and not anew else None  # a table to be replaced need not be readable
    named, session = _with_name(options, storage), session_options(spark)
    if meta is None:
        parsed = WriteOptions.parse(named, session, None)
    else:
        parsed, is_new = options_for(storage, options, session, meta.config, named)
        meta = None if is_new else meta
    rows = to_arrow_rows(data, None if meta is None else meta.table_schema())
    if anew:
        # What can be refused is refused before the old table goes.
        new_table_properties(new_table(parsed))
        check_fields(parsed, rows.schema.names)
        remove_table(storage)
    return write_table(storage, rows, LocalEngine(), parsed)


def _arrow_schema(schema: Any) -> pa.Schema:
    if isinstance(schema, pa.Schema):
        return schema
    if type(schema).__module__.startswith("pyspark"):
        from pyhudi.spark.types import arrow_from_spark

        return arrow_from_spark(schema)
    raise ConfigError(f"The schema is of type {type(schema).__name__}; give a pyarrow.Schema or a Spark StructType.")


def _with_name(options: Mapping[str, Any], storage: Storage) -> dict[str, Any]:
    """The options of a new table; without a name it gets its folder's."""
    if any(options.get(key) for key in _NAME_KEYS):
        return dict(options)
    return {**options, _NAME: storage.root.rstrip("/").rpartition("/")[2]}
