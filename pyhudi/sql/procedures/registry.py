"""All procedures by name, the two ways to call one (`CALL` and Python's `call`), and Hudi's procedures without a
counterpart here, with the reasons.

"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import ModuleType

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.binding import bind
from pyhudi.expressions.filters import to_arrow
from pyhudi.expressions.where import parse_where
from pyhudi.sql.procedures import catalogs, changes, files, history, metadata_table, services
from pyhudi.sql.procedures.procedure import Procedure, ProcedureCall, Rows, procedure
from pyhudi.sql.session import SqlFrame, SqlSession
from pyhudi.sql.tokens import Constant, Reader, SqlToken, constant_of
from pyhudi.table import HudiTable

__all__ = ["PROCEDURES", "REFUSED", "CallProcedure", "call", "parse", "procedure_called"]


# Name → why there is no such procedure, and what to do instead.
REFUSED: Mapping[str, str] = {
    "sync_validate": "it counts rows by HiveServer2, which nothing here speaks to. `hive_sync` with "
    "sync_incremental => 'false' compares what is registered with what the table has",
    "hdfs_parquet_import": "run_bootstrap makes a table of a folder of Parquet files; its rows may stay there",
    "partition_bucket_index_manager": "all partitions of a table have the same number of buckets here. Rewrite the "
    "table with another hoodie.bucket.index.num.buckets",
}


@procedure("cmd string", "result string")
def help(call: ProcedureCall) -> Rows:
    """The procedures, or the arguments and columns of one."""
    name = call.text("cmd").lower()
    if name:
        return [(_description(procedure_called(name)),)]
    lines = "".join(f"\t{one.name}\t{one.about}\n" for one in sorted(PROCEDURES.values(), key=lambda one: one.name))
    return [
        (
            "synopsis\n\tcall [command]([key1]=>[value1],[key2]=>[value2])\ncommands and description\n" + lines
            + "You can use 'call help(cmd=>[command])' to view the detailed parameters of the command\n",
        )
    ]  # fmt: skip


_WIDTH = 30  # of a column of the text
_TYPE_NAMES = {"int32": "integer", "int64": "long", "double": "double", "bool": "boolean", "string": "string"}


def _description(one: Procedure) -> str:
    arguments = [(arg.name, arg.kind, arg.default_text or "null", str(arg.required).lower()) for arg in one.arguments]
    columns = [(col.name, _TYPE_NAMES[str(col.type)], str(col.nullable).lower(), "{}") for col in one.columns]
    return (
        f"parameters:\n{_lines(('param', 'type_name', 'default_value', 'required'), *arguments)}"
        f"outputType:\n{_lines(('name', 'type_name', 'nullable', 'metadata'), *columns)}"
    )


def _lines(*rows: Sequence[str]) -> str:
    return "".join("".join(f"\t{cell:<{_WIDTH}}" for cell in row) + "\n" for row in rows)


_TOPICS: tuple[ModuleType, ...] = (history, services, changes, files, metadata_table, catalogs)

PROCEDURES: Mapping[str, Procedure] = {
    one.name: one for topic in _TOPICS for one in vars(topic).values() if isinstance(one, Procedure)
} | {"help": help}


def procedure_called(name: str) -> Procedure:
    """The procedure with a name. Raises ConfigError for an unknown name, and for a procedure without counterpart."""
    procedure = PROCEDURES.get(name.lower())
    if procedure is not None:
        return procedure
    reason = REFUSED.get(name.lower())
    if reason is not None:
        raise ConfigError(f"There is no procedure {name} here: {reason}.")
    near = get_close_matches(name.lower(), PROCEDURES, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise ConfigError(f"Unknown procedure {name!r:.100}.{hint} CALL help() lists all.")


_SYSTEM = (("system",), ("spark_catalog", "system"))  # the qualifiers that a procedure's name may have


@dataclass(frozen=True, slots=True)
class CallProcedure:
    """`CALL [system.]name(1, key => 'value')`."""

    procedure: Procedure
    positional: tuple[Constant, ...] = ()
    by_name: Mapping[str, Constant] = field(default_factory=dict)

    def run(self, session: SqlSession) -> SqlFrame:
        """Call the procedure; its rows are the statement's result."""
        values = self.procedure.values(self.positional, self.by_name)
        rows = self.procedure.rows(ProcedureCall(self.procedure.name, values, session))
        condition = str(values.get("filter", "")).strip()
        if not condition:
            return session.frame_from(rows)
        try:
            return session.frame_from(_filtered(rows, condition))
        except ConfigError:
            # The engine supports more than PyHudi's filters, for example functions.
            with session.view_of(session.frame_from(rows)) as view:
                return session.query(f"SELECT * FROM {view} WHERE {condition}")


def parse(text: str, tokens: Sequence[SqlToken], session: SqlSession) -> CallProcedure | None:
    """Parse a CALL; None for a procedure of another catalog. Raises ConfigError for an unknown procedure, and for an
    argument that is not a constant.
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
    storage_options: Mapping[str, object] | None = None,
    **arguments: str | int | bool,
) -> pa.Table:
    """Call one of Hudi's procedures from Python; docs/procedures.md lists them.

    Args:
        procedure: the name, such as `show_commits`.
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
    rows = definition.rows(ProcedureCall(definition.name, values, None, handle, storage_options or {}))
    condition = str(values.get("filter", "")).strip()
    return _filtered(rows, condition) if condition else rows


def _filtered(rows: pa.Table, condition: str) -> pa.Table:
    """The rows that pass a filter. Raises ConfigError for a filter beyond comparisons of columns."""
    return rows.filter(to_arrow(bind(parse_where(condition), rows.schema), rows.schema))
