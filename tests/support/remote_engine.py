"""An engine whose tasks run elsewhere, as far as they can tell: what they need travels, and memory is not shared."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from pyhudi.engine.base import TaskContext
from pyhudi.engine.local import LocalEngine

__all__ = ["RemoteEngine"]


class RemoteEngine:
    """`collected`: the columns of each table that was brought to the planner."""

    shares_memory = False

    def __init__(self, threads: int = 2) -> None:
        self._tasks = LocalEngine(threads)
        self.collected: list[list[str]] = []

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._tasks, verb)

    def fan_out(self, tasks: Sequence[Any], work: Callable[..., Any], schema: pa.Schema) -> Any:
        sent = pickle.dumps(work)

        def run(context: TaskContext, task: bytes) -> Any:
            return pickle.loads(sent)(context, pickle.loads(task))

        return self._tasks.fan_out([pickle.dumps(task) for task in tasks], run, schema)

    def map_groups(
        self,
        frame: Any,
        slot: str,
        tasks: Sequence[Any],
        work: Callable[..., Any],
        schema: pa.Schema,
        sort: Sequence[str] = (),
    ) -> Any:
        return self._tasks.map_groups(frame, slot, tasks, pickle.loads(pickle.dumps(work)), schema, sort)

    def extend(self, frame: Any, columns: Sequence[str], work: Callable[..., Any], schema: pa.Schema) -> Any:
        return self._tasks.extend(frame, columns, pickle.loads(pickle.dumps(work)), schema)

    def map(self, frame: Any, work: Callable[..., Any], schema: pa.Schema) -> Any:
        return self._tasks.map(frame, pickle.loads(pickle.dumps(work)), schema)

    def collect(self, frame: Any) -> pa.Table:
        table = self._tasks.collect(frame)
        self.collected.append(list(table.column_names))
        return table
