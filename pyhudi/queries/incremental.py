"""Plans of incremental queries: the rows that the commits of a range wrote, in their newest version of the range.

    range → commits → files of their write stats → ReadPlan, with the commit time as one more filter

Deletes are no rows. In log files only blocks of these commits count. Source: docs/formats/incremental.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import COMMIT_TIME
from pyhudi.model.options.damage import DEFAULT_DAMAGE, DamageOptions
from pyhudi.model.options.merging import DEFAULT_MEMORY, MemoryOptions
from pyhudi.model.predicate import Column, In, Predicate, conjunction, may_match, parse_where
from pyhudi.queries.as_of import AsOf
from pyhudi.queries.changes import plan_changes
from pyhudi.queries.filters import Where, bind, top_level_columns
from pyhudi.queries.incremental_files import FilesOfCommits, files_of_commits
from pyhudi.queries.incremental_range import CommitsInRange, IncrementalRange, commits_in_range, not_readable
from pyhudi.queries.merging import slice_spec
from pyhudi.queries.partial_updates import WholeSlices
from pyhudi.queries.path_glob import path_pattern
from pyhudi.queries.plan import ReadPlan, ReadSlice, plan_snapshot, schema_history, selected
from pyhudi.queries.pruning import parsed_path_values, partition_ranges, path_values
from pyhudi.queries.read_schema import read_schema
from pyhudi.view.consistent_read import read_consistently

__all__ = ["plan_incremental", "plan_query"]


def plan_incremental(
    meta: MetaClient,
    requested: IncrementalRange,
    *,
    columns: Sequence[str] | None = None,
    where: Where = None,
    merger_classes: Sequence[str] = (),
    memory: MemoryOptions = DEFAULT_MEMORY,
    damage: DamageOptions = DEFAULT_DAMAGE,
    use_metadata: bool = True,
) -> ReadPlan:
    """Plan an incremental query.

    Args:    requested: the range, from `incremental_range`; the rest as in `plan_snapshot`.
    Raises:  RangeNotReadable when commits of the range were archived or their files cleaned, unless a full scan is
             wanted then; what `plan_snapshot` raises.
    """
    filters = [parse_where(text) for text in requested.options.filters]
    condition = conjunction((parse_where(where), *filters))
    query = _Query(requested, columns, condition, merger_classes, memory, damage, use_metadata)
    return query.only_matching_paths(meta, read_consistently(meta, query.plan))


def plan_query(
    meta: MetaClient,
    requested: IncrementalRange | None,
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
    """Plan a query of any type; see `plan_snapshot`, and `plan_incremental` for `requested`, None of other queries."""
    if requested is not None:
        return plan_incremental(
            meta,
            requested,
            columns=columns,
            where=where,
            merger_classes=merger_classes,
            memory=memory,
            damage=damage,
            use_metadata=use_metadata,
        )
    return plan_snapshot(
        meta,
        columns=columns,
        where=where,
        as_of=as_of,
        query_type=query_type,
        merger_classes=merger_classes,
        memory=memory,
        damage=damage,
        use_metadata=use_metadata,
        unique_keys=unique_keys,
    )


class _Query:
    """The query, independent of the state of the table."""

    def __init__(
        self,
        requested: IncrementalRange,
        columns: Sequence[str] | None,
        where: Predicate,
        merger_classes: Sequence[str],
        memory: MemoryOptions,
        damage: DamageOptions,
        use_metadata: bool,
    ) -> None:
        self._requested, self._columns, self._where = requested, columns, where
        self._merger_classes, self._memory, self._damage = merger_classes, memory, damage
        self._use_metadata = use_metadata

    def plan(self, meta: MetaClient) -> ReadPlan:
        """The plan, when no file goes away while it is made."""
        if self._requested.options.returns_changes:
            columns, where, classes = self._columns, self._where, self._merger_classes
            return plan_changes(meta, self._requested, columns, where, classes, self._memory, self._damage)
        commits = commits_in_range(self._requested, meta)
        if commits.is_whole:
            return self._full_scan(meta, commits, None)
        found = files_of_commits(meta, commits.writes)
        if commits.lost or found.missing:
            if not self._requested.options.full_scan:
                raise not_readable(self._requested, meta, commits, found.missing)
            lost = frozenset(i.requested_time for i in commits.lost)
            return self._full_scan(meta, commits, found.instants | lost)
        return self._plan_of(meta, commits, found)

    def _plan_of(self, meta: MetaClient, commits: CommitsInRange, found: FilesOfCommits) -> ReadPlan:
        full = read_schema(meta, None)
        predicate = bind(conjunction((self._where, _written_by(found.instants))), full)
        schema = full if self._columns is None else selected(full, self._columns)
        needed = {*schema.names, *top_level_columns(predicate, full)}
        wanted = pa.schema([f for f in full if f.name in needed])
        history = schema_history(meta, None)
        partitions = sorted({s.group.partition_path for s in found.slices})
        pruned = tuple(p for p in partitions if not may_match(predicate, partition_ranges(meta.config, p, full)))
        slices = tuple(
            ReadSlice(
                file_slice,
                path_values(meta.config, file_slice.group.partition_path, wanted),
                file_slice.needs_merge,
                parsed_path_values(meta.config, file_slice.group.partition_path, wanted),
            )
            for file_slice in found.slices
            if file_slice.group.partition_path not in pruned
        )
        merge = None
        if any(read.merges for read in slices):
            spec = slice_spec(meta, full, None, self._merger_classes, self._memory, history, self._damage)
            whole = WholeSlices(meta.storage, commits.checkpoint)
            merge = replace(spec, blocks=replace(spec.blocks, instants=found.instants), whole=whole)
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
        )

    def _full_scan(self, meta: MetaClient, commits: CommitsInRange, written_by: frozenset[str] | None) -> ReadPlan:
        """The newest state of the table, of it the rows of these writes; None: all rows."""
        where = self._where if written_by is None else conjunction((self._where, _written_by(written_by)))
        plan = plan_snapshot(
            meta,
            columns=self._columns,
            where=where,
            merger_classes=self._merger_classes,
            memory=self._memory,
            damage=self._damage,
            use_metadata=self._use_metadata,
        )
        return replace(plan, query_type="incremental", checkpoint=commits.checkpoint)

    def only_matching_paths(self, meta: MetaClient, plan: ReadPlan) -> ReadPlan:
        """The plan without slices none of whose files match the pattern of `hoodie.datasource.read.incr.path.glob`."""
        if not self._requested.options.path_glob:
            return plan
        pattern = path_pattern(self._requested.options.path_glob)
        return replace(plan, slices=tuple(read for read in plan.slices if _matches(pattern, meta, read)))


def _matches(pattern: re.Pattern[str], meta: MetaClient, read: ReadSlice) -> bool:
    base = read.file_slice.base_file
    paths = [*([base.path] if base is not None else []), *(log.path for log in read.file_slice.log_files)]
    return any(pattern.fullmatch(meta.storage.full_path(path)) for path in paths)


def _written_by(instants: frozenset[str]) -> Predicate:
    return In(Column((COMMIT_TIME,)), tuple(sorted(instants)))


def _newest(meta: MetaClient) -> str | None:
    newest = meta.timeline.last_commit()
    return None if newest is None else newest.requested_time
