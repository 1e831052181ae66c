"""Bodies of instant files: bytes ↔ the model.

Commits, delta commits and replace commits are pretty-printed JSON in table versions below 8 and Avro containers from 8
on; every other body is an Avro container in all versions. A reader distinguishes the two by the first bytes and accepts
either; an empty body is a write without recorded metadata. Unknown keys are ignored.
Source: docs/formats/timeline.md, "Bodies", "Commit metadata", "Rollback".
"""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.errors import CorruptFile
from pyhudi.formats.avro.container import MAGIC, MAX_BODY_BYTES, decode_container, encode_container, open_container
from pyhudi.formats.avro.counters import sum_counters
from pyhudi.formats.json_text import parse_json, pretty_json
from pyhudi.formats.timeline.bodies import Body, Fields, NewBody, text_of
from pyhudi.formats.timeline.schemas import body_schema
from pyhudi.formats.timeline.write_stats import SUMMED, decode_stat, stat_to_avro, stat_to_json, sums_of_stats
from pyhudi.model.commit import CommitMetadata, CommitTotals, OperationType, WriteStat
from pyhudi.model.instant import ActionKind
from pyhudi.model.plans import InstantInfo, RollbackMetadata, RollbackPartition, RollbackPlan, RollbackRequest
from pyhudi.model.table_format import TableFormat

__all__ = [
    "commit_of",
    "decode_avro_record",
    "decode_commit",
    "decode_requested_replace",
    "decode_rollback_metadata",
    "decode_rollback_plan",
    "decode_totals",
    "encode_avro_record",
    "encode_commit",
    "encode_requested_replace",
    "encode_rollback_metadata",
    "encode_rollback_plan",
    "instant_info",
    "planned_instant",
    "rollback_metadata_of",
    "rollback_metadata_record",
    "workload_profile",
]


def encode_commit(metadata: CommitMetadata, action: ActionKind, table_version: int) -> bytes:
    """Encode the body of a completed write, or of an inflight one when `metadata` is a workload profile.

    With `partition_to_replace_file_ids` it is Hudi's replace-commit record, without (also for the inflight profile of a
    replacecommit) its commit record.
    """
    replaced = metadata.partition_to_replace_file_ids
    if replaced is not None:
        assert action.completed_as is ActionKind.REPLACECOMMIT, action
    to_dict = stat_to_avro if TableFormat(table_version).has_avro_commits else stat_to_json
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
    if not TableFormat(table_version).has_avro_commits:
        return pretty_json(body).encode()
    body["version"] = None  # as in Hudi; readers use the default, 1
    return encode_avro_record("HoodieCommitMetadata" if replaced is None else "HoodieReplaceCommitMetadata", body)


def decode_commit(data: bytes, where: str = "commit body") -> CommitMetadata:
    """Decode the body of a commit, delta commit or replace commit, in either form; no bytes give empty metadata.

    Args:    where: the file's path, for messages.
    Raises:  CorruptFile when the bytes are neither JSON nor an Avro container of commit metadata.
    """
    if not data:
        return CommitMetadata({})
    return commit_of(_decode_json(data, where) if data[:4] != MAGIC else decode_container(data, where)[0], where)


def commit_of(record: Body, where: str) -> CommitMetadata:
    """Return the commit metadata in a decoded record. Raises CorruptFile."""
    body = Fields(record, where)
    stats = {
        partition: tuple(decode_stat(stat, where) for stat in stats)
        for partition, stats in body.list_map("partitionToWriteStats")
    }
    _expect_commit(record, bool(stats), where)
    replaced = {
        partition: tuple(text_of(file_id, f"{where}: replaced groups of {partition!r:.100}") for file_id in ids)
        for partition, ids in body.list_map("partitionToReplaceFileIds")
    }
    return CommitMetadata(
        partition_to_write_stats=stats,
        extra_metadata=body.text_map("extraMetadata"),
        operation_type=(body.text("operationType") or OperationType.UNKNOWN).upper(),
        compacted=bool(body.flag("compacted")),
        partition_to_replace_file_ids=None if record.get("partitionToReplaceFileIds") is None else replaced,
    )


def decode_totals(data: bytes, where: str = "commit body") -> CommitTotals:
    """Like `decode_commit`, with the write stats summed up. In an Avro container, only their counters are decoded."""
    if not data:
        return CommitTotals()
    sums = None
    if data[:4] == MAGIC:
        container = open_container(data, where)
        sums = sum_counters(container, "partitionToWriteStats", SUMMED)
        record = (sums.rest if sums else container).decoded()
    else:
        record = _decode_json(data, where)
    body = Fields(record, where)
    if sums:
        counters, files = sums.counters, sums.records
    else:
        stats = [stat for _, listed in body.list_map("partitionToWriteStats") for stat in listed]
        counters, files = sums_of_stats(stats, where), len(stats)
    _expect_commit(record, files > 0, where)
    operation_type = (body.text("operationType") or OperationType.UNKNOWN).upper()
    return CommitTotals(operation_type, body.text_map("extraMetadata"), files, *counters)


def _expect_commit(record: Body, has_stats: bool, where: str) -> None:
    if "operationType" not in record and not has_stats and "extraMetadata" not in record:
        raise CorruptFile(f"{where}: expected commit metadata, found keys {sorted(record)[:10]!s:.300}.")


def workload_profile(
    inserts: Mapping[str, int],
    updates: Mapping[str, Mapping[str, tuple[str, int]]],
    operation_type: str,
) -> CommitMetadata:
    """Return the workload profile of a write, for its inflight file.

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
    """Decode the body of a requested replace commit or clustering, keys as in Avro; no bytes give all null."""
    if not data:
        return {"operationType": None, "clusteringPlan": None, "extraMetadata": None, "version": None}
    return _expect(data, "HoodieRequestedReplaceMetadata", where)


def encode_rollback_plan(plan: RollbackPlan) -> bytes:
    """Encode the body of `<T>.rollback.requested`."""
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
    """Decode the plan of a rollback. Raises CorruptFile."""
    body = Fields(_expect(data, "HoodieRollbackPlan", where), where)
    instant = body.record("instantToRollback")
    if instant is None:
        raise CorruptFile(f"{where}: the rollback plan names no instant.")
    return RollbackPlan(
        instant_to_rollback=planned_instant(instant),
        requests=tuple(
            RollbackRequest(
                partition_path=request.text("partitionPath"),
                file_id=request.text("fileId"),
                latest_base_instant=request.text("latestBaseInstant"),
                files_to_be_deleted=request.texts("filesToBeDeleted"),
                log_blocks_to_be_deleted=_sizes(request, "logBlocksToBeDeleted"),
            )
            for request in body.records("RollbackRequests")
        ),
    )


def encode_rollback_metadata(metadata: RollbackMetadata) -> bytes:
    """Encode the body of a completed rollback."""
    return encode_avro_record("HoodieRollbackMetadata", rollback_metadata_record(metadata))


def rollback_metadata_record(metadata: RollbackMetadata) -> Body:
    """Return the record in such a body; restores hold several."""
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
    """Decode the body of a completed rollback. Raises CorruptFile."""
    return rollback_metadata_of(Fields(_expect(data, "HoodieRollbackMetadata", where), where))


def rollback_metadata_of(body: Fields) -> RollbackMetadata:
    """Return the metadata in a record of such a body. Raises CorruptFile."""
    return RollbackMetadata(
        start_rollback_time=body.text("startRollbackTime"),
        time_taken_ms=body.number("timeTakenInMillis"),
        total_files_deleted=body.number("totalFilesDeleted"),
        commits_rollback=body.texts("commitsRollback"),
        partitions={
            name: RollbackPartition(
                partition_path=partition.text("partitionPath"),
                success_delete_files=partition.texts("successDeleteFiles"),
                failed_delete_files=partition.texts("failedDeleteFiles"),
                rollback_log_files=_sizes(partition, "rollbackLogFiles"),
                log_files_from_failed_commit=_sizes(partition, "logFilesFromFailedCommit"),
            )
            for name, partition in body.record_map("partitionMetadata")
        },
        instants_rollback=tuple(instant_info(instant) for instant in body.records("instantsRollback")),
    )


def encode_avro_record(record: str, datum: Mapping[str, object]) -> bytes:
    """Encode any body of `timeline_schemas.RECORDS` (clean, savepoint, compaction, restore, index, ...) as Avro.

    Args:    record: the record's name, such as `HoodieCleanerPlan`; datum: its fields under their Avro names.
    """
    return encode_container(body_schema(record), datum)


def decode_avro_record(data: bytes, where: str = "Avro body") -> Body:
    """Decode any Avro body as a dict, keys as in its writer schema. Raises CorruptFile."""
    return decode_container(data, where)[0]


def _expect(data: bytes, record: str, where: str) -> Body:
    body, name = decode_container(data, where, body_schema(record))
    if name.rpartition(".")[2] != record:
        raise CorruptFile(f"{where}: expected an Avro body of {record}, found {name}.")
    return body


def _decode_json(data: bytes, where: str) -> Body:
    if len(data) > MAX_BODY_BYTES:
        raise CorruptFile(f"{where}: {len(data)} bytes, more than the {MAX_BODY_BYTES} that a body can have.")
    body = parse_json(data, where, "JSON or an Avro container of commit metadata")
    if not isinstance(body, dict):
        raise CorruptFile(f"{where}: expected a JSON object of commit metadata, found {type(body).__name__}.")
    return body


def _sizes(body: Fields, name: str) -> dict[str, int]:
    return {path: size for path, size in body.number_map(name).items() if isinstance(size, int)}


def _instant_dict(instant: InstantInfo) -> dict[str, str]:
    return {"commitTime": instant.commit_time, "action": instant.action}


def instant_info(instant: Fields) -> InstantInfo:
    """Return an instant in the body of a completed file."""
    return InstantInfo(instant.text("commitTime"), instant.text("action"))


def planned_instant(instant: Fields) -> InstantInfo:
    """Return an instant in a plan. Its time becomes part of file names, so it must be digits. Raises CorruptFile."""
    info = instant_info(instant)
    if not (info.commit_time.isascii() and info.commit_time.isdigit()):
        raise CorruptFile(f"{instant.where}: the plan names the instant {info.commit_time!r:.100}, which can't be one.")
    return info
