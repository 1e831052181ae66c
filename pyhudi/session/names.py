"""Names of Hudi tables in queries: Spark gets each of them as a DataFrame with the table's native plan.

`with_names` changes the user's text only at the names. It uses Spark's way to put a DataFrame into a text, `{name}`,
which creates and drops the necessary views, also on Connect.

`StatementNames` looks up each name once per statement, even if Spark evaluates several parts of the statement. A
catalog look-up costs as much as a small query, and a MERGE INTO names its source in three parts. The names in the
statement's text are looked up together.

`function_frame` runs Hudi's table functions in a query, such as
`hudi_table_changes('db.t', 'latest_state', 'earliest')`.
Source: Spark's documentation of `SparkSession.sql`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.errors import ConfigError, TableNotFound
from pyhudi.model.options.queries import AS_OF
from pyhudi.session.caching import cached_view
from pyhudi.session.catalog import SparkCatalog
from pyhudi.session.temp_views import spark_sql
from pyhudi.spark import capabilities
from pyhudi.spark.engine import SparkEngine
from pyhudi.sql.columns import quoted
from pyhudi.sql.references import Reference, references
from pyhudi.sql.session import CatalogEntry, SqlSession, TableName
from pyhudi.sql.table_functions import rows_of_function
from pyhudi.sql.tokens import Reader, SqlToken, TokenKind, constant_of, keywords, tokens_of

if TYPE_CHECKING:
    from pyhudi.table import HudiTable

__all__ = ["READS", "StatementNames", "function_frame", "reads_ours", "with_names"]


class StatementNames:
    """The `SqlCatalog` of one statement, on top of its session's catalog."""

    def __init__(self, catalog: SparkCatalog) -> None:
        self._catalog = catalog
        self._found: dict[tuple[str, ...], CatalogEntry | None] = {}
        self._expected: dict[tuple[str, ...], TableName] = {}

    def expect(self, names: Iterable[TableName]) -> None:
        self._expected |= {name.parts: name for name in names if name.parts not in self._found}

    def find(self, name: TableName) -> CatalogEntry | None:
        if name.parts not in self._found:
            together = {**self._expected, name.parts: name}
            self._expected = {}
            self._found |= self._catalog.find_all(together.values())
        return self._found[name.parts]

    def is_of_the_statement(self, view: str) -> None:
        """Declare a temporary view of the statement, which needs no look-up."""
        self._found[(view,)] = None

    def place_of(self, name: TableName) -> str:
        return self._catalog.place_of(name)

    def register(self, entry: CatalogEntry, columns: pa.Schema, partition_fields: Sequence[str]) -> None:
        self._found.clear()
        self._catalog.register(entry, columns, partition_fields)

    def update(self, entry: CatalogEntry, columns: pa.Schema, partition_fields: Sequence[str]) -> None:
        self._found.clear()
        self._catalog.update(entry, columns, partition_fields)

    def remove(self, name: TableName) -> None:
        self._found.clear()
        self._catalog.remove(name)

    def rename(self, name: TableName, new: TableName) -> None:
        self._found.clear()
        self._catalog.rename(name, new)


def function_frame(spark: SparkSession, session: SqlSession, function: str, arguments: Sequence[str]) -> DataFrame:
    """Call a table function and return its rows. Raises ConfigError for wrong arguments, TableNotFound."""
    values = [constant_of(tokens_of(text)) for text in arguments[1:]]
    first = [_name_text(text) for text in arguments[:1]]
    rows = rows_of_function(function, [*first, *values], lambda text: _table(session, text))
    if isinstance(rows, pa.Table):
        return SparkEngine(spark).from_arrow(rows)
    return rows.to_spark(spark=spark)


def _name_text(text: str) -> str:
    """The first argument, which may be a quoted or an unquoted name."""
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
    entry = session.find_table(name)
    if entry is None:
        raise TableNotFound(f"There is no Hudi table {text!r:.200}.")
    return entry.table


# First words of statements that read tables; a view's text is processed when the view is read.
READS = keywords("SELECT WITH FROM TABLE ( INSERT CREATE REPLACE EXPLAIN CACHE MERGE UPDATE DELETE VALUES")
_MAY_READ = re.compile(r"\b(?:FROM|JOIN|TABLE|USING)\b", re.IGNORECASE)
_MAX_VIEW_DEPTH = 100  # Spark's own limit on nested views


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
    frames_by_name: Mapping[str, object] | None = None,
    depth: int = 0,
) -> DataFrame:
    """Run a statement that may name Hudi tables.

    Args:
        args: Spark's parameters, as given to `spark.sql`.
        frames_by_name: the keyword arguments of `spark.sql`; with them the text is a template with braces.
    """
    frames_by_name = frames_by_name or {}
    tokens, references = _read(text)
    if not capabilities.PRESENT.has_data_sources and _defines_view(tokens):
        _refuse_view_of_ours(session, text, tokens)
    frames: dict[str, DataFrame] = {}
    edits: list[_Edit] = []
    session.catalog.expect(reference.name for reference in references if reference.arguments is None)
    for reference in references:
        relation = _relation(spark, session, reference, depth)
        if relation is None:
            continue
        if isinstance(relation, str):
            edits.append(_Edit(reference.start, reference.end, quoted(relation)))
        else:
            key = f"pyhudi_{len(frames)}"
            frames[key] = relation
            edits.append(_Edit(reference.start, reference.end, "{" + key + "}"))
        if reference.alias_at is not None and reference.arguments is None and reference.name.path is None:
            edits.append(_Edit(reference.alias_at, reference.alias_at, f" AS {quoted(reference.name.parts[-1])}"))
        edits += _qualifiers(tokens, reference)
    is_template = bool(frames_by_name) or not frames  # without frames braces have no meaning
    return spark_sql(spark, _edited(text, edits, is_template=is_template), args, **frames_by_name, **frames)


def _read(text: str) -> tuple[Sequence[SqlToken], Sequence[Reference]]:
    """The tokens and references of a text; none for an invalid text, whose error Spark reports."""
    if _MAY_READ.search(text) is None:
        return (), ()
    try:
        tokens = tokens_of(text)
        return tokens, () if _defines_view(tokens) else references(text, tokens)
    except ConfigError:
        return (), ()


def _refuse_view_of_ours(session: SqlSession, text: str, tokens: Sequence[SqlToken]) -> None:
    """Raise ConfigError for a view that names Hudi tables."""
    try:
        names = [reference.name for reference in references(text, tokens) if reference.arguments is None]
    except ConfigError:  # Spark reports the error
        return
    if any(session.find_table(name) is not None for name in names):
        raise ConfigError(capabilities.NO_VIEWS)


def _defines_view(tokens: Sequence[SqlToken]) -> bool:
    if not (tokens and tokens[0].is_word("CREATE", "ALTER")):
        return False
    return any(token.is_word("VIEW") for token in tokens[1:6])


def _edited(text: str, edits: Sequence[_Edit], *, is_template: bool) -> str:
    """Apply the edits to a text. The user's own braces are escaped unless the text was already a template."""

    def literal_text(part: str) -> str:
        return part if is_template else part.replace("{", "{{").replace("}", "}}")

    parts, at = [], 0
    for edit in sorted(set(edits), key=lambda edit: (edit.start, edit.end)):
        parts += [literal_text(text[at : edit.start]), edit.text]
        at = edit.end
    return "".join([*parts, literal_text(text[at:])])


def _qualifiers(tokens: Sequence[SqlToken], reference: Reference) -> list[_Edit]:
    """Change `db.t.column` to `t.column`, as the relation that replaces `db.t` has a name of one part."""
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
            token.is_name and token.value.lower() == part for token, part in zip(names, parts, strict=True)
        ):
            edits.append(_Edit(names[0].start, names[-1].end, quoted(reference.name.parts[-1])))
    return edits


def _relation(spark: SparkSession, session: SqlSession, reference: Reference, depth: int) -> DataFrame | str | None:
    """The rows of a reference, or the view in which they are cached; None if it is not Hudi's."""
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
    if reference.as_of is None and (view := cached_view(spark, table)) is not None:
        return view
    moment = None if reference.as_of is None else {AS_OF: _moment(spark, reference.as_of)}
    query_type = "read_optimized" if table.is_read_optimized else None
    return table.table.scan(query_type=query_type, options=moment).to_spark(spark=spark)


def _frame_of_view(
    spark: SparkSession, session: SqlSession, text: str, reference: Reference, depth: int
) -> DataFrame | None:
    """The rows of a view that reads Hudi tables; None for any other view."""
    if depth >= _MAX_VIEW_DEPTH:
        raise ConfigError(f"The view {reference.name} is {depth} views deep. Views must not read themselves.")
    if not reads_ours(session, text, depth):
        return None
    if reference.as_of is not None:
        raise ConfigError(f"{reference.name} is a view; only tables can be read as of an earlier moment.")
    return with_names(spark, session, text, depth=depth + 1)


def reads_ours(session: SqlSession, text: str, depth: int = 0) -> bool:
    """True if the query of a view reads Hudi tables."""
    if depth >= _MAX_VIEW_DEPTH:
        return True
    for reference in _read(text)[1]:
        if reference.arguments is not None or session.find_table(reference.name) is not None:
            return True
        entry = session.catalog.find(reference.name) if reference.name.path is None else None
        if entry is not None and entry.view_text is not None and reads_ours(session, entry.view_text, depth + 1):
            return True
    return False


def _moment(spark: SparkSession, expression: str) -> str:
    """The time to travel to: a quoted text or a number as written, any other expression evaluated by Spark."""
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
