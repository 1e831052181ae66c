"""Plans of clusterings: bytes ↔ the model.

Paths in them are absolute, as Hudi writes them; a moved table has stale ones, so partition path and file name count.
Plans of table versions below 8 have no `missingSchedulePartitions`. Source: docs/formats/timeline.md, "Records";
docs/formats/table-services.md, "Clustering plan".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache

from pyhudi.errors import CorruptFile
from pyhudi.formats.avro.container import encode_container
from pyhudi.formats.bodies import NewBody
from pyhudi.formats.body_fields import Fields
from pyhudi.formats.instant_files import decode_requested_replace
from pyhudi.formats.planned_slices import check_groups, planned_slice
from pyhudi.formats.timeline_schemas import body_schema
from pyhudi.model.clustering_plan import NEW_GROUPS_MAX, ClusteringGroup, ClusteringPlan, ClusteringSlice
from pyhudi.model.commit import OperationType
from pyhudi.model.filenames import data_path

__all__ = ["decode_clustering_plan", "encode_clustering_plan"]

_RECORD = "HoodieRequestedReplaceMetadata"
_FIRST_WITH_MISSING_PARTITIONS = 8  # table version


def encode_clustering_plan(plan: ClusteringPlan, table_version: int, full_path: Callable[[str], str]) -> bytes:
    """Body of the requested file. `full_path`: the absolute URI of a path relative to the table."""
    clustering: NewBody = {
        "inputGroups": [_group_dict(group, full_path) for group in plan.groups],
        "strategy": {
            "strategyClassName": plan.strategy_class,
            "strategyParams": dict(plan.strategy_params),
            "version": 1,
        },
        "extraMetadata": {},
        "version": 1,
        "preserveHoodieMetadata": plan.preserve_meta_columns,
    }
    old = table_version < _FIRST_WITH_MISSING_PARTITIONS
    if not old:
        clustering["missingSchedulePartitions"] = []
    body = {
        "operationType": OperationType.CLUSTER,
        "clusteringPlan": clustering,
        "extraMetadata": {},
        "version": 1,
    }
    return encode_container(_old_schema() if old else body_schema(_RECORD), body)


def decode_clustering_plan(data: bytes, where: str = "clustering.requested") -> ClusteringPlan | None:
    """The plan in a requested file, None when it holds none: an insert overwrite.

    Raises CorruptFile when it names files that can't be of its file groups, UnsupportedTable for bootstrapped files.
    """
    body = Fields(decode_requested_replace(data, where), where).record("clusteringPlan")
    if body is None:
        return None
    strategy = body.record("strategy") or Fields({}, where)
    groups = tuple(_group(group) for group in body.records("inputGroups"))
    check_groups([file_slice.group for group in groups for file_slice in group.slices], where)
    return ClusteringPlan(
        groups=tuple(group for group in groups if group.slices),
        strategy_class=strategy.text("strategyClassName"),
        strategy_params=strategy.text_map("strategyParams"),
        preserve_meta_columns=body.flag("preserveHoodieMetadata") is not False,
    )


@cache
def _old_schema() -> str:
    schema = json.loads(body_schema(_RECORD))
    plan = next(field for field in schema["fields"] if field["name"] == "clusteringPlan")["type"][1]
    plan["fields"] = [field for field in plan["fields"] if field["name"] != "missingSchedulePartitions"]
    return json.dumps(schema, separators=(",", ":"))


def _group_dict(group: ClusteringGroup, full_path: Callable[[str], str]) -> NewBody:
    def path_of(file_slice: ClusteringSlice, name: str | None) -> str:
        return "" if name is None else full_path(data_path(file_slice.partition_path, name))

    return {
        "slices": [
            {
                "dataFilePath": path_of(file_slice, file_slice.data_file_name),
                "deltaFilePaths": [path_of(file_slice, name) for name in file_slice.log_file_names],
                "fileId": file_slice.file_id,
                "partitionPath": file_slice.partition_path,
                "bootstrapFilePath": "",
                "version": 1,
            }
            for file_slice in group.slices
        ],
        "metrics": dict(group.metrics),
        "numOutputFileGroups": group.output_file_groups,
        "extraMetadata": None if group.extra_metadata is None else dict(group.extra_metadata),
        "version": 1,
    }


def _group(body: Fields) -> ClusteringGroup:
    slices = tuple(_slice(file_slice) for file_slice in body.records("slices"))
    if len({file_slice.partition_path for file_slice in slices}) > 1:
        raise CorruptFile(f"{body.where}: a group of the plan has slices of several partitions.")
    new_groups = max(1, body.number("numOutputFileGroups"))
    if new_groups > NEW_GROUPS_MAX:
        raise CorruptFile(
            f"{body.where}: expected {NEW_GROUPS_MAX} new file groups at most under 'numOutputFileGroups', found "
            f"{new_groups}. The plan is damaged; roll the instant back."
        )
    return ClusteringGroup(
        slices=slices,
        output_file_groups=new_groups,
        metrics=body.number_map("metrics"),
        extra_metadata=None if body.body.get("extraMetadata") is None else body.text_map("extraMetadata"),
    )


def _slice(body: Fields) -> ClusteringSlice:
    found = planned_slice(body, "clusters")
    return ClusteringSlice(found.partition_path, found.file_id, found.data_file, found.logs)
