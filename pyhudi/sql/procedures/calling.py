"""Calling a procedure: the statement `CALL`, and the function for Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.model.predicate import parse_where
from pyhudi.queries.filters import bind, to_arrow
from pyhudi.sql.procedures.procedure import Procedure, ProcedureCall, rows_as_table
from pyhudi.sql.procedures.registry import procedure_called
from pyhudi.sql.session import SqlFrame, SqlSession
from pyhudi.sql.tokens import Constant, Reader, SqlToken, constant_of
from pyhudi.table import HudiTable

__all__ = ["CallProcedure", "call", "parse"]

_SYSTEM = (("system",), ("spark_catalog", "system"))  # what may come before a procedure's name


@dataclass(frozen=True, slots=True)
class CallProcedure:
    """`CALL [system.]name(1, key => 'value')`."""

    procedure: Procedure
    positional: tuple[Constant, ...] = ()
    by_name: Mapping[str, Constant] = field(default_factory=dict)

    def run(self, session: SqlSession) -> SqlFrame:
        """Call it; its rows are the statement's."""
        values = self.procedure.values(self.positional, self.by_name)
        rows = _run(ProcedureCall(self.procedure.name, values, session), self.procedure)
        condition = str(values.get("filter", "")).strip()
        if not condition:
            return session.frame_from(rows)
        try:
            return session.frame_from(_filtered(rows, condition))
        except ConfigError:
            # The engine knows more than PyHudi's filters, functions for example.
            with session.view_of(session.frame_from(rows)) as view:
                return session.query(f"SELECT * FROM {view} WHERE {condition}")


def parse(text: str, tokens: Sequence[SqlToken], session: SqlSession) -> CallProcedure | None:
    """The call; None for a procedure of another catalog. Raises ConfigError for an unknown one, and for an argument
    that is no constant.
    """
    reader = Reader(text, tokens)
    reader.expect("CALL")
    *before, name = reader.dotted("the name of a procedure")
    if before and tuple(part.lower() for part in before) not in _SYSTEM:
        return None
    procedure = procedure_called(name)
    positional: list[Constant] = []
    by_name: dict[str, Constant] = {}
    for part in reader.parts():
        following = part.peek(1)
        if following is not None and following.is_symbol("=>"):
            key = part.identifier("the name of an argument")
            part.expect_symbol("=>")
            if key.lower() in map(str.lower, by_name):
                raise ConfigError(f"{name}: the argument {key} is given twice.")
            by_name[key] = constant_of(tokens[part.at : part.stop])
        elif by_name:
            raise ConfigError(f"{name}: an argument without a name comes after one with a name.")
        else:
            positional.append(constant_of(tokens[part.at : part.stop]))
    reader.expect_end()
    return CallProcedure(procedure, tuple(positional), by_name)


def call(
    procedure: str,
    table: HudiTable | str | os.PathLike[str] | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    **arguments: str | int | bool,
) -> pa.Table:
    """Call one of Hudi's procedures from Python; docs/procedures.md lists them.

    Args:
        procedure: its name, `show_commits`.
        table: the table, or its path.
        storage_options: Hadoop's keys for remote stores.
        arguments: by name, as in SQL.
    Returns: the rows that `CALL` returns.
    Raises: ConfigError for an unknown procedure or argument; the errors of the procedure.
    """
    definition = procedure_called(procedure)
    names = {argument.name for argument in definition.arguments}
    by_name: dict[str, Constant] = dict(arguments)
    if table is not None:
        key = "table" if "table" in names else "path"
        by_name[key] = table.path if isinstance(table, HudiTable) else os.fspath(table)
    values = definition.values((), by_name)
    handle = table if isinstance(table, HudiTable) and "table" in names else None
    rows = _run(ProcedureCall(definition.name, values, None, handle, storage_options or {}), definition)
    condition = str(values.get("filter", "")).strip()
    return _filtered(rows, condition) if condition else rows


def _run(call: ProcedureCall, procedure: Procedure) -> pa.Table:
    return rows_as_table(procedure.columns, procedure.run(call))


def _filtered(rows: pa.Table, condition: str) -> pa.Table:
    """The rows that pass a filter. Raises ConfigError for a filter beyond comparisons of columns."""
    return rows.filter(to_arrow(bind(parse_where(condition), rows.schema), rows.schema))
