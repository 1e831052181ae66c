"""What a clustering is to do: groups of file slices whose rows go to new file groups.

Source: docs/formats/timeline.md, "Records"; docs/formats/table-services.md, "Clustering plan".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.model.file_group import FileGroupId
from pyhudi.model.filenames import BaseFileName, LogFileName

__all__ = ["NEW_GROUPS_MAX", "ClusteringGroup", "ClusteringPlan", "ClusteringSlice"]

NEW_GROUPS_MAX = 1_000_000  # of a group of a plan: the nodes of a hash ring, which has most; memory is shared by them


@dataclass(frozen=True, slots=True)
class ClusteringSlice:
    """One slice that is read. Files are bare names in the folder of `partition_path`."""

    partition_path: str
    file_id: str
    data_file_name: str | None
    log_file_names: tuple[str, ...] = ()

    @property
    def group(self) -> FileGroupId:
        return FileGroupId(self.partition_path, self.file_id)

    @property
    def base_instant(self) -> str:
        """Base instant of the slice: that of its base file, of a slice of logs only that of its first log."""
        if self.data_file_name is not None:
            base = BaseFileName.parse(self.data_file_name)
            return base.instant_time if base is not None else ""
        logs = (LogFileName.parse(name) for name in self.log_file_names)
        return min((log.instant_time for log in logs if log is not None), default="")


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    """Slices of one partition that are sorted together, and how many file groups they should become."""

    slices: tuple[ClusteringSlice, ...]
    output_file_groups: int = 1
    metrics: Mapping[str, float] = field(default_factory=dict)
    extra_metadata: Mapping[str, str] | None = None

    @property
    def partition_path(self) -> str:
        return self.slices[0].partition_path


@dataclass(frozen=True, slots=True)
class ClusteringPlan:
    """The plan in the requested file of a clustering. `strategy_class`: Hudi's name of how it is executed."""

    groups: tuple[ClusteringGroup, ...]
    strategy_class: str
    strategy_params: Mapping[str, str] = field(default_factory=dict)
    preserve_meta_columns: bool = True

    @property
    def slices(self) -> tuple[ClusteringSlice, ...]:
        """The slices of all groups."""
        return tuple(s for group in self.groups for s in group.slices)

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partition paths that the plan reads, in its order."""
        return tuple(dict.fromkeys(group.partition_path for group in self.groups))
