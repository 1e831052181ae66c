"""Procedures that register a table in a catalog."""

from __future__ import annotations

from pyhudi.model.options.catalogs.syncing import key_of_sync
from pyhudi.sql.procedures.procedure import ProcedureCall, Rows, procedure, table_name_of

# Argument → the option that it stands for.
_OPTIONS = {
    "metastore_uri": key_of_sync("uris"),
    "username": "hoodie.datasource.hive_sync.username",
    "password": "hoodie.datasource.hive_sync.password",
    "use_jdbc": "hoodie.datasource.hive_sync.use_jdbc",
    "mode": key_of_sync("mode"),
    "partition_fields": key_of_sync("partition_fields"),
    "partition_extractor_class": key_of_sync("extractor"),
    "strategy": key_of_sync("strategy"),
    "sync_incremental": key_of_sync("is_incremental"),
}


@procedure(f"table string!, {', '.join(f'{name} string=' for name in _OPTIONS)}", "result string")
def hive_sync(call: ProcedureCall) -> Rows:
    """Register the table in a Hive metastore, or update its entry there."""
    name = table_name_of(call.text("table"))
    target = {}
    if call.session is not None and name.path is None:  # as in Hudi: registered under the name in the call
        *before, table = name.parts
        target = {key_of_sync("table"): table, **({key_of_sync("database"): before[-1]} if before else {})}
    options = {option: call.text(argument) for argument, option in _OPTIONS.items() if call.text(argument)}
    call.table.sync("hive", options={**target, **call.options, **options})
    return [("hive sync success.",)]
