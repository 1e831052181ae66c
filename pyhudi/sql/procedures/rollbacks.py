"""Rollbacks, savepoints and restores: their history, and running them."""

from __future__ import annotations

from pyhudi.errors import ConfigError
from pyhudi.model.instant import ActionKind
from pyhudi.sql.procedures.procedure import Procedure, ProcedureCall, Rows
from pyhudi.sql.procedures.timeline import rollback_metadata

__all__ = ["PROCEDURES"]

_TABLE_AND_TIME = "table string, instant_time string=, path string"


def _show_rollbacks(call: ProcedureCall) -> Rows:
    rollbacks = ((i, rollback_metadata(call.meta, i)) for i in call.completed(ActionKind.ROLLBACK))
    return call.limited(
        (instant.requested_time, time, body.total_files_deleted, body.time_taken_ms, len(body.partitions))
        for instant, body in rollbacks
        for time in body.commits_rollback
    )


def _show_rollback_detail(call: ProcedureCall) -> Rows:
    time = call.text("instant_time")
    instant = call.meta.timeline.completed().find(time, ActionKind.ROLLBACK)
    if instant is None:
        raise ConfigError(f"{call.procedure}: {call.table.path} has no completed rollback {time!r:.100}.")
    body = rollback_metadata(call.meta, instant)
    undone = f"[{', '.join(body.commits_rollback)}]"
    return call.limited(
        (body.start_rollback_time, undone, path, file, succeeded)
        for path, partition in body.partitions.items()
        for succeeded, files in ((True, partition.success_delete_files), (False, partition.failed_delete_files))
        for file in files
    )


def _rollback_to_instant(call: ProcedureCall) -> Rows:
    result = call.table.rollback(call.text("instant_time"), options=call.options)
    return [(bool(result.rolled_back),)]


def _create_savepoint(call: ProcedureCall) -> Rows:
    time = call.text("commit_time") or None
    call.table.savepoints.create(time, user=call.text("user"), comment=call.text("comments"), options=call.options)
    return [(True,)]


def _show_savepoints(call: ProcedureCall) -> Rows:
    return [(savepoint.instant_time,) for savepoint in reversed(call.table.savepoints.list())]


def _delete_savepoint(call: ProcedureCall) -> Rows:
    call.table.savepoints.delete(_saved(call), options=call.options)
    return [(True,)]


def _rollback_to_savepoint(call: ProcedureCall) -> Rows:
    time = _saved(call)
    if time not in {savepoint.instant_time for savepoint in call.table.savepoints.list()}:
        raise ConfigError(f"{call.procedure}: {call.table.path} has no savepoint {time!r:.100}.")
    call.table.restore(time, options=call.options)
    return [(True,)]


def _saved(call: ProcedureCall) -> str:
    """The savepoint of `instant_time`, or the newest one. Raises ConfigError without a savepoint."""
    time = call.text("instant_time")
    times = [savepoint.instant_time for savepoint in call.table.savepoints.list()]
    if not time and not times:
        raise ConfigError(f"{call.procedure}: {call.table.path} has no savepoint.")
    return time or max(times)


def _undo_pending_service(call: ProcedureCall) -> Rows:
    """Roll back an unfinished compaction or clustering."""
    time = call.text("pending_instant")
    instant = call.meta.timeline.pending().find(time)
    if instant is None or not (instant.action.is_table_service or instant.action.is_replacing):
        raise ConfigError(f"{call.procedure}: {call.table.path} has no pending compaction or clustering {time!r:.100}.")
    if instant.action.is_compaction and call.flag("delete_request_instant_file"):
        raise ConfigError(
            f"{call.procedure}: the plan of a compaction stays, as log files may be named after it. CALL "
            f"run_compaction(op => 'execute', instants => '{time}') executes it."
        )
    begun = call.meta.clock.monotonic_s()
    call.table.rollback(time, options=call.options)
    return [(time, f"{call.meta.clock.monotonic_s() - begun:.3f}")]


PROCEDURES = (
    Procedure.of(
        "show_rollbacks",
        "table string!, limit integer=10",
        "instant string, rollback_instant string, total_files_deleted integer, time_taken_in_millis long, "
        "total_partitions integer",
        _show_rollbacks,
        "Completed rollbacks, newest first: which instants they took back.",
    ),
    Procedure.of(
        "show_rollback_detail",
        "table string!, limit integer=10, instant_time string!",
        "instant string, rollback_instant string, partition string, deleted_file string, succeeded boolean",
        _show_rollback_detail,
        "The files that one rollback deleted.",
    ),
    Procedure.of(
        "rollback_to_instant",
        "table string!, instant_time string!",
        "rollback_result boolean",
        _rollback_to_instant,
        "Take back the newest write, which `instant_time` names.",
    ),
    Procedure.of(
        "run_rollback_inflight_tableservice",
        "table string, path string, pending_instant string!, delete_request_instant_file boolean=false",
        "instant string, time_cost string",
        _undo_pending_service,
        "Take back a compaction or clustering that was begun and not finished.",
    ),
    Procedure.of(
        "create_savepoint",
        "table string, commit_time string=, user string=, comments string=, path string",
        "create_savepoint_result boolean",
        _create_savepoint,
        "Save a commit, the newest without a commit time.",
    ),
    Procedure.of(
        "show_savepoints",
        "table string, path string",
        "savepoint_time string",
        _show_savepoints,
        "The saved commits, newest first.",
    ),
    Procedure.of(
        "delete_savepoint",
        _TABLE_AND_TIME,
        "delete_savepoint_result boolean",
        _delete_savepoint,
        "Give a saved commit free, the newest without an instant time.",
    ),
    Procedure.of(
        "rollback_to_savepoint",
        _TABLE_AND_TIME,
        "rollback_savepoint_result boolean",
        _rollback_to_savepoint,
        "Take the table back to a saved commit, the newest without an instant time.",
    ),
)
