"""Actions during which tests let the power fail: each on a table that it fits, with what may be seen meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from pyhudi import HudiTable, write_hudi
from pyhudi.actions.undo.restore import restore
from pyhudi.model.options import WriteOptions
from pyhudi.schema.changes import MoveColumn
from pyhudi.services.archive.archiving import archive
from pyhudi.services.clean.cleaning import clean
from pyhudi.services.savepoint import delete_savepoint, savepoint
from pyhudi.timeline.table_properties import update_table_config
from tests.support.tables.clustered import Clustered
from tests.support.tables.compacted import Compacted
from tests.support.tables.small import DEFAULTS, NO_METADATA, TestTable, rollback_write, rows_of
from tests.support.tables.undone import served
from tests.support.tables.versioned import take_to
from tests.support.writers.every_fault import START, empty, empty_merge_on_read, loaded, with_logs
from tests.support.writers.power_cuts import Recorded, record

MORE = (("a", "x", 2, 11), ("e", "z", 1, 50))
BY_HAND = {"hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"}


def upserted(make: Callable[[str], TestTable], version: str, times: int = 3) -> TestTable:
    table = make(version)
    table.options = {**table.options, **BY_HAND}
    for n in range(times):
        table.upsert(("a", "x", 2 + n, n), (f"k{n}", "z", 1, n))
    return table


def replaced(version: str) -> TestTable:
    """File groups that a clean deletes, of a write that an archiving may take."""
    table = upserted(loaded, version)
    table.write("insert_overwrite", rows_of(("n", "x", 1, 5)))
    for n in range(3):
        table.upsert(("n", "x", 2 + n, n))
    return table


def cleaned(version: str) -> TestTable:
    table = replaced(version)
    do_clean(table)
    return table


def compactable(version: str) -> Compacted:
    table = Compacted(version)
    table.start()
    return table


def planned(version: str) -> Compacted:
    table = compactable(version)
    table.compact(schedule_only=True)
    table.upsert(("c", "y", 6, 31))
    return table


def clusterable(version: str) -> Clustered:
    table = Clustered(version, "MERGE_ON_READ" if version == "6" else "COPY_ON_WRITE")
    table.bulk_insert(*START)
    table.insert(("d", "x", 1, 4))
    return table


def with_metadata_table(version: str) -> TestTable:
    """A table that seems to have a metadata table."""
    table = loaded(version)
    update_table_config(table.storage, {"hoodie.table.metadata.partitions": "files"})
    for name in ("hoodie.properties", "x", "y"):
        table.storage.write(f".hoodie/metadata/.hoodie/{name}", b"#\n")
    return table


def do_clean(table: TestTable) -> object:
    return served(table, partial(clean), clean_commits_retained="1")


def do_archive(table: TestTable) -> object:
    keep = {"keep_min_commits": "2", "keep_max_commits": "3", "timeline_compaction_batch_size": "2"}
    return served(table, archive, clean_policy="KEEP_LATEST_FILE_VERSIONS", **keep)


def do_archive_twice(table: TestTable) -> None:
    do_archive(table)
    for n in range(3):
        table.upsert(("a", "x", 20 + n, n))
    do_archive(table)


def do_roll_back(table: TestTable) -> object:
    last = table.meta.timeline.last_commit()
    assert last is not None
    return rollback_write(
        table.storage, last.requested_time, WriteOptions.parse({}, table=table.meta.config), table.engine
    )


def do_restore(table: TestTable) -> object:
    return served(table, partial(restore, to=table.meta.timeline.commits().instants[1].requested_time))


def do_save(table: TestTable) -> None:
    served(table, savepoint)
    last = table.meta.timeline.last_commit()
    assert last is not None
    served(table, partial(delete_savepoint, instant_time=last.requested_time))


def do_replace(table: TestTable) -> object:
    """A new table in the place of this one."""
    options = {**NO_METADATA, **DEFAULTS, **table.options}
    return write_hudi(table.storage, rows_of(("n", "x", 1, 5)), mode="replace", options=options)


def first_write(table: TestTable) -> object:
    return table.bulk_insert(*START)


def to(version: int) -> Callable[[TestTable], object]:
    return lambda table: take_to(table.storage, version)


Make = Callable[[str], Any]
ACTIONS: dict[str, tuple[Make, Callable[[Any], object], str]] = {
    "first write": (empty, first_write, "9"),
    "first write, version 6": (empty, first_write, "6"),
    "first write, merge on read": (empty_merge_on_read, first_write, "9"),
    "upsert": (loaded, lambda t: t.upsert(*MORE), "9"),
    "upsert, version 6": (loaded, lambda t: t.upsert(*MORE), "6"),
    "upsert, merge on read": (with_logs, lambda t: t.upsert(*MORE), "9"),
    "upsert, merge on read, version 6": (with_logs, lambda t: t.upsert(*MORE), "6"),
    "delete, merge on read, version 6": (with_logs, lambda t: t.delete(("b", "x")), "6"),
    "insert_overwrite": (loaded, lambda t: t.write("insert_overwrite", rows_of(("n", "x", 1, 5))), "9"),
    "insert_overwrite, version 6": (loaded, lambda t: t.write("insert_overwrite", rows_of(("n", "x", 1, 5))), "6"),
    "new table": (partial(upserted, loaded), do_replace, "9"),
    "new table, merge on read, version 6": (partial(upserted, with_logs), do_replace, "6"),
    "alter": (loaded, lambda t: HudiTable(t.meta).alter(MoveColumn("ts", after="v")), "9"),
    "alter, version 6": (loaded, lambda t: HudiTable(t.meta).alter(MoveColumn("ts", after="v")), "6"),
    "compaction": (compactable, lambda t: t.compact(), "9"),
    "compaction, version 6": (compactable, lambda t: t.compact(), "6"),
    "compaction of a plan, version 6": (planned, lambda t: t.compact(), "6"),
    "log compaction": (compactable, lambda t: t.log_compact(), "9"),
    "clustering": (clusterable, lambda t: t.cluster(), "9"),
    "clustering, merge on read, version 6": (clusterable, lambda t: t.cluster(), "6"),
    "clean": (replaced, do_clean, "9"),
    "clean, version 6": (replaced, do_clean, "6"),
    "archive": (cleaned, do_archive_twice, "9"),
    "archive, version 6": (cleaned, do_archive_twice, "6"),
    "rollback": (partial(upserted, loaded), do_roll_back, "9"),
    "rollback, merge on read, version 6": (partial(upserted, with_logs), do_roll_back, "6"),
    "restore": (partial(upserted, loaded), do_restore, "9"),
    "restore, merge on read, version 6": (partial(upserted, with_logs), do_restore, "6"),
    "delete_partition": (loaded, lambda t: t.write("delete_partition", rows_of(("b", "x", 1, 1))), "9"),
    "metadata table taken out": (with_metadata_table, lambda t: t.upsert(*MORE), "9"),
    "savepoint": (loaded, do_save, "9"),
    "upgrade": (partial(upserted, loaded), to(9), "6"),
    "upgrade, merge on read": (partial(upserted, with_logs), to(8), "6"),
    "downgrade": (partial(upserted, loaded), to(6), "9"),
    "downgrade, merge on read": (partial(upserted, with_logs), to(6), "8"),
}


@cache
def recorded(name: str) -> Recorded:
    make, act, version = ACTIONS[name]
    table = make(version)
    states = []
    if "restore" in name:  # readers see each state that it comes by
        states = [table.rows(as_of=instant.requested_time) for instant in table.meta.timeline.commits()]
    if name.startswith("archive"):
        states = [sorted([r for r in table.rows() if r[0] != "a"] + [("a", "x", 20 + n, n)]) for n in range(3)]
    return record(table, act, states)


# After each write: cleaned, archived and, where there are log files, compacted, as early as can be.
SERVED = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.timeline.compaction.batch.size": "2",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
}
STEPS: list[Callable[[TestTable, int], object]] = [
    lambda t, n: t.upsert(("a", "x", n, n), (f"k{n % 5}", "z", n, n)),
    lambda t, n: t.upsert(("b", "y", n, n)),
    lambda t, n: t.insert((f"i{n}", "x", n, n)),
    lambda t, n: t.delete(("a", "x"), (f"k{n % 5}", "z")),
    lambda t, n: t.write("insert_overwrite", rows_of((f"o{n}", "x", n, n))),
    lambda t, n: do_clean(t),
    lambda t, n: do_archive(t),
]


def with_buckets(version: str) -> Clustered:
    return Clustered(version, "MERGE_ON_READ", **_RINGS, bucket_index_num_buckets="2")


def split_or_merge(table: Clustered, n: int) -> None:
    """Buckets are split, or merged again; a write that died before is undone first, by another write."""
    if any(instant.action.is_commit for instant in table.meta.timeline.pending()):
        table.upsert(("b", "y", n, n))
        return
    max_bytes, buckets = ("1", "8") if n % 3 else ("100000000", "2")
    table.cluster(**_RINGS, bucket_index_max_num_buckets=buckets, parquet_max_file_size=max_bytes)


_RINGS = {"index_type": "BUCKET", "index_bucket_engine": "CONSISTENT_HASHING"}
LIVES: dict[str, tuple[Make, str, list[Callable[[Any, int], object]]]] = {
    "copy on write": (empty, "9", STEPS),
    "merge on read": (empty_merge_on_read, "9", STEPS),
    "copy on write, version 6": (empty, "6", STEPS),
    "merge on read, version 6": (empty_merge_on_read, "6", STEPS),
    "consistent hashing": (with_buckets, "9", [*STEPS[:2], STEPS[3], *STEPS[5:], split_or_merge, split_or_merge]),
    "consistent hashing, version 6": (with_buckets, "6", [*STEPS[:2], STEPS[3], split_or_merge, split_or_merge]),
}
