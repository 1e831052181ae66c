"""The path of a write from the public API to its first attempt: STEPS, one after the other, on one value, `Write`.

They happen once: the save mode is resolved, options are read, columns are checked, and the engine is chosen. Then
`write.py` writes the rows, in as many attempts as needed. Either engine writes Spark DataFrames
(`spark/frame_input.py`). All other data is Arrow, and the LocalEngine writes it.
Source: Hudi's meaning of Spark's save modes; docs/formats/writers.md, "Steps of a write".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
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
from pyhudi.engine.base import Engine, Frame
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
from pyhudi.table.input import TableInput, WriteInput, arrow_schema, choose_writer, input_of
from pyhudi.table.row_files import RowFiles
from pyhudi.table.write import replace_table, write_table
from pyhudi.timeline.table_properties import table_exists

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession, StructType

__all__ = ["SAVE_MODES", "STEPS", "Write", "create", "write", "write_rows"]

_SYSTEM_CLOCK = SystemClock()
_NAME = "hoodie.table.name"
_OPERATION = "hoodie.datasource.write.operation"
_PARTITION_FIELDS = "hoodie.datasource.write.partitionpath.field"
_RECORD_KEY = "hoodie.datasource.write.recordkey.field"
_COLUMN_KEYS = frozenset({_RECORD_KEY, _PARTITION_FIELDS, "hoodie.table.ordering.fields"})
_NAME_KEYS = (_NAME, "hoodie.datasource.write.table.name")


def create(
    storage: Storage,
    schema: pa.Schema | StructType,
    options: Options,
    spark: SparkSession | None,
    *,
    replaces_table: bool = False,
) -> MetaClient:
    """Create an empty table with these columns. Raises TableExists, unless it replaces a table, and ConfigError."""
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


@dataclass(slots=True)
class Write:
    """A write on its way from a caller to the table. STEPS set the fields that have no value at first.

    `call_options`: Hudi's keys. `mode`, `keeps_history`: as in `write`. `has_table`: there is a table at the path.
    `table`: the target; None if a new table is created. `skips`: there is nothing to do. `replaces_table`: a new table
    replaces the existing one; `replaces_rows`: the table's rows are replaced.
    """

    storage: Storage
    source: WriteInput
    call_options: Options
    mode: str = "append"
    keeps_history: bool = False
    has_table: bool = False
    table: MetaClient | None = None
    skips: bool = False
    replaces_table: bool = False
    replaces_rows: bool = False
    options: WriteOptions = field(init=False)
    frame: Frame = field(init=False)
    engine: Engine = field(init=False)

    def take_steps(self) -> None:
        """Take all steps up to the first attempt. Raises HudiError; no row is written yet."""
        for step in STEPS:
            if not self.skips:
                step(self)


# ---- the steps


def settle_mode(work: Write) -> None:
    """Resolve the save mode: rows are added, rows are replaced, the table is replaced, or there is nothing to do.

    Raises: TableExists; ConfigError for unknown modes, unsuitable operations, and folders with other content.
    """
    word = canonical_mode(work.mode, has_replace=work.keeps_history)
    work.has_table = table_exists(work.storage)
    in_place = None
    if word in ("overwrite", REPLACE):
        unbound = WriteOptions.parse(work.call_options, work.source.session_options, None)
        in_place = operation_in_place(unbound)
        if word == "overwrite" and work.keeps_history and work.has_table:
            work.call_options, work.replaces_rows = options_in_place(work.call_options, unbound), True
            return
    written = word in ("ignore", "error") and work.has_table and is_written(work.storage)
    decision = decide_save(work.mode, is_written=written, operation_in_place=in_place, root=work.storage.root)
    work.skips, work.replaces_table = decision.skips, decision.replaces_table
    if not (work.skips or work.has_table):
        check_place(work.storage, overwrite=work.replaces_table)
    if decision.operation is not None:
        work.call_options = {**work.call_options, _OPERATION: decision.operation}


def read_options(work: Write) -> None:
    """Read the options for the target table, or for a new one, which may have to replace an unfinished one.

    Raises: ConfigError; errors of a table that can't be read, unless it is replaced.
    """
    session = work.source.session_options
    for_new = _with_name(work.call_options, work.storage, session)
    if work.replaces_table or not work.has_table:
        work.options = WriteOptions.parse(for_new, session, None)
        return
    meta = MetaClient.load(work.storage)
    work.options, is_new = options_for(work.storage, work.call_options, session, meta.config, for_new)
    work.table = None if is_new else meta


def check_columns(work: Write) -> None:
    """Check the columns of the rows, and everything about a new table that can be refused before an old one is deleted.

    Raises: SchemaMismatch, ConfigError.
    """
    names = work.source.column_names(work.table)
    if work.table is None:
        new_table_properties(new_table(work.options))
        check_fields(work.options, names)


def choose_engine(work: Write) -> None:
    """Choose the writer: Spark, or this process, which fetches the rows of a small DataFrame."""
    work.frame, work.engine = choose_writer(work.source, work.options, work.call_options)


STEPS: tuple[Callable[[Write], None], ...] = (settle_mode, read_options, check_columns, choose_engine)


# ---- the doors


def write_rows(
    handle: TableHandle, data: TableInput, operation: str, options: Options | None, arguments: Options | None = None
) -> WriteResult:
    """Write rows to an existing table: `HudiTable.upsert`, `insert` and similar methods."""
    call_options = handle.options(options, {**(arguments or {}), "operation": operation})
    work = Write(handle.storage, _input(data, handle.spark, call_options), call_options)
    work.take_steps()
    return write_table(work.storage, work.frame, work.engine, work.options)


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
    """Write rows to a table, which is created if it does not exist.

    Args:
        data: as for `write_hudi`.
        options: Hudi's keys, including the operation.
        mode: one of SAVE_MODES.
        partition_by: the partition fields, if the options don't name them.
        keeps_history: mode overwrite replaces the rows of an existing table, and mode replace the table; otherwise
            overwrite replaces the table, as in Hudi, and there is no mode replace.
    Returns: None if mode is ignore and the table exists.
    """
    source = _input(data, spark, options)
    work = Write(storage, source, _with_partition_by(options, partition_by), mode, keeps_history)
    try:
        work.take_steps()
        if work.skips:
            return None
        if work.replaces_table:
            return _replace(work)
        return write_table(storage, work.frame, work.engine, work.options)
    except (SchemaMismatch, ConfigError) as error:
        if not work.replaces_rows:
            raise
        raise type(error)(
            f"{error} Mode overwrite keeps the table, its columns and its history; mode='replace' replaces it by a new "
            "table, and the history is lost."
        ) from error


def _replace(work: Write) -> WriteResult:
    """Write the rows as a new table that replaces the current one, which may have changed while they were read."""
    storage, options = work.storage, work.options
    if not table_exists(storage):
        remove_table(with_sync(storage, options.storage_sync), options.lock)  # the remains of a dead removal
        return write_table(storage, work.frame, work.engine, options)
    result = replace_table(
        storage, options, work.engine, lambda place, aside: write_table(place, work.frame, work.engine, aside)
    )
    register(storage, options)
    return result


# ---- options


def _input(data: TableInput, spark: SparkSession | None, options: Options) -> WriteInput:
    if isinstance(data, RowFiles):
        data = replace(data, key_columns=_columns_named(options, frozenset({_RECORD_KEY})))
    return input_of(data, spark, _columns_named(options, _COLUMN_KEYS))


def _columns_named(options: Options, option_keys: frozenset[str]) -> frozenset[str]:
    """The columns that the options name by these keys: keys, partition fields or ordering fields."""
    values = [options[key] for key in options if canonical_keys([key]) & option_keys]
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
