"""Large batches of Spark: joins find their keys, whatever holds the stored ones, and no key is collected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from pyhudi.engine.local import LocalEngine
from pyhudi.spark.engine import SparkEngine
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from tests.support.large_batches import CASES, collects_keys, large_from, play

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
