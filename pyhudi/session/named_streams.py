"""Tables that streams read and write by name: `readStream.table` and `writeStream.toTable` after `enable`.

The name is looked up when the query starts; from then on the stream is one of the table's path. Source: Spark's guide
to Structured Streaming, "Streaming Table APIs".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from pyhudi.errors import ConfigError, TableExists
from pyhudi.session.named_writes import definition, split_path
from pyhudi.session.spark_sql import SparkSqlSession
from pyhudi.session.sql_methods import name_of
from pyhudi.spark.types import arrow_from_spark
from pyhudi.sql.column_texts import columns_text
from pyhudi.sql.session import TableName

__all__ = ["place_of_table", "table_to_stream_to"]

_OF_THE_STREAM = "hoodie.datasource.write.streaming."  # two streams into one table have different ones


def place_of_table(spark: SparkSession, text: str) -> str | None:
    """The folder of a Hudi table that is named; None for what is none of ours. Raises TableNotFound for a lost one."""
    name = name_of(text)
    found = None if name is None else SparkSqlSession(spark).find_table(name)
    return None if found is None else found.location


def table_to_stream_to(
    df: DataFrame, text: str, options: Mapping[str, object], partition_by: Sequence[str]
) -> tuple[str, dict[str, object], Callable[[], None]]:
    """The folder of the table that a stream of rows goes to, the options of its writes, and what takes the table back
    that was made here, for a stream that does not begin.

    A table that is not there is made without rows and registered, as `saveAsTable` does it, but for the options that
    are the stream's own.

    Args:
        df: the stream: it gives the columns of a new table.
        options: Hudi's, and `path` for the folder of a new table.
    Raises: ConfigError; TableExists for a name of another format's table. Nothing is made then.
    """
    name = name_of(text)
    if name is None:
        raise ConfigError(f"{text!r:.200} is no name of a table.")
    session = SparkSqlSession(df.sparkSession)
    path, given = split_path(options)
    if name.path is not None:
        return name.path, given, _nothing
    entry = session.catalog.find(name)
    take_back = _nothing
    if entry is None:
        is_new = session.open(path or session.catalog.place_of(name)) is None
        take_back = partial(_take_back, session, name, is_new)
        lasting = {key: value for key, value in given.items() if not key.startswith(_OF_THE_STREAM)}
        columns = columns_text(arrow_from_spark(df.schema))
        replace(definition(name, lasting, path, partition_by), columns=columns, if_not_exists=True).run(session)
        entry = session.catalog.find(name)
    if entry is None or not entry.is_hudi:
        raise TableExists(f"{name} is no Hudi table; drop it, or choose another name.")
    if entry.location is None:
        raise ConfigError(f"The catalog has no location for the Hudi table {name}. Drop it and create it again.")
    of_table = {key: value for key, value in entry.properties.items() if key.startswith("hoodie.")}
    return entry.location, {**of_table, **given}, take_back


def _take_back(session: SparkSqlSession, name: TableName, is_new: bool) -> None:
    entry = session.catalog.find(name)
    table = None if entry is None or entry.location is None or not is_new else session.open(entry.location)
    if table is not None and not table.timeline.instants:
        table.drop()
    session.catalog.forget(name)


def _nothing() -> None:
    """There is nothing to take back."""
