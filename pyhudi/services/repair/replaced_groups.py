"""The body of a replacecommit whose completed file can't be read, derived from other files of the table.

    clustering              the plan names the file groups that it replaced; the folders have its new files
    partitions emptied      the metadata table's delta commit of that instant names the partitions; all file groups that
                            were complete when the instant began are replaced
    anything else           unknown: an overwrite may have kept some file groups

Source: docs/repairs.md, "Empty instants"; docs/formats/metadata-table.md, "Writing".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile, HudiError, PathNotFound, UnsupportedTable
from pyhudi.formats.base import open_base_file
from pyhudi.formats.timeline.instant_files import decode_requested_replace
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.group_reader import GroupReader
from pyhudi.metadata.keys import ALL_PARTITIONS_KEY, NON_PARTITIONED
from pyhudi.metadata.records import SEQUENCE
from pyhudi.metadata.schema import MetadataKind
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStat
from pyhudi.model.file_group import FileGroup
from pyhudi.model.filenames import BaseFileName
from pyhudi.model.instant import Instant, State
from pyhudi.model.plans import ClusteringPlan
from pyhudi.storage.base import FileInfo
from pyhudi.storage.paths import parent
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["replacing_body"]


def replacing_body(instant: Instant, files: Sequence[FileInfo], meta: MetaClient) -> CommitMetadata | None:
    """The files and replaced file groups of the completed file; None if they are unknown.

    Args:    files: the data files with the instant in their names. meta: the table, in which completed writes whose
             files can't be read have empty bodies.
    """
    try:
        plan = meta.reader.clustering_plan(instant)
        if plan is not None:
            return _of_clustering(plan, files, meta)
        if files:
            return None
        paths = _emptied_partitions(instant.requested_time, meta)
        replaced = None if paths is None else _groups_before(instant.requested_time, paths, meta)
    except (CorruptFile, PathNotFound, UnsupportedTable):
        return None
    if replaced is None:
        return None
    return CommitMetadata({}, operation_type=_operation_in_plan(instant, meta), partition_to_replace_file_ids=replaced)


def _of_clustering(plan: ClusteringPlan, files: Sequence[FileInfo], meta: MetaClient) -> CommitMetadata | None:
    """The body of a clustering; None if a failed attempt left files: those that count are unknown."""
    stats: dict[str, tuple[WriteStat, ...]] = {}
    written = set[str]()
    for entry in files:
        name = BaseFileName.parse(entry.name)
        if name is None or name.file_id in written:
            return None
        written.add(name.file_id)
        with open_base_file(meta.storage, entry.path) as reader:
            rows = reader.num_rows
        path, size = parent(entry.path), entry.size_bytes
        stat = WriteStat(name.file_id, entry.path, path, num_writes=rows, num_inserts=rows, file_size_in_bytes=size)
        stats[path] = (*stats.get(path, ()), stat)
    replaced: dict[str, tuple[str, ...]] = {}
    for one in plan.slices:
        if one.file_id not in written:
            replaced[one.partition_path] = (*replaced.get(one.partition_path, ()), one.file_id)
    return CommitMetadata(stats, operation_type=OperationType.CLUSTER, partition_to_replace_file_ids=replaced)


def _emptied_partitions(instant_time: str, meta: MetaClient) -> tuple[str, ...] | None:
    """The partitions that the instant's delta commit in the metadata table names;  None without one, and after it was
    merged with others.
    """
    table = MetadataTable.open(meta)
    if table is None:
        return None
    (file_slice,) = table.slices(MetadataKind.FILES.value.prefix)
    payloads = MetadataKind.FILES.payloads
    reader = GroupReader(table.meta, file_slice, payloads, lambda time: time == instant_time)
    records = reader.with_keys(pa.array([ALL_PARTITIONS_KEY]))
    log_records = records.filter(pc.greater(records.column(SEQUENCE), 0))  # without the base file's
    names = [name for entries in log_records.column(payloads[0]).to_pylist() for name, _ in entries or ()]
    return tuple("" if name == NON_PARTITIONED else name for name in names) or None


def _groups_before(instant_time: str, paths: Iterable[str], meta: MetaClient) -> Mapping[str, tuple[str, ...]] | None:
    """Partition path → ids of the file groups that were complete when the instant began; None if that is unknown for
    one of them.
    """
    view = FileSystemView.load(meta, as_of=instant_time, partitions=paths)
    groups: dict[str, tuple[str, ...]] = {}
    for path, of_path in view.groups.items():
        if any(_may_be_newer(group, instant_time, meta) for group in of_path):
            return None
        groups[path] = tuple(group.file_id for group in of_path)
    return groups


def _may_be_newer(group: FileGroup, instant_time: str, meta: MetaClient) -> bool:
    """True if the write that began the group completed after this instant began, so that both ran at the same time."""
    began = meta.timeline.find(group.parts[-1][0])
    return began is not None and (began.completion_time or "") > instant_time


def _operation_in_plan(instant: Instant, meta: MetaClient) -> str:
    """The operation that the requested file names; below version 8 it names none."""
    operation: object = None
    with suppress(HudiError):
        operation = decode_requested_replace(meta.reader.read_body(instant, State.REQUESTED)).get("operationType")
    return operation if isinstance(operation, str) and operation else OperationType.DELETE_PARTITION
