"""Procedures that change or copy a table: rollbacks, savepoints, partitions, repairs, versions, copies, bootstraps."""

from __future__ import annotations

from pathlib import Path

from pyhudi.errors import ConfigError
from pyhudi.formats.bootstrap import read_index, source_folder
from pyhudi.model.filenames import PARTITION_METADATA_NAME
from pyhudi.model.options.queries import AS_OF, BEGIN, END
from pyhudi.services.repair.result import PropertyItem
from pyhudi.sql.procedures.procedure import TABLE, ProcedureCall, Rows, procedure, table_name_of
from pyhudi.sql.session import SqlSession
from pyhudi.storage import open_storage
from pyhudi.table.exports import export_instants as exported_instants
from pyhudi.table.groups.repairs import repair_properties
from pyhudi.table.imports.bootstrap import bootstrap
from pyhudi.table.scan import Scan
from pyhudi.view.file_system_view import listed_partitions

_TABLE_AND_TIME = "table string, instant_time string=, path string"
_SOURCE = "table string!, query_type string=snapshot"
_TIMES = "begin_instance_time string=, end_instance_time string=, as_of_instant string="
_VERSIONS = {"FOUR": 4, "FIVE": 5, "SIX": 6, "SEVEN": 7, "EIGHT": 8, "NINE": 9}


# ---- rollbacks and savepoints


@procedure("table string!, instant_time string!", "rollback_result boolean")
def rollback_to_instant(call: ProcedureCall) -> Rows:
    """Roll back the newest write, which `instant_time` names."""
    return [(bool(call.table.rollback(call.text("instant_time"), options=call.options).rolled_back),)]


@procedure(
    f"{TABLE}, pending_instant string!, delete_request_instant_file boolean=false", "instant string, time_cost string"
)
def run_rollback_inflight_tableservice(call: ProcedureCall) -> Rows:
    """Roll back a compaction or clustering that was started and not finished."""
    time = call.text("pending_instant")
    instant = call.meta.timeline.pending().find(time)
    if instant is None or not (instant.action.is_table_service or instant.action.is_replacing):
        raise call.error(f"{call.table.path} has no pending compaction or clustering {time!r:.100}.")
    if instant.action.is_compaction and call.flag("delete_request_instant_file"):
        raise call.error(
            "the plan of a compaction stays, as log files may be named after it. CALL "
            f"run_compaction(op => 'execute', instants => '{time}') executes it."
        )
    started_s = call.meta.clock.monotonic_s()
    call.table.rollback(time, options=call.options)
    return [(time, f"{call.meta.clock.monotonic_s() - started_s:.3f}")]


@procedure(
    "table string, commit_time string=, user string=, comments string=, path string",
    "create_savepoint_result boolean",
)
def create_savepoint(call: ProcedureCall) -> Rows:
    """Savepoint a commit; without a commit time the newest."""
    time = call.text("commit_time") or None
    call.table.savepoints.create(time, user=call.text("user"), comment=call.text("comments"), options=call.options)
    return [(True,)]


@procedure(TABLE, "savepoint_time string")
def show_savepoints(call: ProcedureCall) -> Rows:
    """The savepoints, newest first."""
    return [(savepoint.instant_time,) for savepoint in reversed(call.table.savepoints.list())]


@procedure(_TABLE_AND_TIME, "delete_savepoint_result boolean")
def delete_savepoint(call: ProcedureCall) -> Rows:
    """Delete a savepoint; without an instant time the newest."""
    call.table.savepoints.delete(_saved(call)[0], options=call.options)
    return [(True,)]


@procedure(_TABLE_AND_TIME, "rollback_savepoint_result boolean")
def rollback_to_savepoint(call: ProcedureCall) -> Rows:
    """Restore the table to a savepoint; without an instant time the newest."""
    time, times = _saved(call)
    if time not in times:
        raise call.error(f"{call.table.path} has no savepoint {time!r:.100}.")
    call.table.restore(time, options=call.options)
    return [(True,)]


def _saved(call: ProcedureCall) -> tuple[str, list[str]]:
    """The savepoint of `instant_time`, or the newest, and a list of all. Raises ConfigError without a savepoint."""
    time = call.text("instant_time")
    times = [savepoint.instant_time for savepoint in call.table.savepoints.list()]
    if not time and not times:
        raise call.error(f"{call.table.path} has no savepoint.")
    return time or max(times), times


# ---- partitions


@procedure("table string!, partition string!", "result string")
def drop_partition(call: ProcedureCall) -> Rows:
    """Delete partitions by their paths, separated by commas, or by patterns with `*`."""
    paths = [path.strip().strip("/") for path in call.text("partition").split(",")]
    patterns = [path for path in paths if "*" in path]
    call.table.delete_partitions(
        [path for path in paths if path not in patterns], matching=patterns, options=call.options
    )
    return [("SUCCESS",)]


@procedure("table string!, partitions string", "result string, time_cost long")
def truncate_table(call: ProcedureCall) -> Rows:
    """Delete all rows, or those of some partitions; the history is kept."""
    paths = [path.strip("/") for path in call.texts("partitions")]
    if paths and not call.meta.config.partition_fields:
        raise call.error(f"{call.table.path} has no partitions.")
    if paths:
        call.table.delete_partitions(paths, options=call.options)
    else:
        call.table.delete_partitions(matching="*", options=call.options)
    return []  # like Hudi's answer


# ---- repairs


@procedure("table string!, dry_run boolean=true", "partition_path string, metadata_is_present string, action string")
def repair_add_partition_meta(call: ProcedureCall) -> Rows:
    """Make folders with data files partitions again if they have lost their metadata file."""
    whole = {path for path, _ in listed_partitions(call.storage)}
    result = call.table.maintenance.repair.partition_metadata(dry_run=call.flag("dry_run"), options=call.options)
    damaged = {item.where for item in result.items}
    for path in sorted(whole | damaged):
        is_damaged = path in damaged
        yield path, "No" if is_damaged else "Yes", "Repaired" if is_damaged and result.is_done else "None"


@procedure(
    "table string!, dry_run boolean=true",
    "partition_path string, text_metafile_present string, base_metafile_present string, action string",
)
def repair_migrate_partition_meta(call: ProcedureCall) -> Rows:
    """The form of each partition's metadata file; writing the other form is refused."""
    if not call.flag("dry_run"):
        raise ConfigError(
            f"{call.procedure} writes nothing here: partitions keep their metadata as text, which every reader of "
            "Hudi's tables understands. With dry_run => true it shows the existing forms."
        )
    for path, files in sorted(listed_partitions(call.storage)):
        names = {file.name for file in files}
        is_text = PARTITION_METADATA_NAME in names
        is_base = any(name.startswith(f"{PARTITION_METADATA_NAME}.") for name in names)
        yield path, str(is_text).lower(), str(is_base).lower(), "MIGRATE" if is_text and not is_base else "NONE"


@procedure("table string!", "result boolean")
def repair_corrupted_clean_files(call: ProcedureCall) -> Rows:
    """Repair cleans that can't be read: pending ones are dropped, the effects of completed ones are kept."""
    call.table.maintenance.repair.empty_instants(actions=["clean"], dry_run=False, options=call.options)
    return [(True,)]


@procedure(
    "table string!, duplicated_partition_path string!, repaired_output_path string, dry_run boolean=true, "
    "dedupe_type string",
    "result string",
)
def repair_deduplicate(call: ProcedureCall) -> Rows:
    """Keep one row of each key in a partition, in the table itself; the other two arguments are refused."""
    for name in ("repaired_output_path", "dedupe_type"):
        if call.text(name):
            raise ConfigError(
                f"{call.procedure} repairs the table itself, in one commit and by its merge rules: leave out {name}."
            )
    path = call.text("duplicated_partition_path")
    result = call.table.maintenance.repair.duplicates(
        partitions=[path], dry_run=call.flag("dry_run"), options=call.options
    )
    return [(str(result),)]


@procedure("table string!, new_props_file_path string!", "property string, old_value string, new_value string")
def repair_overwrite_hoodie_props(call: ProcedureCall) -> Rows:
    """Rewrite hoodie.properties; the properties of a given file win. The rows are the changes."""
    properties = call.properties_at(call.text("new_props_file_path"))
    path = table_name_of(call.text("table")).path
    if path is not None and call.handle is None:  # the table may be too damaged to be opened
        result = repair_properties(
            path, properties=properties, dry_run=False, options=call.options, storage_options=call.storage_options
        )
    else:
        result = call.table.maintenance.repair.properties(properties=properties, dry_run=False, options=call.options)
    return [(item.where, item.before, item.after) for item in result.items if isinstance(item, PropertyItem)]


# ---- properties and versions


@procedure(f"{TABLE}, limit integer=10, filter string=", "key string, value string")
def show_table_properties(call: ProcedureCall) -> Rows:
    """The table's properties, by key."""
    return sorted(call.meta.config.properties.items())


@procedure("table string!, to_version string!", "result boolean")
def upgrade_table(call: ProcedureCall) -> Rows:
    """Upgrade a table to a higher version: 8 or EIGHT."""
    call.table.maintenance.upgrade(_version(call), options=call.options)
    return [(True,)]


@procedure("table string!, to_version string!", "result boolean")
def downgrade_table(call: ProcedureCall) -> Rows:
    """Downgrade a table to a lower version: 6 or SIX."""
    call.table.maintenance.downgrade(_version(call), options=call.options)
    return [(True,)]


def _version(call: ProcedureCall) -> int:
    text = call.text("to_version").strip().upper()
    if text.isdecimal() or text in _VERSIONS:
        return _VERSIONS.get(text) or int(text)
    raise call.error(f"to_version is a table version, 8 or EIGHT; found {text!r:.100}.")


# ---- copies


@procedure(f"{_SOURCE}, view_name string!, {_TIMES}, replace boolean=false, global boolean=false", "status integer")
def copy_to_temp_view(call: ProcedureCall) -> Rows:
    """Name a query of the table in the session."""
    session = _session(call)
    frame = session.frame_of_scan(_scan(call))
    session.create_view(call.text("view_name"), frame, replace=call.flag("replace"), is_global=call.flag("global"))
    return [(0,)]


@procedure(f"{_SOURCE}, new_table string!, {_TIMES}, save_mode string=overwrite, columns string=", "status integer")
def copy_to_table(call: ProcedureCall) -> Rows:
    """Save a query of the table as a table of the session's engine."""
    session, mode = _session(call), call.text("save_mode").lower()
    if mode not in ("overwrite", "append", "errorifexists", "error", "ignore"):
        raise call.error(f"save_mode is overwrite, append, errorifexists or ignore; found {mode!r}.")
    scan = _scan(call).narrowed(call.texts("columns") or None)
    session.save_table(call.text("new_table"), session.frame_of_scan(scan), mode)
    return [(0,)]


def _scan(call: ProcedureCall) -> Scan:
    """The scan of the rows to copy."""
    kind, as_of = call.text("query_type").lower(), call.text("as_of_instant") or None
    if kind == "incremental":
        begin, end = call.text("begin_instance_time"), call.text("end_instance_time")
        if not begin or not end:
            raise call.error("an incremental copy needs begin_instance_time and end_instance_time.")
        return call.table.scan(query_type=kind, options={BEGIN: begin, END: end})
    if kind not in ("snapshot", "read_optimized"):
        raise call.error(f"query_type is snapshot, read_optimized or incremental; found {kind!r}.")
    return call.table.scan(query_type=kind, options={AS_OF: as_of} if as_of else None)


def _session(call: ProcedureCall) -> SqlSession:
    if call.session is None:
        raise ConfigError(f"{call.procedure} makes a name in a session: call it by SQL, or scan the table.")
    return call.session


@procedure(
    "table string!, local_folder string!, limit integer=-1, "
    "actions string=clean,commit,deltacommit,rollback,savepoint,restore, desc boolean=false",
    "export_detail string",
    is_limited=False,
)
def export_instants(call: ProcedureCall) -> Rows:
    """Write the bodies of completed instants into a local folder, as JSON."""
    folder = Path(call.text("local_folder"))
    if not folder.is_dir():
        raise call.error(f"{folder} is no folder of this machine. Make it first.")
    limit = call.number("limit")
    at_most = None if limit is None or limit < 0 else limit
    written = exported_instants(call.meta, str(folder), call.texts("actions"), at_most, call.flag("desc"))
    return [(f"Exported {written.items} Instants to {call.text('local_folder')}",)]


# ---- bootstraps

_GENERATOR = "org.apache.hudi.keygen.SimpleKeyGenerator"
_PAYLOAD = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
_SELECTOR = "org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector"
_INDEX = "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex"
_PROVIDER = "org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider"

# Argument → its only values, by the last name of a class: files are read by their extensions, without classes.
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

# The columns of show_bootstrap_mapping.
_MAPPED = ("partition", "file_id", "source_base_path", "source_partition", "source_file")


@procedure(
    "table string!, table_type string!, bootstrap_path string!, base_path string!, rowKey_field string!, "
    f"base_file_format string=PARQUET, partition_path_field string=, bootstrap_index_class string={_INDEX}, "
    f"selector_class string={_SELECTOR}, key_generator_class string={_GENERATOR}, "
    f"full_bootstrap_input_provider string={_PROVIDER}, schema_provider_class string=, "
    f"payload_class string={_PAYLOAD}, parallelism integer=1500, enable_hive_sync boolean=false, "
    "props_file_path string=, bootstrap_overwrite boolean=false, options string",
    "status integer",
)
def run_bootstrap(call: ProcedureCall) -> Rows:
    """Create a table from a folder of Parquet or ORC files, whose rows remain there or are copied."""
    for argument, names in _ONLY.items():
        if call.text(argument).rpartition(".")[2] not in names:
            known = " or ".join(filter(None, names)) or "nothing: the files have the schema"
            raise call.error(f"{argument} is {known}; found {call.text(argument)!r:.200}.")
    if not call.text("base_path"):
        raise ConfigError(f"{call.procedure} needs the argument base_path: where the table is made.")
    bootstrap(
        call.text("bootstrap_path"),
        call.text("base_path"),
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
    """Options in increasing precedence: the properties file, the call's options, arguments that differ from their
    default. If the key generator and the payload have their defaults, fields and options decide.
    """
    file = call.text("props_file_path")
    options: dict[str, object] = {**(call.properties_at(file) if file else {}), **call.options}
    options.setdefault("hoodie.bootstrap.parallelism", call.number("parallelism"))
    if call.flag("enable_hive_sync"):
        options["hoodie.datasource.hive_sync.enable"] = "true"
        database = call.text("table").rpartition(".")[0].rpartition(".")[2]
        if database:  # as in Hudi: registered under the name that it is called by
            options.setdefault("hoodie.datasource.hive_sync.database", database)
    merges = any("merge" in key or "payload" in key for key in options)
    for argument, (key, default) in _KEYS.items():
        value = call.text(argument) or default
        if value != default:
            options[key] = value
        elif value != _GENERATOR and not (value == _PAYLOAD and merges):
            options.setdefault(key, value)
    return options


@procedure(
    f"{TABLE}, partition_path string=, file_ids string=, limit integer=10, sort_by string=partition, "
    "desc boolean=false, filter string=",
    ", ".join(f"{name} string" for name in _MAPPED),
)
def show_bootstrap_mapping(call: ProcedureCall) -> Rows:
    """The source file of each bootstrapped file group."""
    ids, partition = call.texts("file_ids"), call.text("partition_path")
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
    sort_by = call.text("sort_by")
    if sort_by not in _MAPPED:
        raise call.error(f"sort_by is one of {', '.join(_MAPPED)}; found {sort_by!r:.100}.")
    return sorted(rows, key=lambda row: str(row[_MAPPED.index(sort_by)]), reverse=call.flag("desc"))


@procedure(f"{TABLE}, filter string=", "indexed_partitions string")
def show_bootstrap_partitions(call: ProcedureCall) -> Rows:
    """The partitions with bootstrapped file groups."""
    return [(path,) for path in dict.fromkeys(file.partition_path for file in read_index(call.storage))]
