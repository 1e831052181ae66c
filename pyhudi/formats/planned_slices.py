"""The part that compaction and clustering plans share: which files make up a slice. Checked, for a plan is untrusted.

Source: docs/formats/table-services.md, "Compaction plan", "Clustering plan".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.formats.body_fields import Fields
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.filenames import BaseFileName, LogFileName

__all__ = ["PlannedSlice", "check_groups", "planned_slice"]


@dataclass(frozen=True, slots=True)
class PlannedSlice:
    """Files are bare names in the folder of `partition_path`; `data_file` is None for a slice of logs only."""

    partition_path: str
    file_id: str
    data_file: str | None
    logs: tuple[str, ...]


def planned_slice(body: Fields, does: str) -> PlannedSlice:
    """The files that an entry of a plan names.

    Args:    does: what the plan does to the files ("compacts").
    Raises:  CorruptFile for partitions and files that can't be meant, UnsupportedTable for bootstrapped files.
    """
    where, partition_path, file_id = body.where, body.text("partitionPath"), body.text("fileId")
    segments = partition_path.split("/")
    if partition_path and (".." in segments or "" in segments or segments[0] == ".hoodie"):
        raise CorruptFile(f"{where}: the plan names the partition {partition_path!r}, which can't be one.")
    if body.text("bootstrapFilePath"):
        raise UnsupportedTable(f"{where}: the plan {does} bootstrapped files; let Apache Hudi run it.")
    data_file = _file_name(body.text("dataFilePath")) if body.text("dataFilePath") else None
    logs = tuple(_file_name(path) for path in body.texts("deltaFilePaths"))
    parsed = [BaseFileName.parse(data_file)] if data_file is not None else []
    for name in (*parsed, *(LogFileName.parse(log) for log in logs)):
        if name is None or name.file_id != file_id:
            raise CorruptFile(
                f"{where}: the plan names files that are not of file group {file_id!r:.100}: {data_file!s:.200}, "
                f"{', '.join(logs):.300}."
            )
    return PlannedSlice(partition_path, file_id, data_file, logs)


def check_groups(groups: Sequence[FileGroupId], where: str) -> None:
    """Raise CorruptFile for a clustering that names a file group twice: its rows would be there twice."""
    twice = next((group for group, times in Counter(groups).items() if times > 1), None)
    if twice is not None:
        raise CorruptFile(
            f"{where}: the plan names the file group {twice.file_id!r:.100} of {twice.partition_path!r:.200} twice."
        )


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]
