"""`HudiTable.merge` on a free condition, as the MERGE INTO that says the same, run by DuckDB or by Spark.

    table.merge(rows, on="target.id = source.ref AND source.ts > target.ts").when_matched_update({"n": "source.n"})

Bare names and the names `t` and `s` for the two sides become `target.x` and `source.x` before the statement is made.
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
from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import META_COLUMNS
from pyhudi.queries.sql_values import tree_of
from pyhudi.registry import Registry
from pyhudi.sql.dml.merge import MergeStatement, parse_merge
from pyhudi.sql.session import SqlFrame, SqlSession
from pyhudi.sql.tokens import tokens_of
from pyhudi.table.hudi_table import HudiTable
from pyhudi.table.input import is_spark_frame, to_arrow_rows

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
    """Run a merge whose `on` is a condition, as one commit.

    Raises: ConfigError for clauses that are not SQL, and without DuckDB or Spark; the errors of MERGE INTO.
    """
    meta = MetaClient.load(merge.storage)
    table = HudiTable(meta, merge.spark, merge.options)
    spark = merge.spark if merge.spark is not None else getattr(merge.source, "sparkSession", None)
    rows = merge.source if is_spark_frame(merge.source) else to_arrow_rows(merge.source, meta.table_schema())
    if spark is None:
        from pyhudi.sql.duckdb_session import DuckDbSession

        arrow = cast("pa.Table | pa.RecordBatchReader", rows)
        arrow = arrow.read_all() if isinstance(arrow, pa.RecordBatchReader) else arrow
        options = {key: str(value) for key, value in merge.options.items()}
        session = cast("SqlSession", DuckDbSession({"target": table}, options=options))
        return _run(merge, session, session.frame_from(arrow), arrow.schema, meta, "target")
    if merge.options:
        raise ConfigError(
            "merge(on=<condition>) on Spark takes the options of the session; set "
            f"{', '.join(map(str, merge.options))} there."
        )
    session = _SPARK.load("SPARK")(spark)  # type: ignore[call-arg]
    frame = SqlFrame(rows) if is_spark_frame(rows) else session.frame_from(cast("pa.Table", _whole(rows)))
    return _run(merge, session, frame, session.columns_of(frame), meta, f"hudi.`{meta.storage.root}`")


def _whole(rows: object) -> object:
    return rows.read_all() if isinstance(rows, pa.RecordBatchReader) else rows


def _run(
    merge: Merge, session: SqlSession, frame: SqlFrame, source: pa.Schema, meta: MetaClient, target: str
) -> WriteResult:
    columns = [name for name in source.names if name not in META_COLUMNS]
    texts = _Texts(meta, tuple(columns))
    with session.view_of(frame) as view:
        text = (
            f"MERGE INTO {target} AS target USING {view} AS source ON {texts.of(str(merge.on), None, 'on')}\n"
            + "\n".join(texts.clause(clause) for clause in merge.clauses)
        )
        statement = parse_merge(text, tokens_of(text), session)
        assert isinstance(statement, MergeStatement), text
        return replace(statement.write(session), operation="MERGE")


@dataclass(frozen=True, slots=True)
class _Texts:
    """The parts of a statement. `source`: the columns of the source."""

    meta: MetaClient
    source: tuple[str, ...]

    def clause(self, clause: Clause) -> str:
        """WHEN … THEN …"""
        condition = ""
        if clause.condition is not None:
            if not isinstance(clause.condition, str):
                raise ConfigError(
                    f"merge(on=<condition>): conditions of its clauses are SQL text, found {clause.condition!r:.200}."
                )
            condition = f" AND ({self.of(clause.condition, clause.when, 'The condition')})"
        return f"WHEN {_KINDS[clause.when]}{condition} THEN {self._action(clause)}"

    def _action(self, clause: Clause) -> str:
        if clause.does == "delete":
            return "DELETE"
        config, names = self.meta.config, self.meta.table_schema().names
        fixed = {name.partition(".")[0] for name in (*config.record_key_fields, *config.partition_fields)}
        shared = [name for name in names if name in self.source]
        from_source = {name: f"source.{_quoted(name)}" for name in shared}
        if clause.does == "update":
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
        """SQL text with the side before each name. Raises ConfigError for a name that is not a column of a side."""
        from sqlglot import exp

        tree = exp.Paren(this=tree_of(text, what))  # so that a name alone has something around it
        for column in list(tree.find_all(exp.Column)):
            self._qualify(column, when, text, what)
        return tree.sql("spark")

    def _qualify(self, column: exp.Column, when: When | None, text: str, what: str) -> None:
        sides = {"target": self.meta.table_schema().names, "source": self.source}
        parts = [part.name for part in column.parts]
        side = _SHORT.get(parts[0].lower(), parts[0].lower())
        fits = [name for name in sides if _has(sides[name], parts[0])]
        if len(parts) > 1 and side in sides:
            if not _has(sides[side], parts[1]):
                raise ConfigError(
                    f"{what}: {text!r:.200} names {'.'.join(parts)}, and the {side} has no column {parts[1]!r}; it has "
                    f"{', '.join(sides[side])}."
                )
            rest = parts[1:]
        else:
            own = {When.NOT_MATCHED: "source", When.MATCHED: "target", When.NOT_MATCHED_BY_SOURCE: "target"}
            side, rest = own[when] if when is not None else (fits[0] if len(fits) == 1 else ""), parts
            if side not in fits:
                why = "which is not there" if len(fits) < 2 else "which both sides have; write source.x or target.x"
                raise ConfigError(f"{what}: {text!r:.200} names the column {'.'.join(parts)!r}, {why}.")
        column.replace(_column(side, rest))


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
