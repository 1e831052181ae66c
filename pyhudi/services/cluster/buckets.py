"""Resize of consistently hashed buckets, as a clustering: large nodes are split, small neighbours merged.

A group of such a plan names the nodes that its rows go to (`clustering.group.child.node`). On completion the
partition's ring changes: `<instant>.hashing_meta` is written before, under the lock. Rows of nodes that are neither
split nor merged are rewritten, too, and sorted if the options ask for it.
Source: docs/formats/indexes.md, "Consistent hashing".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyhudi.actions.action import ActionContext
from pyhudi.errors import ConfigError, TableError, WriteConflict
from pyhudi.formats.hash_ring import DELETE, MAX_HASH, REPLACE, HashNode, HashRing, decode_nodes, encode_nodes
from pyhudi.index.chosen import index_class
from pyhudi.index.consistent_bucket import load_ring
from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import FileSlice
from pyhudi.model.options.services import ClusteringOptions
from pyhudi.model.plans import ClusteringGroup, ClusteringPlan
from pyhudi.services.cluster.strategies import group_of
from pyhudi.view.archived_times import CompletedWrites

__all__ = ["ConsistentBucket", "children_of", "is_resize", "merge_runs", "resized_rings", "split_values"]

_PARTITION, _NODES, _SEQUENCE = (
    "clustering.group.partition",
    "clustering.group.child.node",
    "clustering.group.sequence.no",
)


class ConsistentBucket:
    """The plan strategy. A partition is resized as a whole, and only while no write is pending."""

    execution_class = "org.apache.hudi.client.clustering.run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
    whole_partitions = True

    def options(self, options: ClusteringOptions) -> ClusteringOptions:
        return options

    def groups(self, slices: Sequence[FileSlice], context: ActionContext) -> list[ClusteringGroup]:
        _check(context)
        if not slices:
            return []
        path = slices[0].group.partition_path
        ring, full, buckets = _ring(path, context.meta), context.options.max_file_size_bytes, context.options.buckets
        sized = _sized(slices, ring, context.meta)
        sizes = {value: size for value, (_, size) in sized.items()}
        num_min, num_max = buckets.num_min or ring.bucket_num, buckets.num_max or ring.bucket_num
        splits = split_values(ring, sizes, full * buckets.split_threshold, num_max - len(ring.nodes))
        others = {value: size for value, size in sizes.items() if value not in splits}
        room = len(ring.nodes) + len(splits) - num_min
        runs = merge_runs(ring, others, full * buckets.merge_threshold, room)
        merged = {value for run in runs for value in run}

        def new(value: int) -> HashNode:
            return HashNode(value, context.clock.new_uuid(), REPLACE)

        # The order of Hudi's plans: splits, merges, the rest.
        changes = [([value], [new(middle), new(value)]) for value, middle in splits.items()]
        changes += [(run, [*(HashNode(value, None, DELETE) for value in run[:-1]), new(run[-1])]) for run in runs]
        changes += [([value], [new(value)]) for value in sorted(others) if value not in merged]
        return [_group([sized[value][0] for value in values], children, ring) for values, children in changes]


def _check(context: ActionContext) -> None:
    options, meta = context.options, context.meta
    if index_class(options).resize_strategy is None:
        raise ConfigError(
            "The clustering plan strategy of consistent hashing is for tables that are written with "
            "hoodie.index.type=BUCKET and hoodie.index.bucket.engine=CONSISTENT_HASHING; give these options with it."
        )
    pending = [i.requested_time for i in meta.timeline.pending() if i.action.is_commit and not i.action.is_replacing]
    if pending:
        raise WriteConflict(
            f"{meta.storage.root}: buckets can't be resized while writes are pending: {', '.join(pending[:3])}. Wait "
            f"for them; the next write undoes those of dead writers."
        )


def _ring(partition_path: str, meta: MetaClient) -> HashRing:
    ring = load_ring(meta.storage, partition_path, CompletedWrites(meta))
    if ring is None:
        raise TableError(
            f"{meta.storage.root}: partition {partition_path!r} has no hash ring; the table was written with another "
            f"index."
        )
    return ring


def _sized(slices: Sequence[FileSlice], ring: HashRing, meta: MetaClient) -> dict[int, tuple[FileSlice, int]]:
    """Value of the node → its slice, and the slice's bytes."""
    by_node = {}
    for file_slice in slices:
        node = ring.node_of(file_slice.group.file_id)
        if node is None:
            raise TableError(
                f"{meta.storage.root}: the file group {file_slice.group.file_id} in partition "
                f"{ring.partition_path!r} is no node of its hash ring; the table was written with another index."
            )
        files = [file for file in (file_slice.base_file, *file_slice.log_files) if file is not None]
        by_node[node.value] = (file_slice, sum(file.size_bytes for file in files))
    return by_node


def split_values(ring: HashRing, sizes: Mapping[int, int], split_bytes: float, room: int) -> dict[int, int]:
    """Nodes to split: value → value of the new node before it, at most `room` of them."""
    splits: dict[int, int] = {}
    for node in ring.nodes:
        if len(splits) >= room or sizes.get(node.value, 0) <= split_bytes:
            continue
        former = ring.before(node.value).value
        around = former + node.value + (0 if former < node.value else MAX_HASH + 1)
        middle = (around >> 1) & MAX_HASH
        if middle not in (former, node.value):  # else it has a single hash value, and can't be split
            splits[node.value] = middle
    return splits


def merge_runs(ring: HashRing, sizes: Mapping[int, int], merge_bytes: float, room: int) -> list[list[int]]:
    """Values of neighbours to merge into the last of them; together they remove at most `room` nodes from the ring.

    Args: sizes: nodes that may be merged.
    """
    runs: list[list[int]] = []
    run: list[int] = []
    total = 0
    for node in ring.nodes:
        size = sizes.get(node.value)
        if size is None or size > merge_bytes:
            run = []
            continue
        if run and room > 0 and total + size <= merge_bytes:
            if len(run) == 1:
                runs.append(run)
            run.append(node.value)
            total += size
            room -= 1
        else:
            run, total = [node.value], size
    return runs


# ---- reading a plan --------------------------------------------------------------------------------------------------


def _group(slices: Sequence[FileSlice], children: Sequence[HashNode], ring: HashRing) -> ClusteringGroup:
    extra_metadata = {
        _PARTITION: ring.partition_path,
        _NODES: encode_nodes(children),
        _SEQUENCE: str(ring.sequence),
    }
    return group_of(slices, sum(child.tag != DELETE for child in children), extra_metadata)


def is_resize(plan: ClusteringPlan) -> bool:
    """True if a plan changes rings."""
    return any(_NODES in (group.extra_metadata or {}) for group in plan.groups)


def children_of(group: ClusteringGroup, where: str) -> frozenset[str]:
    """The file groups that rows of a group go to. Raises CorruptFile."""
    nodes = decode_nodes((group.extra_metadata or {}).get(_NODES, ""), where)
    return frozenset(node.file_id for node in nodes if node.tag != DELETE)


def resized_rings(plan: ClusteringPlan, instant_time: str, meta: MetaClient) -> dict[str, HashRing]:
    """Partition path → its ring after a plan, without rings that changed since it was made. Raises CorruptFile."""
    children: dict[str, list[HashNode]] = {}
    sequences: dict[str, str] = {}
    for group in plan.groups:
        extra_metadata = group.extra_metadata or {}
        where = f"{meta.storage.root}: the plan of {instant_time}"
        children.setdefault(group.partition_path, []).extend(decode_nodes(extra_metadata.get(_NODES, ""), where))
        sequences[group.partition_path] = extra_metadata.get(_SEQUENCE, "")
    rings = {}
    for path, nodes in children.items():
        ring = _ring(path, meta)
        if str(ring.sequence) == sequences[path]:
            rings[path] = ring.changed(nodes, instant_time)
    return rings
