"""Bodies of the clean action: bytes ↔ the model.

Plans of version 2 name files by absolute path, those of version 1 by name; a moved table has other absolute paths, so
only partition and file name count. Source: docs/formats/timeline.md, "Records"; docs/formats/table-services.md,
"Cleaning plan".
"""

from __future__ import annotations

from collections.abc import Callable

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.formats.timeline.bodies import Body, Fields, fields_of, text_of
from pyhudi.formats.timeline.instant_files import decode_avro_record, encode_avro_record
from pyhudi.model.filenames import BaseFileName, LogFileName, data_path
from pyhudi.model.plans import CleanedPartition, CleanMetadata, CleanPlan, RetainedInstant

__all__ = [
    "clean_metadata_of",
    "clean_plan_of",
    "decode_clean_metadata",
    "decode_clean_plan",
    "encode_clean_metadata",
    "encode_clean_plan",
]

_VERSION = 2


def encode_clean_plan(plan: CleanPlan, absolute: Callable[[str], str]) -> bytes:
    """Encode the body of the requested file. `absolute`: turns a file's path in the table into the form of plans."""
    earliest = plan.earliest
    return encode_avro_record(
        "HoodieCleanerPlan",
        {
            "earliestInstantToRetain": None
            if earliest is None
            else {"timestamp": earliest.requested_time, "action": earliest.action, "state": earliest.state},
            "lastCompletedCommitTimestamp": plan.last_commit,
            "policy": plan.policy,
            "filesToBeDeletedPerPartition": {},
            "version": _VERSION,
            "filePathsToBeDeletedPerPartition": {
                path: [{"filePath": absolute(data_path(path, name)), "isBootstrapBaseFile": False} for name in names]
                for path, names in plan.files.items()
            },
            "partitionsToBeDeleted": list(plan.partitions),
            "extraMetadata": dict(plan.extra_metadata),
        },
    )


def decode_clean_plan(data: bytes, where: str = "clean.requested") -> CleanPlan:
    """Decode the plan in a requested file.

    Raises: CorruptFile when it is damaged, or names a file other than a partition's data file; UnsupportedTable for
            files of a bootstrap outside the table.
    """
    return clean_plan_of(decode_avro_record(data, where), where)


def clean_plan_of(record: Body, where: str) -> CleanPlan:
    """The plan in a record. Raises like `decode_clean_plan`."""
    body = Fields(record, where)
    earliest = body.record("earliestInstantToRetain")
    files: dict[str, tuple[str, ...]] = {}
    for path, infos in body.list_map("filePathsToBeDeletedPerPartition"):
        files[path] = tuple(_name(_file_path(fields_of(info, where)), path, where) for info in infos)
    for path, names in body.list_map("filesToBeDeletedPerPartition"):
        if path not in files:
            files[path] = tuple(_name(text_of(name, where), path, where) for name in names)
    partitions = body.texts("partitionsToBeDeleted")
    for path in partitions:
        _check_partition(path, where)
    return CleanPlan(
        policy=body.text("policy"),
        earliest=None
        if earliest is None
        else RetainedInstant(earliest.text("timestamp"), earliest.text("action"), earliest.text("state")),
        last_commit=body.text("lastCompletedCommitTimestamp"),
        files=files,
        partitions=partitions,
        extra_metadata=body.text_map("extraMetadata"),
    )


def _file_path(info: Fields) -> str:
    if info.flag("isBootstrapBaseFile"):
        raise UnsupportedTable(f"{info.where}: the plan deletes files of a bootstrap; run it with Apache Hudi.")
    return info.text("filePath")


def _name(path: str, partition_path: str, where: str) -> str:
    """Return the bare name of a file to delete."""
    _check_partition(partition_path, where)
    name = path.rpartition("/")[2]
    if BaseFileName.parse(name) is None and LogFileName.parse(name) is None:
        raise CorruptFile(f"{where}: the plan deletes {path!r}, which is not a data file. Nothing was deleted for it.")
    return name


def _check_partition(path: str, where: str) -> None:
    if ".." in path.split("/") or path.startswith((".hoodie", "/")):
        raise CorruptFile(f"{where}: the plan names {path!r}, which is not a partition. Nothing was deleted for it.")


def encode_clean_metadata(metadata: CleanMetadata) -> bytes:
    """Encode the body of the completed file."""
    partitions = {
        path: {
            "partitionPath": path,
            "policy": partition.policy,
            "deletePathPatterns": [*partition.deleted, *partition.failed],
            "successDeleteFiles": list(partition.deleted),
            "failedDeleteFiles": list(partition.failed),
            "isPartitionDeleted": partition.is_partition_deleted,
        }
        for path, partition in metadata.partitions.items()
    }
    return encode_avro_record(
        "HoodieCleanMetadata",
        {
            "startCleanTime": metadata.start_time,
            "timeTakenInMillis": metadata.time_taken_ms,
            "totalFilesDeleted": metadata.files_deleted,
            "earliestCommitToRetain": metadata.earliest,
            "lastCompletedCommitTimestamp": metadata.last_commit,
            "partitionMetadata": partitions,
            "version": _VERSION,
            "bootstrapPartitionMetadata": {},
            "extraMetadata": dict(metadata.extra_metadata),
        },
    )


def decode_clean_metadata(data: bytes, where: str = "clean") -> CleanMetadata:
    """Decode the body of a completed clean; no bytes (a crash) give an empty one. Raises CorruptFile."""
    return clean_metadata_of(decode_avro_record(data, where) if data else {}, where)


def clean_metadata_of(record: Body, where: str) -> CleanMetadata:
    """The metadata in a record. Raises CorruptFile."""
    body = Fields(record, where)
    return CleanMetadata(
        start_time=body.text("startCleanTime"),
        time_taken_ms=body.number("timeTakenInMillis"),
        earliest=body.text("earliestCommitToRetain"),
        last_commit=body.text("lastCompletedCommitTimestamp"),
        partitions={
            path: CleanedPartition(
                partition.text("policy"),
                partition.texts("successDeleteFiles"),
                partition.texts("failedDeleteFiles"),
                bool(partition.flag("isPartitionDeleted")),
            )
            for path, partition in body.record_map("partitionMetadata")
        },
        extra_metadata=body.text_map("extraMetadata"),
    )
