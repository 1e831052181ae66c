"""Writes of a DataFrame to a table by name: `saveAsTable`, `insertInto` and `writeTo` after `enable`.

A new name is registered as by CREATE TABLE … USING hudi. Rows for an existing table are an INSERT, by name or by
position as in Spark. `HudiAwareTableWriter` replaces the result of `df.writeTo(name)`.
Source: Spark's documentation of `DataFrameWriter` and `DataFrameWriterV2`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession

from pyhudi.actions.save_modes import canonical_mode
from pyhudi.errors import ConfigError, TableExists, TableNotFound
from pyhudi.model.options.operation import INSERT_INTO_OPERATION
from pyhudi.session.sql import SparkSqlSession, name_of
from pyhudi.session.temp_views import FORMATS
from pyhudi.session.writer import write_frame
from pyhudi.spark.failures import translated
from pyhudi.spark.session import settings_read_once
from pyhudi.sql.create_table import CreateTable
from pyhudi.sql.dml.insert import Insert
from pyhudi.sql.session import SqlFrame, TableName
from pyhudi.sql.table_options import check_properties, is_ours

if TYPE_CHECKING:
    from pyspark.sql._typing import OptionalPrimitiveType

_OPERATION = "hoodie.datasource.write.operation"

__all__ = [
    "HudiAwareTableWriter",
    "definition",
    "insert_frame",
    "is_hudi_name",
    "overwrite_frame",
    "save_frame",
    "split_path",
]


def is_hudi_name(spark: SparkSession, text: str) -> bool:
    """True for the name, or hudi.`/path`, of a Hudi table."""
    name = name_of(text)
    return name is not None and is_ours(SparkSqlSession(spark), name)


def save_frame(
    df: DataFrame,
    text: str,
    mode: str,
    options: Mapping[str, object],
    partition_by: Sequence[str],
    *,
    or_replace: bool = False,
    create: bool = False,
) -> None:
    """Run `saveAsTable` with format hudi.

    Args:
        mode: a save mode. `append` to an existing table matches columns by name.
        options: Hudi's, and `path` for the folder of a new table.
        or_replace, create: `writeTo(…).createOrReplace()` and `.create()` instead of a mode.
    Raises: TableExists, ConfigError.
    """
    session = SparkSqlSession(df.sparkSession)
    name = name_of(text)
    if name is None:
        raise ConfigError(f"{text!r:.200} is no name of a table.")
    word = canonical_mode(mode)
    path, hudi_options = split_path(options)
    entry = session.catalog.find(name)
    if entry is not None and not entry.is_hudi:
        raise TableExists(f"{name} is no Hudi table; drop it, or choose another name.")
    if entry is not None and not or_replace:
        if word == "ignore":
            return
        if word == "error" or create:
            raise TableExists(f"There is a table {name} already; mode append adds to it, overwrite replaces it.")
        if word == "append":
            assert entry.location is not None
            table = session.find_table(name)
            if table is not None:
                check_properties(name, entry.properties, table.table.state().config)
            write_frame(df, entry.location, {**entry.properties, **hudi_options}, "append", partition_by)
            return
    _create(session, name, df, hudi_options, path, partition_by, or_replace=entry is not None)


def _create(
    session: SparkSqlSession,
    name: TableName,
    df: DataFrame,
    options: Mapping[str, object],
    path: str | None,
    partition_by: Sequence[str],
    *,
    or_replace: bool,
) -> None:
    statement = replace(definition(name, options, path, partition_by), query="rows", or_replace=or_replace)
    statement.run_with(session, SqlFrame(df))


def split_path(options: Mapping[str, object]) -> tuple[str | None, dict[str, object]]:
    """Split off the option `path`, the folder of a new table, from the other set options."""
    remaining = {str(key): value for key, value in options.items() if value is not None}
    path = next((str(remaining.pop(key)) for key in list(remaining) if key.lower() == "path"), None)
    return path, remaining


def definition(
    name: TableName, options: Mapping[str, object], path: str | None, partition_by: Sequence[str]
) -> CreateTable:
    """The CREATE TABLE of a new name. Storage settings are kept out of the catalog: they include passwords."""
    properties = {key: str(value) for key, value in options.items() if not key.startswith("fs.")}
    partition_text = properties.get("hoodie.datasource.write.partitionpath.field", "")
    fields = tuple(partition_by) or tuple(
        field.strip().partition(":")[0] for field in partition_text.split(",") if field.strip()
    )
    return CreateTable(name, partitions=fields, properties=properties, location=path)


def insert_frame(
    df: DataFrame,
    text: str,
    options: Mapping[str, object],
    *,
    overwrites: bool = False,
    by_name: bool = False,
) -> None:
    """Run `insertInto` or `writeTo(…).append()`: INSERT the frame's rows. `options`: Hudi's; they win over the table's.

    Raises: TableNotFound, ConfigError for an operation that does not overwrite, and the errors of the INSERT.
    """
    session = SparkSqlSession(df.sparkSession, frames={"rows": df})
    with settings_read_once(df.sparkSession), translated():
        name = name_of(text)
        table = None if name is None else session.find_table(name)
        if table is None:
            raise TableNotFound(f"There is no Hudi table {text!r:.200}.")
        target = replace(table, options={**table.options, **_of_insert(split_path(options)[1], overwrites)})
        Insert(target, overwrites, {}, None, by_name, "SELECT * FROM {rows}").run(session)


def _of_insert(options: dict[str, object], overwrites: bool) -> dict[str, object]:
    """Convert the options of a call to those of an INSERT, which has a separate option for its operation."""
    operation = options.pop(_OPERATION, None)
    if operation is None:
        return options
    if not overwrites:
        return {**options, INSERT_INTO_OPERATION: operation}
    if not str(operation).lower().startswith("insert_overwrite"):
        raise ConfigError(f"{_OPERATION}={operation} does not overwrite; leave it out, or append.")
    return options


def overwrite_frame(df: DataFrame, text: str, options: Mapping[str, object]) -> None:
    """Run `writeTo(…).overwritePartitions()`: replace all rows of the partitions that get rows, or of the table."""
    insert_frame(df, text, {**options, "hoodie.datasource.overwrite.mode": "dynamic"}, overwrites=True, by_name=True)


_COLUMN = re.compile(r"Column<'`?([^'`(]+)`?'>")


class HudiAwareTableWriter:
    """`df.writeTo(name)` after `enable`. Calls go to Spark's writer, except for Hudi tables and `using("hudi")`."""

    def __init__(self, owner: DataFrame, real: DataFrameWriterV2, table: str) -> None:
        self._owner, self._real, self._table = owner, real, table
        self._uses: str | None = None
        self._call_options: dict[str, OptionalPrimitiveType] = {}
        self._partitions: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> object:
        if name == "_real":
            raise AttributeError(name)
        return getattr(self._real, name)

    def using(self, provider: str) -> HudiAwareTableWriter:
        self._uses = provider.lower()
        self._real.using(provider)
        return self

    def option(self, key: str, value: OptionalPrimitiveType) -> HudiAwareTableWriter:
        self._call_options[key] = value
        self._real.option(key, value)
        return self

    def options(self, **options: OptionalPrimitiveType) -> HudiAwareTableWriter:
        self._call_options.update(options)
        self._real.options(**options)
        return self

    def tableProperty(self, property: str, value: str) -> HudiAwareTableWriter:  # noqa: N802
        self._call_options[property] = value
        self._real.tableProperty(property, value)
        return self

    def partitionedBy(self, col: object, *cols: object) -> HudiAwareTableWriter:  # noqa: N802
        if self._uses in FORMATS:
            self._partitions = tuple(_column_name(column) for column in (col, *cols))
        else:
            self._real.partitionedBy(cast("str", col), *cast("tuple[str, ...]", cols))
        return self

    def create(self) -> None:
        self._save("create", create=True)

    def replace(self) -> None:

        if self._uses in FORMATS and not is_hudi_name(self._owner.sparkSession, self._table):
            raise TableNotFound(f"There is no Hudi table {self._table!r:.200} to replace; create() makes one.")
        self._save("replace", or_replace=True)

    def createOrReplace(self) -> None:  # noqa: N802
        self._save("createOrReplace", or_replace=True)

    def append(self) -> None:

        if not is_hudi_name(self._owner.sparkSession, self._table):
            self._real.append()
            return
        insert_frame(self._owner, self._table, self._call_options, by_name=True)

    def overwritePartitions(self) -> None:  # noqa: N802

        if not is_hudi_name(self._owner.sparkSession, self._table):
            self._real.overwritePartitions()
            return
        overwrite_frame(self._owner, self._table, self._call_options)

    def overwrite(self, condition: object) -> None:

        if is_hudi_name(self._owner.sparkSession, self._table):
            raise ConfigError(
                "writeTo(…).overwrite(condition) is two writes for a Hudi table: DELETE FROM … WHERE, then append(). "
                "overwritePartitions() replaces the partitions that get rows."
            )
        self._real.overwrite(cast("str", condition))

    def _save(self, call: str, *, create: bool = False, or_replace: bool = False) -> None:
        if self._uses not in FORMATS:
            getattr(self._real, call)()
            return

        save_frame(
            self._owner,
            self._table,
            "overwrite",
            self._call_options,
            self._partitions,
            create=create,
            or_replace=or_replace,
        )


def _column_name(column: object) -> str:
    """The name of a column that a call passes as text or as a Column."""
    if isinstance(column, str):
        return column
    text = str(column)
    match = _COLUMN.fullmatch(text)
    if match is None:
        raise ConfigError(f"partitionedBy takes columns of the frame for a Hudi table, found {text}.")
    return match[1]
