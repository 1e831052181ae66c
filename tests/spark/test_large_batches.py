"""Large batches of Spark: joins find their keys, whatever holds the stored ones, and no key is collected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from pyhudi.engine.base import Frame, as_engine
from pyhudi.engine.local import LocalEngine
from pyhudi.meta_client import MetaClient
from pyhudi.metadata import staged_index
from pyhudi.model.options import WriteOptions
from pyhudi.queries.validation import validate
from pyhudi.spark.engine import SparkEngine
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.write import write_table
from tests.support.large_batches import CASES, GLOBAL_RECORDS, collects_keys, large_from, play
from tests.support.tables.record_indexed import places
from tests.support.tables.small import DEFAULTS
from tests.support.tables.staged_index import blocks_of_index, small_staged_files

# Each kind of stored keys once; the other cases differ in rows alone and run without Spark, in tests/index.
CHOSEN = [
    "simple, keys in two places",
    "simple, inserts of known keys",
    "simple, no stored keys",
    "global simple",
    "global simple, log files",
    "global bloom, ORC",
    "global bloom, log files, stays",
    "global records, log files",
    "records",
]


class NotingEngine(SparkEngine):
    """`collected`: the columns of each frame that was brought to the driver."""

    def __init__(self, spark: Any) -> None:
        super().__init__(spark)
        self.collected: list[list[str]] = []

    def collect(self, frame: DataFrame) -> pa.Table:
        self.collected.append(list(frame.columns))
        return super().collect(frame)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CHOSEN)
def test_a_large_batch_of_spark_finds_the_keys_that_this_process_finds_and_collects_none(
    name: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = play(CASES[name], MemoryStorage(), LocalEngine(2))
    large_from(monkeypatch, 0)
    engine = NotingEngine(spark)
    there = play(CASES[name], LocalStorage(str(tmp_path)), engine)

    assert there == here
    assert engine.collected
    assert not collects_keys(engine.collected)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["simple, keys in two places", "global simple, log files", "records"])
def test_tasks_with_their_own_parts_of_a_large_plan_write_the_rows_that_this_process_writes(
    name: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = play(CASES[name], MemoryStorage(), LocalEngine(2))
    monkeypatch.setattr("pyhudi.actions.rows._SENT_GROUPS", 0)
    monkeypatch.setattr("pyhudi.spark.engine._PICKLED_BYTES", -1)

    assert play(CASES[name], LocalStorage(str(tmp_path)), SparkEngine(spark)) == here


@pytest.mark.parametrize("most_pieces", [8, 2])
def test_the_tasks_of_a_large_load_write_the_record_index_and_no_key_is_collected(
    most_pieces: int, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_staged_files(monkeypatch, most_keys=10_000)
    monkeypatch.setattr(staged_index, "_PIECES_MAX", most_pieces)
    rows = spark.range(4000).selectExpr("cast(id as string) id", "cast(id % 2 as string) p", "1L ts", "id v")
    given = {**DEFAULTS, **GLOBAL_RECORDS, "hoodie.datasource.write.operation": "bulk_insert"}
    given["hoodie.metadata.global.record.level.index.max.filegroup.count"] = "2"
    engine = NotingEngine(spark)
    write_table(str(tmp_path), Frame(rows.repartition(3)), as_engine(engine), WriteOptions.parse(given))

    meta = MetaClient.load(LocalStorage(str(tmp_path)))
    assert blocks_of_index(meta) == ([3, 3] if most_pieces > 3 else [1, 1])
    assert validate(meta) == ()
    assert len(places(meta)) == 4000
    assert not collects_keys(engine.collected)
