"""Procedures that change or copy a table's data: partitions, repairs, versions, copies."""

from __future__ import annotations

from pyhudi.errors import ConfigError
from pyhudi.model.filenames import PARTITION_METADATA_NAME
from pyhudi.model.options.queries import AS_OF, BEGIN, END
from pyhudi.services.repair.result import PropertyItem
from pyhudi.sql.procedures.procedure import Procedure, ProcedureCall, Rows, table_name_of
from pyhudi.sql.session import SqlSession
from pyhudi.table.repairs import repair_properties
from pyhudi.table.scan import Scan
from pyhudi.view.file_system_view import listed_partitions

__all__ = ["PROCEDURES"]

_SUCCESS = "SUCCESS"
_VERSIONS = {"FOUR": 4, "FIVE": 5, "SIX": 6, "SEVEN": 7, "EIGHT": 8, "NINE": 9}
_QUERY = (
    "begin_instance_time string=, end_instance_time string=, as_of_instant string=",
    "table string!, query_type string=snapshot",
)


# ---- partitions


def _drop_partition(call: ProcedureCall) -> Rows:
    paths = [path.strip().strip("/") for path in call.text("partition").split(",")]
    patterns = [path for path in paths if "*" in path]
    call.table.delete_partitions(
        [path for path in paths if path not in patterns], matching=patterns, options=call.options
    )
    return [(_SUCCESS,)]


def _truncate_table(call: ProcedureCall) -> Rows:
    paths = [path.strip().strip("/") for path in call.text("partitions").split(",") if path.strip()]
    if paths and not call.meta.config.partition_fields:
        raise ConfigError(f"{call.procedure}: {call.table.path} has no partitions.")
    if paths:
        call.table.delete_partitions(paths, options=call.options)
    else:
        call.table.delete_partitions(matching="*", options=call.options)
    return []  # as Hudi answers


# ---- repairs


def _add_partition_metadata(call: ProcedureCall) -> Rows:
    """The partitions, and what `table.maintenance.repair.partition_metadata` finds or mends."""
    whole = {path for path, _ in listed_partitions(call.storage)}
    result = call.table.maintenance.repair.partition_metadata(dry_run=call.flag("dry_run"), options=call.options)
    damaged = {item.where for item in result.items}
    for path in sorted(whole | damaged):
        if path in damaged:
            yield path, "No", "Repaired" if result.is_done else "None"
        else:
            yield path, "Yes", "None"


def _migrate_partition_metadata(call: ProcedureCall) -> Rows:
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


def _repair_cleans(call: ProcedureCall) -> Rows:
    call.table.maintenance.repair.empty_instants(actions=["clean"], dry_run=False, options=call.options)
    return [(True,)]


def _deduplicate(call: ProcedureCall) -> Rows:
    for name in ("repaired_output_path", "dedupe_type"):
        if call.text(name):
            raise ConfigError(
                f"{call.procedure} mends the table itself, in one commit and by its merge rules: leave out {name}."
            )
    path = call.text("duplicated_partition_path")
    result = call.table.maintenance.repair.duplicates(
        partitions=[path], dry_run=call.flag("dry_run"), options=call.options
    )
    return [(str(result),)]


def _overwrite_properties(call: ProcedureCall) -> Rows:
    """The properties of a file count before those of the table, which may be damaged."""
    properties = call.properties_at(call.text("new_props_file_path"))
    path = table_name_of(call.text("table")).path
    if path is not None and call.handle is None:
        result = repair_properties(
            path, properties=properties, dry_run=False, options=call.options, storage_options=call.storage_options
        )
    else:
        result = call.table.maintenance.repair.properties(properties=properties, dry_run=False, options=call.options)
    return [(item.where, item.before, item.after) for item in result.items if isinstance(item, PropertyItem)]


# ---- versions


def _upgrade(call: ProcedureCall) -> Rows:
    call.table.maintenance.upgrade(_version(call), options=call.options)
    return [(True,)]


def _downgrade(call: ProcedureCall) -> Rows:
    call.table.maintenance.downgrade(_version(call), options=call.options)
    return [(True,)]


def _version(call: ProcedureCall) -> int:
    text = call.text("to_version").strip().upper()
    if text in _VERSIONS:
        return _VERSIONS[text]
    if text.isdecimal():
        return int(text)
    raise ConfigError(f"{call.procedure}: to_version is a table version, 8 or EIGHT; found {text!r:.100}.")


# ---- copies


def _scan(call: ProcedureCall) -> Scan:
    """The rows that a copy gets."""
    kind, as_of = call.text("query_type").lower(), call.text("as_of_instant") or None
    if kind == "incremental":
        begin, end = call.text("begin_instance_time"), call.text("end_instance_time")
        if not begin or not end:
            raise ConfigError(f"{call.procedure}: an incremental copy needs begin_instance_time and end_instance_time.")
        return call.table.scan(query_type=kind, options={BEGIN: begin, END: end})
    if kind not in ("snapshot", "read_optimized"):
        raise ConfigError(f"{call.procedure}: query_type is snapshot, read_optimized or incremental; found {kind!r}.")
    return call.table.scan(query_type=kind, options={AS_OF: as_of} if as_of else None)


def _session(call: ProcedureCall) -> SqlSession:
    if call.session is None:
        raise ConfigError(f"{call.procedure} makes a name in a session: call it by SQL, or scan the table.")
    return call.session


def _copy_to_temp_view(call: ProcedureCall) -> Rows:
    session = _session(call)
    frame = session.frame_of_scan(_scan(call))
    session.create_view(call.text("view_name"), frame, replace=call.flag("replace"), is_global=call.flag("global"))
    return [(0,)]


def _copy_to_table(call: ProcedureCall) -> Rows:
    session, columns = _session(call), [name.strip() for name in call.text("columns").split(",") if name.strip()]
    mode = call.text("save_mode").lower()
    if mode not in ("overwrite", "append", "errorifexists", "error", "ignore"):
        raise ConfigError(f"{call.procedure}: save_mode is overwrite, append, errorifexists or ignore; found {mode!r}.")
    scan = _scan(call).narrowed(columns or None)
    session.save_table(call.text("new_table"), session.frame_of_scan(scan), mode)
    return [(0,)]


PROCEDURES = (
    Procedure.of(
        "drop_partition",
        "table string!, partition string!",
        "result string",
        _drop_partition,
        "Delete partitions by their paths, with commas, or by patterns with `*`.",
    ),
    Procedure.of(
        "truncate_table",
        "table string!, partitions string",
        "result string, time_cost long",
        _truncate_table,
        "Take all rows out, or those of some partitions; the history stays.",
    ),
    Procedure.of(
        "repair_add_partition_meta",
        "table string!, dry_run boolean=true",
        "partition_path string, metadata_is_present string, action string",
        _add_partition_metadata,
        "Make folders with data files partitions again that have lost their metadata file.",
    ),
    Procedure.of(
        "repair_migrate_partition_meta",
        "table string!, dry_run boolean=true",
        "partition_path string, text_metafile_present string, base_metafile_present string, action string",
        _migrate_partition_metadata,
        "In which form partitions have their metadata file; writing the other form is refused.",
    ),
    Procedure.of(
        "repair_corrupted_clean_files",
        "table string!",
        "result boolean",
        _repair_cleans,
        "Mend cleans that can't be read: those that wait go, of completed ones what they did stays done.",
    ),
    Procedure.of(
        "repair_deduplicate",
        "table string!, duplicated_partition_path string!, repaired_output_path string, dry_run boolean=true, "
        "dedupe_type string",
        "result string",
        _deduplicate,
        "Keep one row of each key in a partition, in the table itself; the other two arguments are refused.",
    ),
    Procedure.of(
        "repair_overwrite_hoodie_props",
        "table string!, new_props_file_path string!",
        "property string, old_value string, new_value string",
        _overwrite_properties,
        "Make hoodie.properties again; those of a file count first. The rows are what changed.",
    ),
    Procedure.of(
        "upgrade_table",
        "table string!, to_version string!",
        "result boolean",
        _upgrade,
        "Take a table to a higher version: 8 or EIGHT.",
    ),
    Procedure.of(
        "downgrade_table",
        "table string!, to_version string!",
        "result boolean",
        _downgrade,
        "Take a table to a lower version: 6 or SIX.",
    ),
    Procedure.of(
        "copy_to_temp_view",
        f"{_QUERY[1]}, view_name string!, {_QUERY[0]}, replace boolean=false, global boolean=false",
        "status integer",
        _copy_to_temp_view,
        "Name a query of the table in the session.",
    ),
    Procedure.of(
        "copy_to_table",
        f"{_QUERY[1]}, new_table string!, {_QUERY[0]}, save_mode string=overwrite, columns string=",
        "status integer",
        _copy_to_table,
        "Save a query of the table as a table of the session's engine.",
    ),
)
