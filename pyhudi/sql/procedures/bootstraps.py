"""Tables over files that were there before: making one, and what lies where."""

from __future__ import annotations

from pyhudi.errors import ConfigError
from pyhudi.formats.bootstrap import read_index, source_folder
from pyhudi.sql.procedures.procedure import Procedure, ProcedureCall, Rows
from pyhudi.storage import open_storage
from pyhudi.table.bootstrap import bootstrap

__all__ = ["PROCEDURES"]


def _run(call: ProcedureCall) -> Rows:
    options: dict[str, object] = dict(call.options)
    for argument, key in _KEYS.items():
        if call.text(argument):
            options[key] = call.text(argument)
    path = call.text("base_path")
    if not path:
        raise ConfigError(f"{call.procedure} needs the argument base_path: where the table is made.")
    bootstrap(
        call.text("bootstrap_path"),
        path,
        record_key=call.text("rowKey_field"),
        partition_by=call.text("partition_path_field") or None,
        table_name=call.text("table").rpartition(".")[2],
        table_type=call.text("table_type"),
        overwrite=call.flag("bootstrap_overwrite"),
        storage_options=call.storage_options,
        options=options,
    )
    return [(0,)]


_KEYS = {
    "base_file_format": "hoodie.table.base.file.format",
    "selector_class": "hoodie.bootstrap.mode.selector",
    "key_generator_class": "hoodie.datasource.write.keygenerator.class",
    "payload_class": "hoodie.datasource.write.payload.class",
}


def _mapping(call: ProcedureCall) -> Rows:
    ids = {text.strip() for text in call.text("file_ids").split(",") if text.strip()}
    partition = call.text("partition_path")
    files = list(read_index(call.storage))
    if not files:
        return []
    base = source_folder(call.storage)
    source = open_storage(base, call.storage_options)
    rows = [
        (file.partition_path, file.file_id, base, file.source_partition, source.full_path(file.path))
        for file in files
        if (not partition or file.partition_path == partition) and (not ids or file.file_id in ids)
    ]
    columns = ["partition", "file_id", "source_base_path", "source_partition", "source_file"]
    sort_by = call.text("sort_by")
    if sort_by not in columns:
        raise ConfigError(f"{call.procedure}: sort_by is one of {', '.join(columns)}; found {sort_by!r:.100}.")
    place = columns.index(sort_by)
    return call.limited(sorted(rows, key=lambda row: str(row[place]), reverse=call.flag("desc")))


def _partitions(call: ProcedureCall) -> Rows:
    return [(path,) for path in dict.fromkeys(file.partition_path for file in read_index(call.storage))]


PROCEDURES = (
    Procedure.of(
        "run_bootstrap",
        "table string!, table_type string!, bootstrap_path string!, base_path string!, rowKey_field string!, "
        "base_file_format string, partition_path_field string, selector_class string, key_generator_class string, "
        "payload_class string, bootstrap_overwrite boolean=false, options string",
        "status integer",
        _run,
        "Makes a table of a folder of Parquet or ORC files, whose rows stay there or are copied.",
    ),
    Procedure.of(
        "show_bootstrap_mapping",
        "table string!, partition_path string, file_ids string, limit integer=10, sort_by string=partition, "
        "desc boolean=false",
        "partition string, file_id string, source_base_path string, source_partition string, source_file string",
        _mapping,
        "Which file has the columns of each bootstrapped file group.",
    ),
    Procedure.of(
        "show_bootstrap_partitions",
        "table string!",
        "indexed_partitions string",
        _partitions,
        "The partitions with bootstrapped file groups.",
    ),
)
