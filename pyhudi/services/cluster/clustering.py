"""Clustering: the rows of small file groups, optionally sorted, are rewritten to larger ones that replace them.

The service `Clustering` has three steps:

    plan          the strategy chooses groups of newest slices that are in no other pending plan
    run           each group is read, merged, sorted and written by one task
    completion    a replacecommit that names new files and replaced file groups, if no write has changed these

Below table version 8 a pending plan is a replacecommit, from 8 on a clustering.

A plan is stale if its file groups changed since it was made, and `check_fresh` raises StalePlan for it: the new files
lack the rows that a write has added since, which would be lost with the old files.
Source: docs/formats/table-services.md, "Clustering plan"; docs/formats/timeline.md, "Steps of an instant", "Bodies";
docs/formats/writers.md, "Conflicts".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from itertools import islice

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.clustering_updates import groups_in_pending_plans, is_clustering
from pyhudi.actions.conflicts import groups_of
from pyhudi.actions.undo.rollback import undo
from pyhudi.engine.base import FanOutWork
from pyhudi.errors import ConfigError, CorruptFile, WriteConflict
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.filegroup.rewrite.cluster import ClusterGroup, ClusterGroups
from pyhudi.filegroup.rewrite.sort import RowOrder
from pyhudi.filegroup.write.markers import list_markers, marker_folder
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.formats.bootstrap import source_uri
from pyhudi.formats.timeline.plans import encode_clustering_plan
from pyhudi.index.bucket import bucket_of_file_id
from pyhudi.index.chosen import index_class
from pyhudi.index.consistent_bucket import delete_rings, mark_ring, save_ring
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStatus
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.filenames import BaseFileName, data_path
from pyhudi.model.instant import COMPACTIONS, ActionKind, Instant, State
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.services import LAYOUT_KEYS, LayoutOptions
from pyhudi.model.plans import ClusteringGroup, ClusteringPlan
from pyhudi.services.cluster.buckets import children_of, is_resize, resized_rings
from pyhudi.services.cluster.strategies import PLAN_STRATEGIES, ClusteringStrategy, partitions_to_cluster
from pyhudi.services.plan_files import check_logs
from pyhudi.services.planned import Called
from pyhudi.services.results import ClusteringResult, ClusteringRun
from pyhudi.view.committed_logs import with_committed_bytes
from pyhudi.view.file_system_view import FileSystemView
from pyhudi.view.pending_plans import pending_clusterings, slices_of

__all__ = ["CLUSTERING", "Clustering", "StalePlan", "check_fresh", "commits_since_clustering"]


class StalePlan(WriteConflict):
    """File groups of a plan were changed since it was made: it can't be executed."""


def check_fresh(instant: Instant, plan: ClusteringPlan, meta: MetaClient, began: MetaClient | None) -> None:
    """Raise StalePlan when a file group of the plan has changed. `began`: the table as the run read it."""
    changed = _rewritten(plan, meta) or _written_since(began, plan, meta) or _resized(instant, plan, meta)
    if changed is not None:
        group, by = changed
        raise StalePlan(
            f"{meta.storage.root}: the clustering {instant.requested_time} can't be executed, because {by} changed "
            f"{group.file_id} in {group.partition_path!r} since it was planned. Nothing of it is visible; the plan "
            f"is dropped, cluster again."
        )


def _rewritten(plan: ClusteringPlan, meta: MetaClient) -> tuple[FileGroupId, str] | None:
    """A file group whose newest slice has other files than in the plan, and the instants that made them."""
    view = FileSystemView.load(meta, partitions=plan.partitions)
    newest = {s.group: s for path in plan.partitions for s in view.slices(path)}
    for planned in plan.slices:
        file_slice = newest.get(planned.group)
        if file_slice is None:
            return planned.group, "another write, which replaced or undid it,"
        base = file_slice.base_file.name if file_slice.base_file is not None else None
        if base != planned.data_file_name:
            return planned.group, f"the write {file_slice.base_instant}"
        others = [log for log in file_slice.log_files if log.name not in planned.log_file_names]
        if others or len(file_slice.log_files) != len(planned.log_file_names):
            return planned.group, f"log file {others[0].name}" if others else "a rollback"
    return None


def _resized(instant: Instant, plan: ClusteringPlan, meta: MetaClient) -> tuple[FileGroupId, str] | None:
    """A file group of a partition whose hash ring has changed since the plan was made."""
    if not is_resize(plan):
        return None
    rings = resized_rings(plan, instant.requested_time, meta)
    missing = (file_slice.group for file_slice in plan.slices if file_slice.partition_path not in rings)
    return next(((group, "another resize of its buckets") for group in missing), None)


def _written_since(began: MetaClient | None, plan: ClusteringPlan, meta: MetaClient) -> tuple[FileGroupId, str] | None:
    """A file group changed by a write that was not complete for the run: a log file of the plan may hold its blocks."""
    if began is None:
        return None
    known_times = {write.requested_time for write in began.timeline.commits()}
    groups = frozenset(file_slice.group for file_slice in plan.slices)
    for write in meta.timeline.commits():
        shared = groups & groups_of(meta.commits.metadata(write)) if write.requested_time not in known_times else None
        if shared:
            return min(shared), f"the {write.action.value} {write.requested_time}"
    return None


@dataclass(frozen=True, slots=True)
class Clustering:
    """Clustering as a service with plans."""

    kind: ActionKind = ActionKind.CLUSTERING
    operation: str = OperationType.CLUSTER

    def wants(self, context: ActionContext) -> bool:
        """True if a plan is due: always, unless the call names a number of commits."""
        options = context.options.clustering
        return not options.trigger_is_given or commits_since_clustering(context) >= options.inline_commits_max

    def plan(self, context: ActionContext) -> ClusteringPlan | None:
        strategy: ClusteringStrategy = PLAN_STRATEGIES.load(_strategy_name(context.options))()
        clustering = strategy.options(context.options.clustering)
        options = replace(context.options, clustering=clustering)
        names = pa.schema([pa.field(name, pa.string()) for name in META_COLUMNS])
        _row_order(clustering.layout).check(pa.schema([*names, *context.meta.table_schema()]))
        view = FileSystemView.load(context.meta)
        if not strategy.whole_partitions:
            _check_no_buckets(view, context)
        pending_groups = groups_in_pending_plans(context.meta, COMPACTIONS)
        planned = {group.partition_path for group in pending_clusterings(context.meta)}
        left_out = planned if strategy.whole_partitions else frozenset[str]()
        context = replace(context, options=options)
        planned_groups: Iterator[ClusteringGroup] = (
            group
            for path in partitions_to_cluster(view.partitions(), clustering, _now(context))
            if path not in left_out
            for group in strategy.groups([s for s in view.slices(path) if s.group not in pending_groups], context)
        )
        groups = tuple(islice(planned_groups, clustering.groups_max))
        if not groups:
            return None
        check_logs((s.group for group in groups for s in group.slices), view, context)
        return ClusteringPlan(
            groups, clustering.execution_strategy or strategy.execution_class, _params(clustering.layout)
        )

    def encode(self, plan: ClusteringPlan, meta: MetaClient) -> bytes:
        storage = meta.storage
        return encode_clustering_plan(plan, meta.config.table_version, storage.full_path, partial(source_uri, storage))

    def read(self, instant: Instant, meta: MetaClient) -> ClusteringPlan:
        plan = meta.reader.clustering_plan(instant)
        if plan is None:
            where = f"{meta.storage.root}: {instant.requested_time}.{instant.action.value}.requested"
            raise CorruptFile(f"{where}: expected the plan of a clustering, found an overwrite.")
        return plan

    def is_own(self, instant: Instant, meta: MetaClient) -> bool:
        return is_clustering(instant, meta)

    def check(self, instant: Instant, plan: ClusteringPlan, meta: MetaClient, began: MetaClient | None = None) -> None:
        """Raise StalePlan when a file group of the plan has changed since it was made."""
        check_fresh(instant, plan, meta, began)

    def tasks(self, plan: ClusteringPlan, context: ActionContext) -> Sequence[ClusterGroup]:
        planned_slices = slices_of(plan.slices, context.meta)
        slices = {s.group: s for s in with_committed_bytes(context.meta, planned_slices, find_missing=False)}
        rings, where = resized_rings(plan, "", context.meta) if is_resize(plan) else {}, context.meta.storage.root
        nodes = {path: tuple((node.value, node.file_id) for node in ring.nodes) for path, ring in rings.items()}
        groups = (
            ClusterGroup(
                g.partition_path,
                tuple(slices[s.group] for s in g.slices),
                g.output_file_groups,
                nodes.get(g.partition_path, ()),
                children_of(g, where) if rings else frozenset(),
            )
            for g in plan.groups
        )
        return sorted(groups, key=lambda group: group.stored_bytes, reverse=True)

    def work(
        self, plan: ClusteringPlan, context: ActionContext, spec: WriteSpec, reading: SliceSpec, run: int
    ) -> FanOutWork[ClusterGroup]:
        clustering = context.options.clustering
        order = _row_order(_layout(plan, clustering.layout))
        order.check(reading.schema)
        fields = context.options.bucket_hash_fields or context.meta.config.record_key_fields
        return ClusterGroups(spec, reading, order, clustering.target_file_bytes, run, context.clock, fields)

    def delete_files(
        self, instant: Instant, plan: ClusteringPlan, meta: MetaClient, *, keep: Iterable[str], by_listing: bool
    ) -> None:
        paths_to_keep = frozenset(keep)
        paths = dict.fromkeys(_marked(instant, plan, meta))
        if by_listing:
            paths |= dict.fromkeys(_listed(instant, plan, meta))
        deleted = [path for path in paths if path not in paths_to_keep and meta.storage.delete(path)]
        meta.storage.sync(deleted)  # a reappearing file would count

    def finish(
        self, plan: ClusteringPlan, instant: Instant, body: CommitMetadata, context: ActionContext
    ) -> CommitMetadata:
        replaced: dict[str, tuple[str, ...]] = {}
        for file_slice in plan.slices:
            path = file_slice.partition_path
            replaced[path] = (*replaced.get(path, ()), file_slice.file_id)
        if is_resize(plan):
            for ring in resized_rings(plan, instant.requested_time, context.meta).values():
                save_ring(context.meta.storage, ring)
        return replace(body, partition_to_replace_file_ids=replaced)

    def completed(self, instant: Instant, plan: ClusteringPlan, context: ActionContext) -> None:
        for path in plan.partitions if is_resize(plan) else ():
            mark_ring(context.meta.storage, path, instant.requested_time, context.meta.config.table_version)

    def failed(self, instant_time: str, error: WriteConflict, context: ActionContext) -> None:
        """Drop a stale plan: it would block others forever."""
        if isinstance(error, StalePlan):
            undo(Instant(instant_time, self.kind, State.REQUESTED), context)
            delete_rings(context.meta.storage, instant_time)

    def report(
        self,
        completed: Instant,
        plan: ClusteringPlan,
        statuses: Sequence[WriteStatus],
        seconds: Mapping[str, float],
    ) -> ClusteringRun:
        assert completed.completion_time is not None
        return ClusteringRun.of(completed.requested_time, completed.completion_time, plan, statuses, seconds)

    def summarise(self, called: Called[ClusteringPlan, ClusteringRun]) -> ClusteringResult:
        groups = () if called.plan is None else called.plan.groups
        return ClusteringResult(called.table, groups, called.scheduled, called.runs, called.waiting)


CLUSTERING = Clustering()


def commits_since_clustering(context: ActionContext) -> int:
    """Completed writes since the last clustering, executed or planned."""
    meta = context.meta
    last = ""
    for instant in reversed(meta.timeline.instants):
        if instant.is_completed:
            is_one = (
                instant.action is ActionKind.REPLACECOMMIT
                and meta.commits.metadata(instant).operation_type == OperationType.CLUSTER
            )
        else:
            is_one = meta.reader.clustering_plan(instant) is not None
        if is_one:
            last = instant.requested_time
            break
    return len(meta.timeline.commits().after(last))


def _strategy_name(options: WriteOptions) -> str:
    """The plan strategy; buckets of a ring have only one, which need not be named."""
    is_explicit = "hoodie.clustering.plan.strategy.class" in options.explicit
    resize = None if is_explicit else index_class(options).resize_strategy
    return resize or options.clustering.plan_strategy


def _now(context: ActionContext) -> datetime:
    moment = datetime.fromtimestamp(context.clock.now_ms() / 1000, timezone.utc)
    return moment.astimezone(context.meta.config.timeline_zone)


def _check_no_buckets(view: FileSystemView, context: ActionContext) -> None:
    """Raise ConfigError for a table whose file groups are buckets: new file groups would not be buckets.

    The table's properties don't say so; buckets are file groups numbered from 00000000 on, or nodes of a hash ring.
    """
    explicit = "hoodie.index.type" in context.options.explicit
    groups = [s.group.file_id for s in view.all_slices()]
    looks_so = bool(groups) and all(bucket_of_file_id(group) is not None and group < "0001" for group in groups)
    if index_class(context.options).hashes_keys or (looks_so and not explicit):
        raise ConfigError(
            f"{context.meta.storage.root}: the file groups of the table are buckets of its index, and clustering would "
            f"make file groups that are no buckets. Buckets of hoodie.index.bucket.engine=CONSISTENT_HASHING are "
            f"resized with hoodie.clustering.plan.strategy.class=CONSISTENT_BUCKET and the table's index options; if "
            f"these are no buckets, set hoodie.index.type."
        )


# ---- the order of rows -----------------------------------------------------------------------------------------------


def _row_order(layout: LayoutOptions) -> RowOrder:
    """The order of rows in a layout."""
    sample_size = layout.sample_size if layout.curve_method == "SAMPLE" else None
    return RowOrder(layout.columns, layout.strategy, sample_size)


def _params(layout: LayoutOptions) -> dict[str, str]:
    """The plan's entries for the order. Hudi's plans have only the columns; further entries are added where they
    matter.
    """
    if not layout.columns:
        return {}
    values = (",".join(layout.columns), layout.strategy, layout.curve_method, str(layout.sample_size))
    usual = ("", "LINEAR", "DIRECT", "200000")
    rows = zip(LAYOUT_KEYS, values, usual, strict=True)
    return {key: value for key, value, default in rows if value != default}


def _layout(plan: ClusteringPlan, default: LayoutOptions) -> LayoutOptions:
    """The plan's order, completed by the caller's options."""
    columns, strategy, method, sample_size = (plan.strategy_params.get(key) for key in LAYOUT_KEYS)
    return LayoutOptions(
        tuple(name.strip() for name in (columns or "").split(",") if name.strip()),
        _one_of(strategy, ("LINEAR", "ZORDER", "HILBERT"), default.strategy),
        _one_of(method, ("DIRECT", "SAMPLE"), default.curve_method),
        int(sample_size) if sample_size and sample_size.isdigit() and int(sample_size) else default.sample_size,
    )


def _one_of(word: str | None, words: Sequence[str], otherwise: str) -> str:
    return word.upper() if word is not None and word.upper() in words else otherwise


# ---- files of a run --------------------------------------------------------------------------------------------------


def _marked(instant: Instant, plan: ClusteringPlan, meta: MetaClient) -> Iterator[str]:
    partitions = frozenset(plan.partitions)
    for marker in list_markers(meta.storage, instant.requested_time):
        partition_path, _, name = marker.data_path.rpartition("/")
        parsed = BaseFileName.parse(name)
        if parsed is None or parsed.instant_time != instant.requested_time or partition_path not in partitions:
            raise CorruptFile(
                f"{marker_folder(instant.requested_time)}: a marker names {marker.data_path!r}, which the clustering "
                f"{instant.requested_time} can't have written; nothing was deleted for it."
            )
        yield marker.data_path


def _listed(instant: Instant, plan: ClusteringPlan, meta: MetaClient) -> Iterator[str]:
    for path in plan.partitions:
        for info in meta.storage.list(path):
            name = BaseFileName.parse(info.name)
            if name is not None and name.instant_time == instant.requested_time:
                yield data_path(path, info.name)
