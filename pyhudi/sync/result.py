"""The result of a sync: each registered table, and its changes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyhudi.result import Result

__all__ = ["SyncResult", "SyncedTable"]


@dataclass(frozen=True, slots=True, repr=False)
class SyncedTable(Result):
    """A registered table. `action`: created, recreated, changed or unchanged. `columns_changed`: with a new type or
    comment. `partitions_moved`: with a new location, or touched. `compared_all`: all partitions were compared, not
    only those of later commits.
    """

    name: str
    action: str = "unchanged"
    columns_added: tuple[str, ...] = ()
    columns_changed: tuple[str, ...] = ()
    columns_dropped: tuple[str, ...] = ()
    partitions_added: int = 0
    partitions_moved: int = 0
    partitions_dropped: int = 0
    compared_all: bool = False

    @property
    def partitions_changed(self) -> int:
        """Partitions that were added, moved or dropped."""
        return self.partitions_added + self.partitions_moved + self.partitions_dropped

    def then(self, later: SyncedTable) -> SyncedTable:
        """The changes of two syncs in a row as one result."""
        return replace(
            self,
            action=later.action if self.action == "unchanged" else self.action,
            columns_added=self.columns_added + later.columns_added,
            columns_changed=self.columns_changed + later.columns_changed,
            columns_dropped=self.columns_dropped + later.columns_dropped,
            partitions_added=self.partitions_added + later.partitions_added,
            partitions_moved=self.partitions_moved + later.partitions_moved,
            partitions_dropped=self.partitions_dropped + later.partitions_dropped,
            compared_all=self.compared_all or later.compared_all,
        )

    def __str__(self) -> str:
        columns = [
            f"column{'s' if len(names) > 1 else ''} {', '.join(names)} {verb}"
            for names, verb in (
                (self.columns_added, "added"),
                (self.columns_changed, "changed"),
                (self.columns_dropped, "dropped"),
            )
            if names
        ]
        partitions = [
            f"{count:,} partition{'s' if count > 1 else ''} {verb}"
            for count, verb in (
                (self.partitions_added, "added"),
                (self.partitions_moved, "moved"),
                (self.partitions_dropped, "dropped"),
            )
            if count
        ]
        return ", ".join((f"{self.name} {self.action}", *columns, *partitions))


@dataclass(frozen=True, slots=True, repr=False)
class SyncResult(Result):
    """`catalog`: its kind and place. `instant_time`: the newest commit that it has now, None for a table without one.
    `statements`: SQL to run there once, and again when columns change.
    """

    table: str
    catalog: str
    tables: tuple[SyncedTable, ...]
    instant_time: str | None = None
    database_created: bool = False
    statements: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(
            [f"{self.table}: {self.catalog}, up to {self.instant_time}", *map(str, self.tables), *self.statements]
        )
