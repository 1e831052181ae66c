"""`write_hudi`: writes rows to a path, by a bootstrap, an overwrite of rows, or a write, as the options decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, overload

from pyhudi.actions.result import WriteResult
from pyhudi.expressions.binding import Where
from pyhudi.model.options import OptionScope, check_names, merged_options
from pyhudi.storage.base import Storage
from pyhudi.table.calls import Options, PathLike, open_place, session_options
from pyhudi.table.imports.bootstrap import bootstrap_by_options, is_bootstrap
from pyhudi.table.input import TableInput
from pyhudi.table.replace_where import write_where
from pyhudi.table.save import write
from pyhudi.table.wrong_names import checked_call

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession

__all__ = ["write_hudi"]


@overload
def write_hudi(
    path: PathLike | Storage,
    data: TableInput,
    operation: str | None = None,
    *,
    record_key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] | None = None,
    ordering: str | Sequence[str] | None = None,
    table_name: str | None = None,
    table_type: str | None = None,
    table_version: int | None = None,
    index: str | None = None,
    schema_mode: str | None = None,
    mode: Literal["append", "overwrite", "replace", "error", "errorifexists"] = "append",
    where: Where = None,
    spark: SparkSession | None = None,
    storage_options: Mapping[str, object] | None = None,
    options: Options | None = None,
) -> WriteResult: ...


@overload
def write_hudi(
    path: PathLike | Storage,
    data: TableInput,
    operation: str | None = None,
    *,
    record_key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] | None = None,
    ordering: str | Sequence[str] | None = None,
    table_name: str | None = None,
    table_type: str | None = None,
    table_version: int | None = None,
    index: str | None = None,
    schema_mode: str | None = None,
    mode: str,
    where: Where = None,
    spark: SparkSession | None = None,
    storage_options: Mapping[str, object] | None = None,
    options: Options | None = None,
) -> WriteResult | None: ...


@checked_call
def write_hudi(
    path: PathLike | Storage,
    data: TableInput,
    operation: str | None = None,
    *,
    record_key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] | None = None,
    ordering: str | Sequence[str] | None = None,
    table_name: str | None = None,
    table_type: str | None = None,
    table_version: int | None = None,
    index: str | None = None,
    schema_mode: str | None = None,
    mode: str = "append",
    where: Where = None,
    spark: SparkSession | None = None,
    storage_options: Mapping[str, object] | None = None,
    options: Options | None = None,
) -> WriteResult | None:
    """Write rows to a table, which is created if it does not exist.

    Args:
        data: a Spark DataFrame; pyarrow Table, RecordBatch, RecordBatchReader or Dataset; pandas DataFrame; an object
            with `__arrow_c_stream__` (polars, DuckDB, Ibis); a list of dicts, a dict of lists; an iterator of batches;
            a function that returns one of these. A write that gives way to another writer reads streams again only
            if they are small, and other data as often as needed.
        operation: upsert, insert, bulk_insert, delete, insert_overwrite, insert_overwrite_table, delete_partition or
            bootstrap (`data` is not read, see `bootstrap`); None: the operation in the options, else upsert (without a
            record key bulk_insert).
        record_key, partition_by, ordering: column names; no record key: Hudi's generated keys.
        table_name: None: the folder's name. table_type: COPY_ON_WRITE. table_version: 9, or 6 or 8.
        index: the index that finds keys: SIMPLE, BLOOM, BUCKET, ...
        mode: append; overwrite (an insert_overwrite_table: all rows of an existing table are replaced in one commit,
            which `restore` can undo); replace (a new table replaces it; the history is lost); ignore or error if the
            table exists. Spark's `df.write.mode("overwrite")` makes a new table, as in Hudi.
        where: with mode overwrite only these rows are replaced, and `data` must pass it; see `HudiTable.overwrite`.
        schema_mode: merge (new columns and wider types of the data are added), strict, or overwrite: a table that is
            overwritten whole gets the columns of the data.
        options: Hudi's own keys (docs/options.md).
    Returns: the result; None if mode is ignore and the table exists.
    Raises:  HudiError; unless the call returns, nothing is visible.
    """
    session = spark if spark is not None else getattr(data, "sparkSession", None)
    storage = open_place(path, storage_options, session)
    columns = {"record_key": record_key, "partition_by": partition_by, "ordering": ordering}
    table = {"table_name": table_name, "table_type": table_type, "table_version": table_version, "index": index}
    arguments = {**columns, **table, "schema_mode": schema_mode, "operation": operation}
    write_options = merged_options(options, arguments)
    check_names(write_options, OptionScope.WRITE, partial(session_options, session))
    if is_bootstrap(write_options):
        return bootstrap_by_options(storage, write_options, overwrite=mode in ("overwrite", "replace"))
    if where is not None:
        return write_where(storage, data, where, write_options, mode, spark)
    return write(storage, data, write_options, mode, spark, keeps_history=True)
