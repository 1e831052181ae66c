"""Plans of queries for changes: what each commit of a range did to each file group, and which files say it.

    range → commits → write stats and replaced file groups → GroupChange each → ReadPlan

In the order of the commits; of one commit, deletes of whole file groups come first.
Source: docs/formats/incremental.md, "Changes".
"""

from __future__ import annotations

from collections.abc import Iterable

from pyhudi.errors import RangeNotReadable
from pyhudi.merge.rules import MergeRules
from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import FileGroupId, FileSlice
from pyhudi.model.instant import Instant
from pyhudi.model.predicate import parse_where
from pyhudi.queries.change_files import FoundChange, changes_of_commits
from pyhudi.queries.change_rows import CHANGES_SCHEMA, ChangeReading
from pyhudi.queries.filters import bind
from pyhudi.queries.incremental_range import CommitsInRange, IncrementalRange, commits_in_range, not_readable
from pyhudi.queries.merging import slice_spec
from pyhudi.queries.plan import ReadPlan, ReadSlice, schema_history, selected
from pyhudi.queries.pruning import PathColumns
from pyhudi.queries.query import Query
from pyhudi.queries.read_schema import read_schema

__all__ = ["plan_changes"]


def plan_changes(meta: MetaClient, requested: IncrementalRange, query: Query) -> ReadPlan:
    """Plan a query for changes, when no file goes away while it is made.

    Args:    as in `plan_incremental`; columns and filter are about CHANGES_SCHEMA.
    Raises:  RangeNotReadable when commits of the range were archived or their files cleaned, or when a commit logged no
             changes; what `plan_snapshot` raises.
    """
    predicate = bind(parse_where(query.where), CHANGES_SCHEMA)
    schema = CHANGES_SCHEMA if query.columns is None else selected(CHANGES_SCHEMA, query.columns)
    commits = commits_in_range(requested, meta, one_by_one=True)
    found = changes_of_commits(meta, commits.writes)
    if commits.lost or found.missing:
        raise not_readable(requested, meta, commits, found.missing)
    if found.unlogged:
        raise _not_logged(requested, meta, commits, found.unlogged)
    full = read_schema(meta, None)
    merges = any(_has_logs(each.change.before, each.change.after) for each in found.changes)
    rules = None if merges else MergeRules()
    history = schema_history(meta, None)
    spec = slice_spec(meta, full, query, history=history, rules=rules)
    columns = PathColumns(meta.config, full)

    def read(each: FoundChange) -> ReadSlice:
        partition = each.group.partition_path
        file_slice = each.change.after or each.change.before or FileSlice(each.group, each.change.instant_time, None)
        from_path, parsed = columns.values(partition), columns.parsed(partition)
        return ReadSlice(file_slice, from_path, file_slice.needs_merge, parsed, each.change)

    partitions = {each.group.partition_path for each in found.changes}
    newest = meta.timeline.last_commit()
    return ReadPlan(
        schema,
        CHANGES_SCHEMA,
        predicate,
        tuple(map(read, found.changes)),
        None,
        "incremental",
        history,
        partitions_total=len(partitions),
        partitions_read=len(partitions),
        files_total=len(found.changes),
        newest_commit=None if newest is None else newest.requested_time,
        checkpoint=commits.checkpoint,
        changes=ChangeReading(spec, full),
    )


def _has_logs(*slices: FileSlice | None) -> bool:
    return any(each is not None and each.needs_merge for each in slices)


def _not_logged(
    requested: IncrementalRange,
    meta: MetaClient,
    commits: CommitsInRange,
    unlogged: Iterable[tuple[FileGroupId, Instant]],
) -> RangeNotReadable:
    groups = list(unlogged)
    group, newest = max(groups, key=lambda each: commits.time_of(each[1]))
    return RangeNotReadable(
        f"{meta.storage.root}: {len(groups)} file groups were rewritten in {requested} without a change log, such as "
        f"{group.file_id} in {group.partition_path!r} by {newest.requested_time}: their changes are not known. The "
        f"table began to log changes later, or that writer logs none. Begin at {commits.time_of(newest)}."
    )
