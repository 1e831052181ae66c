"""`spark.sql` and `spark.table` after `enable`: Hudi's statements are ours, all others go to Spark unchanged."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from pyhudi.errors import ConfigError
from pyhudi.session.catalog import forget_names
from pyhudi.session.named_queries import READS, with_names
from pyhudi.session.spark_calls import spark_sql, spark_table
from pyhudi.session.spark_sql import SparkSqlSession, as_frame
from pyhudi.spark.failures import translated
from pyhudi.spark.session import settings_read_once
from pyhudi.sql.clauses import Reader
from pyhudi.sql.session import TableName
from pyhudi.sql.statement import is_known, parse_statement
from pyhudi.sql.tokens import keywords, tokens_of

__all__ = ["frame_of_name", "hudi_aware_sql", "hudi_aware_table", "name_of"]

_CHANGES_NAMES = keywords("CREATE DROP ALTER USE REPLACE REFRESH UNCACHE SET RESET")


def hudi_aware_sql(
    self: SparkSession,
    sqlQuery: str,  # noqa: N803
    args: object = None,
    **kwargs: object,
) -> DataFrame:
    """`SparkSession.sql`: Hudi's statements by PyHudi, names of Hudi tables in queries as their native plans."""
    try:
        first = tokens_of(sqlQuery, 2)
        word = first[0].text.upper() if first else ""
        only_lists = word == "SET" and len(first) == 1  # as PyHudi does for options where a session has no other way
        ours = is_known(sqlQuery)
    except (ConfigError, TypeError):  # Spark says what is wrong with it
        return spark_sql(self, sqlQuery, args, **kwargs)
    try:
        with settings_read_once(self):
            session = SparkSqlSession(self)
            if ours:
                text, named = _named_parameters(sqlQuery, args)
                session = SparkSqlSession(self, named, kwargs)
                statement = parse_statement(text, session)
                if statement is not None:
                    with translated():
                        return as_frame(statement.run(session))
            if word in READS:
                return with_names(self, session, sqlQuery, args, kwargs)
        return spark_sql(self, sqlQuery, args, **kwargs)
    finally:
        if word in _CHANGES_NAMES and not only_lists:
            forget_names(self)


def hudi_aware_table(self: SparkSession, tableName: str) -> DataFrame:  # noqa: N803
    """`SparkSession.table`, which finds Hudi tables too."""
    frame = frame_of_name(self, tableName)
    return spark_table(self, tableName) if frame is None else frame


def frame_of_name(spark: SparkSession, text: str) -> DataFrame | None:
    """The rows of a name as `spark.table` takes it; None when it is none of ours."""
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
    """A table's name as Python calls take it; None for what is no name."""
    try:
        reader = Reader(text, tokens_of(text))
        name = reader.table_name()
        reader.expect_end()
    except (ConfigError, TypeError):
        return None
    return name


def _named_parameters(text: str, args: object) -> tuple[str, object]:
    """Positional parameters as named ones: a statement is evaluated in several pieces."""
    if not isinstance(args, Sequence) or isinstance(args, str) or not args:
        return text, args
    parts, at, named = [], 0, dict[str, object]()
    for token in tokens_of(text):
        if token.is_symbol("?"):
            key = f"pyhudi_{len(named)}"
            if len(named) >= len(args):
                raise ConfigError(f"SQL: the statement has more parameters than the {len(args)} values that are given.")
            named[key] = args[len(named)]
            parts += [text[at : token.start], f":{key}"]
            at = token.end
    if len(named) != len(args):
        raise ConfigError(f"SQL: {len(args)} values are given for the {len(named)} parameters of the statement.")
    return "".join([*parts, text[at:]]), named
