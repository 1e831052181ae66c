"""The world of a run: a storage, a lock and a clock whose every call is a point of the scheduler.

Above them is the product's own code. What it would do on threads of its own is done in the task at once (pools), or is
a task (heartbeats). Three kinds of store:

    disk            a file is made only if there is none; a listing is of one moment
    conditional     the same, by conditional puts; a long listing is not of one moment
    unconditional   whether there is a file is asked first, and then it is made
"""

from __future__ import annotations

import random
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, ClassVar
from unittest import mock

import pyarrow as pa

from pyhudi.locks.base import LockOptions
from pyhudi.storage.base import FileInfo, Storage
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.storage.memory import MemoryStorage, _Sink
from tests.support.simulation.scheduler import Process, Scheduler, Task

__all__ = ["LOCK", "STORES", "SimulatedLock", "SimulatedStorage", "World", "simulated"]

STORES = ("disk", "conditional", "unconditional")
LOCK = f"{__name__}:SimulatedLock"


class World:
    """What the tasks of a run share. One at a time is on the stage (`simulated`)."""

    here: ClassVar[World | None] = None

    def __init__(self, scheduler: Scheduler, seed: str) -> None:
        self.scheduler = scheduler
        self.ids = random.Random(seed)
        self.holders: dict[str, SimulatedLock] = {}

    def point(self, what: str) -> None:
        """A point, if a task of this world is running."""
        if World.here is self:
            self.scheduler.point(what)


def _point(what: str) -> None:
    if World.here is not None:
        World.here.point(what)


class _Stamps(SystemClock):
    """The store's own clock: stamping a file is no point, since the store's mutex is held."""

    def now_ms(self) -> int:
        return _here().scheduler.now_ms


class SimulatedStorage(MemoryStorage):
    """The storage of all tasks: each call is a point before it takes effect, and one before its answer arrives."""

    def __init__(self, name: str, kind: str = "disk") -> None:
        super().__init__(name, _Stamps())
        self.kind = kind

    @property
    def is_local(self) -> bool:
        return self.kind == "disk"

    @property
    def listed_at_once(self) -> int:
        return sys.maxsize if self.kind == "disk" else 0

    def _around(self, verb: str, path: str, call: Callable[[], Any]) -> Any:
        _point(f"{verb} {path}")
        result = call()
        _point(f"{verb} {path} done")
        return result

    def read(self, path: str, limit_bytes: int = 1 << 40) -> bytes:
        return self._around("read", path, lambda: MemoryStorage.read(self, path, limit_bytes))  # type: ignore[no-any-return]

    def open_input(self, path: str) -> pa.NativeFile:
        _point(f"open {path}")
        return super().open_input(path)

    def open_output(self, path: str) -> pa.NativeFile:
        _point(f"make {path}")
        super().open_output(path).close()
        return pa.PythonFile(_SimulatedSink(self, path), mode="w")  # type: ignore[arg-type]

    def write(self, path: str, data: bytes) -> None:
        self._around("write", path, lambda: MemoryStorage.write(self, path, data))

    def create_new(self, path: str, data: bytes) -> None:
        if self.kind == "unconditional" and MemoryStorage.stat(self, path) is None:
            _point(f"look {path}")
            MemoryStorage.write(self, path, data)
            _point(f"create {path} done")
            return
        self._around("create", path, lambda: MemoryStorage.create_new(self, path, data))

    def list(self, path: str) -> tuple[FileInfo, ...]:
        _point(f"list {path}")
        first = super().list(path)
        if self.kind == "disk" or len(first) < 2:
            return first
        _point(f"list {path}, second page")
        middle = first[len(first) // 2].name
        second = super().list(path)
        return (*(one for one in first if one.name < middle), *(one for one in second if one.name >= middle))

    def walk(self, path: str) -> Iterator[FileInfo]:
        _point(f"walk {path}")
        return super().walk(path)

    def stat(self, path: str) -> FileInfo | None:
        _point(f"stat {path}")
        return super().stat(path)

    def delete(self, path: str) -> bool:
        return self._around("delete", path, lambda: MemoryStorage.delete(self, path))  # type: ignore[no-any-return]

    def delete_tree(self, path: str) -> None:
        self._around("delete tree", path, lambda: MemoryStorage.delete_tree(self, path))

    def set_modified(self, path: str, modified_ms: int) -> None:
        _point(f"set time {path}")
        super().set_modified(path, modified_ms)


class _SimulatedSink(_Sink):
    def close(self) -> None:
        if not self.closed:
            _point(f"close {self._path}")
        super().close()


class SimulatedLock:
    """A lock that excludes all others, and that a dead process loses."""

    default_skew_ms = 1

    def __init__(self, settings: LockOptions, storage: Storage, clock: Clock) -> None:
        assert World.here is not None
        self._world, self._name = World.here, storage.root
        self._owner = ""

    @property
    def is_held(self) -> bool:
        return self._world.holders.get(self._name) is self

    @property
    def owner_note(self) -> str:
        holder = self._world.holders.get(self._name)
        return "nobody" if holder is None else holder._owner

    def try_acquire(self, timeout_s: float) -> bool:
        scheduler = self._world.scheduler
        self._world.point("take the lock")
        deadline_ms = scheduler.now_ms + round(timeout_s * 1000)
        while self._name in self._world.holders:
            if scheduler.now_ms >= deadline_ms or scheduler.current() is None:
                return False
            scheduler.wait(deadline_ms, lambda: self._name not in self._world.holders)
        task = scheduler.current()
        self._owner = "" if task is None else task.name
        self._world.holders[self._name] = self
        return True

    def release(self) -> None:
        if self.is_held:
            del self._world.holders[self._name]
            self._world.point("give the lock back")


class _Beats:
    """A renewal (`pyhudi/locks/renewal.py`) as a task of the process that began it."""

    def __init__(self, renew: Callable[[], bool], interval_s: float, name: str = "renewal") -> None:
        self._renew, self._interval_ms, self._name = renew, round(interval_s * 1000), name
        self._is_on = self._is_renewing = False
        self._number = 0

    def start(self) -> None:
        scheduler, process = _here().scheduler, _process()
        self._is_on, self._number = True, self._number + 1
        number = self._number
        task = Task(f"heartbeat of {process.name}", process, lambda: self._run(number), is_daemon=True)
        task.wakes_ms = scheduler.now_ms + self._interval_ms
        scheduler.spawn(task)

    def stop(self) -> None:
        self._is_on = False
        if self._is_renewing:
            scheduler = _here().scheduler
            scheduler.wait(scheduler.now_ms + 3_600_000, lambda: not self._is_renewing)

    def _run(self, number: int) -> None:
        scheduler = _here().scheduler
        while self._is_on and number == self._number:
            self._is_renewing = True
            try:
                if not self._renew():
                    return
            finally:
                self._is_renewing = False
            scheduler.wait(scheduler.now_ms + self._interval_ms)


def _here() -> World:
    assert World.here is not None
    return World.here


def _process() -> Process:
    task = _here().scheduler.current()
    return Process("outside") if task is None else task.process


class _AtOnce:
    """A pool of threads without threads."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> _AtOnce:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Callable[..., Any], *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future

    def map(self, work: Callable[..., Any], *inputs: Iterable[Any]) -> Iterator[Any]:
        return iter([work(*arguments) for arguments in zip(*inputs, strict=False)])

    def shutdown(self, *_: object, **__: object) -> None:
        pass


def _now_ms(_: SystemClock) -> int:
    _point("look at the clock")
    return _here().scheduler.now_ms


def _monotonic_s(_: SystemClock) -> float:
    return _here().scheduler.now_ms / 1000


def _new_uuid(_: SystemClock) -> str:
    return str(uuid.UUID(int=_here().ids.getrandbits(128), version=4))


def _sleep_s(_: SystemClock, seconds: float) -> None:
    scheduler = _here().scheduler
    if seconds > 0:
        if scheduler.current() is None:
            scheduler.now_ms += max(1, round(seconds * 1000))
        else:
            scheduler.wait(scheduler.now_ms + max(1, round(seconds * 1000)))


@contextmanager
def simulated(world: World) -> Iterator[None]:
    """Everything in this process looks at the world's clock, and beats in its tasks."""
    pooled = [
        mock.patch.object(module, "ThreadPoolExecutor", _AtOnce)
        for name, module in sorted(sys.modules.items())
        if name.startswith("pyhudi.") and hasattr(module, "ThreadPoolExecutor")
    ]
    patches: list[Any] = [
        mock.patch.object(SystemClock, "now_ms", _now_ms),
        mock.patch.object(SystemClock, "sleep_s", _sleep_s),
        mock.patch.object(SystemClock, "monotonic_s", _monotonic_s),
        mock.patch.object(SystemClock, "new_uuid", _new_uuid),
        mock.patch("pyhudi.timeline.heartbeat.Renewal", _Beats),
        mock.patch("pyhudi.locks.storage_based.Renewal", _Beats),
        *pooled,
    ]
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    begun: list[Any] = []
    try:
        for patch in patches:
            patch.start()
            begun.append(patch)
        World.here = world
        yield
    finally:
        World.here = None
        for patch in reversed(begun):
            patch.stop()
        pa.set_cpu_count(threads)
