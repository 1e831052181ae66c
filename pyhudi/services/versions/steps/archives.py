"""The archived timeline, rewritten in the other form: log files of entries (version 6), a merge tree (from 8 on).

Neither is deleted when the table leaves it, as with real Hudi; on the way back, what it holds already is not added
again. Source: docs/formats/history.md, "Archive log", "Merge tree"; docs/formats/table-config.md,
"Steps between versions".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import pyarrow as pa

from pyhudi.errors import CorruptFile
from pyhudi.formats.timeline.archive_entries import archive_entry
from pyhudi.formats.timeline.bodies import Body, NewBody
from pyhudi.formats.timeline.history_files import HISTORY_SCHEMA
from pyhudi.formats.timeline.instant_files import encode_avro_record, encode_commit
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import ActionKind, State
from pyhudi.model.table_config import TableConfig
from pyhudi.timeline.archive_log import ArchiveLogInstant
from pyhudi.timeline.archived_timeline import archive_log, lsm_history
from pyhudi.timeline.lsm_history import LsmInstant

__all__ = ["archive_to_history", "history_to_archive"]

_ROWS_PER_FILE = 1000  # a few kB each; the merge tree merges files of ten rows as well as these
_ENTRIES_PER_BLOCK = 10  # as Hudi flushes them

# Field of an entry → the record that the body of its file is.
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
# What had a plan below another name while it was pending.
_PLANNED_AS = {ActionKind.COMMIT: ActionKind.COMPACTION, ActionKind.DELTACOMMIT: ActionKind.LOGCOMPACTION}


def archive_to_history(meta: MetaClient, target: TableConfig) -> int:
    """Put all archived instants of a table below version 8 into the history of `target`, which is empty.

    Returns how many these are. Raises CorruptFile.
    """
    history = lsm_history(meta.storage, target)
    found = archive_log(meta.storage, meta.config).instants()
    count = 0
    while rows := [_row(instant, target.table_version) for instant in islice(found, _ROWS_PER_FILE)]:
        history.append(pa.Table.from_pylist(rows[::-1], schema=HISTORY_SCHEMA))
        count += len(rows)
    return count


def history_to_archive(meta: MetaClient, target: TableConfig) -> int:
    """Put the archived instants of a table of version 8 into the archive of `target`; returns how many were new there.

    Raises CorruptFile.
    """
    archive = archive_log(meta.storage, target)
    known = {(i.requested_time, i.action) for i in archive.times()}
    new = [
        (i.requested_time, i.action)
        for i in lsm_history(meta.storage, meta.config).times()
        if (i.requested_time, i.action) not in known
    ]
    if new:
        wanted = frozenset(new)
        found = lsm_history(meta.storage, meta.config).instants(new[0][0], new[-1][0])
        mine = (i for i in found if (i.instant.requested_time, i.instant.action) in wanted)
        archive.append((_entries(instant) for instant in mine), _ENTRIES_PER_BLOCK)
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
    """The first body of one of these fields, as the file that it came from."""
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
    """One entry per state, as version 6 archives them. When the pending files were made is not in the history."""
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
        except CorruptFile:  # Hudi keeps the inflight file's body instead of the plan when there was one
            yield State.REQUESTED, b""
            yield State.INFLIGHT, plan
            return
    yield State.REQUESTED, plan
    yield State.INFLIGHT, b""
