"""Tables over files that were there before: making one, and what lies where."""

from __future__ import annotations

from pyhudi.errors import ConfigError
from pyhudi.formats.bootstrap import read_index, source_folder
from pyhudi.sql.procedures.procedure import Procedure, ProcedureCall, Rows
from pyhudi.storage import open_storage
from pyhudi.table.bootstrap import bootstrap

__all__ = ["PROCEDURES"]


_GENERATOR = "org.apache.hudi.keygen.SimpleKeyGenerator"
_PAYLOAD = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
_SELECTOR = "org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector"
_INDEX = "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex"
_PROVIDER = "org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider"

# Argument → its only values, by the last name of a class: files are read without classes, by their endings.
_ONLY = {
    "bootstrap_index_class": ("HFileBootstrapIndex",),
    "full_bootstrap_input_provider": ("SparkParquetBootstrapDataProvider", "SparkOrcBootstrapDataProvider"),
    "schema_provider_class": ("",),
}
# Argument → its option, and the default.
_KEYS = {
    "base_file_format": ("hoodie.table.base.file.format", "PARQUET"),
    "selector_class": ("hoodie.bootstrap.mode.selector", _SELECTOR),
    "key_generator_class": ("hoodie.datasource.write.keygenerator.class", _GENERATOR),
    "payload_class": ("hoodie.datasource.write.payload.class", _PAYLOAD),
}


def _run(call: ProcedureCall) -> Rows:
    for argument, names in _ONLY.items():
        if call.text(argument).rpartition(".")[2] not in names:
            known = " or ".join(filter(None, names)) or "nothing: the files have the schema"
            raise ConfigError(f"{call.procedure}: {argument} is {known}; found {call.text(argument)!r:.200}.")
    if call.flag("enable_hive_sync"):
        raise ConfigError(f"{call.procedure} registers the table nowhere: leave out enable_hive_sync.")
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
        options=_options(call),
    )
    return [(0,)]


def _options(call: ProcedureCall) -> dict[str, object]:
    """Options of the properties file, over them those of the call, over them the arguments with other values than their
    default. The defaults of the key generator and the payload leave these to the fields and to the options.
    """
    options: dict[str, object] = {}
    if call.text("props_file_path"):
        options.update(call.properties_at(call.text("props_file_path")))
    options.update(call.options)
    options.setdefault("hoodie.bootstrap.parallelism", call.number("parallelism"))
    merges = any("merge" in key or "payload" in key for key in options)
    for argument, (key, default) in _KEYS.items():
        value = call.text(argument) or default
        if value != default:
            options[key] = value
        elif value != _GENERATOR and not (value == _PAYLOAD and merges):
            options.setdefault(key, value)
    return options


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
        f"base_file_format string=PARQUET, partition_path_field string=, bootstrap_index_class string={_INDEX}, "
        f"selector_class string={_SELECTOR}, key_generator_class string={_GENERATOR}, "
        f"full_bootstrap_input_provider string={_PROVIDER}, schema_provider_class string=, "
        f"payload_class string={_PAYLOAD}, parallelism integer=1500, enable_hive_sync boolean=false, "
        "props_file_path string=, bootstrap_overwrite boolean=false, options string",
        "status integer",
        _run,
        "Makes a table of a folder of Parquet or ORC files, whose rows stay there or are copied.",
    ),
    Procedure.of(
        "show_bootstrap_mapping",
        "table string, path string, partition_path string=, file_ids string=, limit integer=10, "
        "sort_by string=partition, desc boolean=false, filter string=",
        "partition string, file_id string, source_base_path string, source_partition string, source_file string",
        _mapping,
        "Which file has the columns of each bootstrapped file group.",
    ),
    Procedure.of(
        "show_bootstrap_partitions",
        "table string, path string, filter string=",
        "indexed_partitions string",
        _partitions,
        "The partitions with bootstrapped file groups.",
    ),
)
