"""The timeline: all instants with their states; bodies of completed rollbacks and restores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timezone

from pyhudi.formats.timeline.instant_files import decode_rollback_metadata
from pyhudi.formats.timeline.savepoints import decode_restore_metadata
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import pending_actions
from pyhudi.model.instant import ActionKind, Instant, State, parse_instant_time
from pyhudi.model.plans import RollbackMetadata
from pyhudi.sql.procedures.procedure import Procedure, ProcedureCall, Row, Rows
from pyhudi.timeline.archived_timeline import load_archived_timeline
from pyhudi.timeline.listing import instant_path

__all__ = ["PROCEDURES", "rollback_metadata", "rollbacks_of"]


def rollback_metadata(meta: MetaClient, instant: Instant) -> RollbackMetadata:
    """The metadata of a completed rollback. Raises CorruptFile, PathNotFound."""
    body = meta.reader.read_body(instant, State.COMPLETED)
    return decode_rollback_metadata(body, f"{meta.storage.root}: {instant.requested_time}.rollback")


def rollbacks_of(meta: MetaClient, instant: Instant) -> Iterator[RollbackMetadata]:
    """The metadata of a completed rollback, or of each rollback in a restore. Raises CorruptFile, PathNotFound."""
    if instant.action is not ActionKind.RESTORE:
        yield rollback_metadata(meta, instant)
        return
    body = meta.reader.read_body(instant, State.COMPLETED)
    for rollbacks in decode_restore_metadata(
        body, f"{meta.storage.root}: {instant.requested_time}.restore"
    ).rollbacks.values():
        yield from rollbacks


def _show_timeline(call: ProcedureCall) -> Rows:
    since, until = call.text("startTime"), call.text("endTime")
    rows = (
        (instant, kind)
        for instant, kind in _instants(call)
        if (not since or instant.requested_time >= since) and (not until or instant.requested_time <= until)
    )
    rollbacks = _rollbacks_by_time(call)
    timeline_rows = (_timeline_row(call, instant, kind, rollbacks) for instant, kind in rows)
    return timeline_rows if since and until else call.limited(timeline_rows)


def _instants(call: ProcedureCall) -> list[tuple[Instant, str]]:
    rows = [(instant, "ACTIVE") for instant in call.meta.timeline]
    if call.flag("showArchived"):
        active = {instant.requested_time for instant in call.meta.timeline}
        times = load_archived_timeline(call.storage, call.meta.config).times()
        rows += [(instant, "ARCHIVED") for instant in times if instant.requested_time not in active]
    return sorted(rows, key=lambda one: (one[0].requested_time, one[0].action.value), reverse=True)


def _rollbacks_by_time(call: ProcedureCall) -> dict[str, list[str]]:
    """Instant time → the rollbacks of it."""
    rollbacks: dict[str, list[str]] = {}
    for instant in call.completed(ActionKind.ROLLBACK):
        for time in rollback_metadata(call.meta, instant).commits_rollback:
            rollbacks.setdefault(time, []).append(instant.requested_time)
    return rollbacks


def _timeline_row(call: ProcedureCall, instant: Instant, kind: str, rollbacks: dict[str, list[str]]) -> Row:
    times = _times(call, instant, kind)
    return (
        instant.requested_time,
        instant.action.value,
        instant.state.name,
        *times,
        kind,
        _rollback_info(call, instant, kind, rollbacks),
    )


def _rollback_info(call: ProcedureCall, instant: Instant, kind: str, rollbacks: dict[str, list[str]]) -> str | None:
    if instant.action is ActionKind.ROLLBACK and kind == "ACTIVE":
        if instant.is_completed:
            times = rollback_metadata(call.meta, instant).commits_rollback
        else:
            times = (call.meta.reader.rollback_plan(instant).instant_to_rollback.commit_time,)
        return f"Rolled back: {', '.join(times)}"
    by = rollbacks.get(instant.requested_time)
    return f"Rolled back by: {', '.join(by)}" if by else None


def _times(call: ProcedureCall, instant: Instant, kind: str) -> list[str | None]:
    """When an instant was requested, begun and completed: by its files, or by its times in the history."""
    if kind != "ACTIVE":
        zone = call.meta.config.timeline_zone
        begun = parse_instant_time(instant.requested_time, zone)
        completed = parse_instant_time(instant.completion_time, zone) if instant.completion_time is not None else None
        return [_moment_text(begun), _moment_text(begun), None if completed is None else _moment_text(completed)]
    names = (instant.action, *pending_actions(instant.action.completed_as))
    times = [_moment_of(call, instant, state, names) for state in State]
    # A state without a separate file, such as a savepoint's: it was reached together with the next one.
    return [times[0] or times[1] or times[2], times[1] or times[2], times[2]]


def _moment_of(call: ProcedureCall, instant: Instant, state: State, names: Iterable[ActionKind]) -> str | None:
    if state > instant.state:
        return None
    for name in (instant.action,) if state is instant.state else dict.fromkeys(names):
        stage = instant if state is instant.state else Instant(instant.requested_time, name, state)
        info = call.storage.stat(instant_path(stage, call.meta.config))
        if info is not None:
            moment = datetime.fromtimestamp(info.modified_ms / 1000, timezone.utc)
            return _moment_text(moment.astimezone(call.meta.config.timeline_zone))
    return None


def _moment_text(moment: datetime) -> str:
    return f"{moment:%m-%d %H:%M:%S}"


PROCEDURES = (
    Procedure.of(
        "show_timeline",
        "table string, path string, limit integer=20, showArchived boolean=false, filter string=, startTime string=, "
        "endTime string=",
        "instant_time string, action string, state string, requested_time string, inflight_time string, "
        "completed_time string, timeline_type string, rollback_info string",
        _show_timeline,
        "All instants in their states, archived ones on request.",
    ),
)
