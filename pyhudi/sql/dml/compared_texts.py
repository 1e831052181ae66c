"""The check of texts that a condition compares with numbers: refused if the engine's own cast would round them.

Next to a BIGINT, DuckDB reads '1.5' as 2, Spark 3.5 as 1, Spark 4 not at all: a DELETE would delete the wrong row.

Source: docs/sql-dml.md, "Types".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.arrow.kinds import is_text
from pyhudi.errors import ConfigError
from pyhudi.redaction import brief
from pyhudi.sql.columns import type_text
from pyhudi.sql.dml.target import Scope, Target
from pyhudi.sql.tokens import Reader, SqlToken, TokenKind, dotted_at

__all__ = ["check_constants", "check_source_types"]

_COMPARES = ("=", "==", "<=>", "<>", "!=", "<", ">", "<=", ">=")
_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")


def check_constants(condition: Reader | None, target: Target, scope: Scope) -> None:
    """Raise ConfigError if integers of the table are compared with a text that is no integer."""
    if condition is None:
        return
    tokens = condition.tokens[condition.at : condition.stop]
    has_query = any(token.is_word("SELECT") for token in tokens)  # in which a bare name may be another table's
    for name, at, stop in _names(tokens):
        bare = scope.without_table(name)
        is_ours = len(bare) == 1 and not (has_query and bare == name)
        column = target.find(bare[0]) if is_ours else None
        if column is None or not pt.is_integer(target.schema.field(column).type):
            continue
        for text in (*_after(tokens, stop), *_before(tokens, at)):
            if not _WHOLE.fullmatch(text.value):
                raise ConfigError(
                    f"{target.table.name}: the condition compares the column {column} of type "
                    f"{target.schema.field(column).type} with {brief(text.value)}, which is no whole number. Write the "
                    "number without quotes. Nothing was written."
                )


def check_source_types(values: Mapping[str, pa.DataType], target: Target) -> None:
    """Raise ConfigError if texts of a source are compared with numbers of a key or partition column.

    Args: values: column of the table → the type of the source's column that a condition equates with it.
    """
    for name, kind in values.items():
        column = target.schema.field(name).type
        is_number = pt.is_integer(column) or pt.is_floating(column) or pt.is_decimal(column)
        if name in target.fixed and is_number and is_text(kind):
            raise ConfigError(
                f"{target.table.name}: the condition compares the column {name} of type {column} with texts of the "
                f"source, and engines round them in their own ways. Write CAST(… AS {type_text(column)}) around the "
                "source's column. Nothing was written."
            )


def _names(tokens: Sequence[SqlToken]) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """The names in a condition, each with its start and end."""
    at = 0
    while at < len(tokens):
        if tokens[at].is_name:
            name, stop = dotted_at(tokens, at)
            yield name, at, stop
            at = stop
        else:
            at += 1


def _after(tokens: Sequence[SqlToken], at: int) -> Iterator[SqlToken]:
    """The texts that a preceding name is compared with: `= 'x'`, `IN ('x', 'y')`, `BETWEEN 'x' AND 'y'`."""
    at += at < len(tokens) and tokens[at].is_word("NOT")
    is_list = at < len(tokens) and tokens[at].is_word("IN")
    is_range = at < len(tokens) and tokens[at].is_word("BETWEEN")
    if not (is_list or is_range or (at < len(tokens) and tokens[at].text in _COMPARES)):
        return
    for token in tokens[at + 1 :]:
        if token.kind is TokenKind.TEXT:
            yield token
        elif not (
            token.kind is TokenKind.NUMBER or token.is_symbol("(") or token.is_symbol(",") or token.is_word("AND")
        ):
            return
        if not (is_list or is_range):
            return


def _before(tokens: Sequence[SqlToken], at: int) -> Iterator[SqlToken]:
    """The text on the left of a name: `'x' = name`."""
    if at >= 2 and tokens[at - 1].text in _COMPARES and tokens[at - 2].kind is TokenKind.TEXT:
        yield tokens[at - 2]
