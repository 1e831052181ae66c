"""The way of a write from the public API to its first attempt: STEPS, one after the other, on one value, `Write`.

They happen once: a save mode gets its meaning, options are read, columns are checked, and the engine is chosen. Then
`write.py` writes the rows, by as many attempts as it takes. Either engine writes Spark DataFrames
(`spark/frame_input.py`). All other data is Arrow, and the LocalEngine writes it.
Source: Hudi's meaning of Spark's save modes; docs/formats/writers.md, "Steps of a write".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
from pyhudi.table.write import replace_table, write_table
from pyhudi.timeline.table_properties import table_exists

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession, StructType

__all__ = ["SAVE_MODES", "STEPS", "Write", "create", "write", "write_rows"]

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


@dataclass(slots=True)
class Write:
    """A write on its way from a caller to the table. STEPS set the fields that have no value at first.

    `given`: Hudi's keys. `mode`, `keeps_history`: as in `write`. `is_there`: is there a table at the path? `table`: the
    one that rows go into; None when a new one is made. `skips`: nothing is to be done. `replaces_table`: a new table
    takes the place of what is there; `replaces_rows`: the rows of the table go.
    """

    storage: Storage
    source: WriteInput
    given: Options
    mode: str = "append"
    keeps_history: bool = False
    is_there: bool = False
    table: MetaClient | None = None
    skips: bool = False
    replaces_table: bool = False
    replaces_rows: bool = False
    options: WriteOptions = field(init=False)
    frame: Frame = field(init=False)
    engine: Engine = field(init=False)

    def take_steps(self) -> None:
        """Everything up to the first attempt. Raises HudiError; no row is written yet."""
        for step in STEPS:
            if not self.skips:
                step(self)


# ---- the steps


def settle_mode(work: Write) -> None:
    """What the save mode means here: rows go in, rows are replaced, the table is replaced, or there is nothing to do.

    Raises: TableExists; ConfigError for unknown modes, operations that don't go with them, and folders of others.
    """
    word = canonical_mode(work.mode, has_replace=work.keeps_history)
    work.is_there = table_exists(work.storage)
    in_place = None
    if word in ("overwrite", REPLACE):
        unbound = WriteOptions.parse(work.given, work.source.session_options, None)
        in_place = operation_in_place(unbound)
        if word == "overwrite" and work.keeps_history and work.is_there:
            work.given, work.replaces_rows = options_in_place(work.given, unbound), True
            return
    written = word in ("ignore", "error") and work.is_there and is_written(work.storage)
    decision = decide_save(work.mode, is_written=written, operation_in_place=in_place, root=work.storage.root)
    work.skips, work.replaces_table = decision.skips, decision.replaces_table
    if not (work.skips or work.is_there):
        check_place(work.storage, overwrite=work.replaces_table)
    if decision.operation is not None:
        work.given = {**work.given, _OPERATION: decision.operation}


def read_options(work: Write) -> None:
    """Options are read: for the table that rows go into, or for a new one, which may have to replace an unfinished one.

    Raises: ConfigError; errors of a table that can't be read, unless it is replaced.
    """
    session = work.source.session_options
    for_new = _with_name(work.given, work.storage, session)
    if work.replaces_table or not work.is_there:
        work.options = WriteOptions.parse(for_new, session, None)
        return
    meta = MetaClient.load(work.storage)
    work.options, is_new = options_for(work.storage, work.given, session, meta.config, for_new)
    work.table = None if is_new else meta


def check_columns(work: Write) -> None:
    """The columns of the rows, and of a new table all that can be refused before an old one goes.

    Raises: SchemaMismatch, ConfigError.
    """
    names = work.source.column_names(work.table)
    if work.table is None:
        new_table_properties(new_table(work.options))
        check_fields(work.options, names)


def choose_engine(work: Write) -> None:
    """Who writes: Spark, or this process. Few rows of a DataFrame are brought here."""
    work.frame, work.engine = choose_writer(work.source, work.options, work.given)


STEPS: tuple[Callable[[Write], None], ...] = (settle_mode, read_options, check_columns, choose_engine)


# ---- the doors


def write_rows(
    handle: TableHandle, data: TableInput, operation: str, options: Options | None, arguments: Options | None = None
) -> WriteResult:
    """Write rows to an existing table: `HudiTable.upsert`, `insert` and their like."""
    given = handle.options(options, {**(arguments or {}), "operation": operation})
    work = Write(handle.storage, input_of(data, handle.spark, _columns_named(given)), given)
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
    source = input_of(data, spark, _columns_named(options))
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
            f"{error} Mode overwrite keeps the table, its columns and its history; mode='replace' makes a new table in "
            "its place, and the history goes."
        ) from error


def _replace(work: Write) -> WriteResult:
    """The rows as a new table in the place of what is there now: reading them has taken a while."""
    storage, options = work.storage, work.options
    if not table_exists(storage):
        remove_table(with_sync(storage, options.storage_sync), options.lock)  # what a removal that died has left
        return write_table(storage, work.frame, work.engine, options)
    result = replace_table(
        storage, options, work.engine, lambda place, aside: write_table(place, work.frame, work.engine, aside)
    )
    register(storage, options)
    return result


# ---- what options say


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
