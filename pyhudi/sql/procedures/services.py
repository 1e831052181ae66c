"""Procedures of table services: compaction, clustering, cleaning, time to live, archiving; markers, the lock audit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pyhudi.errors import UnsupportedTable
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.options.services import LAYOUT, SORT_COLUMNS
from pyhudi.queries.incremental_range import is_service
from pyhudi.sql.procedures.history import CLEAN_VERSION
from pyhudi.sql.procedures.procedure import TABLE, ProcedureCall, Row, Rows, procedure

_COMPACTION = "timestamp string, operation_size integer, state string"
_CLUSTERING = "timestamp string, input_group_size integer, state string, involved_partitions string"
_OPERATIONS = ("schedule", "execute", "scheduleandexecute")
_LAYOUTS = {"linear": "LINEAR", "z-order": "ZORDER", "zorder": "ZORDER", "hilbert": "HILBERT"}


# ---- compaction


@procedure(f"{TABLE}, limit integer=20", _COMPACTION)
def show_compaction(call: ProcedureCall) -> Rows:
    """The compactions on the active timeline, newest first."""
    if not call.meta.config.is_merge_on_read:
        raise UnsupportedTable(f"{call.procedure}: {call.table.path} is copy-on-write, which has no compactions.")
    return _compactions(call)


@procedure(
    "op string!, table string, path string, timestamp long, options string, instants string, limit integer",
    _COMPACTION,
    is_limited=False,
)
def run_compaction(call: ProcedureCall) -> Rows:
    """Schedule or execute compactions: `op` is schedule, execute, scheduleandexecute or run."""
    operation = call.text("op").lower()
    operation = "scheduleandexecute" if operation == "run" else operation
    instants = call.text("instants") or str(call.number("timestamp") or "")
    if call.text("instants") == "" and instants:
        operation = "execute"  # a timestamp implies it for any operation
    return _compactions(call, _run(call, operation, instants, ActionKind.COMPACTION))


def _compactions(call: ProcedureCall, times: Sequence[str] | None = None) -> Iterator[Row]:
    """The compactions of the timeline, newest first; `times`: only these."""
    for instant in reversed(call.table.state().timeline.instants):
        if (times is None or instant.requested_time in times) and _is_compaction(instant, call):
            pending = Instant(instant.requested_time, ActionKind.COMPACTION, instant.state)
            plan = call.meta.reader.compaction_plan(pending)
            yield instant.requested_time, len(plan.operations), instant.state.name


def _is_compaction(instant: Instant, call: ProcedureCall) -> bool:
    """True for a compaction. A commit may also be a write from before the table became merge-on-read."""
    if instant.action is not ActionKind.COMMIT:
        return instant.action is ActionKind.COMPACTION
    return instant.is_completed and is_service(instant, call.meta.commits.metadata(instant))


# ---- clustering


@procedure(f"{TABLE}, limit integer=20, show_involved_partition boolean=false", _CLUSTERING)
def show_clustering(call: ProcedureCall) -> Rows:
    """The clusterings on the active timeline, newest first."""
    return _clusterings(call)


@procedure(
    f"{TABLE}, predicate string, order string, show_involved_partition boolean=false, op string, "
    "order_strategy string, options string, instants string, selected_partitions string, "
    "partition_regex_pattern string, limit integer",
    _CLUSTERING,
)
def run_clustering(call: ProcedureCall) -> Rows:
    """Schedule or execute clusterings: `op` as for run_compaction, by default scheduleandexecute."""
    options: dict[str, object] = {}
    selected = _selected(call)
    if selected is not None:
        if not selected:
            return []
        options["hoodie.clustering.plan.partition.filter.mode"] = "SELECTED_PARTITIONS"
        options["hoodie.clustering.plan.strategy.partition.selected"] = ",".join(selected)
    if call.text("partition_regex_pattern"):
        options["hoodie.clustering.plan.strategy.partition.regex.pattern"] = call.text("partition_regex_pattern")
    if call.text("order"):
        names = [name.strip() for name in call.text("order").split(",")]
        unknown = [name for name in names if name.lower() not in map(str.lower, call.table.schema().names)]
        if unknown:
            raise call.error(f"{call.table.path} has no column {unknown[0]!r:.100} to sort by.")
        options[SORT_COLUMNS] = ",".join(names)
    strategy = call.text("order_strategy")
    if strategy:
        if strategy.lower() not in _LAYOUTS:
            raise call.error(f"order_strategy is one of linear, z-order, hilbert; found {strategy}.")
        options[LAYOUT] = _LAYOUTS[strategy.lower()]
    operation = call.text("op").lower() or ("execute" if call.text("instants") else "scheduleandexecute")
    return _clusterings(call, _run(call, operation, call.text("instants"), ActionKind.CLUSTERING, options))


def _clusterings(call: ProcedureCall, times: Sequence[str] | None = None) -> Iterator[Row]:
    meta = call.table.state()
    for instant in reversed(meta.timeline.instants):
        if times is not None and instant.requested_time not in times:
            continue
        plan = meta.reader.clustering_plan(instant)
        if plan is not None:
            with_partitions = call.flag("show_involved_partition")
            partitions = ",".join(file_slice.partition_path for file_slice in plan.slices) if with_partitions else "*"
            yield instant.requested_time, len(plan.groups), instant.state.name, partitions


def _selected(call: ProcedureCall) -> list[str] | None:
    """The partitions to cluster; None for all."""
    predicate = call.text("predicate")
    if predicate:
        config = call.meta.config
        if not config.partition_fields:
            raise call.error(f"{call.table.path} has no partitions for a predicate.")
        files = call.table.scan(config.partition_fields, where=predicate).files()
        return sorted({str(path) for path in files.column("partition_path").to_pylist()})
    paths = call.text("selected_partitions")
    return [path.strip() for path in paths.split(",")] if paths else None


def _run(
    call: ProcedureCall, operation: str, instants: str, action: ActionKind, options: dict[str, object] | None = None
) -> list[str]:
    """Schedule and execute plans of a service, as the operation says; return their instant times."""
    if operation not in _OPERATIONS:
        raise call.error(f"op is one of run, {', '.join(_OPERATIONS)}; found {operation!r:.100}.")
    service = call.table.compact if action is ActionKind.COMPACTION else call.table.cluster
    plan_options: dict[str, object] = {**(options or {}), **call.options}
    pending = _pending(call, action)
    if instants:
        if operation != "execute":
            raise call.error(f"instants are for op => 'execute', found op => {operation!r}.")
        pending = _pending_among(call, instants, pending)
    limit = None if instants else call.number("limit")
    times = pending if limit is None else pending[: max(0, limit)]  # as in Hudi, where below zero is none
    if operation != "execute":
        scheduled = service(schedule_only=True, options=plan_options).scheduled
        times = times if scheduled is None else [scheduled]
    if operation != "schedule":
        for time in times:
            service(instant_time=time, options=call.options)
    return times


def _pending(call: ProcedureCall, action: ActionKind) -> list[str]:
    meta = call.table.state()
    is_clustering = action is ActionKind.CLUSTERING
    return [
        instant.requested_time
        for instant in meta.timeline.pending()
        if (meta.reader.clustering_plan(instant) is not None if is_clustering else instant.action is action)
    ]


def _pending_among(call: ProcedureCall, instants: str, pending: Sequence[str]) -> list[str]:
    times = sorted(time.strip() for time in instants.split(","))
    unknown = [time for time in times if time not in pending]
    if unknown:
        raise call.error(f"{', '.join(unknown)} wait for nobody; pending are: {', '.join(pending) or 'none'}.")
    return times


# ---- cleaning, time to live, archiving


@procedure(
    "table string!, schedule_in_line boolean=true, clean_policy string, retain_commits integer, "
    "hours_retained integer, file_versions_retained integer, trigger_strategy string, trigger_max_commits integer, "
    "options string",
    "start_clean_time string, time_taken_in_millis long, total_files_deleted integer, "
    "earliest_commit_to_retain string, bootstrap_part_metadata string, version integer",
)
def run_clean(call: ProcedureCall) -> Rows:
    """Delete files that no allowed query needs; schedule_in_line => false: only execute pending plans."""
    options = call.options_of(
        {
            "clean_policy": "hoodie.clean.policy",
            "retain_commits": "hoodie.clean.commits.retained",
            "hours_retained": "hoodie.clean.hours.retained",
            "file_versions_retained": "hoodie.clean.fileversions.retained",
            "trigger_strategy": "hoodie.clean.trigger.strategy",
            "trigger_max_commits": "hoodie.clean.trigger.max.commits",
        }
    )
    pending: list[str | None] = [i.requested_time for i in call.meta.timeline.pending().of([ActionKind.CLEAN])]
    results = [
        call.table.clean(instant_time=time, options=options)
        for time in ([None] if call.flag("schedule_in_line") else pending)
    ]
    times = [time for result in results for time in result.instant_times]
    meta = call.table.state()
    for instant in meta.timeline.completed().of([ActionKind.CLEAN]):
        if instant.requested_time in times:
            body = meta.reader.clean_metadata(instant)
            yield body.start_time, body.time_taken_ms, body.files_deleted, body.earliest, "{}", CLEAN_VERSION


@procedure(
    "table string!, ttl_policy string, retain_days integer, options string",
    "deleted_partitions string",
)
def run_ttl(call: ProcedureCall) -> Rows:
    """Delete the partitions that have expired."""
    options = call.options_of({"retain_days": "hoodie.partition.ttl.strategy.days.retain"})
    if call.text("ttl_policy"):
        options["hoodie.partition.ttl.management.strategy.type"] = call.text("ttl_policy").upper()
    return [(partition.partition_path,) for partition in call.table.maintenance.run_ttl(options=options).expired]


@procedure(
    f"{TABLE}, min_commits integer=20, max_commits integer=30, retain_commits integer=10, enable_metadata boolean=true",
    "result integer",
)
def archive_commits(call: ProcedureCall) -> Rows:
    """Move old instants to the history."""
    keys = {
        "min_commits": "hoodie.keep.min.commits",
        "max_commits": "hoodie.keep.max.commits",
        "retain_commits": "hoodie.clean.commits.retained",
    }
    call.table.maintenance.archive(options=call.options_of(keys))
    return [(0,)]


@procedure("table string!, instant_time string!", "delete_marker_result boolean")
def delete_marker(call: ProcedureCall) -> Rows:
    """Delete the markers of finished writes; several instant times are separated by commas."""
    for time in (text.strip() for text in call.text("instant_time").split(",")):
        if not re.fullmatch(r"\d{14,20}", time):
            raise call.error(f"{time!r:.100} is no instant time.")
        if call.meta.timeline.pending().find(time) is not None:
            raise call.error(
                f"{time} is pending, and its markers say which files its rollback deletes. Roll it back first."
            )
        call.storage.delete_tree(f".hoodie/.temp/{time}")
    return [(True,)]


# ---- the audit of the lock


@procedure(f"{TABLE}, state string!", "table string!, audit_state string!, message string!")
def set_audit_lock(call: ProcedureCall) -> Rows:
    """Turn the audit of the storage-based lock on (enabled) or off (disabled)."""
    state = call.text("state").lower()
    if state not in ("enabled", "disabled"):
        raise call.error(f"state is enabled or disabled, found {state!r:.100}.")
    audit = call.table.maintenance.lock_audit
    status = audit.enable() if state == "enabled" else audit.disable()
    return [(call.table_name, state, str(status))]


@procedure(TABLE, "table string!, audit_enabled boolean!, config_path string!, audit_folder_path string!")
def show_audit_lock_status(call: ProcedureCall) -> Rows:
    """The audit of the lock: on or off, and its folder."""
    status = call.table.maintenance.lock_audit.status()
    return [(call.table_name, status.enabled, status.switch, status.folder)]


@procedure(
    TABLE,
    "table string!, validation_result string!, transactions_validated integer!, issues_found integer!, details string!",
)
def validate_audit_lock(call: ProcedureCall) -> Rows:
    """Check the audit for simultaneous holders of the lock, and for holders that died."""
    validation = call.table.maintenance.lock_audit.validate()
    outcome = "FAILED" if validation.has_errors else "WARNING" if validation.issues else "PASSED"
    details = ", ".join(map(str, validation.issues)) or str(validation)
    return [(call.table_name, outcome, validation.files, len(validation.issues), details)]


@procedure(
    f"{TABLE}, dry_run boolean=false, age_days integer=7",
    "table string!, files_cleaned integer!, dry_run boolean!, age_days integer!, message string!",
)
def cleanup_audit_lock(call: ProcedureCall) -> Rows:
    """Delete audit files that are older than a number of days."""
    days, dry_run = call.number("age_days") or 0, call.flag("dry_run")
    cleaned = call.table.maintenance.lock_audit.cleanup(days, dry_run=dry_run)
    return [(call.table_name, len(cleaned.files), dry_run, days, str(cleaned))]
