"""Procedures that change or copy a table's data: partitions, repairs, versions, copies."""

from __future__ import annotations

from collections.abc import Iterator

from pyhudi.errors import ConfigError, CorruptFile
from pyhudi.filegroup.write.partition_metadata import ensure_partition_metadata
from pyhudi.model.filenames import PARTITION_METADATA_NAME, BaseFileName, LogFileName
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.options.queries import AS_OF, BEGIN, END
from pyhudi.sql.procedures.procedure import Procedure, ProcedureCall, Rows
from pyhudi.sql.session import SqlSession
from pyhudi.table.scan import Scan
from pyhudi.timeline.listing import instant_path
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
        call.table.truncate(options=call.options)
    return []  # as Hudi answers


# ---- repairs


def _add_partition_metadata(call: ProcedureCall) -> Rows:
    """Give a metadata file to folders that hold data files and lack one."""
    partitions = {path for path, _ in listed_partitions(call.storage)}
    for path in sorted(partitions | set(_folders_with_data(call))):
        if path in partitions:
            yield path, "Yes", "None"
        elif call.flag("dry_run"):
            yield path, "No", "None"
        else:
            last = call.meta.timeline.last_commit()
            time = last.requested_time if last is not None else "00000000000000000"
            ensure_partition_metadata(call.storage, path, time, call.meta.clock)
            yield path, "No", "Repaired"


def _folders_with_data(call: ProcedureCall) -> Iterator[str]:
    for entry in call.storage.walk(""):
        if entry.is_dir or entry.path.startswith(".hoodie/"):
            continue
        if BaseFileName.parse(entry.name) is not None or LogFileName.parse(entry.name) is not None:
            yield entry.path.rpartition("/")[0]


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
    """Delete pending cleans with unreadable plans: their writer died, and they deleted no file."""
    for instant in call.meta.timeline.pending().of([ActionKind.CLEAN]):
        if _is_unreadable(call, instant):
            for state in (State.INFLIGHT, State.REQUESTED):
                call.storage.delete(instant_path(instant.at(state), call.meta.config))
    return [(True,)]


def _is_unreadable(call: ProcedureCall, instant: Instant) -> bool:
    try:
        return call.meta.reader.clean_plan(instant) is None
    except CorruptFile:
        return True


# ---- versions


def _upgrade(call: ProcedureCall) -> Rows:
    call.table.upgrade(_version(call), options=call.options)
    return [(True,)]


def _downgrade(call: ProcedureCall) -> Rows:
    call.table.downgrade(_version(call), options=call.options)
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
        "Take out pending cleans whose plans can't be read.",
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
