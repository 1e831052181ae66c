"""Plans of compactions, log compactions and clusterings, and bodies of indexing instants: bytes ↔ the model.

Compaction and clustering plans both name the files of a slice (`PlannedSlice`). A plan is untrusted, so its files are
checked. Plans of table versions below 8 have no `missingSchedulePartitions`.

Compactions and log compactions: this package writes version 2, whose files are bare names. Version 1 had absolute
paths, of which only the names count. Plans of table versions below 8 have no extra metadata either.

Clusterings: paths are absolute, as Hudi writes them. A moved table has stale ones, so only partition path and file name
count.

Indexing: the bodies are Avro containers in all table versions.

Source: docs/formats/timeline.md, "Records"; docs/formats/table-services.md, "Compaction plan", "Clustering plan".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.formats.avro.container import decode_container, encode_container
from pyhudi.formats.timeline.bodies import Fields, NewBody
from pyhudi.formats.timeline.instant_files import decode_avro_record, decode_requested_replace, encode_avro_record
from pyhudi.formats.timeline.schemas import body_schema
from pyhudi.model.commit import OperationType
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.filenames import BaseFileName, LogFileName, data_path, may_be_skeleton
from pyhudi.model.plans import (
    NEW_GROUPS_MAX,
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    CompactionOperation,
    CompactionPlan,
    CompactionStrategyInfo,
    IndexPlan,
)
from pyhudi.model.table_format import TableFormat

__all__ = [
    "PlannedSlice",
    "check_groups",
    "decode_clustering_plan",
    "decode_compaction_plan",
    "decode_index_plan",
    "encode_clustering_plan",
    "encode_compaction_plan",
    "encode_index_metadata",
    "encode_index_plan",
    "planned_slice",
]


@dataclass(frozen=True, slots=True)
class PlannedSlice:
    """Files are bare names in the folder of `partition_path`; `data_file` is None for a slice with only logs."""

    partition_path: str
    file_id: str
    data_file: str | None
    logs: tuple[str, ...]


def planned_slice(body: Fields, does: str) -> PlannedSlice:
    """Return the files in an entry of a plan.

    Args:    does: a verb for the plan ("compacts").
    Raises:  CorruptFile for impossible partitions and files, UnsupportedTable for bootstrapped files.
    """
    where, partition_path, file_id = body.where, body.text("partitionPath"), body.text("fileId")
    segments = partition_path.split("/")
    if partition_path and (".." in segments or "" in segments or segments[0] == ".hoodie"):
        raise CorruptFile(f"{where}: the plan names the partition {partition_path!r}, which can't be one.")
    data_file = _file_name(body.text("dataFilePath")) if body.text("dataFilePath") else None
    # The bootstrap index says which source file belongs to a skeleton, and that it may be read.
    if body.text("bootstrapFilePath") and not may_be_skeleton(data_file or ""):
        raise UnsupportedTable(f"{where}: the plan {does} bootstrapped files; let Apache Hudi run it.")
    logs = tuple(_file_name(path) for path in body.texts("deltaFilePaths"))
    parsed = [BaseFileName.parse(data_file)] if data_file is not None else []
    for name in (*parsed, *(LogFileName.parse(log) for log in logs)):
        if name is None or name.file_id != file_id:
            raise CorruptFile(
                f"{where}: the plan names files that are not of file group {file_id!r:.100}: {data_file!s:.200}, "
                f"{', '.join(logs):.300}."
            )
    return PlannedSlice(partition_path, file_id, data_file, logs)


def check_groups(groups: Sequence[FileGroupId], where: str) -> None:
    """Raise CorruptFile for a clustering that names a file group twice: its rows would be duplicated."""
    twice = next((group for group, times in Counter(groups).items() if times > 1), None)
    if twice is not None:
        raise CorruptFile(
            f"{where}: the plan names the file group {twice.file_id!r:.100} of {twice.partition_path!r:.200} twice."
        )


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


_COMPACTION_RECORD = "HoodieCompactionPlan"
_COMPACTION_PLAN_VERSION = 2


def encode_compaction_plan(plan: CompactionPlan, table_version: int) -> bytes:
    """Encode the body of the requested file of a compaction or log compaction."""
    names_missing = TableFormat(table_version).plans_name_missing_partitions
    body: NewBody = {
        "operations": [_operation_dict(operation) for operation in plan.operations],
        "extraMetadata": {} if names_missing else None,
        "version": _COMPACTION_PLAN_VERSION,
        "strategy": None,
        "preserveHoodieMetadata": plan.preserve_meta_columns,
    }
    if plan.strategy is not None:
        params = dict(plan.strategy.params)
        body["strategy"] = {"compactorClassName": plan.strategy.class_name, "strategyParams": params, "version": 1}
    if not names_missing:
        return encode_container(_old_compaction_schema(), body)
    body["missingSchedulePartitions"] = []
    return encode_container(body_schema(_COMPACTION_RECORD), body)


def decode_compaction_plan(data: bytes, where: str = "compaction.requested") -> CompactionPlan:
    """Decode the plan of a compaction or log compaction.

    Raises CorruptFile when it is not a plan, or names files outside its file groups; UnsupportedTable for a plan of
    bootstrapped files, whose columns lie in another table.
    """
    record, name = decode_container(data, where, body_schema(_COMPACTION_RECORD))
    if name.rpartition(".")[2] != _COMPACTION_RECORD:
        raise CorruptFile(f"{where}: expected a compaction plan, found {name}.")
    body = Fields(record, where)
    strategy = body.record("strategy")
    return CompactionPlan(
        operations=tuple(_operation(operation) for operation in body.records("operations")),
        strategy=None
        if strategy is None
        else CompactionStrategyInfo(strategy.text("compactorClassName"), strategy.text_map("strategyParams")),
        preserve_meta_columns=bool(body.flag("preserveHoodieMetadata")),
    )


@cache
def _old_compaction_schema() -> str:
    schema = json.loads(body_schema(_COMPACTION_RECORD))
    schema["fields"] = [field for field in schema["fields"] if field["name"] != "missingSchedulePartitions"]
    return json.dumps(schema, separators=(",", ":"))


def _operation_dict(operation: CompactionOperation) -> NewBody:
    return {
        "baseInstantTime": operation.base_instant,
        "deltaFilePaths": list(operation.log_file_names),
        "dataFilePath": operation.data_file_name,
        "fileId": operation.file_id,
        "partitionPath": operation.partition_path,
        "metrics": dict(operation.metrics),
        "bootstrapFilePath": operation.bootstrap_file_path,
    }


def _operation(body: Fields) -> CompactionOperation:
    file_slice = planned_slice(body, "compacts")
    return CompactionOperation(
        partition_path=file_slice.partition_path,
        file_id=file_slice.file_id,
        base_instant=body.text("baseInstantTime"),
        data_file_name=file_slice.data_file,
        log_file_names=file_slice.logs,
        metrics=body.number_map("metrics"),
    )


def _no_source(_: str, __: str | None) -> None:
    """Return None: no base file is bootstrapped."""


_CLUSTERING_RECORD = "HoodieRequestedReplaceMetadata"
# table version


def encode_clustering_plan(
    plan: ClusteringPlan,
    table_version: int,
    full_path: Callable[[str], str],
    source_uri: Callable[[str, str | None], str | None] = _no_source,
) -> bytes:
    """Encode the body of the requested file.

    Args:    full_path: the absolute URI of a path relative to the table; source_uri: that of the source file of a
                 bootstrapped base file, by partition and name.
    """
    clustering: NewBody = {
        "inputGroups": [_group_dict(group, full_path, source_uri) for group in plan.groups],
        "strategy": {
            "strategyClassName": plan.strategy_class,
            "strategyParams": dict(plan.strategy_params),
            "version": 1,
        },
        "extraMetadata": {},
        "version": 1,
        "preserveHoodieMetadata": plan.preserve_meta_columns,
    }
    old = not TableFormat(table_version).plans_name_missing_partitions
    if not old:
        clustering["missingSchedulePartitions"] = []
    body = {
        "operationType": OperationType.CLUSTER,
        "clusteringPlan": clustering,
        "extraMetadata": {},
        "version": 1,
    }
    return encode_container(_old_clustering_schema() if old else body_schema(_CLUSTERING_RECORD), body)


def decode_clustering_plan(data: bytes, where: str = "clustering.requested") -> ClusteringPlan | None:
    """Decode the plan in a requested file, None without one: an insert overwrite.

    Raises CorruptFile when it names files outside its file groups, UnsupportedTable for bootstrapped files.
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
def _old_clustering_schema() -> str:
    schema = json.loads(body_schema(_CLUSTERING_RECORD))
    plan = next(field for field in schema["fields"] if field["name"] == "clusteringPlan")["type"][1]
    plan["fields"] = [field for field in plan["fields"] if field["name"] != "missingSchedulePartitions"]
    return json.dumps(schema, separators=(",", ":"))


def _group_dict(
    group: ClusteringGroup, full_path: Callable[[str], str], source_uri: Callable[[str, str | None], str | None]
) -> NewBody:
    def path_of(file_slice: ClusteringSlice, name: str | None) -> str:
        return "" if name is None else full_path(data_path(file_slice.partition_path, name))

    return {
        "slices": [
            {
                "dataFilePath": path_of(file_slice, file_slice.data_file_name),
                "deltaFilePaths": [path_of(file_slice, name) for name in file_slice.log_file_names],
                "fileId": file_slice.file_id,
                "partitionPath": file_slice.partition_path,
                "bootstrapFilePath": source_uri(file_slice.partition_path, file_slice.data_file_name) or "",
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
    file_slice = planned_slice(body, "clusters")
    return ClusteringSlice(file_slice.partition_path, file_slice.file_id, file_slice.data_file, file_slice.logs)


_INDEX_PLAN_VERSION = 1


def encode_index_plan(plan: IndexPlan) -> bytes:
    """Encode the body of `<T>.indexing.requested`."""
    return encode_avro_record("HoodieIndexPlan", {"version": _INDEX_PLAN_VERSION, "indexPartitionInfos": _infos(plan)})


def decode_index_plan(data: bytes, where: str = "indexing.requested") -> IndexPlan:
    """Decode the plan of an indexing instant. Raises CorruptFile."""
    body = Fields(decode_avro_record(data, where), where)
    infos = list(body.records("indexPartitionInfos"))
    names = tuple(info.text("metadataPartitionPath") for info in infos)
    return IndexPlan(names, max((info.text("indexUptoInstant") for info in infos), default=""))


def encode_index_metadata(plan: IndexPlan) -> bytes:
    """Encode the body of a completed indexing instant, which has executed its plan."""
    body = {"version": _INDEX_PLAN_VERSION, "operationType": None, "indexPartitionInfos": _infos(plan)}
    return encode_avro_record("HoodieIndexCommitMetadata", body)


def _infos(plan: IndexPlan) -> list[dict[str, object]]:
    return [
        {
            "version": _INDEX_PLAN_VERSION,
            "metadataPartitionPath": name,
            "indexUptoInstant": plan.up_to,
            "extraMetadata": {},
        }
        for name in plan.partitions
    ]
