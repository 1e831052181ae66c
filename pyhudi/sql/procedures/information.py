"""About a table and its folders: properties, sizes, write amplification, instants as files, the audit of its lock."""

from __future__ import annotations

from pathlib import Path

from pyhudi.errors import ConfigError
from pyhudi.model.instant import ActionKind
from pyhudi.sql.procedures.procedure import Procedure, ProcedureCall, Row, Rows
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.exports import export_instants

__all__ = ["PROCEDURES"]

_UNITS = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB"))
_UNLIMITED = -1  # how a file system says that a folder has no quota


def _show_table_properties(call: ProcedureCall) -> Rows:
    return call.limited(sorted(call.meta.config.properties.items()))


def _stats_wa(call: ProcedureCall) -> Rows:
    total_updates, total_writes = 0, 0
    rows: list[Row] = []
    for instant, body in reversed(call.commits()):
        if instant.action is ActionKind.DELTACOMMIT:
            continue  # it appends; the compaction rewrites the rows
        updates = sum(stat.num_update_writes for stat in body.stats())
        writes = sum(stat.num_writes for stat in body.stats())
        rows.append((instant.requested_time, updates, writes, _factor(writes, updates)))
        total_updates, total_writes = total_updates + updates, total_writes + writes
    rows.append(("Total", total_updates, total_writes, _factor(total_writes, total_updates)))
    return call.limited(rows)


def _factor(writes: int, updates: int) -> str:
    return f"{writes / updates:.2f}".removeprefix("0") if updates else "0"


# ---- folders


def _show_fs_path_detail(call: ProcedureCall) -> Rows:
    path = call.text("path")
    storage = open_storage(path, call.storage_options)
    places = [entry.path for entry in storage.list("")] if call.flag("is_sub") else [""]
    rows = [_summary(storage, place) for place in places]
    by = 2 if call.flag("sort") else 1
    return call.limited(sorted(rows, key=lambda row: int(str(row[by])), reverse=True))


def _summary(storage: Storage, place: str) -> Row:
    info = storage.stat(place) if place else None
    if info is not None and not info.is_dir:
        folders, files, size = 0, 1, info.size_bytes
    else:
        entries = list(storage.walk(place))
        paths = [entry.path for entry in entries if not entry.is_dir]
        below = {parent for path in paths for parent in _parents(path, place)}
        below |= {entry.path for entry in entries if entry.is_dir}
        folders, files, size = len(below) + 1, len(paths), sum(e.size_bytes for e in entries if not e.is_dir)
    # The last columns have Hudi's names and values.
    return folders, files, size, _readable(size), storage.full_path(place).rstrip("/"), _UNLIMITED, size, _UNLIMITED


def _parents(path: str, place: str) -> list[str]:
    """The folders between a place and a file."""
    parts = path.removeprefix(place).strip("/").split("/")[:-1]
    return ["/".join([place, *parts[: count + 1]]).strip("/") for count in range(len(parts))]


def _readable(size: int) -> str:
    return next((f"{size / unit:.2f}{name}" for unit, name in _UNITS if size >= unit), f"{size}B")


# ---- instants as files


def _export_instants(call: ProcedureCall) -> Rows:
    folder = Path(call.text("local_folder"))
    if not folder.is_dir():
        raise ConfigError(f"{call.procedure}: {folder} is no folder of this machine. Make it first.")
    actions = [action.strip() for action in call.text("actions").split(",")]
    limit = call.number("limit")
    at_most = None if limit is None or limit < 0 else limit
    exported = export_instants(call.meta, str(folder), actions, at_most, call.flag("desc"))
    return [(f"Exported {exported.items} Instants to {call.text('local_folder')}",)]


# ---- the audit of the lock


def _set_audit_lock(call: ProcedureCall) -> Rows:
    state = call.text("state").lower()
    if state not in ("enabled", "disabled"):
        raise ConfigError(f"{call.procedure}: state is enabled or disabled, found {state!r:.100}.")
    audit = call.table.maintenance.lock_audit
    status = audit.enable() if state == "enabled" else audit.disable()
    return [(_named(call), state, str(status))]


def _show_audit_lock_status(call: ProcedureCall) -> Rows:
    status = call.table.maintenance.lock_audit.status()
    return [(_named(call), status.enabled, status.switch, status.folder)]


def _validate_audit_lock(call: ProcedureCall) -> Rows:
    validation = call.table.maintenance.lock_audit.validate()
    outcome = "FAILED" if validation.has_errors else "WARNING" if validation.issues else "PASSED"
    details = ", ".join(map(str, validation.issues)) or str(validation)
    return [(_named(call), outcome, validation.files, len(validation.issues), details)]


def _cleanup_audit_lock(call: ProcedureCall) -> Rows:
    days, dry_run = call.number("age_days") or 0, call.flag("dry_run")
    cleaned = call.table.maintenance.lock_audit.cleanup(days, dry_run=dry_run)
    return [(_named(call), len(cleaned.files), dry_run, days, str(cleaned))]


def _named(call: ProcedureCall) -> str:
    return call.text("table") or call.text("path")


PROCEDURES = (
    Procedure.of(
        "show_table_properties",
        "table string, path string, limit integer=10, filter string=",
        "key string, value string",
        _show_table_properties,
        "The table's properties, by key.",
    ),
    Procedure.of(
        "stats_wa",
        "table string!, limit integer=10",
        "commit_time string, total_upserted long, total_written long, write_amplification_factor string",
        _stats_wa,
        "How many rows each commit wrote for one that it changed.",
    ),
    Procedure.of(
        "show_fs_path_detail",
        "path string!, is_sub boolean=false, sort boolean=true, limit integer=100, filter string=",
        "path_num long, file_num long, storage_size long, storage_size(unit) string, storage_path string, "
        "space_consumed long, quota long, space_quota long",
        _show_fs_path_detail,
        "Folders, files and bytes below a path, or below each of its entries.",
    ),
    Procedure.of(
        "export_instants",
        "table string!, local_folder string!, limit integer=-1, "
        "actions string=clean,commit,deltacommit,rollback,savepoint,restore, desc boolean=false",
        "export_detail string",
        _export_instants,
        "Write the bodies of completed instants into a local folder, as JSON.",
    ),
    Procedure.of(
        "set_audit_lock",
        "table string, path string, state string!",
        "table string!, audit_state string!, message string!",
        _set_audit_lock,
        "Turn the audit of the storage-based lock on (enabled) or off (disabled).",
    ),
    Procedure.of(
        "show_audit_lock_status",
        "table string, path string",
        "table string!, audit_enabled boolean!, config_path string!, audit_folder_path string!",
        _show_audit_lock_status,
        "The audit of the lock: on or off, and its folder.",
    ),
    Procedure.of(
        "validate_audit_lock",
        "table string, path string",
        "table string!, validation_result string!, transactions_validated integer!, issues_found integer!, "
        "details string!",
        _validate_audit_lock,
        "Look into the audit for two holders of the lock at once, and for holders that died.",
    ),
    Procedure.of(
        "cleanup_audit_lock",
        "table string, path string, dry_run boolean=false, age_days integer=7",
        "table string!, files_cleaned integer!, dry_run boolean!, age_days integer!, message string!",
        _cleanup_audit_lock,
        "Delete files of the audit that are older than so many days.",
    ),
)
