"""Hudi's table functions in a query: `hudi_table_changes('db.t', 'latest_state', 'earliest')` and its like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.errors import ConfigError, TableNotFound
from pyhudi.spark.engine import SparkEngine
from pyhudi.sql.clauses import Reader
from pyhudi.sql.literals import constant_of
from pyhudi.sql.session import SqlSession, TableName
from pyhudi.sql.table_functions import rows_of_function
from pyhudi.sql.tokens import TokenKind, tokens_of

if TYPE_CHECKING:
    from pyhudi.table import HudiTable

__all__ = ["function_frame"]


def function_frame(spark: SparkSession, session: SqlSession, function: str, arguments: Sequence[str]) -> DataFrame:
    """The rows of a call. Raises ConfigError for wrong arguments, TableNotFound."""
    values = [constant_of(tokens_of(text)) for text in arguments[1:]]
    first = [_name_text(text) for text in arguments[:1]]
    rows = rows_of_function(function, [*first, *values], lambda text: _table(session, text))
    if isinstance(rows, pa.Table):
        return SparkEngine(spark).from_arrow(rows)
    return rows.to_spark(spark)


def _name_text(text: str) -> str:
    """The first argument: a quotation, or a name without one."""
    tokens = tokens_of(text)
    if tokens and all(token.kind is TokenKind.TEXT for token in tokens):
        return str(constant_of(tokens))
    return text


def _table(session: SqlSession, text: str) -> HudiTable:
    if "/" in text and "`" not in text:
        name = TableName(("hudi", text))
    else:
        reader = Reader(text, tokens_of(text))
        name = reader.table_name()
        if not reader.at_end:
            raise ConfigError(f"{text!r:.200} is neither the name of a table nor a path.")
    found = session.find_table(name)
    if found is None:
        raise TableNotFound(f"There is no Hudi table {text!r:.200}.")
    return found.table
