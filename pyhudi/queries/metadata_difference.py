"""What a check of the metadata table looks at, and what it finds wrong.

Source: docs/reading.md, "The metadata table"; docs/formats/metadata-table.md, "Records".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from pyhudi.lazy_property import lazy_property
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileGroupId, FileSlice
from pyhudi.queries.plan import ReadPlan, plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["KEYS_SHOWN", "Compared", "Difference"]

KEYS_SHOWN = 5  # in one difference; how many there are is said, too


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that the metadata table says and that is not so. `partition`: of the metadata table."""

    partition: str
    where: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.partition}: {self.where}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True)
class Compared:
    """A metadata table, and the newest slices of the file groups that it is compared with. `is_whole`: they are all
    that the table has.
    """

    table: MetadataTable
    view: FileSystemView
    slices: Sequence[FileSlice]
    is_whole: bool

    @lazy_property
    def groups(self) -> frozenset[FileGroupId]:
        """The file groups of the slices."""
        return frozenset(found.group for found in self.slices)

    def plan(self, columns: Sequence[str], groups: Collection[FileGroupId] | None = None) -> ReadPlan:
        """How their rows are read, without the metadata table. `groups`: of other file groups than those compared."""
        plan = plan_snapshot(self.table.data, Query(columns=columns, use_metadata=False))
        if groups is None and self.is_whole:
            return plan
        wanted = self.groups if groups is None else groups
        return replace(plan, slices=tuple(read for read in plan.slices if read.file_slice.group in wanted))
