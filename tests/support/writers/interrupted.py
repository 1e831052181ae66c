"""Writers that are interrupted: something else happens at a moment in the middle of a write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyhudi.engine.local import LocalEngine
from pyhudi.storage import MemoryStorage


class InterruptedEngine(LocalEngine):
    """Lets another write happen just before the tasks of its own run."""

    def __init__(self, other: Any) -> None:
        super().__init__(1)
        self._other = other

    def map_groups(self, *args: Any, **kwargs: Any) -> Any:
        other, self._other = self._other, None
        if other is not None:
            other()
        return super().map_groups(*args, **kwargs)


class WatchedStorage(MemoryStorage):
    """Tells of each `open_output` before it is done."""

    def __init__(self, storage: Any, announce: Callable[[str, str], None]) -> None:
        self._content, self._name, self._told = storage._content, storage._name, announce

    def open_output(self, path: str) -> Any:
        self._told("open_output", path)
        return super().open_output(path)
