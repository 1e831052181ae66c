"""Plans: the files that a query reads, in which shape, and those that it skips. Planning reads no rows.

    schema of the query → file system view → slices → partitions, then files are skipped → ReadPlan

Both readers use the plan: the Arrow reader (`snapshot.py`) and Spark's native Parquet scan.
Source: docs/architecture.md, "How a table is read"; docs/formats/file-names.md, "Visible slices";
docs/formats/schema.md, "Reading older files".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial

import pyarrow as pa

from pyhudi.errors import ConfigError, HudiError, TableError
from pyhudi.expressions.binding import bind
from pyhudi.expressions.filters import top_level_columns
from pyhudi.expressions.predicates import Constant, Predicate
from pyhudi.expressions.where import parse_where
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.formats.avro.schema import without_meta
from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import META_COLUMNS
from pyhudi.queries.change_rows import ChangeReading
from pyhudi.queries.query import ALL_ROWS, Query, check_not_cleaned, parse_as_of
from pyhudi.queries.read_slice import ReadSlice, slice_spec
from pyhudi.queries.schema import read_schema
from pyhudi.queries.skip.keys import sole_key_field
from pyhudi.queries.skip.paths import PathColumns
from pyhudi.queries.skip.skip import Skipped, metadata_source, skip_slices
from pyhudi.redaction import is_text
from pyhudi.schema.internal import InternalSchema, load_schema_history
from pyhudi.timeline.archived_timeline import load_archived_timeline
from pyhudi.view.committed_logs import with_committed_bytes
from pyhudi.view.consistent_read import read_consistently
from pyhudi.view.file_system_view import FileSystemView

__all__ = [
    "QUERY_TYPES",
    "ReadPlan",
    "ReadSlice",
    "check_names",
    "check_query_type",
    "plan_as_listed",
    "plan_snapshot",
    "result_schema",
    "schema_history",
    "selected",
]

QUERY_TYPES = ("snapshot", "read_optimized", "incremental")


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The slices that a query reads, and the columns and rows that it returns.

    `schema`: the result's columns in order. `read_schema`: all columns that must be read, including those of the
    filter. `predicate`: bound to the table's schema, still to be applied to every row. `internal_schemas`: the table's
    schema-on-read history, newest first, () for ordinary tables; then files are matched by column id. `merge`: how
    slices with log files are merged, None if there are none. `newest_commit`: of the table when the plan was made.
    `files_skipped_by_path`: file groups in partitions that are skipped by their paths. `skipped`: the files that each
    skipper of the metadata table skips, in order (`queries/skip`); `listed_by_metadata`: the metadata table lists the
    files, too. `key_field`: the only column of the key, if equal values make equal keys and different values different
    keys. `checkpoint`: of an incremental query, the begin of the next one. `changes`: how slices are read if a query
    asks for changes. `driver_rows`: the planner may read up to this number of rows itself. `check_pages`: see
    `open_base_file`. `driver_log_bytes`: the planner may read log files of up to this number of bytes itself.
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
    files_skipped_by_path: int = 0
    skipped: tuple[Skipped, ...] = ()
    listed_by_metadata: bool = False
    merge: SliceSpec | None = field(default=None, repr=False)
    key_field: str | None = field(default=None, repr=False)
    newest_commit: str | None = None
    checkpoint: str | None = None
    changes: ChangeReading | None = field(default=None, repr=False)
    driver_rows: int = 0
    check_pages: bool = True
    driver_log_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of the files to read, as stored."""
        return sum(read.size_bytes for read in self.slices)

    @property
    def files_skipped(self) -> int:
        """File slices that statistics and indexes of the metadata table skip."""
        return sum(step.files for step in self.skipped)

    @property
    def keeps_all_rows(self) -> bool:
        """True when there is no filter."""
        return self.predicate == Constant(True)


def plan_snapshot(meta: MetaClient, query: Query = ALL_ROWS) -> ReadPlan:
    """Plan a snapshot or read-optimised query.

    Raises:
        ConfigError for unknown columns, literals that do not fit and unknown query types;
        TableError when the table has no commit as of that moment, or its files were cleaned;
        UnsupportedTable for a snapshot that needs an unknown merger;
        StaleRead when files keep being deleted during planning.
    """
    check_query_type(query.query_type)
    instant_time = None if query.as_of is None else parse_as_of(query.as_of, meta.config.timeline_zone)
    return read_consistently(meta, partial(_plan, query, instant_time), instant_time)


def plan_as_listed(meta: MetaClient, query: Query) -> ReadPlan:
    """Plan a snapshot of exactly this timeline, which may hold an instant that is not complete yet.

    Raises: as `plan_snapshot`; PathNotFound if files are deleted during planning.
    """
    return _plan(replace(query, use_metadata=False), None, meta)


def _plan(query: Query, instant_time: str | None, meta: MetaClient) -> ReadPlan:
    """The plan. Raises PathNotFound if a file is deleted while it is made."""
    if instant_time is not None:
        check_not_cleaned(meta, instant_time)
    metadata = metadata_source(meta) if query.use_metadata else None
    files_by_partition = None if metadata is None else metadata.files()
    view = FileSystemView.load(meta, as_of=instant_time, listed=files_by_partition)
    _check_not_empty(meta, view, instant_time)
    history = schema_history(meta, instant_time)
    full = read_schema(meta, instant_time, view)
    predicate = bind(parse_where(query.where), full, query.zone)
    schema = result_schema(full, query)
    needed = {*schema.names, *top_level_columns(predicate, full)}
    read_columns = pa.schema([f for f in full if f.name in needed])

    slices, skipped_paths = _slices(meta, query, view, predicate, full, read_columns)
    if query.query_type == "snapshot":
        slices = _with_committed_bytes(meta, slices, instant_time)
    is_newest = instant_time is None and query.query_type == "snapshot"
    skipped: tuple[Skipped, ...] = ()
    if metadata and not history and predicate != Constant(True):
        by_index = is_newest and query.unique_keys
        groups = frozenset(file_slice.group for file_slice in view.all_slices()) if by_index else None
        slices, skipped = skip_slices(slices, metadata, predicate, full, is_newest=is_newest, groups=groups)
    partitions = view.partitions()
    newest = meta.timeline.last_commit()
    return ReadPlan(
        schema,
        read_columns,
        predicate,
        tuple(slices),
        instant_time,
        query.query_type,
        history,
        partitions_total=len(partitions),
        partitions_read=len(partitions) - len(skipped_paths),
        files_total=view.count_base_files(),
        merge=slice_spec(meta, full, query, as_of=instant_time, history=history)
        if any(read.merges for read in slices)
        else None,
        newest_commit=newest.requested_time if newest is not None else None,
        files_skipped_by_path=sum(len(view.groups.get(path, ())) for path in skipped_paths),
        skipped=skipped,
        key_field=sole_key_field(meta.config, full),
        listed_by_metadata=files_by_partition is not None,
        check_pages=query.damage.page_checksums,
        driver_log_bytes=query.driver_log_bytes,
    )


def _slices(
    meta: MetaClient, query: Query, view: FileSystemView, predicate: Predicate, full: pa.Schema, read_columns: pa.Schema
) -> tuple[list[ReadSlice], frozenset[str]]:
    """The slices in partitions that their paths don't skip, and the paths of the skipped partitions."""
    slices, columns = list[ReadSlice](), PathColumns(meta.config, read_columns)
    skipped = frozenset(PathColumns(meta.config, full).skipped(view.partitions(), predicate))
    for partition in view.partitions():
        if partition in skipped:
            continue
        from_path, parsed = columns.values(partition), columns.parsed(partition)
        if query.query_type == "snapshot":
            slices += [ReadSlice(one, from_path, one.needs_merge, parsed) for one in view.slices(partition)]
        else:
            slices += [ReadSlice.of_base_file(base_file, from_path, parsed) for base_file in view.base_files(partition)]
    return slices, skipped


def _with_committed_bytes(meta: MetaClient, reads: Sequence[ReadSlice], instant_time: str | None) -> list[ReadSlice]:
    """The slices with log files in the length that completed writes made; a missing log file may be added."""
    committed = with_committed_bytes(meta, [read.file_slice for read in reads], as_of=instant_time)
    return [
        read if file_slice is read.file_slice else replace(read, file_slice=file_slice, merges=file_slice.needs_merge)
        for read, file_slice in zip(reads, committed, strict=True)
    ]


def check_query_type(query_type: str) -> None:
    """Raise ConfigError for an unknown query type, or one that this release does not support."""
    if query_type == "cdc":
        raise ConfigError(
            "query_type='cdc' is HudiTable.changes(since, format='cdc'); by options it is an incremental query with "
            "hoodie.datasource.query.incremental.format=cdc."
        )
    if query_type not in QUERY_TYPES:
        similar = get_close_matches(query_type, QUERY_TYPES, n=1)
        hint = f" Did you mean {similar[0]!r}?" if similar else ""
        raise ConfigError(f"Unknown query_type {query_type!r}.{hint} Known: {', '.join(QUERY_TYPES)}.")


def _check_not_empty(meta: MetaClient, view: FileSystemView, instant_time: str | None) -> None:
    if instant_time is None or meta.timeline.up_to(instant_time).last_commit() or view.all_base_files():
        return
    if any(i.action.is_write for i in load_archived_timeline(meta.storage, meta.config).times(until=instant_time)):
        return  # it was archived since, and no rows are left
    first = next(iter(meta.timeline.commits()), None)
    state = "the table has no commit yet" if first is None else f"the first commit is {first.requested_time}"
    raise TableError(f"{meta.storage.root}: nothing was committed as of {instant_time}; {state}.")


def schema_history(meta: MetaClient, instant_time: str | None) -> tuple[InternalSchema, ...]:
    """The schema-on-read history up to the query's instant, newest first.

    The newest file is read: it holds every version, and Hudi deletes older files.
    """
    history = load_schema_history(meta.storage, meta.config, meta.timeline)
    return tuple(s for s in history if instant_time is None or not s.version_id or str(s.version_id) <= instant_time)


def check_names(query: Query, meta: MetaClient) -> None:
    """Raise ConfigError for columns that the table lacks now, rather than when rows are fetched."""
    if query.columns is None and query.where == Constant(True):
        return
    try:
        schema = read_schema(meta, None)
    except HudiError:
        return  # reading the table raises its own error
    if not schema.names or not without_meta(schema).names:
        return  # it may have base files without commits, which are searched later
    result_schema(schema, query)
    bind(parse_where(query.where), schema, query.zone)


def result_schema(full: pa.Schema, query: Query) -> pa.Schema:
    """The columns of a table that a query returns. Raises what `selected` raises."""
    if query.columns is not None:
        return selected(full, query.columns)
    return full if query.meta_columns else pa.schema([field for field in full if field.name not in META_COLUMNS])


def selected(full: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """These columns of a schema, in their order. Raises ConfigError for unknown columns and for duplicates."""
    if isinstance(columns, str):
        raise ConfigError(f"columns={columns!r} is one text; give a list of names.")
    fields = []
    for name in columns:
        if not isinstance(name, str):
            raise ConfigError(f"columns={list(columns)!r}: {name!r} is no name of a column. Give a list of names.")
        if not is_text(name) or full.get_field_index(name) < 0:
            similar = get_close_matches(name, full.names, n=1)
            hint = f" Did you mean {similar[0]!r}?" if similar else ""
            if name in META_COLUMNS:
                hint = " The table does not populate its meta columns (hoodie.populate.meta.fields=false)."
            if set(full.names) <= set(META_COLUMNS):
                hint = " It has no data columns: no write of rows is complete, or the only one was rolled back."
            raise ConfigError(
                f"columns names {name!r}, which the table does not have.{hint} Columns: {', '.join(full.names)}."
            )
        fields.append(full.field(name))
    if len({f.name for f in fields}) < len(fields):
        raise ConfigError(f"columns={list(columns)!r} names a column twice.")
    return pa.schema(fields)
