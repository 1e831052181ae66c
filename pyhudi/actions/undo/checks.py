"""Before completed writes are undone: is what they replaced still there? Cleaning may have deleted it since, and rows
would be lost.

    a new version of a base file    needs the version before it
    a compaction                    needs the base and log files that it merged
    a replacecommit                 needs a file of each group that it replaced

What another write that is undone too has made need not be there. Source: docs/formats/timeline.md, "Rollback",
"Savepoint and restore".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from pyhudi.actions.action import ActionContext
from pyhudi.errors import PathNotFound, TableError
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.filenames import BaseFileName, LogFileName
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.timeline.archived_timeline import load_archived_timeline

__all__ = ["check_can_be_undone", "check_replaced_files_exist"]

_NONE = ("", "null", None)


def check_can_be_undone(target: Instant, context: ActionContext) -> None:
    """Raise TableError when rows would be lost without the completed write `target`.

    The files of archived commits are told by the commits that are still active, so one of these must stay.
    """
    meta = context.meta
    if len(meta.timeline.commits()) == 1 and any(
        i.action.is_write for i in load_archived_timeline(meta.storage, meta.config).times()
    ):
        raise TableError(
            f"{meta.storage.root}: {target.requested_time} can't be undone, because all commits before it were "
            "archived. Nothing was changed; write the rows that you want again."
        )
    check_replaced_files_exist((target,), context)


def check_replaced_files_exist(targets: Iterable[Instant], context: ActionContext) -> None:
    """Raise TableError when undoing the completed ones of `targets` would lose rows; folders are listed once each."""
    meta = context.meta
    targets = tuple(targets)
    undone = frozenset(target.requested_time for target in targets)
    bodies = {target: meta.commits.metadata(target) for target in targets if target.is_completed}
    written = {
        (stat.partition_path or "", stat.file_id)
        for body in bodies.values()
        for stat in body.stats()
        if stat.prev_commit in _NONE
    }
    folders = _Folders(meta)
    for target, body in bodies.items():
        if body.compacted and target.action is ActionKind.COMMIT:
            missing = next(_missing_inputs(target, undone, folders), None)
        else:
            missing = next(_missing_versions(body, undone, written, folders), None)
        if missing is not None:
            raise TableError(
                f"{meta.storage.root}: {target.requested_time} can't be undone, because cleaning has deleted what it "
                f"replaced: {missing}. Nothing was changed. Go back to a later instant, or read the rows that you want "
                "and write them again; retain more commits to go back farther."
            )


class _Folders:
    """File names by partition, listed on first access."""

    def __init__(self, meta: MetaClient) -> None:
        self.meta = meta
        self._names: dict[str, frozenset[str]] = {}
        self._bases: dict[str, dict[str, set[str]]] = {}
        self._groups: dict[str, frozenset[str]] = {}

    def names(self, partition: str) -> frozenset[str]:
        if partition not in self._names:
            self._names[partition] = frozenset(entry.name for entry in self.meta.storage.list(partition))
        return self._names[partition]

    def instants_of(self, partition: str, file_id: str) -> set[str]:
        """Instants of the base files of a group."""
        if partition not in self._bases:
            instants: dict[str, set[str]] = defaultdict(set)
            for name in map(BaseFileName.parse, self.names(partition)):
                if name is not None:
                    instants[name.file_id].add(name.instant_time)
            self._bases[partition] = instants
        return self._bases[partition].get(file_id, set())

    def groups(self, partition: str) -> frozenset[str]:
        """File ids with any file."""
        if partition not in self._groups:
            parsed = (BaseFileName.parse(name) or LogFileName.parse(name) for name in self.names(partition))
            self._groups[partition] = frozenset(name.file_id for name in parsed if name is not None)
        return self._groups[partition]


def _missing_versions(
    body: CommitMetadata, undone: frozenset[str], written: set[tuple[str, str]], folders: _Folders
) -> Iterator[str]:
    for stat in body.stats():
        partition, before = stat.partition_path or "", stat.prev_commit
        is_base = stat.path is not None and BaseFileName.parse(stat.path.rpartition("/")[2]) is not None
        if not is_base or before in _NONE or before in undone:
            continue
        if str(before) not in folders.instants_of(partition, stat.file_id):
            # In a merge-on-read table the slice before may hold log files alone.
            if folders.meta.config.is_merge_on_read and _has_log(folders, partition, stat.file_id):
                continue
            yield f"the version of {before} of file group {stat.file_id} in partition {partition!r}"
    for partition, file_ids in (body.partition_to_replace_file_ids or {}).items():
        for file_id in file_ids:
            if (partition, file_id) not in written and file_id not in folders.groups(partition):
                yield f"file group {file_id} in partition {partition!r}"


def _has_log(folders: _Folders, partition: str, file_id: str) -> bool:
    names = map(LogFileName.parse, folders.names(partition))
    return any(name is not None and name.file_id == file_id for name in names)


def _missing_inputs(target: Instant, undone: frozenset[str], folders: _Folders) -> Iterator[str]:
    meta = folders.meta
    try:
        if not meta.reader.read_body(target, State.REQUESTED):
            return
        plan = meta.reader.compaction_plan(target)
    except PathNotFound:
        return
    for operation in plan.operations:
        for name in (operation.data_file_name, *operation.log_file_names):
            name = (name or "").rpartition("/")[2]
            parsed = BaseFileName.parse(name) or LogFileName.parse(name)
            if parsed is None or parsed.instant_time in undone or operation.base_instant in undone:
                continue
            if name not in folders.names(operation.partition_path):
                yield f"{operation.partition_path}/{name}"
