"""The timeline, rewritten for another table version: active instants, archived instants and completion times.

`copy_timeline` rewrites the active timeline in the other layout: names, places and bodies of instant files.

    layout 1 (table version 6)    .hoodie/<T>.<action>                   JSON commits    completed when last modified
    layout 2 (from version 8 on)  .hoodie/timeline/<T>_<C>.<action>      Avro commits

The files of the other layout are unused until the properties name that layout. So an incomplete copy is deleted and
made again.

`archive_to_history` and `history_to_archive` rewrite the archived timeline in the other form: log files of entries in
version 6, a merge tree from 8 on. As in Apache Hudi, a table keeps the old form. On the way back, instants already in
that form are not added again.

`completion_times` returns when the instants of a version 6 table completed, because version 8 writes these times into
the names of instant files. Below version 8 the only source is the completed file's modification time, and a copy of a
table has new ones. From 8 on a log file joins the newest base file requested before the log file completed. With a
wrong time, log files of version 6 (named after their base file) would join a later base file, and put old rows over new
ones. So the slices according to version 6's names take precedence.
Source: docs/formats/timeline.md, "File names", "Bodies", "What a reader sees"; docs/formats/table-config.md,
"Steps between versions"; docs/formats/history.md, "Archive log", "Merge tree"; docs/formats/file-names.md,
"File groups and slices".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice, pairwise

import pyarrow as pa

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.formats.timeline.archive_entries import archive_entry
from pyhudi.formats.timeline.bodies import Body, Fields, NewBody
from pyhudi.formats.timeline.history_files import HISTORY_SCHEMA
from pyhudi.formats.timeline.instant_files import (
    decode_avro_record,
    decode_commit,
    decode_requested_replace,
    encode_avro_record,
    encode_commit,
)
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import InstantFileName
from pyhudi.model.instant import ActionKind, State, format_instant_time, parse_instant_time
from pyhudi.model.table_config import TableConfig
from pyhudi.storage.base import FileInfo
from pyhudi.storage.paths import child
from pyhudi.timeline.archived_timeline import ArchiveLogInstant, archive_log, load_archived_timeline, lsm_history
from pyhudi.timeline.lsm_history import LsmInstant
from pyhudi.view.file_system_view import FileSystemView

__all__ = [
    "archive_to_history",
    "check_layout",
    "completion_times",
    "copy_timeline",
    "delete_layout",
    "history_to_archive",
]


@dataclass(frozen=True, slots=True)
class _File:
    """The path and the parsed name of an instant file."""

    path: str
    name: InstantFileName


def copy_timeline(meta: MetaClient, target: TableConfig, completion_times: Mapping[tuple[str, str], str]) -> int:
    """Write all instant files of the active timeline in the layout of `target`; return the number of instants.

    Requested files of completed instants are written last: by commits without one, a reader with older properties of
    this layout notices that the timeline is not whole (timeline/listing.py, `is_complete`).

    Args:   completion_times: (requested time, action of the completed file) → completion time, for completed files.
    Raises: CorruptFile for a body that can't be read.
    """
    storage, config = meta.storage, meta.config
    clusterings = _clusterings(meta)
    files = list(_instant_files(storage.list(config.timeline_path), config.layout_version))
    completed = {_key(file.name) for file in files if file.name.state is State.COMPLETED}
    for file in sorted(files, key=lambda one: one.name.state is State.REQUESTED and _key(one.name) in completed):
        name, key = file.name, _key(file.name)
        completed_at = completion_times[key] if name.state is State.COMPLETED else None
        if name.state is not State.COMPLETED and name.requested_time in clusterings:
            name = replace(name, action=ActionKind.CLUSTERING)  # but layout 1 calls it replacecommit
        name = replace(name, completion_time=completed_at)
        body = _body(storage.read(file.path), name, target.table_version, storage.full_path(file.path))
        path = child(target.timeline_path, name.text(target.layout_version))
        storage.write(path, body)
        if completed_at is not None and not target.layout.names_completion_times:
            moment = parse_instant_time(completed_at, target.timeline_zone)
            storage.set_modified(path, round(moment.timestamp() * 1000))
    return len({_key(file.name) for file in files})


def _key(name: InstantFileName) -> tuple[str, str]:
    """The requested time of an instant, and the action of its completed file."""
    return name.requested_time, name.action.completed_as.value


def delete_layout(meta: MetaClient) -> None:
    """Delete the instant files of the other layout: an incomplete copy, or the former files.

    Requested files are deleted first: by commits without one, a reader with the former properties notices that it is
    late (timeline/listing.py). Archives stay. Raises UnsupportedTable like `check_layout`.
    """
    check_layout(meta)
    for file in sorted(_files_of_other_layout(meta), key=lambda file: file.name.state is not State.REQUESTED):
        meta.storage.delete(file.path)


def check_layout(meta: MetaClient) -> None:
    """Raise UnsupportedTable when completed instants exist only in the other layout.

    Apache Hudi moves instant files one by one before it changes the properties, and may die in between.
    """
    completed = {
        (file.name.requested_time, file.name.action)
        for file in _files_of_other_layout(meta)
        if file.name.state is State.COMPLETED
    }
    missing = completed - {(i.requested_time, i.action) for i in meta.timeline.completed()}
    if missing:  # they may have been archived or undone since
        missing -= {(i.requested_time, i.action) for i in load_archived_timeline(meta.storage, meta.config).times()}
        undone = _undone_times(meta)
        missing = {(time, action) for time, action in missing if time not in undone}
    if missing:
        folder = _other_layout(meta.config).timeline_path
        raise UnsupportedTable(
            f"{meta.storage.root}: {len(missing):,} completed instants, such as {min(missing)[0]}, lie in {folder} "
            f"only, while the table has version {meta.config.table_version}: an upgrade or downgrade by Apache Hudi "
            f"died half-way. Finish it with Apache Hudi. Nothing was changed."
        )


def _undone_times(meta: MetaClient) -> frozenset[str]:
    """Requested times of the writes that rollbacks and restores of the active timeline have undone."""
    names: set[str] = set()
    for instant in meta.timeline.completed():
        if not instant.action.is_undoing:
            continue
        where = f"{instant.requested_time}.{instant.action.value}"
        body = Fields(decode_avro_record(meta.reader.read_body(instant, State.COMPLETED), where), where)
        for field in ("commitsRollback", "instantsToRollback"):
            names.update(body.texts(field))
    return frozenset(names)


def _files_of_other_layout(meta: MetaClient) -> list[_File]:
    other = _other_layout(meta.config)
    return list(_instant_files(meta.storage.list(other.timeline_path), other.layout_version))


def _other_layout(config: TableConfig) -> TableConfig:
    return config.with_changes({"hoodie.timeline.layout.version": "1" if config.layout.has_own_folder else "2"})


def _instant_files(entries: tuple[FileInfo, ...], layout_version: int) -> Iterator[_File]:
    for entry in entries:
        name = None if entry.is_dir else InstantFileName.parse(entry.name, layout_version)
        if name is not None and name.action is not ActionKind.SCHEMACOMMIT:
            yield _File(entry.path, name)


def _clusterings(meta: MetaClient) -> frozenset[str]:
    """Requested times of the replacecommits that are clusterings by their plans, pending or completed."""
    times = set()
    for file in _instant_files(meta.storage.list(meta.config.timeline_path), meta.config.layout_version):
        if file.name.action is ActionKind.REPLACECOMMIT and file.name.state is State.REQUESTED:
            body = meta.storage.read(file.path)
            if decode_requested_replace(body, meta.storage.full_path(file.path))["clusteringPlan"] is not None:
                times.add(file.name.requested_time)
    return frozenset(times)


def _body(data: bytes, name: InstantFileName, table_version: int, where: str) -> bytes:
    """The body in the target version. Only commit metadata differs: completed, or the profile of an inflight write."""
    of_completed = name.state is State.COMPLETED and name.action.is_commit
    of_inflight = name.state is State.INFLIGHT and (name.action.is_commit or name.action.is_replacing)
    if not data or not (of_completed or of_inflight):
        return data
    commit = decode_commit(data, where)
    if of_completed and name.action is ActionKind.REPLACECOMMIT and commit.partition_to_replace_file_ids is None:
        commit = replace(commit, partition_to_replace_file_ids={})
    return encode_commit(commit, name.action, table_version)


_ROWS_PER_FILE = 1000  # a few kB each; the merge tree merges files of ten rows as well as these
_ENTRIES_PER_BLOCK = 10  # as Hudi flushes them

# Field of an entry → the record type of its file's body.
_BODIES = {
    "hoodieCleanMetadata": "HoodieCleanMetadata",
    "hoodieRollbackMetadata": "HoodieRollbackMetadata",
    "hoodieSavePointMetadata": "HoodieSavepointMetadata",
}
_PLANS = {
    "hoodieCompactionPlan": "HoodieCompactionPlan",
    "hoodieCleanerPlan": "HoodieCleanerPlan",
    "hoodieRequestedReplaceMetadata": "HoodieRequestedReplaceMetadata",
}
# Actions whose pending plan had another name.
_PLANNED_AS = {ActionKind.COMMIT: ActionKind.COMPACTION, ActionKind.DELTACOMMIT: ActionKind.LOGCOMPACTION}


def archive_to_history(meta: MetaClient, target: TableConfig) -> int:
    """Put all archived instants of a table below version 8 into the history of `target`, which is empty.

    Returns their number. Raises CorruptFile.
    """
    history = lsm_history(meta.storage, target)
    instants = archive_log(meta.storage, meta.config).instants()
    count = 0
    while rows := [_row(instant, target.table_version) for instant in islice(instants, _ROWS_PER_FILE)]:
        history.append(pa.Table.from_pylist(rows[::-1], schema=HISTORY_SCHEMA))
        count += len(rows)
    return count


def history_to_archive(meta: MetaClient, target: TableConfig) -> int:
    """Put the archived instants of a table of version 8 into the archive of `target`; return how many were new there.

    Raises CorruptFile.
    """
    archive = archive_log(meta.storage, target)
    archived = {(i.requested_time, i.action) for i in archive.times()}
    new = [
        (i.requested_time, i.action)
        for i in lsm_history(meta.storage, meta.config).times()
        if (i.requested_time, i.action) not in archived
    ]
    if new:
        new_instants = frozenset(new)
        instants = lsm_history(meta.storage, meta.config).instants(new[0][0], new[-1][0])
        to_append = (i for i in instants if (i.instant.requested_time, i.instant.action) in new_instants)
        archive.append((_entries(instant) for instant in to_append), _ENTRIES_PER_BLOCK)
    return len(new)


# ---- an archive's entries as a row of the history


def _row(archived: ArchiveLogInstant, table_version: int) -> NewBody:
    instant = archived.instant
    return {
        "instantTime": instant.requested_time,
        "completionTime": instant.completion_time or instant.requested_time,
        "action": instant.action.value,
        "metadata": _metadata(archived, table_version),
        "plan": _body_in(archived.entries.values(), _PLANS),
        "version": 1,
    }


def _metadata(archived: ArchiveLogInstant, table_version: int) -> bytes | None:
    commit = archived.commit()
    if commit is not None:
        return encode_commit(commit, archived.instant.action, table_version)
    completed = archived.entries.get(State.COMPLETED.name)
    return None if completed is None else _body_in([completed], _BODIES)


def _body_in(entries: Iterable[Body], records: Mapping[str, str]) -> bytes | None:
    """The first body in one of these fields, as the content of its original file."""
    for entry in entries:
        for name, record in records.items():
            if entry.get(name) is None:
                continue
            try:
                return encode_avro_record(record, entry[name])
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # its own schema
                raise CorruptFile(
                    f"archived {entry.get('commitTime')}: {name} is not what it should be ({error!s:.300}). Restore "
                    f"the archive file."
                ) from error
    return None


# ---- a row of the history as entries of an archive


def _entries(archived: LsmInstant) -> Sequence[Body]:
    """One entry per state, as version 6 archives them. The history does not record when the pending files were made."""
    instant = archived.instant
    time, completed_at = instant.requested_time, instant.completion_time or instant.requested_time
    pending = _PLANNED_AS.get(instant.action, instant.action) if archived.plan else instant.action
    states = _pending_bodies(archived)
    return [
        *(archive_entry(time, pending, state, body, time) for state, body in states),
        archive_entry(time, instant.action, State.COMPLETED, archived.metadata or b"", completed_at),
    ]


def _pending_bodies(archived: LsmInstant) -> Iterator[tuple[State, bytes]]:
    plan = archived.plan or b""
    if archived.instant.action is ActionKind.SAVEPOINT:
        yield State.INFLIGHT, b""
        return
    if archived.instant.action is ActionKind.REPLACECOMMIT and plan:
        try:
            archive_entry(archived.instant.requested_time, ActionKind.REPLACECOMMIT, State.REQUESTED, plan, "")
        except CorruptFile:  # Hudi keeps the inflight file's body, if any, instead of the plan
            yield State.REQUESTED, b""
            yield State.INFLIGHT, plan
            return
    yield State.REQUESTED, plan
    yield State.INFLIGHT, b""


_MILLISECOND = timedelta(milliseconds=1)


def completion_times(meta: MetaClient) -> dict[tuple[str, str], str]:
    """(requested time, action) → completion time, for all completed instants.

    It is the modification time, unless that is not after the requested time, or not before the base file that ended the
    slice of the instant's log files.
    """
    ends = _ends_of_slices(meta) if meta.config.is_merge_on_read else {}
    times = {}
    for instant in meta.timeline.completed():
        requested, completed = instant.requested_time, instant.completion_time
        assert completed is not None, instant
        end = ends.get(requested)
        if end is not None and completed >= end:
            completed = _moved(end, -_MILLISECOND, meta)
        if completed <= requested:
            completed = _moved(requested, _MILLISECOND, meta)
        times[requested, instant.action.completed_as.value] = completed
    return times


def _ends_of_slices(meta: MetaClient) -> dict[str, str]:
    """Instant in the names of log files → the earliest base instant after a slice with some of them."""
    ends: dict[str, str] = {}
    for groups in FileSystemView.load(meta).groups.values():
        for group in groups:
            for newer, older in pairwise(group.slices):
                for log in older.log_files:
                    ends[log.instant_time] = min(newer.base_instant, ends.get(log.instant_time, newer.base_instant))
    return ends


def _moved(time: str, by: timedelta, meta: MetaClient) -> str:
    zone = meta.config.timeline_zone
    return format_instant_time(parse_instant_time(time, zone) + by, zone)
