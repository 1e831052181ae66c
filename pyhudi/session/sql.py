"""`spark.sql` and `spark.table` after `enable`: PyHudi runs Hudi's statements, all others go to Spark unchanged.

`SparkSqlSession` runs SQL statements in a Spark session: it provides the catalog's names, the settings, and the
evaluation of expressions.

`schema_of` lets Spark read the columns that a CREATE TABLE lists: every type that Spark knows, NOT NULL and comments.
Source: tried on Spark 4.3, classic and Connect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import cast

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st
from pyspark.sql.types import StructType

from pyhudi.actions.result import WriteResult
from pyhudi.errors import ConfigError
from pyhudi.formats.avro.schema import DOC_KEY
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.options import OptionScope, known_options
from pyhudi.session.caching import cache_statement
from pyhudi.session.catalog import catalog_of, evict_names
from pyhudi.session.names import READS, StatementNames, reads_ours, with_names
from pyhudi.session.temp_views import spark_sql, spark_table
from pyhudi.session.writer import write_frame
from pyhudi.spark.engine import SparkEngine, collect_arrow
from pyhudi.spark.failures import translated
from pyhudi.spark.session import hudi_options, settings_read_once, settings_with_prefix
from pyhudi.spark.types import arrow_from_spark, with_typed_keys
from pyhudi.sql.session import NO_ROWS, SCHEMA_ON_READ, NamedTable, SqlFrame, TableName
from pyhudi.sql.statement import may_be_statement, parse_statement
from pyhudi.sql.table_options import options_of
from pyhudi.sql.tokens import Reader, keywords, tokens_of
from pyhudi.storage.clock import SystemClock
from pyhudi.table import HudiTable
from pyhudi.table.calls import open_place
from pyhudi.table.save import create
from pyhudi.table.scan import Scan
from pyhudi.timeline.table_properties import table_exists

__all__ = ["SparkSqlSession", "as_frame", "frame_of_name", "hudi_aware_sql", "hudi_aware_table", "name_of", "schema_of"]


def schema_of(spark: SparkSession, columns: str) -> pa.Schema:
    """Read columns as a statement lists them into an Arrow schema. Raises ConfigError if Spark can't read them."""
    try:
        struct = spark.createDataFrame([], columns).schema if columns.strip() else st.StructType([])
    except PySparkException as error:
        raise ConfigError(f"SQL: these columns can't be read: {error}") from error
    comments = {field.name: field.metadata.get("comment") or "" for field in struct.fields}
    return pa.schema([_commented(field, comments[field.name]) for field in arrow_from_spark(struct)])


def _commented(field: pa.Field, comment: str) -> pa.Field:
    return field.with_metadata({DOC_KEY: comment.encode()}) if comment else field


_CLOCK = SystemClock()
# Spark's settings that Hudi's statements use if Hudi's own option is not set.
_OWN_SETTINGS: Mapping[str, str] = {"spark.sql.sources.partitionOverwriteMode": "hoodie.datasource.overwrite.mode"}


def as_frame(frame: SqlFrame) -> DataFrame:
    """A frame of this session as a DataFrame."""
    return cast("DataFrame", frame)


class SparkSqlSession:
    """`SqlSession` on Spark, classic or Connect."""

    def __init__(self, spark: SparkSession, args: object = None, frames: Mapping[str, object] | None = None) -> None:
        """`args`, `frames`: parameters of the statement, which every text that Spark evaluates for it may name."""
        self.spark = spark
        self._args, self._frames = args, frames
        self._catalog = StatementNames(catalog_of(spark))

    @property
    def catalog(self) -> StatementNames:
        return self._catalog

    @property
    def settings(self) -> Mapping[str, str]:
        """The `hoodie.*` settings. Those of `SET` win over the session's `spark.hoodie.*`; these win over Spark's."""
        defaults = {
            _OWN_SETTINGS[key]: text
            for key, text in settings_with_prefix(self.spark, "spark.sql.sources.").items()
            if key in _OWN_SETTINGS
        }
        settings = {**defaults, **hudi_options(self.spark), **settings_with_prefix(self.spark, "hoodie.")}
        settings.pop(SCHEMA_ON_READ, None)
        return known_options(settings, OptionScope.WRITE)

    @property
    def schema_on_read(self) -> str | None:
        settings = {**hudi_options(self.spark), **settings_with_prefix(self.spark, "hoodie.")}
        return settings.get(SCHEMA_ON_READ)

    def find_table(self, name: TableName) -> NamedTable | None:
        path = name.path
        if path is not None:
            return NamedTable(name, path, HudiTable.open(path, self.spark))
        entry = self.catalog.find(name)
        if entry is None or not entry.is_hudi:
            return None
        if entry.location is None:
            raise ConfigError(f"The catalog has no location for the Hudi table {name}. Drop it and create it again.")
        table = HudiTable.open(entry.location, self.spark)
        return NamedTable(name, entry.location, table, entry.properties, entry.is_read_optimized)

    def open(self, location: str) -> HudiTable | None:
        exists = table_exists(open_place(location, None, self.spark))
        return HudiTable.open(location, self.spark) if exists else None

    def create(
        self, location: str, schema: pa.Schema, options: Mapping[str, object], *, replaces_table: bool = False
    ) -> HudiTable:
        storage = open_place(location, None, self.spark)
        if replaces_table:
            return HudiTable(create(storage, schema, options, self.spark, replaces_table=True), self.spark, options)
        names = [entry.name for entry in storage.list("")]
        if names:
            raise ConfigError(
                f"{location} holds {', '.join(sorted(names)[:3])} and no Hudi table; a new table needs an empty folder."
            )
        return HudiTable.create(location, schema, spark=self.spark, options=options)

    def query(self, text: str) -> SqlFrame:
        return SqlFrame(with_names(self.spark, self, text, self._args, self._frames))

    @contextmanager
    def view_of(self, frame: SqlFrame) -> Iterator[str]:
        name = f"pyhudi_{_CLOCK.new_uuid().replace('-', '')}"
        as_frame(frame).createOrReplaceTempView(name)
        self._catalog.is_of_the_statement(name)
        try:
            yield name
        finally:
            self.spark.catalog.dropTempView(name)

    def frame_of(self, table: NamedTable, columns: Sequence[str] | None = None) -> SqlFrame:
        return SqlFrame(table.table.scan(columns).to_spark(spark=self.spark))

    def frame_of_scan(self, scan: Scan) -> SqlFrame:
        return SqlFrame(scan.to_spark(spark=self.spark))

    def create_view(self, name: str, frame: SqlFrame, *, replace: bool, is_global: bool) -> None:
        df = as_frame(frame)
        if is_global:
            (df.createOrReplaceGlobalTempView if replace else df.createGlobalTempView)(name)
        else:
            (df.createOrReplaceTempView if replace else df.createTempView)(name)

    def save_table(self, name: str, frame: SqlFrame, mode: str) -> None:
        as_frame(frame).write.mode(mode).saveAsTable(name)

    def frame_from(self, rows: pa.Table) -> SqlFrame:
        return SqlFrame(SparkEngine(self.spark).from_arrow(rows))

    def frame_of_result(self, result: WriteResult) -> SqlFrame:
        return self.frame_from(NO_ROWS)

    def columns_of(self, frame: SqlFrame) -> pa.Schema:
        # The statement casts untyped values, such as `map()`, to the column's type.
        schema = with_typed_keys(as_frame(frame).schema)
        return arrow_from_spark(cast(StructType, schema))

    def rows_of(self, frame: SqlFrame) -> pa.Table:
        return collect_arrow(as_frame(frame))

    def schema_of(self, columns: str) -> pa.Schema:
        return schema_of(self.spark, columns)

    def write(
        self,
        table: NamedTable,
        frame: SqlFrame,
        operation: str,
        options: Mapping[str, object],
        mode: str = "append",
    ) -> WriteResult:
        df = as_frame(frame)
        meta_columns = [name for name in META_COLUMNS if name in df.columns]
        write_options = {
            **options_of(self, table),
            **options,
            "hoodie.datasource.write.operation": operation,
        }
        result = write_frame(df.drop(*meta_columns) if meta_columns else df, table.place, write_options, mode)
        assert result is not None
        return result


_CHANGES_NAMES = keywords("CREATE DROP ALTER USE REPLACE REFRESH UNCACHE SET RESET")


def hudi_aware_sql(
    self: SparkSession,
    sqlQuery: str,  # noqa: N803
    args: object = None,
    **kwargs: object,
) -> DataFrame:
    """`SparkSession.sql`: PyHudi runs Hudi's statements; in queries, names of Hudi tables are their native plans."""
    try:
        first = tokens_of(sqlQuery, 2)
        word = first[0].text.upper() if first else ""
        only_lists = word == "SET" and len(first) == 1  # PyHudi runs it if a session can't list options
        ours = may_be_statement(sqlQuery)
    except (ConfigError, TypeError):  # Spark reports the error
        return spark_sql(self, sqlQuery, args, **kwargs)
    try:
        with settings_read_once(self):
            session = SparkSqlSession(self)
            if ours:
                text, parameters = _named_parameters(sqlQuery, args)
                session = SparkSqlSession(self, parameters, kwargs)
                statement = parse_statement(text, session)
                if statement is not None:
                    with translated():
                        return as_frame(statement.run(session))
            if word in ("CACHE", "UNCACHE") and cache_statement(self, session, sqlQuery, partial(reads_ours, session)):
                return as_frame(session.frame_from(NO_ROWS))
            if word in READS:
                return with_names(self, session, sqlQuery, args, kwargs)
        return spark_sql(self, sqlQuery, args, **kwargs)
    finally:
        if word in _CHANGES_NAMES and not only_lists:
            evict_names(self)


def hudi_aware_table(self: SparkSession, tableName: str) -> DataFrame:  # noqa: N803
    """`SparkSession.table`, which also finds Hudi tables."""
    frame = frame_of_name(self, tableName)
    return spark_table(self, tableName) if frame is None else frame


def frame_of_name(spark: SparkSession, text: str) -> DataFrame | None:
    """The rows of a name as `spark.table` takes it; None if it is not Hudi's."""
    name = name_of(text)
    if name is None:
        return None
    session = SparkSqlSession(spark)
    with settings_read_once(spark):
        if session.find_table(name) is None:
            entry = session.catalog.find(name) if name.path is None else None
            if entry is None or entry.view_text is None:
                return None
        return as_frame(session.query(f"SELECT * FROM {text}"))


def name_of(text: str) -> TableName | None:
    """Read a table's name as Python calls take it; None if it is not a name."""
    try:
        reader = Reader(text, tokens_of(text))
        name = reader.table_name()
        reader.expect_end()
    except (ConfigError, TypeError):
        return None
    return name


def _named_parameters(text: str, args: object) -> tuple[str, object]:
    """Convert positional parameters to named ones, as a statement is evaluated in several parts."""
    if not isinstance(args, Sequence) or isinstance(args, str) or not args:
        return text, args
    parts, at, parameters = [], 0, dict[str, object]()
    for token in tokens_of(text):
        if token.is_symbol("?"):
            key = f"pyhudi_{len(parameters)}"
            if len(parameters) >= len(args):
                raise ConfigError(f"SQL: the statement has more parameters than the {len(args)} values that are given.")
            parameters[key] = args[len(parameters)]
            parts += [text[at : token.start], f":{key}"]
            at = token.end
    if len(parameters) != len(args):
        raise ConfigError(f"SQL: {len(args)} values are given for the {len(parameters)} parameters of the statement.")
    return "".join([*parts, text[at:]]), parameters
