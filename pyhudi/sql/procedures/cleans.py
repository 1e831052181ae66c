"""Cleaning: running it, and its history and plans."""

from __future__ import annotations

from collections.abc import Iterator

from pyhudi.model.instant import ActionKind, Instant
from pyhudi.sql.procedures.procedure import Procedure, ProcedureCall, Row, Rows

__all__ = ["PROCEDURES"]

_CLEAN_ARGUMENTS = "table string!, limit integer=10, showArchived boolean=false, filter string="


def _run_clean(call: ProcedureCall) -> Rows:
    keys = {
        "clean_policy": "hoodie.clean.policy",
        "retain_commits": "hoodie.clean.commits.retained",
        "hours_retained": "hoodie.clean.hours.retained",
        "file_versions_retained": "hoodie.clean.fileversions.retained",
        "trigger_strategy": "hoodie.clean.trigger.strategy",
        "trigger_max_commits": "hoodie.clean.trigger.max.commits",
    }
    clean_options = {key: str(call.values[name]) for name, key in keys.items() if name in call.values}
    if call.flag("schedule_in_line"):
        runs = call.table.clean(options={**call.options, **clean_options}).runs
        times = [run.instant_time for run in runs]
    else:
        times = [
            call.table.clean(instant_time=instant.requested_time, options={**call.options, **clean_options})
            .runs[0]
            .instant_time
            for instant in call.meta.timeline.pending().of([ActionKind.CLEAN])
        ]
    meta = call.table.state()
    cleans = [clean for clean in meta.timeline.completed().of([ActionKind.CLEAN]) if clean.requested_time in times]
    for instant in cleans:
        body = meta.reader.clean_metadata(instant)
        deleted = sum(len(partition.deleted) for partition in body.partitions.values())
        yield body.start_time, body.time_taken_ms, deleted, body.earliest, "{}", _CLEAN_VERSION


_CLEAN_VERSION = 2  # of the bodies of cleans: all that are read here


def _show_cleans(call: ProcedureCall) -> Rows:
    for (clean,) in call.limited((instant,) for instant in call.completed(ActionKind.CLEAN)):
        assert isinstance(clean, Instant)
        body = call.meta.reader.clean_metadata(clean)
        deleted = sum(len(partition.deleted) for partition in body.partitions.values())
        yield (
            clean.requested_time, clean.completion_time, clean.action.value, body.start_time, body.time_taken_ms,
            deleted, body.earliest, body.last_commit, _CLEAN_VERSION,
        )  # fmt: skip


def _show_cleans_metadata(call: ProcedureCall) -> Rows:
    return call.limited(_cleaned_partitions(call))


def _cleaned_partitions(call: ProcedureCall) -> Iterator[Row]:
    for clean in call.completed(ActionKind.CLEAN):
        body = call.meta.reader.clean_metadata(clean)
        total = sum(len(partition.deleted) for partition in body.partitions.values())
        for path, result in body.partitions.items():
            planned = len(result.deleted) + len(result.failed)
            yield (
                clean.requested_time, clean.completion_time, clean.action.value, body.start_time, path, result.policy,
                planned, len(result.deleted), len(result.failed), result.is_partition_deleted, body.time_taken_ms,
                total,
            )  # fmt: skip


def _show_clean_plans(call: ProcedureCall) -> Rows:
    return call.limited(_clean_plans(call))


def _clean_plans(call: ProcedureCall) -> Iterator[Row]:
    for instant in reversed(call.meta.timeline.of([ActionKind.CLEAN]).instants):
        plan = call.meta.reader.clean_plan(instant)
        if plan is not None:
            extra = ", ".join(f"{key}={value}" for key, value in plan.extra_metadata.items())
            yield (
                instant.requested_time, instant.state.name, instant.action.value, plan.earliest_time or None,
                plan.last_commit, plan.policy, _CLEAN_VERSION, len(plan.files), len(plan.partitions), extra or None,
            )  # fmt: skip


PROCEDURES = (
    Procedure.of(
        "run_clean",
        "table string!, schedule_in_line boolean=true, clean_policy string, retain_commits integer, "
        "hours_retained integer, file_versions_retained integer, trigger_strategy string, trigger_max_commits integer, "
        "options string",
        "start_clean_time string, time_taken_in_millis long, total_files_deleted integer, "
        "earliest_commit_to_retain string, bootstrap_part_metadata string, version integer",
        _run_clean,
        "Delete files that no allowed query needs; with schedule_in_line => false only plans that wait.",
    ),
    Procedure.of(
        "show_cleans",
        _CLEAN_ARGUMENTS,
        "clean_time string, state_transition_time string, action string, start_clean_time string, "
        "time_taken_in_millis long, total_files_deleted integer, earliest_commit_to_retain string, "
        "last_completed_commit_timestamp string, version integer",
        _show_cleans,
        "Completed cleans, newest first.",
    ),
    Procedure.of(
        "show_cleans_metadata",
        _CLEAN_ARGUMENTS,
        "clean_time string, state_transition_time string, action string, start_clean_time string, "
        "partition_path string, policy string, delete_path_patterns integer, success_delete_files integer, "
        "failed_delete_files integer, is_partition_deleted boolean, time_taken_in_millis long, "
        "total_files_deleted integer",
        _show_cleans_metadata,
        "What completed cleans did in each partition.",
    ),
    Procedure.of(
        "show_clean_plans",
        _CLEAN_ARGUMENTS,
        "plan_time string, state string, action string, earliest_instant_to_retain string, "
        "last_completed_commit_timestamp string, policy string, version integer, total_partitions_to_clean integer, "
        "total_partitions_to_delete integer, extra_metadata string",
        _show_clean_plans,
        "The plans of cleans, pending ones among them.",
    ),
)
