"""The active timeline, rewritten in the other layout: names, places and bodies of instant files.

    layout 1 (table version 6)    .hoodie/<T>.<action>                   JSON commits    completed when last modified
    layout 2 (from version 8 on)  .hoodie/timeline/<T>_<C>.<action>      Avro commits

The files of the other layout lie where nobody looks before the properties name that layout, so a copy that stopped
half-way is thrown away and made again. Source: docs/formats/timeline.md, "File names", "Bodies";
docs/formats/table-config.md, "Steps between versions".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pyhudi.errors import UnsupportedTable
from pyhudi.formats.timeline.bodies import Fields
from pyhudi.formats.timeline.instant_files import (
    decode_avro_record,
    decode_commit,
    decode_requested_replace,
    encode_commit,
)
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import InstantFileName
from pyhudi.model.instant import ActionKind, State, parse_instant_time
from pyhudi.model.table_config import TableConfig
from pyhudi.storage.base import FileInfo
from pyhudi.storage.paths import child
from pyhudi.timeline.archived_timeline import load_archived_timeline

__all__ = ["check_layout", "copy_timeline", "delete_layout"]


@dataclass(frozen=True, slots=True)
class _File:
    """One instant file as it is, and whose it is."""

    path: str
    name: InstantFileName


def copy_timeline(meta: MetaClient, target: TableConfig, completion_times: Mapping[tuple[str, str], str]) -> int:
    """Write all instant files of the active timeline in the layout of `target`; returns how many instants these are.

    Args:   completion_times: (requested time, action of the completed file) → completion time, for completed files.
    Raises: CorruptFile for a body that can't be read.
    """
    storage, config = meta.storage, meta.config
    clusterings = _clusterings(meta)
    instants = set()
    for file in _instant_files(storage.list(config.timeline_path), config.layout_version):
        name = file.name
        key = (name.requested_time, name.action.completed_as.value)
        instants.add(key)
        completed_at = completion_times[key] if name.state is State.COMPLETED else None
        if name.state is not State.COMPLETED and name.requested_time in clusterings:
            name = replace(name, action=ActionKind.CLUSTERING)  # layout 1 calls it replacecommit all the same
        name = replace(name, completion_time=completed_at)
        body = _body(storage.read(file.path), name, target.table_version, storage.full_path(file.path))
        path = child(target.timeline_path, name.text(target.layout_version))
        storage.write(path, body)
        if completed_at is not None and target.layout_version < 2:
            moment = parse_instant_time(completed_at, target.timeline_zone)
            storage.set_modified(path, round(moment.timestamp() * 1000))
    return len(instants)


def delete_layout(meta: MetaClient) -> None:
    """Delete the instant files of the layout that is not the table's: a copy that stopped half-way, or those of before.

    Requested files go first: by commits without one a reader that has come with properties of before sees that it is
    late (timeline.load). Archives stay. Raises UnsupportedTable as `check_layout` does.
    """
    check_layout(meta)
    for file in sorted(_files_of_other_layout(meta), key=lambda file: file.name.state is not State.REQUESTED):
        meta.storage.delete(file.path)


def check_layout(meta: MetaClient) -> None:
    """Raises UnsupportedTable when completed instants lie in the other layout only.

    Real Hudi moves instant files one by one before it changes the properties, and may die in between.
    """
    completed = {
        (file.name.requested_time, file.name.action)
        for file in _files_of_other_layout(meta)
        if file.name.state is State.COMPLETED
    }
    lost = completed - {(i.requested_time, i.action) for i in meta.timeline.completed()}
    if lost:  # they may have been archived or taken back since
        lost -= {(i.requested_time, i.action) for i in load_archived_timeline(meta.storage, meta.config).times()}
        undone = _undone_times(meta)
        lost = {(time, action) for time, action in lost if time not in undone}
    if lost:
        folder = _other_layout(meta.config).timeline_path
        raise UnsupportedTable(
            f"{meta.storage.root}: {len(lost):,} completed instants, such as {min(lost)[0]}, lie in {folder} only, "
            f"while the table has version {meta.config.table_version}: an upgrade or downgrade by Apache Hudi died "
            f"half-way. Finish it with Apache Hudi. Nothing was changed."
        )


def _undone_times(meta: MetaClient) -> frozenset[str]:
    """Requested times of the writes that rollbacks and restores of the active timeline have undone."""
    found: set[str] = set()
    for instant in meta.timeline.completed():
        if not instant.action.is_undoing:
            continue
        where = f"{instant.requested_time}.{instant.action.value}"
        body = Fields(decode_avro_record(meta.reader.read_body(instant, State.COMPLETED), where), where)
        for field in ("commitsRollback", "instantsToRollback"):
            found.update(body.texts(field))
    return frozenset(found)


def _files_of_other_layout(meta: MetaClient) -> list[_File]:
    other = _other_layout(meta.config)
    return list(_instant_files(meta.storage.list(other.timeline_path), other.layout_version))


def _other_layout(config: TableConfig) -> TableConfig:
    return config.with_changes({"hoodie.timeline.layout.version": "1" if config.layout_version >= 2 else "2"})


def _instant_files(entries: tuple[FileInfo, ...], layout_version: int) -> Iterator[_File]:
    for entry in entries:
        name = None if entry.is_dir else InstantFileName.parse(entry.name, layout_version)
        if name is not None and name.action is not ActionKind.SCHEMACOMMIT:
            yield _File(entry.path, name)


def _clusterings(meta: MetaClient) -> frozenset[str]:
    """Requested times of the replacecommits whose plan says that they are clusterings, pending or completed."""
    found = set()
    for file in _instant_files(meta.storage.list(meta.config.timeline_path), meta.config.layout_version):
        if file.name.action is ActionKind.REPLACECOMMIT and file.name.state is State.REQUESTED:
            body = meta.storage.read(file.path)
            if decode_requested_replace(body, meta.storage.full_path(file.path))["clusteringPlan"] is not None:
                found.add(file.name.requested_time)
    return frozenset(found)


def _body(data: bytes, name: InstantFileName, table_version: int, where: str) -> bytes:
    """Only commit metadata differs between the versions: completed, or as workload profile of an inflight write."""
    of_completed = name.state is State.COMPLETED and name.action.is_commit
    of_inflight = name.state is State.INFLIGHT and (name.action.is_commit or name.action.is_replacing)
    if not data or not (of_completed or of_inflight):
        return data
    commit = decode_commit(data, where)
    if of_completed and name.action is ActionKind.REPLACECOMMIT and commit.partition_to_replace_file_ids is None:
        commit = replace(commit, partition_to_replace_file_ids={})
    return encode_commit(commit, name.action, table_version)
