"""What a Python worker of Spark keeps between tasks."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.engine.base import TaskContext
from pyhudi.spark import failures
from pyhudi.spark.engine import SparkEngine

LEFT = pa.schema([("walked", pa.int64())])


class WhatACollectionWalksThrough:
    """Stream work: how many objects the collector of its worker looks at."""

    def __call__(self, context: TaskContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield pa.RecordBatch.from_arrays([pa.array([len(gc.get_objects())])], schema=LEFT)


def test_collections_of_a_worker_do_not_walk_through_what_was_imported(spark: Any) -> None:
    """Spark collects after every task: that of a small one took longer than the task."""
    engine = SparkEngine(spark)
    rows = engine.from_arrow(pa.table({"n": [1, 2, 3]}))
    walked = engine.collect(engine.map(rows, WhatACollectionWalksThrough(), LEFT)).column("walked").to_pylist()
    assert max(walked) < 20_000, "the imports of a worker are some 200,000 objects"


def test_what_is_imported_later_is_kept_out_too_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[str] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append("now"))
    monkeypatch.setattr(failures, "_modules_kept", 0)
    modules = {"one": None}
    monkeypatch.setattr(failures.sys, "modules", modules)
    for _ in range(2):
        with failures.in_worker():
            pass
    assert frozen == ["now"]
    modules["two"] = None
    with failures.in_worker():
        pass
    assert frozen == ["now", "now"]
