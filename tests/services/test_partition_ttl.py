"""Partitions expire by the age of their newest base file or of their first commit."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import ConfigError
from pyhudi.model.options import WriteOptions
from pyhudi.services.partition_ttl import TtlResult, expire_partitions
from pyhudi.storage.clock import FixedClock
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.calls import serve
from tests.support.tables.small import TestTable, rows_of

DAY_MS = 86_400_000
START_MS = int(datetime(2024, 5, 1, tzinfo=timezone.utc).timestamp() * 1000)
DAYS = "hoodie.partition.ttl.strategy.days.retain"
QUIET = {"hoodie.table.timeline.timezone": "UTC", "hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}


def on_day(table: TestTable, day: int) -> TestTable:
    table.clock = FixedClock(START_MS + day * DAY_MS, step_ms=7)
    return table


def aged(table_type: str = "COPY_ON_WRITE", version: str = "9") -> TestTable:
    """Partition x of day 0 is updated on day 20, y of day 10 on no day."""
    options = {**QUIET, "hoodie.datasource.write.table.type": table_type, "hoodie.write.table.version": version}
    table = TestTable(MemoryStorage(), options)
    on_day(table, 0).bulk_insert(("a", "x", 1, 1))
    on_day(table, 10).upsert(("b", "y", 1, 1))
    on_day(table, 20).upsert(("a", "x", 2, 2))
    return table


def expire(table: TestTable, day: int, days: int = 14, dry_run: bool = False, **options: str) -> TtlResult:
    given = {DAYS: str(days), **{"hoodie.partition.ttl." + k.replace("_", "."): v for k, v in options.items()}}
    clock = on_day(table, day).clock
    run = partial(expire_partitions, dry_run=dry_run)
    return serve(table.storage, run, WriteOptions.parse(given), table.engine, dry_run=dry_run, clock=clock)


def paths(result: TtlResult) -> list[str]:
    return [found.partition_path for found in result.expired]


@pytest.mark.parametrize("version", ["6", "9"])
def test_age_counts_from_the_newest_base_file(version: str) -> None:
    table = aged(version=version)
    assert not paths(expire(table, 24))
    result = expire(table, 25)
    assert paths(result) == ["y"]
    assert table.rows() == [("a", "x", 2, 2)]
    assert result.deleted is not None
    assert "deleted by" in str(result)
    assert paths(expire(table, 35)) == ["x"]
    assert not paths(expire(table, 99)), "an empty partition is not deleted again"


def test_appended_logs_make_no_partition_younger() -> None:
    table = aged("MERGE_ON_READ")
    assert paths(expire(table, 25)) == ["x", "y"]


def test_age_may_count_from_the_first_commit() -> None:
    table = aged()
    by_type = {"management_strategy_type": "KEEP_BY_CREATION_TIME"}
    assert paths(expire(table, 21, dry_run=True, **by_type)) == ["x"]
    by_class = {"strategy_class": "org.apache.hudi.table.action.ttl.strategy.KeepByCreationTimeStrategy"}
    assert paths(expire(table, 21, dry_run=True, **by_class)) == ["x"]
    assert len(table.rows()) == 2


def test_only_selected_partitions_expire_and_only_so_many_at_once() -> None:
    table = aged()
    assert paths(expire(table, 99, dry_run=True, strategy_partition_selected="x,none")) == ["x"]
    assert paths(expire(table, 99, dry_run=True, strategy_max_delete_partitions="1")) == ["y"], "the oldest first"


def test_no_days_are_no_limit() -> None:
    table = aged()
    for days in (0, -1):
        result = expire(table, 999, days=days)
        assert not result.expired
        assert "off" in str(result)


def test_days_of_many_years_are_counted_right() -> None:
    table = aged()
    assert not paths(expire(table, 600, days=591))
    assert paths(expire(table, 600, days=589)) == ["y"]


def test_writes_expire_partitions_when_the_options_say_so() -> None:
    table = aged()
    on_day(table, 25)
    result = table.upsert(("c", "z", 1, 1), partition_ttl_inline="true", partition_ttl_strategy_days_retain="14")
    assert table.rows() == [("a", "x", 2, 2), ("c", "z", 1, 1)]
    newest = table.meta.timeline.last_commit()
    assert newest is not None
    assert result.services["partition ttl"] == (newest.requested_time,)


def test_a_partition_that_is_called_like_a_pattern_takes_no_other_along() -> None:
    table = TestTable(MemoryStorage(), QUIET)
    on_day(table, 0).bulk_insert(("a", "p*", 1, 1))
    on_day(table, 20).upsert(("b", "px", 1, 1))
    assert paths(expire(table, 25)) == ["p*"]
    assert table.rows() == [("b", "px", 1, 1)]


def test_a_strategy_of_ones_own_is_refused() -> None:
    with pytest.raises(ConfigError, match="delete_partitions"):
        WriteOptions.parse({"hoodie.partition.ttl.strategy.class": "com.example.Mine"})


def test_the_table_object_expires_partitions(tmp_path: Any) -> None:
    write_hudi(tmp_path / "t", rows_of(("a", "x", 1, 1)), record_key="id", partition_by="p")
    table = HudiTable.open(tmp_path / "t")
    assert not table.maintenance.run_ttl(dry_run=True, options={DAYS: 1}).expired
    assert not table.maintenance.run_ttl(options={DAYS: 1}).expired
    metadata = tmp_path / "t" / "x" / ".hoodie_partition_metadata"
    old = (datetime.now(timezone.utc) - timedelta(days=3)).strftime("%Y%m%d%H%M%S000")
    text = metadata.read_text()
    metadata.write_text(text.replace(text.partition("commitTime=")[2][:17], old))
    by_creation = {DAYS: 1, "hoodie.partition.ttl.management.strategy.type": "KEEP_BY_CREATION_TIME"}
    assert [found.since for found in table.maintenance.run_ttl(options=by_creation).expired] == [old]
    assert table.to_arrow().num_rows == 0


@pytest.mark.parametrize("content", ["commitTime=yesterday\n", "commitTime=99999999999999999\n", "a=\\uXXXX\n", "\x00"])
def test_a_partition_with_damaged_metadata_stays_and_the_others_expire(content: str) -> None:
    table = aged()
    table.storage.write("x/.hoodie_partition_metadata", content.encode())
    with pytest.warns(UserWarning, match="'x' is kept, because its age is unknown"):
        result = expire(table, 99, management_strategy_type="KEEP_BY_CREATION_TIME")
    assert paths(result) == ["y"]
    assert table.rows() == [("a", "x", 2, 2)]


def test_one_young_file_group_keeps_a_partition_of_old_ones() -> None:
    table = aged()
    late = on_day(table, 24)
    late.bulk_insert(("d", "w", 1, 4))  # takes the first file id of this day, which that of y is, too
    late.bulk_insert(("c", "y", 1, 3))
    assert len(table.rows()) == 4
    assert not paths(expire(table, 30))
    assert paths(expire(table, 35)) == ["x"]
