"""The health of a table in one look: causes of slowness or size, abandoned work, and the calls that help.

It lists the files, by the metadata table where it is up to date, and the timeline; it opens no file and changes
nothing. A deep look also makes a dry run of each repair. Each check makes findings: a warning where the table is much
slower or larger than necessary, or where something went wrong; a note for states that may be intended.

Source: docs/reading.md, "The health of a table".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from pyhudi.display import html_table, readable_bytes, text_table
from pyhudi.errors import HudiError
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.listing import listed_files
from pyhudi.metadata.partitions.registry import is_supported_in
from pyhudi.metadata.schema import MetadataKind
from pyhudi.metadata.table import MetadataTable, has_metadata_table
from pyhudi.model.buckets import TableBuckets
from pyhudi.model.filenames import HEARTBEAT_FOLDER, REPLACEMENT_PREFIX, TEMPORARY_FOLDER
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.result import Result
from pyhudi.services.repair.findings import damage_by_names, damage_by_repairs
from pyhudi.view.consistent_read import read_consistently
from pyhudi.view.file_system_view import FileSystemView

if TYPE_CHECKING:
    from pyhudi.actions.action import ActionContext

__all__ = ["FileCounts", "Finding", "TableHealth", "health", "health_and_files"]

_FILES_TO_MENTION = 10  # if clustering saves fewer, a rewrite does not pay
_HEADER = ("", "about", "finding", "to run")
_STATISTICS = tuple(kind.value.prefix for kind in (MetadataKind.COLUMN_STATS, MetadataKind.PARTITION_STATS))


@dataclass(frozen=True, slots=True, repr=False)
class Finding(Result):
    """`level`: "warning" or "note". `about`: small files, log files, statistics, metadata table, waiting services,
    dead writers, timeline, damage. `run`: the Python call that repairs it, "" where the next write does.
    """

    level: str
    about: str
    text: str
    run: str = ""

    def __str__(self) -> str:
        return f"{self.level}: {self.about}: {self.text}{f' → {self.run}' if self.run else ''}"


@dataclass(frozen=True, slots=True, repr=False)
class FileCounts(Result):
    """The newest slices of a table, counted. `small_files`: base files below `hoodie.parquet.small.file.limit`;
    `files_to_spare`: the number of files that clustering would save. `deep_slices`: slices with at least as many log
    files as trigger a compaction; `log_files_deepest`: the most log files of one slice. `old_files`: earlier versions
    of base files, for time travel only.
    """

    partitions: int = 0
    file_groups: int = 0
    base_files: int = 0
    base_bytes: int = 0
    small_files: int = 0
    small_bytes: int = 0
    files_to_spare: int = 0
    log_files: int = 0
    log_bytes: int = 0
    log_files_deepest: int = 0
    deep_slices: int = 0
    old_files: int = 0
    old_bytes: int = 0

    def __str__(self) -> str:
        logs = f", {self.log_files:,} log files ({readable_bytes(self.log_bytes)})" if self.log_files else ""
        return (
            f"{self.file_groups:,} file groups in {self.partitions:,} partitions, {self.base_files:,} base files "
            f"({readable_bytes(self.base_bytes)}){logs}"
        )


@dataclass(frozen=True, slots=True, repr=False)
class TableHealth(Result):
    """A table as of its newest commit, `instant_time`, None before the first one.

    `commits`: on the active timeline. `writers`: pending writes with a live heartbeat, and runs that build a new table
    to replace this one; `dead_writers`: the instants of writes without one. `waiting`: instants of table services that
    are scheduled or running. `lists_files`: "metadata table" or "folders".
    """

    table: str
    table_type: str
    table_version: int
    instant_time: str | None
    files: FileCounts
    commits: int
    writers: int
    dead_writers: tuple[str, ...]
    waiting: tuple[str, ...]
    lists_files: str
    metadata_partitions: tuple[str, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def is_healthy(self) -> bool:
        """True without warnings; there may be notes."""
        return not self.warnings

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that need a call."""
        return tuple(one for one in self.findings if one.level == "warning")

    def _summary(self) -> str:
        notes = len(self.findings) - len(self.warnings)
        about = ", ".join(dict.fromkeys(one.about for one in self.warnings))
        state = f"{len(self.warnings)} to repair ({about})" if self.warnings else "healthy"
        return f"{self.table}: {state}{f', {notes} to note' if notes else ''}; {self.files}, {self.commits:,} commits"

    def _rows(self) -> list[tuple[str, str, str, str]]:
        marks = {"warning": "!", "note": "-"}
        return [(marks[one.level], one.about, one.text, one.run) for one in self.findings]

    def __str__(self) -> str:
        return f"{self._summary()}\n{text_table(_HEADER, self._rows())}" if self.findings else self._summary()

    def _repr_html_(self) -> str:
        table = html_table(_HEADER, self._rows()) if self.findings else ""
        return f"<div>{escape(self._summary())}</div>{table}"


def health(context: ActionContext, deep: bool = False) -> TableHealth:
    """The health of a table: see `HudiTable.inspect.health`. Raises the errors of listing the table."""
    return health_and_files(context, deep)[0]


def health_and_files(context: ActionContext, deep: bool = False) -> tuple[TableHealth, FileSystemView]:
    """The health of a table, and the files from which it was derived. Raises the errors of listing the table."""
    meta = context.meta
    fault = _metadata_fault(meta)
    view, by_metadata = _view(meta, use_metadata=fault is None)
    files = _files(view, context)
    pending = meta.timeline.pending().instants
    services = [instant for instant in pending if _service_of(instant, meta) is not None]
    writes = [instant for instant in pending if instant not in services]
    dead = [instant for instant in writes if context.is_dead(instant.requested_time)]
    replacements = [name for name in _folders_of_writers(meta) if name.startswith(REPLACEMENT_PREFIX)]
    dead_replacements = [name for name in replacements if context.is_dead(name)]
    commits = meta.timeline.commits()
    newest = commits.last_commit()
    findings = (
        *_about_metadata(meta, fault, context),
        *_about_dead(dead, meta),
        *_about_leftovers(meta, len(dead_replacements)),
        *_about_services(services, meta),
        *_about_small_files(files, meta),
        *_about_logs(files, context),
        *_about_statistics(meta, fault),
        *_about_timeline(len(commits), context),
        *_about_damage(view, context, deep),
    )
    checked = TableHealth(
        meta.storage.root,
        meta.config.table_type,
        meta.config.table_version,
        None if newest is None else newest.requested_time,
        files,
        commits=len(commits),
        writers=len(writes) - len(dead) + len(replacements) - len(dead_replacements),
        dead_writers=tuple(instant.requested_time for instant in dead),
        waiting=tuple(instant.requested_time for instant in services),
        lists_files="metadata table" if by_metadata else "folders",
        metadata_partitions=meta.config.metadata_partitions,
        findings=tuple(sorted(findings, key=lambda one: one.level != "warning")),
    )
    return checked, view


# ---- files


def _view(meta: MetaClient, use_metadata: bool) -> tuple[FileSystemView, bool]:
    """The files of the table, and True if the metadata table lists them."""
    if use_metadata:
        try:
            table = MetadataTable.open(meta)
            if table is not None:
                return FileSystemView.load(meta, listed=listed_files(table)), True
        except HudiError:
            pass  # the listing below works without it, and a damaged one is a separate finding
    return read_consistently(meta, FileSystemView.load), False


def _files(view: FileSystemView, context: ActionContext) -> FileCounts:
    small_limit, file_bytes = context.options.small_file_limit_bytes, context.options.max_file_size_bytes
    together: dict[str, list[int]] = {partition: [] for partition in view.partitions()}  # base files' bytes
    logs: list[int] = []
    depths: list[int] = []
    old: list[int] = []
    for path, groups in view.groups.items():
        for group in groups:
            (_, base, log_files), *older = group.parts
            if base is not None:
                together[path].append(base.size_bytes)
            depths.append(len(log_files))
            logs += [log.size_bytes for log in log_files]
            old += [one.size_bytes for _, one, _ in older if one is not None]
    small = [[size for size in sizes if size < small_limit] for sizes in together.values()]
    return FileCounts(
        len(together),
        len(depths),
        sum(map(len, together.values())),
        sum(map(sum, together.values())),
        sum(map(len, small)),
        sum(map(sum, small)),
        sum(len(sizes) - -(-sum(sizes) // file_bytes) for sizes in small),
        len(logs),
        sum(logs),
        max(depths, default=0),
        sum(depth >= context.options.compaction.delta_commits_max for depth in depths),
        len(old),
        sum(old),
    )


def _about_small_files(files: FileCounts, meta: MetaClient) -> Iterator[Finding]:
    if files.files_to_spare < _FILES_TO_MENTION:
        return
    level = "warning" if files.files_to_spare * 2 >= files.base_files else "note"
    text = f"{files.small_files:,} of {files.base_files:,} base files are small ({readable_bytes(files.small_bytes)})"
    if TableBuckets.of(meta.config.properties) is not None:
        yield Finding("note", "small files", f"{text}: the table has more buckets than its rows need")
        return
    text = f"{text}; {files.base_files - files.files_to_spare:,} would do"
    yield Finding(level, "small files", text, "table.cluster()")


def _about_logs(files: FileCounts, context: ActionContext) -> Iterator[Finding]:
    if not files.deep_slices:
        return
    limit, size = context.options.compaction.delta_commits_max, readable_bytes(files.log_bytes)
    text = (
        f"{files.deep_slices:,} of {files.file_groups:,} file groups have {limit} log files or more, up to "
        f"{files.log_files_deepest:,}; snapshots merge {size} of them"
    )
    yield Finding("warning", "log files", text, "table.compact()")


# ---- the metadata table


def _metadata_fault(meta: MetaClient) -> HudiError | None:
    """The reason why the metadata table must not be read; None if it may be, or does not exist."""
    if not has_metadata_table(meta):
        return None
    from pyhudi.actions.open_table import metadata_fault

    return metadata_fault(meta)


def _about_metadata(meta: MetaClient, fault: HudiError | None, context: ActionContext) -> Iterator[Finding]:
    run = "table.metadata.rebuild()"
    if fault is not None:
        why = str(fault).removeprefix(f"{meta.storage.root}: ").rstrip(".")
        yield Finding("warning", "metadata table", f"{why}; until then readers list folders", run)
    elif meta.config.metadata_to_build:
        yield Finding("warning", "metadata table", "it was removed for a rebuild that never ended", run)
    elif not has_metadata_table(meta):
        yield Finding("note", "metadata table", "there is none: readers list folders, and skip no files", run)


def _about_statistics(meta: MetaClient, fault: HudiError | None) -> Iterator[Finding]:
    """Findings about an existing metadata table; its absence is another finding."""
    config = meta.config
    if fault is not None or not config.metadata_partitions:
        return
    partitions_listed = {*config.metadata_partitions, *config.metadata_partitions_inflight}
    for name in _STATISTICS:
        is_of_use = name != MetadataKind.PARTITION_STATS.value.prefix or config.partition_fields
        if name not in partitions_listed and is_of_use and is_supported_in(name, config.table_version):
            unit = "files" if name == MetadataKind.COLUMN_STATS.value.prefix else "partitions"
            text = f"no {name}: filters skip no {unit} by their values"
            yield Finding("note", "statistics", text, f"table.indexes.create({name!r})")
            return


# ---- the timeline


def _service_of(instant: Instant, meta: MetaClient) -> str | None:
    """The call that runs the plan of a pending instant; None if it is not a table service."""
    match instant.action:
        case ActionKind.COMPACTION:
            return "compact"
        case ActionKind.LOGCOMPACTION:
            return "log_compact"
        case ActionKind.CLEAN:
            return "clean"
        case ActionKind.INDEXING:
            return "build_indexes"
        case ActionKind.CLUSTERING:
            return "cluster"
        case ActionKind.REPLACECOMMIT if meta.reader.clustering_plan(instant) is not None:
            return "cluster"
    return None


def _about_services(services: Sequence[Instant], meta: MetaClient) -> Iterator[Finding]:
    by_call: dict[str, list[Instant]] = {}
    for instant in services:
        by_call.setdefault(str(_service_of(instant, meta)), []).append(instant)
    for call, instants in by_call.items():
        oldest = instants[0].requested_time
        plans = "1 plan waits" if len(instants) == 1 else f"{len(instants):,} plans wait"
        text = f"{plans} or run{'s' if len(instants) == 1 else ''}: {call} since {oldest}"
        yield Finding("warning", "waiting services", text, f"table.{call}()")


def _about_dead(dead: Sequence[Instant], meta: MetaClient) -> Iterator[Finding]:
    for instant in dead:
        time, action = instant.requested_time, instant.action.value
        if instant.action.is_undoing:
            yield Finding("warning", "dead writers", f"a {action} at {time} died half way; the next write finishes it")
            continue
        text = f"the {action} of {time} has no live heartbeat; the next write undoes it"
        yield Finding("warning", "dead writers", text, f"table.rollback({time!r})")


def _folders_of_writers(meta: MetaClient) -> list[str]:
    """Folders of markers, named by their instants, and new tables that are to replace this one."""
    return [entry.name for entry in meta.storage.list(TEMPORARY_FOLDER) if entry.is_dir]


def _about_leftovers(meta: MetaClient, dead_replacements: int) -> Iterator[Finding]:
    """Markers and heartbeats of instants that are complete or archived, and new tables that never replaced this one."""
    if dead_replacements:
        tables = "a new table" if dead_replacements == 1 else f"{dead_replacements:,} new tables"
        text = f"{tables} to replace this one: the process died before the end; the next write deletes its files"
        yield Finding("note", "dead writers", text)
    pending = {instant.requested_time for instant in meta.timeline.pending()}
    first = meta.timeline.first_time
    completed = {instant.requested_time for instant in meta.timeline.completed()} - pending

    def count(names: Iterable[str]) -> int:
        over = (name in completed or (first is not None and name < first) for name in names if name[:1].isdigit())
        return sum(over)

    markers = count(_folders_of_writers(meta))
    heartbeats = count(entry.name for entry in meta.storage.list(HEARTBEAT_FOLDER))
    if markers or heartbeats:
        text = (
            f"markers of {markers:,} and heartbeats of {heartbeats:,} writes that are over; the next write deletes them"
        )
        yield Finding("note", "dead writers", text)


def _about_timeline(commits: int, context: ActionContext) -> Iterator[Finding]:
    limit = context.options.archiving.commits_kept_max
    if commits > 2 * limit:
        text = f"{commits:,} commits on the active timeline, which every reader lists; archiving keeps {limit:,}"
        yield Finding("warning", "timeline", text, "table.maintenance.archive()")


def _about_damage(view: FileSystemView, context: ActionContext, deep: bool) -> Iterator[Finding]:
    damage = [*(damage_by_repairs(context) if deep else ())]
    calls = {run for _, run in damage}
    damage += [one for one in damage_by_names(context.meta, view.partitions()) if one[1] not in calls]
    for text, run in damage:
        yield Finding("warning", "damage", text, run)
