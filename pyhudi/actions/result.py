"""WriteResult: the result of a write, for its caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyhudi.display import html_pairs, readable_bytes
from pyhudi.model.commit import WriteStatus
from pyhudi.model.file_group import FileGroupId
from pyhudi.result import Result
from pyhudi.schema.column_paths import ColumnChanges

__all__ = ["WriteResult"]

_NO_CHANGES = ColumnChanges()


@dataclass(frozen=True, slots=True, repr=False)
class WriteResult(Result):
    """Counts are rows of the table: `inserted`, `updated`, `deleted`; `unchanged` rows lost against a stored row with a
    greater ordering value. Rows written to log files count as updated or deleted, although readers decide whether they
    win. `not_found`: rows of a delete by keys whose key the index does not find; a bucket index does not look.
    `combined`: rows of the data that another row of their key replaced before they were written; `inserted`, `updated`
    and `deleted` don't count them. `zones`: by column the zone of its values, which are stored as moments in UTC.
    `columns_added`, `columns_retyped`, `columns_dropped`: paths of columns of the table that the rows changed.
    `seconds`: wall time by phase, in the order of the phases.
    """

    table: str
    operation: str
    instant_time: str  # "" when there was nothing to commit and empty commits are off
    completion_time: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    not_found: int = 0
    files_created: int = 0
    files_rewritten: int = 0
    log_files_written: int = 0
    bytes_written: int = 0
    partitions: tuple[str, ...] = ()
    file_groups: tuple[FileGroupId, ...] = ()
    file_groups_replaced: tuple[FileGroupId, ...] = ()  # no longer in the table
    seconds: Mapping[str, float] = field(default_factory=dict)
    rolled_back: tuple[str, ...] = ()  # instants of dead writers that were undone first
    retries: int = 0  # how often the write was run again after a conflict
    services: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # instants that followed, by table service
    combined: int = 0
    zones: Mapping[str, str] = field(default_factory=dict)
    columns_added: tuple[str, ...] = ()
    columns_retyped: tuple[str, ...] = ()
    columns_dropped: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        statuses: Iterable[WriteStatus],
        *,
        table: str,
        operation: str,
        instant_time: str,
        completion_time: str,
        seconds: Mapping[str, float],
        rolled_back: tuple[str, ...] = (),
        replaced: Iterable[FileGroupId] = (),
        not_found: int = 0,
        combined: int = 0,
        columns: ColumnChanges = _NO_CHANGES,
    ) -> WriteResult:
        """Add up the files of a commit."""
        statuses, replaced = tuple(statuses), tuple(sorted(replaced))
        stats = [status.stat for status in statuses]
        logs = sum(stat.log_version is not None for stat in stats)
        rewritten = sum(stat.log_version is None and stat.prev_commit not in (None, "null") for stat in stats)
        return cls(
            table=table,
            operation=operation,
            instant_time=instant_time,
            completion_time=completion_time,
            inserted=sum(stat.num_inserts for stat in stats),
            updated=sum(stat.num_update_writes for stat in stats),
            deleted=sum(stat.num_deletes for stat in stats),
            unchanged=sum(status.skipped for status in statuses),
            not_found=not_found,
            files_created=len(stats) - rewritten - logs,
            files_rewritten=rewritten,
            log_files_written=logs,
            bytes_written=sum(stat.total_write_bytes for stat in stats),
            partitions=tuple(
                sorted({*(stat.partition_path or "" for stat in stats), *(g.partition_path for g in replaced)})
            ),
            file_groups=tuple(sorted(FileGroupId(stat.partition_path or "", stat.file_id) for stat in stats)),
            file_groups_replaced=replaced,
            seconds=seconds,
            rolled_back=rolled_back,
            combined=combined,
            columns_added=columns.added,
            columns_retyped=columns.retyped,
            columns_dropped=columns.dropped,
        )

    @property
    def compacted(self) -> tuple[str, ...]:
        """Instants of compactions that followed the write."""
        return self.services.get("compaction", ())

    @property
    def total_s(self) -> float:
        """Wall time of all phases."""
        return sum(self.seconds.values())

    def __str__(self) -> str:
        rows = ", ".join(f"{count:,} {name}" for name, count in self._rows() if count) or "no rows changed"
        rows += f", {self.not_found:,} keys not found" if self.not_found else ""
        rows += f", {self.combined:,} combined with others of their keys" if self.combined else ""
        rows += "".join(f"; {label}: {', '.join(names)}" for label, names in self._columns())
        logs = f", {self.log_files_written:,} log files" if self.log_files_written else ""
        files = f"{self.files_created:,} files written, {self.files_rewritten:,} rewritten{logs}"
        files += f" ({readable_bytes(self.bytes_written)})"
        if self.file_groups_replaced:
            files += f", {len(self.file_groups_replaced):,} file groups replaced"
        phases = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in self.seconds.items())
        retries = f"; {self.retries} {'retry' if self.retries == 1 else 'retries'}" if self.retries else ""
        times = f"{self.instant_time} (complete {self.completion_time})" if self.instant_time else "without commit"
        name = f"{self.operation.lower()} {times}"
        return f"{name}: {rows}; {files}{retries}; {self.total_s:.2f} s ({phases})"

    def _repr_html_(self) -> str:
        pairs = [
            ("table", self.table),
            ("operation", self.operation.lower()),
            ("instant", self.instant_time),
            ("completed", self.completion_time),
            *((name, f"{count:,}") for name, count in self._rows()),
            *([("keys not found", f"{self.not_found:,}")] if self.not_found else []),
            *([("combined with others of their keys", f"{self.combined:,}")] if self.combined else []),
            *((label, ", ".join(names)) for label, names in self._columns()),
            ("files written", f"{self.files_created:,}"),
            ("files rewritten", f"{self.files_rewritten:,}"),
            ("log files written", f"{self.log_files_written:,}"),
            ("file groups replaced", f"{len(self.file_groups_replaced):,}"),
            ("bytes", readable_bytes(self.bytes_written)),
            *((f"{phase}, s", f"{seconds:.2f}") for phase, seconds in self.seconds.items()),
            ("total, s", f"{self.total_s:.2f}"),
        ]
        return html_pairs(pairs)

    def _columns(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        """Labels such as "1 column added", with the names of the columns."""
        changes = (self.columns_added, self.columns_retyped, self.columns_dropped)
        for change, names in zip(("added", "given another type", "dropped"), changes, strict=True):
            if names:
                yield f"{len(names):,} {'column' if len(names) == 1 else 'columns'} {change}", names
        if self.zones:
            yield "stored in UTC", tuple(f"{name} ({zone})" for name, zone in self.zones.items())

    def _rows(self) -> tuple[tuple[str, int], ...]:
        counts = (self.inserted, self.updated, self.deleted, self.unchanged)
        return tuple(zip(("inserted", "updated", "deleted", "unchanged"), counts, strict=True))
