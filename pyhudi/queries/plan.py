"""Plans: which files a query reads, in which shape, after pruning. A plan does no reading and no pyspark.

    schema of the query → file system view → partitions pruned by their path → slices → ReadPlan

The plan serves both roads: the Arrow reader (`snapshot.py`) and Spark's native Parquet scan.
Source: docs/architecture.md, "How a read flows"; docs/formats/file-names.md, "Visible slices"; docs/formats/schema.md,
"Reading older files".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial

import pyarrow as pa

from pyhudi.errors import ConfigError, TableError
from pyhudi.filegroup.read import SliceSpec
from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import BaseFile, FileSlice
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.options.damage import DEFAULT_DAMAGE, DamageOptions
from pyhudi.model.options.merging import DEFAULT_MEMORY, MemoryOptions
from pyhudi.model.predicate import Constant, Predicate, calls_of, may_match, parse_where
from pyhudi.queries.as_of import AsOf, check_not_cleaned, parse_as_of
from pyhudi.queries.change_rows import ChangeReading, GroupChange
from pyhudi.queries.filters import Where, bind, top_level_columns
from pyhudi.queries.key_pruning import wanted_keys
from pyhudi.queries.merging import slice_spec
from pyhudi.queries.metadata_use import TrustedMetadata, trusted_metadata
from pyhudi.queries.pruning import PathValues, parsed_path_values, partition_ranges, path_values
from pyhudi.queries.read_schema import read_schema
from pyhudi.schema.internal import InternalSchema, load_schema_history
from pyhudi.shown_text import is_text
from pyhudi.timeline.archived_timeline import load_archived_timeline
from pyhudi.view.committed_logs import with_committed_bytes
from pyhudi.view.consistent_read import read_consistently
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["QUERY_TYPES", "ReadPlan", "ReadSlice", "check_query_type", "plan_snapshot", "schema_history", "selected"]

QUERY_TYPES = ("snapshot", "read_optimized", "incremental")


@dataclass(frozen=True, slots=True)
class ReadSlice:
    """One file slice to read.

    `path_values`: columns whose value must come from the partition's path, as text (None is null).
    `parsed_path_values`: columns whose value the path tells as well as the file; where a global index left a key in its
    partition, the path is right.
    `merges`: log files have to be merged; else the base file, which is there then, is all there is to read.
    `change`: what is read of it are the changes of one commit.
    """

    file_slice: FileSlice
    path_values: PathValues = ()
    merges: bool = False
    parsed_path_values: PathValues = ()
    change: GroupChange | None = None

    @classmethod
    def of_base_file(
        cls, base_file: BaseFile, path_values: PathValues = (), parsed_path_values: PathValues = ()
    ) -> ReadSlice:
        """A base file alone."""
        file_slice = FileSlice(base_file.group, base_file.instant_time, base_file)
        return cls(file_slice, path_values, parsed_path_values=parsed_path_values)

    @property
    def from_path(self) -> dict[str, str | None]:
        """The columns whose value is taken from the partition's path."""
        return dict(self.parsed_path_values) | dict(self.path_values)

    @property
    def base_file(self) -> BaseFile:
        """The base file of a slice that has one."""
        assert self.file_slice.base_file is not None, self.file_slice
        return self.file_slice.base_file

    @property
    def size_bytes(self) -> int:
        """Bytes of its files, as stored."""
        base = self.file_slice.base_file
        logs = sum(log.size_bytes for log in self.file_slice.log_files) if self.merges else 0
        return logs + (base.size_bytes if base is not None else 0)


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What a query reads and returns.

    `schema`: the result's columns in order. `read_schema`: all columns that must be read, those of the filter included.
    `predicate`: bound to the table's schema, still to be applied to every row. `internal_schemas`: the table's
    schema-on-read history, newest first, () for ordinary tables; then files are matched by column id. `merge`: how
    slices with log files are merged, None when there is none. `newest_commit`: of the table as it was planned.
    `files_skipped`: slices that statistics or indexes of the metadata table left out; `listed_by_metadata`: it told the
    files, too.
    `checkpoint`: of an incremental query, the begin of the one that goes on from here.
    `changes`: how slices are read, when a query asks for changes.
    """

    schema: pa.Schema
    read_schema: pa.Schema
    predicate: Predicate
    slices: tuple[ReadSlice, ...]
    instant_time: str | None
    query_type: str = "snapshot"
    internal_schemas: tuple[InternalSchema, ...] = ()
    partitions_total: int = 0
    partitions_read: int = 0
    files_total: int = 0
    pruned_partitions: tuple[str, ...] = field(default=(), repr=False)
    files_skipped: int = 0
    listed_by_metadata: bool = False
    merge: SliceSpec | None = field(default=None, repr=False)
    newest_commit: str | None = None
    checkpoint: str | None = None
    changes: ChangeReading | None = field(default=None, repr=False)

    @property
    def size_bytes(self) -> int:
        """Bytes of the files to read, as stored."""
        return sum(read.size_bytes for read in self.slices)

    @property
    def keeps_all_rows(self) -> bool:
        """True when there is no filter."""
        return self.predicate == Constant(True)


def plan_snapshot(
    meta: MetaClient,
    *,
    columns: Sequence[str] | None = None,
    where: Where = None,
    as_of: AsOf | None = None,
    query_type: str = "snapshot",
    merger_classes: Sequence[str] = (),
    memory: MemoryOptions = DEFAULT_MEMORY,
    damage: DamageOptions = DEFAULT_DAMAGE,
    use_metadata: bool = True,
    unique_keys: bool = False,
) -> ReadPlan:
    """Plan a snapshot or read-optimised query.

    Args:
        columns: names of top-level columns in the wanted order; None: all, meta columns first.
        where: see `parse_where`.
        as_of: see `parse_as_of`; None: as of `meta`, or later when files of then go away meanwhile.
        query_type: "snapshot", or "read_optimized" (base files only).
        merger_classes: paths of the caller's mergers ("module:Class"), for tables with merge mode CUSTOM.
        memory: how many log records of a slice are held in memory.
        damage: what reading does about damaged log files.
        use_metadata: let the metadata table tell files and column statistics, where the table has one.
        unique_keys: no key is in several file groups, so that the record index may tell where rows are.
    Raises:
        ConfigError for unknown columns, literals that do not fit and query types that are not there;
        TableError when the table has nothing as of that moment, or not any more;
        UnsupportedTable for a snapshot that needs a merger which nobody here knows;
        StaleRead when files go away again and again.
    """
    check_query_type(query_type)
    instant_time = None if as_of is None else parse_as_of(as_of, meta.config.timeline_zone)
    query = _Query(columns, where, instant_time, query_type, merger_classes, memory, damage, use_metadata, unique_keys)
    return read_consistently(meta, partial(_plan, query), instant_time)


@dataclass(frozen=True, slots=True)
class _Query:
    """The query, independent of the state of the table."""

    columns: Sequence[str] | None
    where: Where
    instant_time: str | None
    query_type: str
    merger_classes: Sequence[str]
    memory: MemoryOptions
    damage: DamageOptions
    use_metadata: bool
    unique_keys: bool


def _plan(query: _Query, meta: MetaClient) -> ReadPlan:
    """The plan, when no file goes away while it is made."""
    instant_time = query.instant_time
    if instant_time is not None:
        check_not_cleaned(meta, instant_time)
    known = trusted_metadata(meta) if query.use_metadata else None
    listed = None if known is None else known.files()
    view = FileSystemView.load(meta, as_of=instant_time, listed=listed)
    _check_not_empty(meta, view, instant_time)
    history = schema_history(meta, instant_time)
    full = read_schema(meta, instant_time, view)
    predicate = bind(parse_where(query.where), full)
    schema = full if query.columns is None else selected(full, query.columns)
    needed = {*schema.names, *top_level_columns(predicate, full)}
    wanted = pa.schema([f for f in full if f.name in needed])

    slices: list[ReadSlice] = []
    pruned: list[str] = []
    for partition in view.partitions():
        if not may_match(predicate, partition_ranges(meta.config, partition, full)):
            pruned.append(partition)
            continue
        from_path = path_values(meta.config, partition, wanted)
        parsed = parsed_path_values(meta.config, partition, wanted)
        if query.query_type == "snapshot":
            slices += [ReadSlice(found, from_path, found.needs_merge, parsed) for found in view.slices(partition)]
        else:
            slices += [ReadSlice.of_base_file(base_file, from_path, parsed) for base_file in view.base_files(partition)]
    if query.query_type == "snapshot":
        slices = _with_committed_bytes(meta, slices, instant_time)
    is_newest = instant_time is None and query.query_type == "snapshot"
    by_index = is_newest and query.unique_keys
    skip = partial(_without_skipped, predicate=predicate, full=full, is_newest=is_newest, by_index=by_index)
    slices, skipped = skip(slices, known) if known and not history else (slices, 0)
    if known and not history and by_index:
        slices, passed_over = _with_keys(slices, known, wanted_keys(predicate, meta.config, full), view)
        skipped += passed_over
    partitions = view.partitions()
    newest = meta.timeline.last_commit()
    return ReadPlan(
        schema,
        wanted,
        predicate,
        tuple(slices),
        instant_time,
        query.query_type,
        history,
        partitions_total=len(partitions),
        partitions_read=len(partitions) - len(pruned),
        files_total=len(view.all_base_files()),
        pruned_partitions=tuple(pruned),
        merge=slice_spec(meta, full, instant_time, query.merger_classes, query.memory, history, query.damage)
        if any(read.merges for read in slices)
        else None,
        newest_commit=newest.requested_time if newest is not None else None,
        files_skipped=skipped,
        listed_by_metadata=listed is not None,
    )


def _without_skipped(
    slices: list[ReadSlice],
    known: TrustedMetadata,
    predicate: Predicate,
    full: pa.Schema,
    is_newest: bool,
    by_index: bool,
) -> tuple[list[ReadSlice], int]:
    """Those that statistics leave, and how many they don't. `is_newest`: the query wants the newest state; `by_index`:
    secondary indexes may tell, too.
    """
    from_path = {read.file_slice.group.partition_path: read.from_path for read in slices}
    left = known.partitions_left(predicate, full, from_path) if is_newest else None
    kept = [read for read in slices if left is None or read.file_slice.group.partition_path in left]
    partitions = tuple(path for path in from_path if left is None or path in left)
    if by_index and len(kept) > 1:
        kept = _with_values(kept, known, predicate, full)
    ranges = known.file_ranges(predicate, full, partitions)
    if ranges is not None:
        kept = [read for read in kept if ranges.may_match(read.file_slice, read.merges, read.from_path)]
    plain = {read.file_slice: read.from_path for read in kept if not read.merges}
    without = known.slices_without(predicate, full, plain) if calls_of(predicate) and plain else frozenset()
    kept = [read for read in kept if read.file_slice not in without]
    return kept, len(slices) - len(kept)


def _with_values(
    slices: list[ReadSlice], known: TrustedMetadata, predicate: Predicate, full: pa.Schema
) -> list[ReadSlice]:
    """The slices that a secondary index says to have one of the values that the predicate keeps, if there is one."""
    from_path = {name for read in slices for name in read.from_path}
    groups = known.groups_with_values(predicate, full, from_path)
    there = {read.file_slice.group for read in slices}
    partitions = {group.partition_path for group in there}
    if groups is None or not {group for group in groups if group.partition_path in partitions} <= there:
        return slices  # it can't be known, or the index names file groups that there are not
    return [read for read in slices if read.file_slice.group in groups]


def _with_keys(
    slices: list[ReadSlice], known: TrustedMetadata, keys: frozenset[str] | None, view: FileSystemView
) -> tuple[list[ReadSlice], int]:
    """The slices that the record index says to have one of these keys, if they are known, and how many are left out."""
    groups = known.groups_with_keys(keys) if keys is not None and len(slices) > 1 else None
    if groups is None or not groups <= {file_slice.group for file_slice in view.all_slices()}:
        return slices, 0  # it can't be known, or the index is wrong
    kept = [read for read in slices if read.file_slice.group in groups]
    return kept, len(slices) - len(kept)


def _with_committed_bytes(meta: MetaClient, reads: Sequence[ReadSlice], instant_time: str | None) -> list[ReadSlice]:
    """The same, with what completed writes put into their log files; a slice may get one that is missing."""
    known = with_committed_bytes(meta, [read.file_slice for read in reads], as_of=instant_time)
    return [
        replace(read, file_slice=file_slice, merges=file_slice.needs_merge)
        for read, file_slice in zip(reads, known, strict=True)
    ]


def check_query_type(query_type: str) -> None:
    """Raise ConfigError for a query type that there is not, or not in this release."""
    if query_type == "cdc":
        raise ConfigError(
            "query_type='cdc' is said in two words: query_type='incremental' with incremental_format='cdc' "
            "(hoodie.datasource.query.incremental.format), or HudiTable.changes(since, format='cdc')."
        )
    if query_type not in QUERY_TYPES:
        near = get_close_matches(query_type, QUERY_TYPES, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"Unknown query_type {query_type!r}.{hint} Known: {', '.join(QUERY_TYPES)}.")


def _check_not_empty(meta: MetaClient, view: FileSystemView, instant_time: str | None) -> None:
    if instant_time is None or meta.timeline.up_to(instant_time).last_commit() or view.all_base_files():
        return
    if any(i.action.is_write for i in load_archived_timeline(meta.storage, meta.config).times(until=instant_time)):
        return  # archived since, and it left no rows
    first = next(iter(meta.timeline.commits()), None)
    there = "the table has no commit yet" if first is None else f"the first commit is {first.requested_time}"
    raise TableError(f"{meta.storage.root}: nothing was committed as of {instant_time}; {there}.")


def schema_history(meta: MetaClient, instant_time: str | None) -> tuple[InternalSchema, ...]:
    """The schema-on-read history up to the query's instant, newest first.

    The newest file of all is read: it holds every version, and Hudi deletes the older ones.
    """
    history = load_schema_history(meta.storage, meta.config, meta.timeline)
    return tuple(s for s in history if instant_time is None or not s.version_id or str(s.version_id) <= instant_time)


def selected(full: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """These columns of a schema, in their order. Raises ConfigError for one that is not there, or is named twice."""
    if isinstance(columns, str):
        raise ConfigError(f"columns={columns!r} is one text; give a list of names.")
    fields = []
    for name in columns:
        if not isinstance(name, str):
            raise ConfigError(f"columns={list(columns)!r}: {name!r} is no name of a column. Give a list of names.")
        if not is_text(name) or full.get_field_index(name) < 0:
            near = get_close_matches(name, full.names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            if name in META_COLUMNS:
                hint = " The table does not populate its meta columns (hoodie.populate.meta.fields=false)."
            raise ConfigError(
                f"columns names {name!r}, which the table does not have.{hint} Columns: {', '.join(full.names)}."
            )
        fields.append(full.field(name))
    if len({f.name for f in fields}) < len(fields):
        raise ConfigError(f"columns={list(columns)!r} names a column twice.")
    return pa.schema(fields)
