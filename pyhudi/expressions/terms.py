"""Conditions beyond the tree's grammar: their terms, and tests whether Spark's full grammar knows them.

An SQL engine evaluates terms that the tree can't express. The other terms of a chain of ANDs still skip files.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from pyhudi.errors import ConfigError
from pyhudi.model.sql_text import MisreadSql, query_of, spark_tokens
from pyhudi.redaction import brief

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["check_repeatable", "sql_condition", "terms_of"]

_OF_A_FILTER = frozenset(("expressions", "from", "from_", "where"))  # parts of a query that only filters
# Functions of Spark and DuckDB whose value differs with each evaluation; times such as now() are fixed for a call.
_BY_CHANCE = frozenset(
    ("rand", "random", "randn", "randstr", "uniform", "uuid", "gen_random_uuid", "uuidv4", "uuidv7", "shuffle",
     "monotonically_increasing_id", "spark_partition_id", "input_file_name", "input_file_block_start",
     "input_file_block_length", "nextval", "setseed")
)  # fmt: skip
_CONDITION_AND_NO_MORE = "SELECT * FROM rows WHERE {}\n"  # the last line ends a comment


def terms_of(text: str) -> list[str]:
    """Split a text at its ANDs, except those in brackets, CASE or BETWEEN; a text with an OR is returned whole.

    Raises: MisreadSql for an unclosed quotation.
    """
    starts, ends, depth, betweens = [0], list[int](), 0, 0
    for token in spark_tokens(text):
        kind, word = token.token_type.name, token.text.upper() if token.token_type.name == "VAR" else ""
        depth += (kind in ("L_PAREN", "L_BRACKET") or word == "CASE") - (
            kind in ("R_PAREN", "R_BRACKET") or word == "END"
        )
        if depth:
            continue
        if word == "OR":
            return [text]
        if word == "AND" and not betweens:
            ends.append(token.start)
            starts.append(token.end + 1)
        betweens += (word == "BETWEEN") - (word == "AND" and betweens > 0)
    return [text[start:end].strip() for start, end in zip(starts, [*ends, len(text)], strict=True)]


def sql_condition(text: str) -> exp.Expr | None:
    """The tree of a condition in Spark's full grammar; None for any other text, and for a condition with queries,
    aggregates or windows in it.
    """
    from sqlglot import exp

    try:
        query = query_of(_CONDITION_AND_NO_MORE.format(text))
    except MisreadSql:
        return None
    if not isinstance(query, exp.Select) or {name for name, value in query.args.items() if value} - _OF_A_FILTER:
        return None
    where = query.args.get("where")
    if where is None:
        return None
    condition: exp.Expr = where.this
    is_value = isinstance(condition, exp.Column | exp.Literal)
    inner = condition.find(exp.Query, exp.AggFunc, exp.Window, exp.Placeholder, exp.Parameter, exp.Alias)
    return condition if inner is None and not is_value else None


def check_repeatable(text: str, what: str) -> None:
    """Raise ConfigError for a condition with a function whose value depends on chance, or on how rows are read.

    A condition may be evaluated more than once for a row: for its file, for its key, and for its columns. A query in
    brackets is evaluated once and may have such functions. Raises MisreadSql like `spark_tokens`.
    """
    words = [token.text.lower() for token in spark_tokens(text)]
    in_query = list[bool]()
    for word, following in pairwise([*words, ""]):
        if word == "(":
            in_query.append(following == "select" or (bool(in_query) and in_query[-1]))
        elif word == ")" and in_query:
            in_query.pop()
        elif word in _BY_CHANCE and following == "(" and not (in_query and in_query[-1]):
            raise ConfigError(
                f"{what}: {brief(text)} calls {word}(), whose value is another one each time, so chance would decide "
                f"which rows are meant. Expected a condition that depends on the row alone; to choose rows at random, "
                f"read their keys and name these."
            )
