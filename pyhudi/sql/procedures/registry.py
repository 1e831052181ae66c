"""All procedures by name, and Hudi's procedures without a counterpart here, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from pyhudi.errors import ConfigError
from pyhudi.sql.procedures import (
    cleans,
    commits,
    file_views,
    information,
    log_files,
    metadata_table,
    rollbacks,
    services,
    table_data,
    timeline,
)
from pyhudi.sql.procedures.procedure import Procedure, ProcedureCall, Rows

__all__ = ["PROCEDURES", "REFUSED", "procedure_called"]

_CATALOG = (
    "tables are found in the session's catalog, and nothing is copied into another one. Register the table there "
    "with CREATE TABLE … USING hudi LOCATION …"
)
_BOOTSTRAP = "a table's files are Hudi's own here. Read the other files, and write their rows with bulk_insert"
_AUDIT = "the lock keeps no journal. What was done is in the timeline: CALL show_timeline"

# Name → why there is none, and what to do.
REFUSED: Mapping[str, str] = {
    "hive_sync": _CATALOG,
    "sync_validate": _CATALOG,
    "run_bootstrap": _BOOTSTRAP,
    "show_bootstrap_mapping": _BOOTSTRAP,
    "show_bootstrap_partitions": _BOOTSTRAP,
    "hdfs_parquet_import": _BOOTSTRAP,
    "set_audit_lock": _AUDIT,
    "show_audit_lock_status": _AUDIT,
    "validate_audit_lock": _AUDIT,
    "cleanup_audit_lock": _AUDIT,
    "partition_bucket_index_manager": "all partitions of a table have the same number of buckets here. Write the table "
    "anew with another hoodie.bucket.index.num.buckets",
    "repair_deduplicate": "it leaves files outside the table that someone has to put in. Read the partition, keep one "
    "row of each key, and write them with insert_overwrite",
    "repair_overwrite_hoodie_props": "a table with wrong properties can't be read any more. ALTER TABLE … SET "
    "TBLPROPERTIES changes those that may change",
}


def _help(call: ProcedureCall) -> Rows:
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


def _description(procedure: Procedure) -> str:
    def line(*cells: object) -> str:
        return "".join(f"\t{cell!s:<{_WIDTH}}" for cell in cells) + "\n"

    arguments = [
        line(
            one.name,
            one.kind,
            "null"
            if one.default is None
            else str(one.default).lower()
            if isinstance(one.default, bool)
            else one.default,
            str(one.required).lower(),
        )
        for one in procedure.arguments
    ]
    names = {"int32": "integer", "int64": "long", "double": "double", "bool": "boolean", "string": "string"}
    columns = [
        line(field.name, names[str(field.type)], str(field.nullable).lower(), "{}") for field in procedure.columns
    ]
    return "".join(
        [
            "parameters:\n", line("param", "type_name", "default_value", "required"), *arguments,
            "outputType:\n", line("name", "type_name", "nullable", "metadata"), *columns,
        ]
    )  # fmt: skip


HELP = Procedure.of("help", "cmd string", "result string", _help, "The procedures, or arguments and columns of one.")

PROCEDURES: Mapping[str, Procedure] = {
    procedure.name: procedure
    for procedure in (
        HELP,
        *commits.PROCEDURES,
        *timeline.PROCEDURES,
        *rollbacks.PROCEDURES,
        *services.PROCEDURES,
        *cleans.PROCEDURES,
        *metadata_table.PROCEDURES,
        *information.PROCEDURES,
        *file_views.PROCEDURES,
        *log_files.PROCEDURES,
        *table_data.PROCEDURES,
    )
}


def procedure_called(name: str) -> Procedure:
    """The procedure of a name. Raises ConfigError for an unknown name, and for a procedure without a counterpart."""
    procedure = PROCEDURES.get(name.lower())
    if procedure is not None:
        return procedure
    reason = REFUSED.get(name.lower())
    if reason is not None:
        raise ConfigError(f"There is no procedure {name} here: {reason}.")
    near = get_close_matches(name.lower(), PROCEDURES, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise ConfigError(f"Unknown procedure {name!r:.100}.{hint} CALL help() lists all.")
