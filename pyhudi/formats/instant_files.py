"""Bodies of instant files: bytes ↔ the model.

Commits, delta commits and replace commits are pretty-printed JSON in table versions below 8 and Avro containers from 8
on; every other body is an Avro container in all versions. A reader tells the two apart by the first bytes and accepts
either; an empty body is a write about which nothing is recorded. Unknown keys are ignored.
Source: docs/formats/timeline.md, "Bodies", "Commit metadata", "Rollback".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyhudi.errors import CorruptFile
from pyhudi.formats.avro.container import MAGIC, MAX_BODY_BYTES, decode_container, encode_container
from pyhudi.formats.bodies import Body, NewBody
from pyhudi.formats.json_text import pretty_json
from pyhudi.formats.timeline_schemas import body_schema
from pyhudi.formats.write_stats import decode_stat, stat_to_avro, stat_to_json
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStat
from pyhudi.model.instant import ActionKind
from pyhudi.model.plans import InstantInfo, RollbackMetadata, RollbackPartition, RollbackPlan, RollbackRequest

__all__ = [
    "decode_avro_record",
    "decode_commit",
    "decode_requested_replace",
    "decode_rollback_metadata",
    "decode_rollback_plan",
    "encode_avro_record",
    "encode_commit",
    "encode_requested_replace",
    "encode_rollback_metadata",
    "encode_rollback_plan",
    "rollback_metadata_of",
    "rollback_metadata_record",
    "workload_profile",
]

_FIRST_AVRO_VERSION = 8  # table version whose timeline layout (2) has Avro commits


def encode_commit(metadata: CommitMetadata, action: ActionKind, table_version: int) -> bytes:
    """The body of a completed write, or of an inflight one when `metadata` is a workload profile.

    With `partition_to_replace_file_ids` it is Hudi's replace-commit record, without (also for the inflight profile of a
    replacecommit) its commit record.
    """
    replaced = metadata.partition_to_replace_file_ids
    if replaced is not None:
        assert action.completed_as is ActionKind.REPLACECOMMIT, action
    to_dict = stat_to_avro if table_version >= _FIRST_AVRO_VERSION else stat_to_json
    body: NewBody = {
        "partitionToWriteStats": {
            partition: [to_dict(stat) for stat in stats]
            for partition, stats in metadata.partition_to_write_stats.items()
        },
        "compacted": metadata.compacted,
        "extraMetadata": dict(metadata.extra_metadata),
        "operationType": metadata.operation_type,
    }
    if replaced is not None:
        body["partitionToReplaceFileIds"] = {partition: list(ids) for partition, ids in replaced.items()}
    if table_version < _FIRST_AVRO_VERSION:
        return pretty_json(body).encode()
    body["version"] = None  # as Hudi writes it; readers take the default, 1
    return encode_avro_record("HoodieCommitMetadata" if replaced is None else "HoodieReplaceCommitMetadata", body)


def decode_commit(data: bytes, where: str = "commit body") -> CommitMetadata:
    """The body of a commit, delta commit or replace commit, in either form; no bytes give empty metadata.

    Args:    where: the file's path, for messages.
    Raises:  CorruptFile when the bytes are neither JSON nor an Avro container of commit metadata.
    """
    if not data:
        return CommitMetadata({})
    body = _decode_json(data, where) if data[:4] != MAGIC else decode_container(data, where)[0]
    stats = _mapping(body, "partitionToWriteStats", where)
    if "operationType" not in body and not stats and "extraMetadata" not in body:
        raise CorruptFile(f"{where}: expected commit metadata, found keys {sorted(body)[:10]}.")
    replaced = body.get("partitionToReplaceFileIds")
    return CommitMetadata(
        partition_to_write_stats={
            partition: tuple(decode_stat(stat, where) for stat in _list(items, f"{where}: stats of {partition!r}"))
            for partition, items in stats.items()
        },
        extra_metadata={
            key: value for key, value in _mapping(body, "extraMetadata", where).items() if isinstance(value, str)
        },
        operation_type=str(body.get("operationType") or OperationType.UNKNOWN).upper(),
        compacted=bool(body.get("compacted")),
        partition_to_replace_file_ids=None
        if replaced is None
        else {
            partition: tuple(str(file_id) for file_id in _list(ids, f"{where}: replaced groups of {partition!r}"))
            for partition, ids in _mapping(body, "partitionToReplaceFileIds", where).items()
        },
    )


def workload_profile(
    inserts: Mapping[str, int],
    updates: Mapping[str, Mapping[str, tuple[str, int]]],
    operation_type: str,
) -> CommitMetadata:
    """What a write is about to do, as its inflight file says it.

    Args:
        inserts: partition path → rows that go to new file groups.
        updates: partition path → file id → (instant of the group's base file, rows that update it).
        operation_type: a word of `OperationType`.
    """
    stats = {}
    for partition in dict.fromkeys((*inserts, *updates)):
        new = WriteStat(file_id="", path=None, partition_path=None, num_inserts=inserts.get(partition, 0))
        touched = (
            WriteStat(file_id, None, None, prev_commit=base_instant, num_update_writes=count)
            for file_id, (base_instant, count) in updates.get(partition, {}).items()
        )
        stats[partition] = (new, *touched)
    return CommitMetadata(stats, operation_type=operation_type)


def encode_requested_replace(
    operation_type: str | None = None,
    clustering_plan: Body | None = None,
    extra_metadata: Mapping[str, str] | None = None,
) -> bytes:
    """Body of `<T>.replacecommit.requested` (and `.clustering.requested`); all null is an insert overwrite."""
    return encode_avro_record(
        "HoodieRequestedReplaceMetadata",
        {
            "operationType": operation_type,
            "clusteringPlan": clustering_plan,
            "extraMetadata": extra_metadata,
            "version": None if operation_type is None else 1,
        },
    )


def decode_requested_replace(data: bytes, where: str = "replacecommit.requested") -> Body:
    """Body of a requested replace commit or clustering, keys as in Avro; no bytes give all null."""
    if not data:
        return {"operationType": None, "clusteringPlan": None, "extraMetadata": None, "version": None}
    return _expect(data, "HoodieRequestedReplaceMetadata", where)


def encode_rollback_plan(plan: RollbackPlan) -> bytes:
    """Body of `<T>.rollback.requested`."""
    requests = [
        {
            "partitionPath": request.partition_path,
            "fileId": request.file_id,
            "latestBaseInstant": request.latest_base_instant,
            "filesToBeDeleted": list(request.files_to_be_deleted),
            "logBlocksToBeDeleted": dict(request.log_blocks_to_be_deleted),
        }
        for request in plan.requests
    ]
    instant = plan.instant_to_rollback
    return encode_avro_record(
        "HoodieRollbackPlan",
        {"instantToRollback": _instant_dict(instant), "RollbackRequests": requests, "version": 1},
    )


def decode_rollback_plan(data: bytes, where: str = "rollback.requested") -> RollbackPlan:
    """The plan of a rollback. Raises CorruptFile."""
    body = _expect(data, "HoodieRollbackPlan", where)
    if body.get("instantToRollback") is None:
        raise CorruptFile(f"{where}: the rollback plan names no instant.")
    return RollbackPlan(
        instant_to_rollback=_instant_info(body["instantToRollback"]),
        requests=tuple(
            RollbackRequest(
                partition_path=request["partitionPath"],
                file_id=request.get("fileId") or "",
                latest_base_instant=request.get("latestBaseInstant") or "",
                files_to_be_deleted=tuple(request.get("filesToBeDeleted") or ()),
                log_blocks_to_be_deleted=request.get("logBlocksToBeDeleted") or {},
            )
            for request in body.get("RollbackRequests") or ()
        ),
    )


def encode_rollback_metadata(metadata: RollbackMetadata) -> bytes:
    """Body of a completed rollback."""
    return encode_avro_record("HoodieRollbackMetadata", rollback_metadata_record(metadata))


def rollback_metadata_record(metadata: RollbackMetadata) -> Body:
    """The record in such a body; restores hold several."""
    partitions = {
        name: {
            "partitionPath": partition.partition_path,
            "successDeleteFiles": list(partition.success_delete_files),
            "failedDeleteFiles": list(partition.failed_delete_files),
            "rollbackLogFiles": dict(partition.rollback_log_files),
            "logFilesFromFailedCommit": dict(partition.log_files_from_failed_commit),
        }
        for name, partition in metadata.partitions.items()
    }
    return {
        "startRollbackTime": metadata.start_rollback_time,
        "timeTakenInMillis": metadata.time_taken_ms,
        "totalFilesDeleted": metadata.total_files_deleted,
        "commitsRollback": list(metadata.commits_rollback),
        "partitionMetadata": partitions,
        "version": 1,
        "instantsRollback": [_instant_dict(instant) for instant in metadata.instants_rollback],
    }


def decode_rollback_metadata(data: bytes, where: str = "rollback") -> RollbackMetadata:
    """What a completed rollback did. Raises CorruptFile."""
    return rollback_metadata_of(_expect(data, "HoodieRollbackMetadata", where))


def rollback_metadata_of(body: Body) -> RollbackMetadata:
    """The metadata in a record of such a body."""
    return RollbackMetadata(
        start_rollback_time=body["startRollbackTime"],
        time_taken_ms=body["timeTakenInMillis"],
        total_files_deleted=body["totalFilesDeleted"],
        commits_rollback=tuple(body["commitsRollback"]),
        partitions={
            name: RollbackPartition(
                partition_path=partition["partitionPath"],
                success_delete_files=tuple(partition["successDeleteFiles"]),
                failed_delete_files=tuple(partition["failedDeleteFiles"]),
                rollback_log_files=partition.get("rollbackLogFiles") or {},
                log_files_from_failed_commit=partition.get("logFilesFromFailedCommit") or {},
            )
            for name, partition in body["partitionMetadata"].items()
        },
        instants_rollback=tuple(_instant_info(instant) for instant in body.get("instantsRollback") or ()),
    )


def encode_avro_record(record: str, datum: Mapping[str, object]) -> bytes:
    """The container of any body of `timeline_schemas.RECORDS` (clean, savepoint, compaction, restore, index, ...).

    Args:    record: the record's name, such as `HoodieCleanerPlan`; datum: its fields under their Avro names.
    """
    return encode_container(body_schema(record), datum)


def decode_avro_record(data: bytes, where: str = "Avro body") -> Body:
    """Any Avro body as a dict, keys as in the schema that it was written with. Raises CorruptFile."""
    return decode_container(data, where)[0]


def _expect(data: bytes, record: str, where: str) -> Body:
    body, name = decode_container(data, where, body_schema(record))
    if name.rpartition(".")[2] != record:
        raise CorruptFile(f"{where}: expected an Avro body of {record}, found {name}.")
    return body


def _decode_json(data: bytes, where: str) -> Body:
    if len(data) > MAX_BODY_BYTES:
        raise CorruptFile(f"{where}: {len(data)} bytes, more than the {MAX_BODY_BYTES} that a body can have.")
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(
            f"{where}: expected JSON or an Avro container of commit metadata, found {data[:40]!r} ({error}). "
            f"The file is truncated or damaged; restore it, or roll the instant back."
        ) from error
    if not isinstance(body, dict):
        raise CorruptFile(f"{where}: expected a JSON object of commit metadata, found {type(body).__name__}.")
    return body


def _mapping(body: Body, key: str, where: str) -> Body:
    value = body.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise CorruptFile(f"{where}: expected a map under {key!r}, found {type(value).__name__}.")
    return value


def _list(value: object, where: str) -> Sequence[object]:
    if not isinstance(value, list):
        raise CorruptFile(f"{where}: expected a list, found {type(value).__name__}.")
    return value


def _instant_dict(instant: InstantInfo) -> dict[str, str]:
    return {"commitTime": instant.commit_time, "action": instant.action}


def _instant_info(instant: Mapping[str, str]) -> InstantInfo:
    return InstantInfo(instant["commitTime"], instant["action"])
