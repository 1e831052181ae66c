"""Frames of the same log files share what was read of them, and no frame shows other rows for that."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.meta_client import MetaClient
from pyhudi.queries.plan import plan_snapshot
from pyhudi.spark import capabilities, merged, split_cache
from pyhudi.spark.engine import collect_arrow
from pyhudi.spark.reader import read_frame
from pyhudi.spark.split_cache import SplitKey, split_key
from pyhudi.storage.local import LocalStorage
from tests.support.spark.frames import OPTIONS, rows

OF_LOGS = {**OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}

pytestmark = pytest.mark.skipif(not capabilities.PRESENT.takes_arrow, reason="this Spark takes no Arrow tables")


@pytest.fixture(params=[8, 9])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HudiTable:
    version = {"hoodie.write.table.version": str(request.param)}
    return written(HudiTable.create(str(tmp_path / "t"), rows(0, 2, 1).schema, options={**OF_LOGS, **version}))


def written(table: HudiTable) -> HudiTable:
    table.upsert(rows(0, 40, 5))
    table.upsert(rows(0, 7, 7))
    settle()
    return table


def settle() -> None:
    """Wait until changes of files count as over."""
    time.sleep(0.15)


@pytest.fixture
def slices_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The base files of the slices that were read."""
    merged._SPLITS.clear()
    read_before, paths = merged.split_read, list[str]()

    def counted(plan: Any, read: Any, **more: Any) -> Any:
        paths.append(read.base_file.path)
        return read_before(plan, read, **more)

    monkeypatch.setattr(merged, "split_read", counted)
    yield paths
    merged._SPLITS.clear()


def answers(frame: Any) -> list[str]:
    return sorted(map(repr, collect_arrow(frame).to_pylist()))


def expected(table: HudiTable, **scan: Any) -> list[str]:
    return sorted(map(repr, table.scan(**scan).to_arrow().to_pylist()))


def test_a_second_frame_reads_no_log_file(table: HudiTable, spark: Any, slices_read: list[str]) -> None:
    first = answers(read_frame(spark, table.path, {}))
    slices = len(slices_read)

    second = answers(read_frame(spark, table.path, {}))

    assert first == second == expected(table)
    assert slices > 0
    assert len(slices_read) == slices


@pytest.mark.thorough
def test_two_frames_of_the_same_files_are_joined(table: HudiTable, spark: Any, slices_read: list[str]) -> None:
    left, right = (read_frame(spark, table.path, {}).select("id", "ts") for _ in range(2))

    assert left.join(right, left.id == right.id).where(left.ts == right.ts).count() == 40
    assert left.union(right).count() == 80


@pytest.mark.thorough
def test_a_write_a_moment_and_other_columns_are_read_again(
    table: HudiTable, spark: Any, slices_read: list[str]
) -> None:
    before = table.history()[0].instant_time
    assert answers(read_frame(spark, table.path, {})) == expected(table)

    table.upsert(rows(3, 9, 9))
    settle()

    assert answers(read_frame(spark, table.path, {})) == expected(table)
    moment = read_frame(spark, table.path, {"as.of.instant": before})
    assert answers(moment) == expected(table, as_of=before) != expected(table)
    some = HudiTable.open(table.path, spark=spark).scan(columns=["id", "ts"], where="ts = 9")
    assert answers(some.to_spark()) == expected(table, columns=["id", "ts"], where="ts = 9")


@pytest.mark.thorough
def test_a_table_of_another_name_has_its_own_rows(table: HudiTable, spark: Any, slices_read: list[str]) -> None:
    path = Path(table.path)
    assert answers(read_frame(spark, table.path, {})) == expected(table)
    other = written(HudiTable.create(str(path.with_name("other")), rows(0, 2, 1).schema, options=OF_LOGS))
    other.upsert(rows(0, 3, 11))
    settle()
    assert answers(read_frame(spark, other.path, {})) == expected(other)

    path.rename(path.with_name("gone"))
    path.with_name("other").rename(path)

    assert answers(read_frame(spark, table.path, {})) == expected(HudiTable.open(table.path))


@pytest.mark.thorough
def test_few_splits_are_kept_and_no_large_ones(
    table: HudiTable, spark: Any, slices_read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for columns in (["id"], ["id", "ts"], ["ts"], ["id", "amount"], ["amount"], ["amount", "ts"]):
        HudiTable.open(table.path, spark=spark).scan(columns=columns).to_spark()
    assert len(merged._SPLITS._entries) == 4
    merged._SPLITS.clear()
    monkeypatch.setattr(split_cache, "_BYTES", 100)
    read_frame(spark, table.path, {})
    assert merged._SPLITS._entries == []


@pytest.mark.thorough
def test_keys_differ_in_each_of_their_parts(table: HudiTable, spark: Any) -> None:
    def key_now() -> SplitKey | None:
        plan = plan_snapshot(MetaClient.load(LocalStorage(table.path)))
        return split_key(spark, plan, merged.in_two_parts(plan))

    key = key_now()
    assert key is not None
    assert key == key_now()
    for part in fields(key):
        assert key != replace(key, **{part.name: object()}), part.name
