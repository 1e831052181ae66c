"""Queries with names of Hudi tables in them: each name is given to Spark as a DataFrame of the table's native plan.

The user's text stays as it is but for the names. Spark's own way to say a DataFrame in a text, `{name}`, makes and
drops the views that it needs, on Connect too. Source: Spark's documentation of `SparkSession.sql`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from pyhudi.errors import ConfigError
from pyhudi.model.options.queries import AS_OF
from pyhudi.session.function_frames import function_frame
from pyhudi.session.spark_calls import spark_sql
from pyhudi.spark import capabilities
from pyhudi.sql.clauses import Reader
from pyhudi.sql.column_texts import quoted
from pyhudi.sql.references import Reference, references
from pyhudi.sql.session import SqlSession
from pyhudi.sql.tokens import SqlToken, TokenKind, keywords, tokens_of, unquoted

__all__ = ["READS", "with_names"]

# First words of statements that read tables; a view's text is read when the view is.
READS = keywords("SELECT WITH FROM TABLE ( INSERT CREATE REPLACE EXPLAIN CACHE MERGE UPDATE DELETE VALUES")
_MAY_READ = re.compile(r"\b(?:FROM|JOIN|TABLE|USING)\b", re.IGNORECASE)
_MAX_VIEW_DEPTH = 100  # Spark's own limit: views of views are opened one in another


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: str


def with_names(
    spark: SparkSession,
    session: SqlSession,
    text: str,
    args: object = None,
    given: Mapping[str, object] | None = None,
    depth: int = 0,
) -> DataFrame:
    """Run a statement in which Hudi tables may be named.

    Args:
        args: Spark's parameters, as given to `spark.sql`.
        given: its keywords; with them the text is a template, in which braces have a meaning.
    """
    given = given or {}
    tokens, found = _read(text)
    if not capabilities.PRESENT.has_data_sources and _defines_view(tokens):
        _refuse_view_of_ours(session, text, tokens)
    frames: dict[str, DataFrame] = {}
    edits: list[_Edit] = []
    session.catalog.expect(reference.name for reference in found if reference.arguments is None)
    for reference in found:
        frame = _frame(spark, session, reference, depth)
        if frame is None:
            continue
        key = f"pyhudi_{len(frames)}"
        frames[key] = frame
        edits.append(_Edit(reference.start, reference.end, "{" + key + "}"))
        if reference.alias_at is not None and reference.arguments is None and reference.name.path is None:
            edits.append(_Edit(reference.alias_at, reference.alias_at, f" AS {quoted(reference.name.parts[-1])}"))
        edits += _qualifiers(tokens, reference)
    if not frames:
        return spark_sql(spark, text, args, **given)
    return spark_sql(spark, _edited(text, edits, is_template=bool(given)), args, **given, **frames)


def _read(text: str) -> tuple[Sequence[SqlToken], Sequence[Reference]]:
    """Tokens and references of a text; none of a text that is wrong, which Spark will say."""
    if _MAY_READ.search(text) is None:
        return (), ()
    try:
        tokens = tokens_of(text)
        return tokens, () if _defines_view(tokens) else references(text, tokens)
    except ConfigError:
        return (), ()


def _refuse_view_of_ours(session: SqlSession, text: str, tokens: Sequence[SqlToken]) -> None:
    """Raises ConfigError for a view that names Hudi tables."""
    try:
        names = [reference.name for reference in references(text, tokens) if reference.arguments is None]
    except ConfigError:  # Spark says what is wrong with it
        return
    if any(session.find_table(name) is not None for name in names):
        raise ConfigError(capabilities.NO_VIEWS)


def _defines_view(tokens: Sequence[SqlToken]) -> bool:
    if not (tokens and tokens[0].is_word("CREATE", "ALTER")):
        return False
    return any(token.is_word("VIEW") for token in tokens[1:6])


def _edited(text: str, edits: Sequence[_Edit], *, is_template: bool) -> str:
    """The text with its edits; the user's own braces stand for themselves unless the text was a template already."""

    def own(part: str) -> str:
        return part if is_template else part.replace("{", "{{").replace("}", "}}")

    parts, at = [], 0
    for edit in sorted(set(edits), key=lambda edit: (edit.start, edit.end)):
        parts += [own(text[at : edit.start]), edit.text]
        at = edit.end
    return "".join([*parts, own(text[at:])])


def _qualifiers(tokens: Sequence[SqlToken], reference: Reference) -> list[_Edit]:
    """`db.t.column` becomes `t.column`: the relation in `db.t`'s place has a name of one part."""
    parts = [part.lower() for part in reference.name.parts]
    if len(parts) < 2 or reference.name.path is not None:
        return []
    width = 2 * len(parts)
    edits = []
    for place in range(len(tokens) - width):
        if place and tokens[place - 1].is_symbol("."):
            continue
        run = tokens[place : place + width]
        names, dots = run[::2], run[1::2]
        if all(dot.is_symbol(".") for dot in dots) and all(
            token.is_name and unquoted(token.text).lower() == part for token, part in zip(names, parts, strict=True)
        ):
            edits.append(_Edit(names[0].start, names[-1].end, quoted(reference.name.parts[-1])))
    return edits


def _frame(spark: SparkSession, session: SqlSession, reference: Reference, depth: int) -> DataFrame | None:
    """The rows that a reference means; None when it is none of ours."""
    if reference.arguments is not None:
        return function_frame(spark, session, reference.name.parts[0].lower(), reference.arguments)
    if reference.name.path is None:
        entry = session.catalog.find(reference.name)
        if entry is None:
            return None
        if entry.view_text is not None:
            return _frame_of_view(spark, session, entry.view_text, reference, depth)
    table = session.find_table(reference.name)
    if table is None:
        return None
    moment = None if reference.as_of is None else {AS_OF: _moment(spark, reference.as_of)}
    query_type = "read_optimized" if table.is_read_optimized else None
    return table.table.scan(query_type=query_type, options=moment).to_spark(spark)


def _frame_of_view(
    spark: SparkSession, session: SqlSession, text: str, reference: Reference, depth: int
) -> DataFrame | None:
    """The rows of a view that reads Hudi tables; None for one that does not."""
    if depth >= _MAX_VIEW_DEPTH:
        raise ConfigError(f"The view {reference.name} is {depth} views deep. Views must not read themselves.")
    if not _reads_ours(session, text, depth):
        return None
    if reference.as_of is not None:
        raise ConfigError(f"{reference.name} is a view; only tables can be read as of an earlier moment.")
    return with_names(spark, session, text, depth=depth + 1)


def _reads_ours(session: SqlSession, text: str, depth: int) -> bool:
    if depth >= _MAX_VIEW_DEPTH:
        return True
    for reference in _read(text)[1]:
        if reference.arguments is not None or session.find_table(reference.name) is not None:
            return True
        entry = session.catalog.find(reference.name) if reference.name.path is None else None
        if entry is not None and entry.view_text is not None and _reads_ours(session, entry.view_text, depth + 1):
            return True
    return False


def _moment(spark: SparkSession, expression: str) -> str:
    """The moment of a time travel: a quotation or a number as it is, anything else as Spark evaluates it."""
    reader = Reader(expression, tokens_of(expression))
    token = reader.peek()
    if token is not None and token.kind in (TokenKind.TEXT, TokenKind.NUMBER):
        text = reader.value()
        if reader.at_end:
            return text
    row = spark_sql(spark, f"SELECT CAST({expression} AS STRING) AS moment").collect()[0]
    if row["moment"] is None:
        raise ConfigError(f"The time to travel to, {expression}, is null.")
    return str(row["moment"])
