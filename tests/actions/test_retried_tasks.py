"""A task that is run again because its answer was lost: what its first attempt wrote does not stay in the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.engine.base import GroupWork, StreamWork, TaskContext, TaskT
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.local_frame import LocalFrame
from tests.support.tables.clustered import TYPES, Clustered
from tests.support.tables.merge_on_read import VERSIONS


@dataclass(frozen=True)
class Twice:
    """Work that is done by an attempt whose answer nobody hears, and then by another one."""

    work: Any

    def __call__(self, context: TaskContext, *args: Any) -> Iterable[pa.RecordBatch]:
        *before, rows = args
        batches = list(rows)
        for _ in self.work(replace(context, attempt_id=context.attempt_id + 1000), *before, iter(batches)):
            continue
        return self.work(context, *before, iter(batches))  # type: ignore[no-any-return]


class RetryingEngine(LocalEngine):
    """Runs every task twice."""

    def map(self, frame: Any, work: StreamWork, schema: pa.Schema) -> LocalFrame:
        return super().map(frame, Twice(work), schema)

    def map_groups(
        self,
        frame: Any,
        slot: str,
        tasks: Sequence[TaskT],
        work: GroupWork[TaskT],
        schema: pa.Schema,
        sort: Sequence[str] = (),
    ) -> LocalFrame:
        return super().map_groups(frame, slot, tasks, Twice(work), schema, sort)


def committed_files(table: Clustered) -> Iterator[str]:
    meta = table.meta
    for instant in meta.timeline.commits():
        for stat in meta.commits.metadata(instant).stats():
            assert stat.path is not None
            yield stat.path


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
def test_every_file_in_the_table_is_named_by_a_commit(table_type: str, version: str) -> None:
    table = Clustered(version, table_type, clean_automatic="false")
    table.engine = RetryingEngine(2)
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    table.upsert(("a", "x", 2, 11), ("c", "z", 1, 30))
    table.insert(("d", "x", 1, 40))
    table.delete(("b", "y"))

    assert table.data_files() == sorted(committed_files(table))
    assert table.rows() == [("a", "x", 2, 11), ("c", "z", 1, 30), ("d", "x", 1, 40)]
