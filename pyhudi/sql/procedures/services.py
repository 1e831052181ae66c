"""Table services: compaction, clustering, cleaning, time to live, archiving, markers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pyhudi.errors import ConfigError, UnsupportedTable
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.options.services import LAYOUT, SORT_COLUMNS
from pyhudi.queries.incremental_range import is_service
from pyhudi.sql.procedures.procedure import Procedure, ProcedureCall, Row, Rows

__all__ = ["PROCEDURES"]

_COMPACTION = "timestamp string, operation_size integer, state string"
_CLUSTERING = "timestamp string, input_group_size integer, state string, involved_partitions string"
_OPERATIONS = ("schedule", "execute", "scheduleandexecute")
_LAYOUTS = {"linear": "LINEAR", "z-order": "ZORDER", "zorder": "ZORDER", "hilbert": "HILBERT"}


# ---- compaction


def _compactions(call: ProcedureCall, times: Sequence[str] | None = None) -> Iterator[Row]:
    """The compactions of the timeline, newest first; `times`: only these."""
    for instant in reversed(call.table.state().timeline.instants):
        if (times is None or instant.requested_time in times) and _is_compaction(instant, call):
            pending = Instant(instant.requested_time, ActionKind.COMPACTION, instant.state)
            plan = call.meta.reader.compaction_plan(pending)
            yield instant.requested_time, len(plan.operations), instant.state.name


def _is_compaction(instant: Instant, call: ProcedureCall) -> bool:
    """A commit may also be a write from before the table became merge-on-read."""
    if instant.action is not ActionKind.COMMIT:
        return instant.action is ActionKind.COMPACTION
    return instant.is_completed and is_service(instant, call.meta.commits.metadata(instant))


def _show_compaction(call: ProcedureCall) -> Rows:
    if not call.meta.config.is_merge_on_read:
        raise UnsupportedTable(f"{call.procedure}: {call.table.path} is copy-on-write, which has no compactions.")
    return call.limited(_compactions(call))


def _run_compaction(call: ProcedureCall) -> Rows:
    operation = call.text("op").lower()
    operation = "scheduleandexecute" if operation == "run" else operation
    instants = call.text("instants") or str(call.number("timestamp") or "")
    if call.text("instants") == "" and instants:
        operation = "execute"  # a timestamp alone says so, whatever the operation is
    times = _run(call, operation, instants, ActionKind.COMPACTION)
    return _compactions(call, times)


# ---- clustering


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


def _show_clustering(call: ProcedureCall) -> Rows:
    return call.limited(_clusterings(call))


def _run_clustering(call: ProcedureCall) -> Rows:
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
            raise ConfigError(f"{call.procedure}: {call.table.path} has no column {unknown[0]!r:.100} to sort by.")
        options[SORT_COLUMNS] = ",".join(names)
    strategy = call.text("order_strategy")
    if strategy:
        if strategy.lower() not in _LAYOUTS:
            raise ConfigError(f"{call.procedure}: order_strategy is one of linear, z-order, hilbert; found {strategy}.")
        options[LAYOUT] = _LAYOUTS[strategy.lower()]
    operation = call.text("op").lower() or ("execute" if call.text("instants") else "scheduleandexecute")
    times = _run(call, operation, call.text("instants"), ActionKind.CLUSTERING, options)
    return call.limited(_clusterings(call, times))


def _selected(call: ProcedureCall) -> list[str] | None:
    """The partitions that a clustering is for; None for all."""
    predicate = call.text("predicate")
    if predicate:
        config = call.meta.config
        if not config.partition_fields:
            raise ConfigError(f"{call.procedure}: {call.table.path} has no partitions for a predicate.")
        files = call.table.scan(config.partition_fields, where=predicate).files()
        return sorted({str(path) for path in files.column("partition_path").to_pylist()})
    paths = call.text("selected_partitions")
    return [path.strip() for path in paths.split(",")] if paths else None


def _run(
    call: ProcedureCall, operation: str, instants: str, action: ActionKind, options: dict[str, object] | None = None
) -> list[str]:
    """Schedule and execute plans of a service, by the operation; returns their instant times."""
    if operation not in _OPERATIONS:
        raise ConfigError(f"{call.procedure}: op is one of run, {', '.join(_OPERATIONS)}; found {operation!r:.100}.")
    service = call.table.compact if action is ActionKind.COMPACTION else call.table.cluster
    plan_options: dict[str, object] = {**(options or {}), **call.options}
    pending = _pending(call, action)
    if instants:
        if operation != "execute":
            raise ConfigError(f"{call.procedure}: instants are for op => 'execute', found op => {operation!r}.")
        pending = _pending_among(call, instants, pending)
    times = pending[: call.number("limit")] if call.number("limit") is not None else pending
    if operation != "execute":
        scheduled = service(schedule_only=True, options=plan_options).scheduled
        times = times if scheduled is None else [scheduled]
    if operation != "schedule":
        for time in times:
            service(instant_time=time, options=call.options)
    return times


def _pending(call: ProcedureCall, action: ActionKind) -> list[str]:
    meta = call.table.state()
    if action is ActionKind.COMPACTION:
        return [i.requested_time for i in meta.timeline.pending() if i.action is action]
    return [i.requested_time for i in meta.timeline.pending() if meta.reader.clustering_plan(i) is not None]


def _pending_among(call: ProcedureCall, instants: str, pending: Sequence[str]) -> list[str]:
    times = sorted(time.strip() for time in instants.split(","))
    unknown = [time for time in times if time not in pending]
    if unknown:
        raise ConfigError(
            f"{call.procedure}: {', '.join(unknown)} wait for nobody; pending are: {', '.join(pending) or 'none'}."
        )
    return times


# ---- the others


def _run_ttl(call: ProcedureCall) -> Rows:
    options = dict(call.options)
    if call.text("ttl_policy"):
        options["hoodie.partition.ttl.management.strategy.type"] = call.text("ttl_policy").upper()
    days = call.number("retain_days")
    if days is not None:
        options["hoodie.partition.ttl.strategy.days.retain"] = str(days)
    return [(partition.partition_path,) for partition in call.table.maintenance.run_ttl(options=options).expired]


def _archive_commits(call: ProcedureCall) -> Rows:
    limits = {
        "hoodie.keep.min.commits": str(call.number("min_commits")),
        "hoodie.keep.max.commits": str(call.number("max_commits")),
        "hoodie.clean.commits.retained": str(call.number("retain_commits")),
    }
    call.table.maintenance.archive(options={**call.options, **limits})
    return [(0,)]


def _delete_marker(call: ProcedureCall) -> Rows:
    for time in call.text("instant_time").split(","):
        if not re.fullmatch(r"\d{14,20}", time.strip()):
            raise ConfigError(f"{call.procedure}: {time!r:.100} is no instant time.")
        folder = f".hoodie/.temp/{time.strip()}"
        if call.meta.timeline.pending().find(time.strip()) is not None:
            raise ConfigError(
                f"{call.procedure}: {time.strip()} is pending, and its markers say which files its rollback deletes. "
                "Roll it back first."
            )
        call.storage.delete_tree(folder)
    return [(True,)]


PROCEDURES = (
    Procedure.of(
        "run_compaction",
        "op string!, table string, path string, timestamp long, options string, instants string, limit integer",
        _COMPACTION,
        _run_compaction,
        "Schedule or execute compactions: `op` is schedule, execute, scheduleandexecute or run.",
    ),
    Procedure.of(
        "show_compaction",
        "table string, path string, limit integer=20",
        _COMPACTION,
        _show_compaction,
        "Compactions of the active timeline, newest first.",
    ),
    Procedure.of(
        "run_clustering",
        "table string, path string, predicate string, order string, show_involved_partition boolean=false, op string, "
        "order_strategy string, options string, instants string, selected_partitions string, "
        "partition_regex_pattern string, limit integer",
        _CLUSTERING,
        _run_clustering,
        "Schedule or execute clusterings: `op` as for run_compaction, scheduleandexecute when it is left out.",
    ),
    Procedure.of(
        "show_clustering",
        "table string, path string, limit integer=20, show_involved_partition boolean=false",
        _CLUSTERING,
        _show_clustering,
        "Clusterings of the active timeline, newest first.",
    ),
    Procedure.of(
        "run_ttl",
        "table string!, ttl_policy string, retain_days integer, options string",
        "deleted_partitions string",
        _run_ttl,
        "Delete the partitions that have expired.",
    ),
    Procedure.of(
        "archive_commits",
        "table string, path string, min_commits integer=20, max_commits integer=30, retain_commits integer=10, "
        "enable_metadata boolean=true",
        "result integer",
        _archive_commits,
        "Move old instants to the history.",
    ),
    Procedure.of(
        "delete_marker",
        "table string!, instant_time string!",
        "delete_marker_result boolean",
        _delete_marker,
        "Delete the markers of writes that are done; several instant times with commas.",
    ),
)
