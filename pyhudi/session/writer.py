"""The write of a DataFrame by path, as by `df.write.format("hudi")`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from pyhudi.actions.result import WriteResult
from pyhudi.spark.session import settings_read_once, store_options
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.imports.bootstrap import bootstrap_by_options, is_bootstrap
from pyhudi.table.save import write

__all__ = ["write_frame"]


def write_frame(
    df: DataFrame,
    table: Storage | str,
    options: Mapping[str, object],
    mode: str = "append",
    partition_by: Sequence[str] = (),
) -> WriteResult | None:
    """Write the rows of a DataFrame to a table.

    Args:
        table: its storage, or its path.
        options: Hudi's write options, and Hadoop's for the store (`fs.*`); they win over the session's `spark.hoodie.*`
            and `spark.hadoop.fs.*`.
        mode: `append` (to the table, which is created if missing), `overwrite` (replaces the table by a new one; with
            operation insert_overwrite_table replaces its rows in one commit), `ignore` (does nothing if there is a
            table), `error` (also `errorifexists`, `default`: only a new table).
        partition_by: the partition fields, if the option does not name them.
    Returns: the result; None if mode `ignore` found a table.
    Raises:  HudiError; for wrong options, columns, modes and paths before anything is written. Overwriting
        is not atomic: it removes the old table first, and a crash after that leaves no table or an incomplete one.
    """
    spark = df.sparkSession
    with settings_read_once(spark):
        storage = table if isinstance(table, Storage) else open_storage(table, store_options(spark, options))
        if is_bootstrap(options):
            return bootstrap_by_options(storage, options, overwrite=mode == "overwrite")
        return write(storage, df, options, mode, spark, partition_by)
