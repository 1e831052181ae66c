"""Writing a DataFrame: save modes, options, and who does the work.

Small inputs are fetched once and written by this process (`fetching`), larger ones by Spark. Either way it is the same
action on the same files.
Source: design, decision 1; Hudi's meaning of Spark's save modes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame

from pyhudi.actions.create import check_fields, new_table
from pyhudi.actions.overwrite import check_place, operation_in_place, remove_table
from pyhudi.actions.result import WriteResult
from pyhudi.engine.base import Engine
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError, SchemaMismatch, TableExists
from pyhudi.model.new_table import new_table_properties
from pyhudi.model.options import WriteOptions, canonical_keys
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.fetching import fetched
from pyhudi.spark.session import hudi_options, store_options
from pyhudi.spark.types import arrow_from_spark
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.timeline.table_properties import load_table_config, table_exists
from pyhudi.writing import write_table

__all__ = ["SAVE_MODES", "source_rows", "write_frame"]

SAVE_MODES = ("append", "overwrite", "ignore", "error", "errorifexists", "default")

_OPERATION = "hoodie.datasource.write.operation"
_PARTITION_FIELDS = "hoodie.datasource.write.partitionpath.field"


def write_frame(
    df: DataFrame,
    table: Storage | str,
    options: Mapping[str, Any],
    mode: str = "append",
    partition_by: Sequence[str] = (),
) -> WriteResult | None:
    """Write the rows of a DataFrame to a table.

    Args:
        table: its storage, or its path.
        options: Hudi's write options, and Hadoop's for the store (`fs.*`); the session's `spark.hoodie.*` and
            `spark.hadoop.fs.*` stand behind them.
        mode: `append` (into the table, made when there is none), `overwrite` (a new table in its place, but with
            operation insert_overwrite_table the rows of the table are replaced in one commit), `ignore` (nothing when
            there is a table), `error` (also `errorifexists`, `default`: only a new table).
        partition_by: the partition fields, if the option does not name them.
    Returns: what was done; None when mode `ignore` found a table.
    Raises:  errors of the family; before anything is written for wrong options, columns, modes and paths. Overwriting
        is not atomic: it removes the old table first, and a crash from then on leaves no table or a smaller one.
    """
    mode = _mode(mode)
    storage = table if isinstance(table, Storage) else open_storage(table, store_options(df.sparkSession, options))
    exists = table_exists(storage)
    if exists and mode == "ignore":
        return None
    if exists and mode == "error":
        raise TableExists(
            f"There is a Hudi table at {storage.root} already. Write with mode append to add to it, or overwrite to "
            "replace it."
        )
    _check_columns(df)
    replaced = mode == "overwrite"
    session = hudi_options(df.sparkSession)
    given = _with_partition_by(options, partition_by)
    if replaced and (in_place := operation_in_place(WriteOptions.parse(given, session, None))):
        replaced, given = False, {**given, _OPERATION: in_place}
    config = load_table_config(storage) if exists and not replaced else None
    parsed = WriteOptions.parse(given, session, config)
    if config is None:
        new_table_properties(new_table(parsed))
        check_fields(parsed, df.columns)
        check_place(storage, overwrite=replaced)
    rows = fetched(df, parsed, canonical_keys([*given, *session]))
    if replaced:
        if rows is None:
            _check_not_read_from(df, storage)
        remove_table(storage)
    if rows is not None:
        return write_table(storage, rows, LocalEngine(), parsed)
    return write_table(storage, df, SparkEngine(df.sparkSession), parsed)


def source_rows(df: DataFrame, options: WriteOptions, said: Iterable[str]) -> tuple[Any, Engine]:
    """Rows of a DataFrame for a merge, and the engine that takes them. `said`: the options that the caller gave."""
    _check_columns(df)
    rows = fetched(df, options, canonical_keys([*said, *hudi_options(df.sparkSession)]))
    return (rows, LocalEngine()) if rows is not None else (df, SparkEngine(df.sparkSession))


# ---- checks before anything is touched -------------------------------------------------------------------------------


def _mode(mode: str) -> str:
    word = mode.lower()
    if word not in SAVE_MODES:
        raise ConfigError(f"Save mode {mode!r} is not one of {', '.join(SAVE_MODES)}.")
    return "error" if word in ("errorifexists", "default") else word


def _with_partition_by(options: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
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


def _check_columns(df: DataFrame) -> None:
    """Every column has a type that can be stored, and a name of its own."""
    names = arrow_from_spark(df.schema).names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SchemaMismatch(f"The DataFrame has several columns called {', '.join(twice)}. Rename or drop the others.")


def _check_not_read_from(df: DataFrame, storage: Storage) -> None:
    """Overwriting deletes the table before the input is read; an input that reads this table would lose its rows."""
    root = _plain_path(storage.full_path("")).rstrip("/") + "/"
    if any(_plain_path(file).startswith(root) for file in df.inputFiles()):
        raise ConfigError(
            f"The input reads from {storage.root}, which mode overwrite is about to delete. Write to another path, or "
            "use operation upsert, insert or delete with mode append."
        )


def _plain_path(uri: str) -> str:
    parts = urlsplit(uri)
    return unquote(parts.netloc + parts.path)
