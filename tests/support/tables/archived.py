"""Tables to archive, and what tests of archiving ask of them."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from pyhudi.formats.timeline.instant_files import encode_avro_record
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.options import WriteOptions
from pyhudi.services.archive.archiving import ArchiveResult, archive
from pyhudi.table.calls import serve
from pyhudi.timeline.archived_timeline import load_archived_timeline
from pyhudi.timeline.table_properties import load_table_config
from pyhudi.transaction.instants import TimelineWriter
from tests.support.tables.small import TestTable

BY_HAND = {"hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"}
KEEP = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.timeline.compaction.batch.size": "3"}
ONE_CLEANED = {"hoodie.clean.commits.retained": "1"}


def table_of(version: str = "9", **options: str) -> TestTable:
    given = {"hoodie." + name.replace("_", "."): text for name, text in options.items()}
    return TestTable(options={"hoodie.write.table.version": version, **BY_HAND, **given})


def archived(table: TestTable, dry_run: bool = False, **options: str) -> ArchiveResult:
    given = {**KEEP, **ONE_CLEANED, **{"hoodie." + name.replace("_", "."): text for name, text in options.items()}}
    parsed = WriteOptions.parse(given, table=load_table_config(table.storage))
    return serve(table.storage, partial(archive, dry_run=dry_run), parsed, table.engine, dry_run=dry_run)


def upserts(table: TestTable, count: int) -> list[str]:
    return [table.upsert(("a", "x", n, n), (f"k{n}", "x", n, n)).instant_time for n in range(count)]


def active(table: TestTable) -> list[str]:
    return [i.requested_time for i in table.meta.timeline.commits()]


def history(table: TestTable) -> list[str]:
    return [i.requested_time for i in load_archived_timeline(table.storage, table.meta.config).times()]


def savepoint(table: TestTable, time: str) -> None:
    writer = TimelineWriter(table.storage, table.meta.config)
    body = encode_avro_record(
        "HoodieSavepointMetadata",
        {"savepointedBy": "", "savepointedAt": 0, "comments": "", "partitionMetadata": {}, "version": 1},
    )
    latest = table.meta.timeline.latest_time or ""
    writer.complete(writer.start(Instant(time, ActionKind.SAVEPOINT, State.REQUESTED)), str(int(latest) + 1), body)


def rows_of_one(key: str) -> pa.Table:
    return pa.table({"id": [key], "p": ["x"], "ts": pa.array([1], pa.int64()), "v": pa.array([1], pa.int64())})


def clean(table: TestTable, version: str, earliest: str) -> str:
    """A completed clean that kept all from `earliest` on and deleted the files of replaced groups."""
    meta = table.meta
    for partition, replaced in (
        item
        for i in meta.timeline.of([ActionKind.REPLACECOMMIT])
        for item in (meta.commits.metadata(i).partition_to_replace_file_ids or {}).items()
    ):
        for entry in table.storage.list(partition):
            if entry.name.lstrip(".").startswith(replaced):  # log files, too
                table.storage.delete(entry.path)
    plan = {
        "earliestInstantToRetain": {"timestamp": earliest, "action": "commit", "state": "COMPLETED"},
        "policy": "KEEP_LATEST_COMMITS", "version": 2, "lastCompletedCommitTimestamp": earliest,
        "filesToBeDeletedPerPartition": {}, "filePathsToBeDeletedPerPartition": {}, "partitionsToBeDeleted": [],
        "extraMetadata": {},
    }  # fmt: skip
    done = {
        "startCleanTime": "", "timeTakenInMillis": 1, "totalFilesDeleted": 1, "earliestCommitToRetain": earliest,
        "lastCompletedCommitTimestamp": earliest, "partitionMetadata": {}, "version": 2,
        "bootstrapPartitionMetadata": {}, "extraMetadata": {},
    }  # fmt: skip
    writer = TimelineWriter(table.storage, meta.config)
    time = str(int(meta.timeline.latest_time or "") + 1)
    instant = writer.request(time, ActionKind.CLEAN, encode_avro_record("HoodieCleanerPlan", plan))
    body = encode_avro_record("HoodieCleanMetadata", done)
    writer.complete(writer.start(instant), str(int(time) + 1), body)
    return time
