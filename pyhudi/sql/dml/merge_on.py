"""`HudiTable.merge` on a free condition, converted to the equivalent MERGE INTO and run by DuckDB or Spark.

    table.merge(rows, on="target.id = source.ref AND source.ts > target.ts").when_matched_update({"n": "source.n"})

Bare names, and names with `t` and `s` for the two sides, become `target.x` and `source.x` before the statement is made.
Source: docs/sql-dml.md, "MERGE INTO".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from pyhudi.actions.changes.clauses import Clause, When
from pyhudi.actions.result import WriteResult
from pyhudi.errors import ConfigError
from pyhudi.expressions.values import tree_of
from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.table_config import TableConfig
from pyhudi.registry import Registry
from pyhudi.sql.dml.merge import merge_into
from pyhudi.sql.session import NamedTable, SqlFrame, SqlSession, TableName
from pyhudi.sql.tokens import Reader, tokens_of
from pyhudi.table.hudi_table import HudiTable
from pyhudi.table.input import TableInput, is_spark_frame, to_arrow_rows

if TYPE_CHECKING:
    from sqlglot import exp

    from pyhudi.table.merge_builder import Merge

__all__ = ["merge_on"]

_SHORT = {"s": "source", "t": "target"}
_SPARK: Registry[type[SqlSession]] = Registry("SQL session", {"SPARK": "pyhudi.session.sql:SparkSqlSession"})
_KINDS = {
    When.MATCHED: "MATCHED",
    When.NOT_MATCHED: "NOT MATCHED",
    When.NOT_MATCHED_BY_SOURCE: "NOT MATCHED BY SOURCE",
}


def merge_on(merge: Merge) -> WriteResult:
    """Run a merge whose `on` is a condition, as one commit: Spark joins the rows if the table or the source has a
    session, else DuckDB does.

    Raises: ConfigError for clauses that are not SQL, and without DuckDB or Spark; the errors of MERGE INTO.
    """
    meta = MetaClient.load(merge.storage)
    spark = merge.spark if merge.spark is not None else getattr(merge.source, "sparkSession", None)
    table = HudiTable(meta, spark, merge.options)
    target = NamedTable(TableName(("target",)), meta.storage.root, table, storage=merge.storage, options=merge.options)
    if spark is None:
        from pyhudi.sql.duckdb_session import DuckDbSession

        return _run(merge, target, cast("SqlSession", DuckDbSession()))
    from pyhudi.spark.failures import translated  # pyspark is loaded only when it is used
    from pyhudi.spark.session import settings_read_once

    with translated(), settings_read_once(spark):
        return _run(merge, target, _SPARK.load("SPARK")(spark))  # type: ignore[call-arg]


def _run(merge: Merge, target: NamedTable, session: SqlSession) -> WriteResult:
    frame = _frame(merge.source, target, session)
    columns = [name for name in session.columns_of(frame).names if name not in META_COLUMNS]
    texts = _Texts(target.table.state().config, tuple(target.table.schema().names), tuple(columns))
    with session.view_of(frame) as view:
        lines = [f"USING {view} AS source ON {texts.of(str(merge.on), None, 'on')}"]
        lines += [texts.clause(clause) for clause in merge.clauses]
        text = "\n".join(lines)
        statement = merge_into(target, "target", Reader(text, tokens_of(text)))
        return replace(statement.write(session), operation="MERGE")


def _frame(source: TableInput, target: NamedTable, session: SqlSession) -> SqlFrame:
    """Convert the rows of the source to a frame of the session."""
    if is_spark_frame(source):
        return SqlFrame(source)
    rows = to_arrow_rows(source, target.table.schema())
    return session.frame_from(rows.read_all() if isinstance(rows, pa.RecordBatchReader) else rows)


@dataclass(frozen=True, slots=True)
class _Texts:
    """Writes the parts of a statement. `target`, `source`: the columns of the sides."""

    config: TableConfig
    target: tuple[str, ...]
    source: tuple[str, ...]

    def clause(self, clause: Clause) -> str:
        """Write a clause, WHEN … THEN …."""
        condition = ""
        if clause.condition is not None:
            if not isinstance(clause.condition, str):
                raise ConfigError(
                    f"merge(on=<condition>): conditions of its clauses are SQL text, found {clause.condition!r:.200}."
                )
            condition = f" AND ({self.of(clause.condition, clause.when, 'The condition')})"
        return f"WHEN {_KINDS[clause.when]}{condition} THEN {self._action(clause)}"

    def _action(self, clause: Clause) -> str:
        if clause.verb == "delete":
            return "DELETE"
        config = self.config
        fixed = {name.partition(".")[0] for name in (*config.record_key_fields, *config.partition_fields)}
        shared = [name for name in self.target if name in self.source]
        from_source = {name: f"source.{_quoted(name)}" for name in shared}
        if clause.verb == "update":
            values = clause.values
            texts = (
                {name: text for name, text in from_source.items() if name not in fixed}
                if values is None
                else self._values(values, clause.when)
            )
            return "UPDATE SET " + ", ".join(f"{_quoted(name)} = {text}" for name, text in texts.items())
        texts = from_source
        if clause.values is not None:
            texts = {name: text for name, text in from_source.items() if name in fixed}
            texts |= self._values(clause.values, clause.when)
        return f"INSERT ({', '.join(map(_quoted, texts))}) VALUES ({', '.join(texts.values())})"

    def _values(self, values: Mapping[str, object], when: When) -> dict[str, str]:
        return {name: self._value(name, value, when) for name, value in values.items()}

    def _value(self, name: str, value: object, when: When) -> str:
        from sqlglot import exp

        if isinstance(value, str):
            return f"({self.of(value, when, f'set= gives the column {name!r} SQL text')})"
        plain = value.as_py() if isinstance(value, pa.Scalar) else value
        match plain:
            case None:
                return "NULL"
            case bool():
                return str(plain).upper()
            case int():
                return str(plain)
            case float():
                return f"CAST('{plain}' AS DOUBLE)"
            case Decimal():
                return f"{plain}BD"
            case str():
                return exp.Literal.string(plain).sql("spark")
            case datetime():
                return f"TIMESTAMP '{plain.isoformat(sep=' ')}'"
            case date():
                return f"DATE '{plain.isoformat()}'"
        raise ConfigError(
            f"merge(on=<condition>): the column {name!r} is set to SQL text or a constant, found "
            f"{type(value).__name__}. Expressions of pyarrow and functions go with on=<key columns>."
        )

    def of(self, text: str, when: When | None, what: str) -> str:
        """Put the side before each name in SQL text. Raises ConfigError for a name that is no column of a side."""
        from sqlglot import exp

        tree = exp.Paren(this=tree_of(text, what))  # so that even a single name has a parent node
        for column in list(tree.find_all(exp.Column)):
            self._qualify(column, when, text, what)
        return tree.sql("spark")

    def _qualify(self, column: exp.Column, when: When | None, text: str, what: str) -> None:
        sides = {"target": self.target, "source": self.source}
        parts = [part.name for part in column.parts]
        side = _SHORT.get(parts[0].lower(), parts[0].lower())
        fits = [name for name in sides if _has(sides[name], parts[0])]
        if len(parts) > 1 and side in sides:
            if not _has(sides[side], parts[1]):
                raise ConfigError(
                    f"{what}: {text!r:.200} names {'.'.join(parts)}, and the {side} has no column {parts[1]!r}; it has "
                    f"{', '.join(sides[side])}."
                )
            path = parts[1:]
        else:
            own = {When.NOT_MATCHED: "source", When.MATCHED: "target", When.NOT_MATCHED_BY_SOURCE: "target"}
            side, path = own[when] if when is not None else (fits[0] if len(fits) == 1 else ""), parts
            if side not in fits:
                why = "which is not there" if len(fits) < 2 else "which both sides have; write source.x or target.x"
                raise ConfigError(f"{what}: {text!r:.200} names the column {'.'.join(parts)!r}, {why}.")
        column.replace(_column(side, path))


def _column(side: str, parts: list[str]) -> exp.Expr:
    from sqlglot import exp

    first: exp.Expr = exp.column(exp.to_identifier(parts[0], quoted=True), table=side)
    for part in parts[1:]:
        first = exp.Dot(this=first, expression=exp.to_identifier(part, quoted=True))
    return first


def _has(names: Sequence[str], name: str) -> bool:
    return name.lower() in (other.lower() for other in names)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
