"""A process dies at any storage call of a repair that commits."""

from __future__ import annotations

from functools import partial

import pytest

from pyhudi.model.options import WriteOptions
from pyhudi.services.repair import REPAIRS
from pyhudi.services.repair.partitions import rename_partition
from pyhudi.table.calls import serve
from pyhudi.timeline.table_properties import load_table_config
from tests.support.tables.small import TestTable
from tests.support.writers.every_fault import START, loaded, survive_every_fault, with_logs


def repair(table: TestTable, call: object) -> object:
    options = WriteOptions.parse({}, table=load_table_config(table.storage))
    return serve(table.storage, call, options, table.engine, clock=table.clock)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["6", "9"])
def test_keys_are_double_or_single_after_a_repair_of_duplicates(version: str) -> None:
    table = loaded(version)
    table.bulk_insert(("a", "x", 9, 99))
    call = partial(REPAIRS.load("duplicates"), dry_run=False)
    once = [("a", "x", 9, 99), *START[1:]]
    survive_every_fault(table, lambda t: repair(t, call), [*START, ("a", "x", 9, 99)], once)


def test_a_partition_has_its_old_or_its_new_name() -> None:
    call = partial(rename_partition, old="x", new="z", dry_run=False)
    before = [START[0], ("b", "x", 2, 22), START[2]]
    after = [("a", "z", 1, 10), ("b", "z", 2, 22), START[2]]
    survive_every_fault(with_logs("8"), lambda t: repair(t, call), before, after)


def test_orphans_are_never_seen_and_deleted_sooner_or_later() -> None:
    table = loaded("9")
    base = next(e for e in table.storage.walk("x") if e.name.endswith(".parquet"))
    file_id, _, time = base.name.split("_")
    table.storage.write(f"x/{file_id}_9-9-9_{time}", table.storage.read(base.path))
    call = partial(REPAIRS.load("orphans"), dry_run=False)
    survive_every_fault(table, lambda t: repair(t, call), [*START], [*START], may_finish_later=True)
