"""Plans of incremental queries: the rows that the commits of a range wrote, in their newest version of the range.

    range → commits → files of their write stats → ReadPlan, with the commit time as one more filter

Deletes are no rows. In log files only blocks of these commits count. Source: docs/formats/incremental.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import COMMIT_TIME
from pyhudi.model.predicate import Column, In, Predicate, conjunction, may_match, parse_where
from pyhudi.queries.changes import plan_changes
from pyhudi.queries.filters import bind, top_level_columns
from pyhudi.queries.incremental_files import FilesOfCommits, files_of_commits
from pyhudi.queries.incremental_range import CommitsInRange, IncrementalRange, commits_in_range, not_readable
from pyhudi.queries.merging import slice_spec
from pyhudi.queries.partial_updates import WholeSlices
from pyhudi.queries.path_glob import path_pattern
from pyhudi.queries.plan import ReadPlan, ReadSlice, plan_snapshot, schema_history, selected
from pyhudi.queries.pruning import PathColumns
from pyhudi.queries.query import ALL_ROWS, Query
from pyhudi.queries.read_schema import read_schema
from pyhudi.view.consistent_read import read_consistently

__all__ = ["plan_incremental", "plan_query"]


def plan_incremental(meta: MetaClient, requested: IncrementalRange, query: Query = ALL_ROWS) -> ReadPlan:
    """Plan an incremental query.

    Args:    requested: the range, from `incremental_range`; query: of its parts not the moment and the type, which the
             range says.
    Raises:  RangeNotReadable when commits of the range were archived or their files cleaned, unless a full scan is
             wanted then; what `plan_snapshot` raises.
    """
    where = conjunction(tuple(map(parse_where, (query.where, *requested.options.filters))))
    # Rows are found by their commits, so a full scan does not ask the record index where keys are.
    whole = replace(query, where=where, as_of=None, query_type="snapshot", unique_keys=False)
    ranged = _Ranged(requested, whole)
    return ranged.only_matching_paths(meta, read_consistently(meta, ranged.plan))


def plan_query(meta: MetaClient, requested: IncrementalRange | None, query: Query = ALL_ROWS) -> ReadPlan:
    """Plan a query of any type; see `plan_snapshot`, and `plan_incremental` for `requested`, None of other queries."""
    return plan_snapshot(meta, query) if requested is None else plan_incremental(meta, requested, query)


@dataclass(frozen=True, slots=True)
class _Ranged:
    """A query of the rows of a range, independent of the state of the table."""

    requested: IncrementalRange
    query: Query

    def plan(self, meta: MetaClient) -> ReadPlan:
        """The plan, when no file goes away while it is made."""
        if self.requested.options.returns_changes:
            return plan_changes(meta, self.requested, self.query)
        commits = commits_in_range(self.requested, meta)
        if commits.is_whole:
            return self._full_scan(meta, commits, None)
        found = files_of_commits(meta, commits.writes)
        if commits.lost or found.missing:
            if not self.requested.options.full_scan:
                raise not_readable(self.requested, meta, commits, found.missing)
            lost = frozenset(i.requested_time for i in commits.lost)
            return self._full_scan(meta, commits, found.instants | lost)
        return self._plan_of(meta, commits, found)

    def _plan_of(self, meta: MetaClient, commits: CommitsInRange, found: FilesOfCommits) -> ReadPlan:
        full = read_schema(meta, None)
        predicate = bind(self._written_by(found.instants), full, self.query.zone)
        schema = full if self.query.columns is None else selected(full, self.query.columns)
        needed = {*schema.names, *top_level_columns(predicate, full)}
        wanted = pa.schema([f for f in full if f.name in needed])
        history = schema_history(meta, None)
        partitions = sorted({s.group.partition_path for s in found.slices})
        all_columns, columns = PathColumns(meta.config, full), PathColumns(meta.config, wanted)
        pruned = tuple(p for p in partitions if not may_match(predicate, all_columns.ranges(p)))
        slices = tuple(
            ReadSlice(
                file_slice,
                columns.values(file_slice.group.partition_path),
                file_slice.needs_merge,
                columns.parsed(file_slice.group.partition_path),
            )
            for file_slice in found.slices
            if file_slice.group.partition_path not in pruned
        )
        merge = None
        if any(read.merges for read in slices):
            spec = slice_spec(meta, full, self.query, history=history)
            whole = WholeSlices(meta.storage, commits.checkpoint)
            merge = replace(spec, blocks=replace(spec.blocks, instants=found.instants), whole=whole)
        most_rows = self.requested.options.driver_rows
        return ReadPlan(
            schema,
            wanted,
            predicate,
            slices,
            None,
            "incremental",
            history,
            partitions_total=len(partitions),
            partitions_read=len(partitions) - len(pruned),
            files_total=len(found.slices),
            pruned_partitions=pruned,
            merge=merge,
            newest_commit=_newest(meta),
            checkpoint=commits.checkpoint,
            driver_rows=most_rows if found.rows <= most_rows else 0,
        )

    def _full_scan(self, meta: MetaClient, commits: CommitsInRange, written_by: frozenset[str] | None) -> ReadPlan:
        """The newest state of the table, of it the rows of these writes; None: all rows."""
        query = self.query if written_by is None else replace(self.query, where=self._written_by(written_by))
        plan = plan_snapshot(meta, query)
        return replace(plan, query_type="incremental", checkpoint=commits.checkpoint)

    def _written_by(self, instants: frozenset[str]) -> Predicate:
        """The filter, of rows of these commits."""
        of_commits = In(Column((COMMIT_TIME,)), tuple(sorted(instants)))
        return conjunction((parse_where(self.query.where), of_commits))

    def only_matching_paths(self, meta: MetaClient, plan: ReadPlan) -> ReadPlan:
        """The plan without slices none of whose files match the pattern of `hoodie.datasource.read.incr.path.glob`."""
        if not self.requested.options.path_glob:
            return plan
        pattern = path_pattern(self.requested.options.path_glob)
        return replace(plan, slices=tuple(read for read in plan.slices if _matches(pattern, meta, read)))


def _matches(pattern: re.Pattern[str], meta: MetaClient, read: ReadSlice) -> bool:
    base = read.file_slice.base_file
    paths = [*([base.path] if base is not None else []), *(log.path for log in read.file_slice.log_files)]
    return any(pattern.fullmatch(meta.storage.full_path(path)) for path in paths)


def _newest(meta: MetaClient) -> str | None:
    newest = meta.timeline.last_commit()
    return None if newest is None else newest.requested_time
