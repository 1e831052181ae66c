"""Finds missing or wrong `.hoodie_partition_metadata`: without it a folder is no partition, and its rows don't count.

It is rewritten for folders with files of completed writes. It is wrong if it can't be read, or if its depth is not the
folder's. Source: docs/repairs.md, "Partition metadata"; docs/formats/file-names.md, "Partition metadata".
"""

from __future__ import annotations

from collections.abc import Iterable

from pyhudi.actions.action import ActionContext
from pyhudi.errors import CorruptFile
from pyhudi.filegroup.write.partition_metadata import rewrite_partition_metadata
from pyhudi.formats.properties import PROPERTIES_BYTES_MAX, parse_properties
from pyhudi.model.filenames import PARTITION_METADATA_NAME, data_path, instant_of, partition_depth
from pyhudi.services.repair.orphans import data_files
from pyhudi.services.repair.result import RepairItem, RepairResult
from pyhudi.storage.base import Storage
from pyhudi.storage.paths import parent
from pyhudi.view.file_system_view import is_partition_metadata

__all__ = ["partition_metadata"]

_RUN = "table.maintenance.repair.partition_metadata(dry_run=False)"
_MISSING, _WRONG = "no partition metadata: its rows don't count", "its partition metadata is wrong"
_NO_COMMIT = "00000000000000000"  # as Hudi writes it in a table without commits


def partition_metadata(context: ActionContext, *, dry_run: bool = True) -> RepairResult:
    """Find folders with data whose partition metadata is missing or wrong, and write it.

    Args:    dry_run: only return the folders.
    """
    root, storage = context.meta.storage.root, context.meta.storage
    if dry_run:
        return RepairResult(root, "partition_metadata", _find(context), run=_RUN)
    with context.locked():
        context = context.reloaded()
        items = _find(context)
        last = context.meta.timeline.last_commit()
        time = last.requested_time if last is not None else _NO_COMMIT
        paths = [data_path(item.where, PARTITION_METADATA_NAME) for item in items]
        for item in items:
            rewrite_partition_metadata(storage, item.where, time, context.clock)
        storage.sync(paths)
    return RepairResult(root, "partition_metadata", items, bool(items), run=_RUN)


def _find(context: ActionContext) -> tuple[RepairItem, ...]:
    meta = context.meta
    folders: dict[str, bool] = {}
    for entry in data_files(meta.storage):
        path = parent(entry.path)
        is_committed = meta.timeline.is_visible(str(instant_of(entry.name)))
        folders[path] = folders.get(path, False) or is_committed
    items = []
    for path in sorted(path for path, is_committed in folders.items() if is_committed):
        problem = _problem(path, [entry.name for entry in meta.storage.list(path)], meta.storage)
        if problem:
            items.append(RepairItem(path, problem, "write it"))
    return tuple(items)


def _problem(path: str, names: Iterable[str], storage: Storage) -> str:
    metadata_files = [name for name in names if is_partition_metadata(name)]
    if not metadata_files:
        return _MISSING
    if PARTITION_METADATA_NAME not in metadata_files:
        return ""  # in the form of a base file
    file = data_path(path, PARTITION_METADATA_NAME)
    try:
        depth = parse_properties(storage.read(file, PROPERTIES_BYTES_MAX), file).get("partitionDepth", "")
    except CorruptFile:
        return _WRONG
    if not depth:
        return _WRONG
    return (
        "" if depth == str(partition_depth(path)) else f"{_WRONG}: depth {depth} in a folder of {partition_depth(path)}"
    )
