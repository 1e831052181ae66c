"""A process dies at any storage call of a repair: the table is as before or mended, and the next writer goes on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.errors import CorruptFile, DamagedLog
from pyhudi.model.filenames import PROPERTIES_BACKUP_PATH, PROPERTIES_PATH
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.files import DamageOptions
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches
from pyhudi.queries.validation import validate
from pyhudi.services.clean.cleaning import clean
from pyhudi.services.compact.compaction import COMPACTION
from pyhudi.services.planned import call as compact
from pyhudi.services.repair import REPAIRS
from pyhudi.services.repair.partitions import rename_partition
from pyhudi.services.repair.result import RepairResult
from pyhudi.storage.clock import FixedClock
from pyhudi.table.calls import serve
from pyhudi.table.groups.repairs import repair_properties
from pyhudi.timeline.table_properties import load_table_config, table_exists
from tests.support.tables.small import TestTable, rows_of
from tests.support.writers.dying import deaths, on_clone
from tests.support.writers.every_fault import (
    NEXT,
    START,
    WITH_LOGS,
    empty_merge_on_read,
    in_order,
    loaded,
    survive_every_fault,
    with_logs,
)


def repair(table: TestTable, call: Callable[..., Any], **given: str) -> Any:
    options = WriteOptions.parse(given, table=load_table_config(table.storage))
    return serve(table.storage, call, options, table.engine, clock=table.clock)


@pytest.mark.parametrize("version", ["6", "9"])
def test_keys_are_double_or_single_after_a_repair_of_duplicates(version: str) -> None:
    table = loaded(version)
    table.bulk_insert(("a", "x", 9, 99))
    call = partial(REPAIRS.load("duplicates"), dry_run=False)
    once = [("a", "x", 9, 99), *START[1:]]
    survive_every_fault(table, lambda t: repair(t, call), [*START, ("a", "x", 9, 99)], once)


@pytest.mark.thorough
def test_a_partition_has_its_old_or_its_new_name() -> None:
    call = partial(rename_partition, old="x", new="z", dry_run=False)
    before = [START[0], ("b", "x", 2, 22), START[2]]
    after = [("a", "z", 1, 10), ("b", "z", 2, 22), START[2]]
    survive_every_fault(with_logs("8"), lambda t: repair(t, call), before, after)


@pytest.mark.thorough
def test_orphans_are_never_seen_and_deleted_sooner_or_later() -> None:
    table = loaded("9")
    base = next(e for e in table.storage.walk("x") if e.name.endswith(".parquet"))
    file_id, _, time = base.name.split("_")
    table.storage.write(f"x/{file_id}_9-9-9_{time}", table.storage.read(base.path))
    call = partial(REPAIRS.load("orphans"), dry_run=False)
    survive_every_fault(table, lambda t: repair(t, call), [*START], [*START], may_finish_later=True)


class Damaged(TestTable):
    """A table whose damaged log files are read as far as they go, without a word."""

    def read(self, as_of: str | None = None) -> pa.Table:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().read(as_of)

    def is_whole(self) -> bool:
        plan = plan_snapshot(self.meta, Query(damage=DamageOptions(on_read="fail")))
        try:
            list(read_batches(plan, self.storage))
        except DamagedLog:
            return False
        return True


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_damaged_log_file_is_there_or_what_it_still_holds(version: str) -> None:
    whole = with_logs(version)
    table = Damaged(whole.storage, whole.options, engine=whole.engine)
    table.upsert(("b", "x", 3, 33))
    log = max(entry.path for entry in table.storage.walk("x") if ".log." in entry.name)
    table.storage.write(log, table.storage.read(log)[:-40])
    call = partial(REPAIRS.load("log_checksums"), dry_run=False)
    mended = on_clone(table)
    repair(mended, call)
    assert (table.is_whole(), mended.is_whole()) == (False, True)

    survive_every_fault(table, lambda t: repair(t, call), WITH_LOGS, WITH_LOGS)


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["6", "9"])
def test_rows_without_a_value_are_in_the_old_or_in_the_new_partition(version: str) -> None:
    table = loaded(version)
    table.write("upsert", rows_of(("n", None, 1, 1)))  # type: ignore[arg-type]
    for entry in list(table.storage.walk("__HIVE_DEFAULT_PARTITION__")):
        table.storage.write(f"default/{entry.name}", table.storage.read(entry.path))
        table.storage.delete(entry.path)
    call = partial(REPAIRS.load("deprecated_partition"), dry_run=False)
    old, new = [*START, ("n", "default", 1, 1)], [*START, ("n", None, 1, 1)]

    survive_every_fault(table, lambda t: repair(t, call), old, new)


@pytest.mark.thorough
def test_buckets_of_a_ring_have_their_old_or_their_new_files() -> None:
    table = with_rings()
    base = next(e.path for e in table.storage.walk("x") if e.name.endswith(".parquet"))
    rows = pq.read_table(pa.BufferReader(table.storage.read(base)))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.concat_tables([rows, rows.slice(0, 1)]), sink)
    table.storage.write(base, sink.getvalue().to_pybytes())
    twice = table.rows()
    assert len(twice) == len(START) + 1
    call = partial(REPAIRS.load("duplicates"), dry_run=False)

    next_row = ("next", "x", 1, 99)
    survive_every_fault(table, lambda t: repair(t, call), twice, [*START], next_row=next_row)


def with_rings() -> TestTable:
    """A table of buckets on rings with base files: a first write makes them in version 6."""
    table = empty_merge_on_read("6")
    rings = {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "2",
    }
    table.options = {**table.options, **rings}
    table.bulk_insert(*START)
    return table


# ---- repairs without a commit


def mended_after_every_fault(table: TestTable, call: Callable[..., RepairResult]) -> None:
    """What a repair that died leaves is as before, or mended in part; the next one ends it, and a writer goes on."""
    before, mended = table.rows(), on_clone(table)
    assert repair(mended, call).is_done
    after = mended.rows()
    count = 0
    for attempt, where in deaths(table, lambda t: repair(t, call)):
        count += 1
        found = attempt.rows()
        assert {*before} <= {*found} <= {*after}, where
        repair(attempt, call)
        assert attempt.rows() == after, where
        assert repair(attempt, partial(call, dry_run=True)).items == (), where
        attempt.upsert(NEXT)
        assert attempt.rows() == in_order([*after, NEXT]), where
        assert validate(attempt.meta) == (), where
    assert count


@pytest.mark.thorough
def test_partition_metadata_is_written_by_the_repair_or_by_the_next_one() -> None:
    table = loaded("9")
    table.storage.delete("x/.hoodie_partition_metadata")
    table.storage.write("y/.hoodie_partition_metadata", b"commitTime=1\npartitionDepth=3\n")
    call = partial(REPAIRS.load("partition_metadata"), dry_run=False)

    mended_after_every_fault(table, call)


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["6", "9"])
def test_an_empty_clean_is_rewritten_by_the_repair_or_by_the_next_one(version: str) -> None:
    table = loaded(version)
    for ts in (2, 3, 4):
        table.upsert(("a", "x", ts, 10))
    repair(table, clean, **{"hoodie.clean.commits.retained": "1"})
    (file,) = (e.path for e in table.storage.walk(".hoodie") if e.name.endswith(".clean"))
    table.storage.write(file, b"")

    mended_after_every_fault(table, partial(REPAIRS.load("empty_instants"), dry_run=False))


@pytest.mark.thorough
def test_an_empty_plan_is_undone_by_the_repair_or_by_the_next_one() -> None:
    table = with_logs("9")
    repair(table, partial(compact, COMPACTION, schedule_only=True))
    (file,) = (e.path for e in table.storage.walk(".hoodie") if e.name.endswith(".compaction.requested"))
    table.storage.write(file, b"")

    mended_after_every_fault(table, partial(REPAIRS.load("empty_instants"), dry_run=False))


@pytest.mark.thorough
@pytest.mark.parametrize("backup", [None, b"hoodie.table.name=trips\nhoodie.tab"])
def test_properties_are_as_they_were_or_whole_and_the_next_repair_ends_it(backup: bytes | None) -> None:
    table = loaded("9")
    whole = dict(load_table_config(table.storage).properties)
    file = table.storage.read(PROPERTIES_PATH)
    table.storage.write(PROPERTIES_PATH, file[: len(file) // 2])
    if backup is not None:
        table.storage.write(PROPERTIES_BACKUP_PATH, backup)
    given = {key: text for key, text in whole.items() if any(name in key for name in ("merge", "ordering", "payload"))}

    def mend(table: TestTable, dry_run: bool = False) -> RepairResult:
        return repair_properties(table.storage, properties=given, dry_run=dry_run)

    for attempt, where in deaths(table, mend):
        assert table_exists(attempt.storage), where
        with suppress(CorruptFile):  # as before
            assert load_table_config(attempt.storage, FixedClock(0)).properties["hoodie.table.name"] == "trips", where
        mend(attempt)
        assert mend(attempt, dry_run=True).items == (), where
        assert attempt.rows() == START, where
        attempt.upsert(NEXT)
        assert attempt.rows() == in_order([*START, NEXT]), where
