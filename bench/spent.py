"""Time that runs take: by the clock on the wall, and of the processor; and lines of a table that say it."""

from __future__ import annotations

import ctypes
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

_CHILD_SUBREAPER = 36  # of prctl(2)


@dataclass
class Spent:
    """Seconds of runs: by the clock on the wall, and of the processor."""

    wall_s: list[float] = field(default_factory=list)
    processor_s: list[float] = field(default_factory=list)

    def run(self, work: Callable[[], object], processes: Callable[[], float] = time.process_time) -> None:
        wall, processor = time.perf_counter(), processes()
        work()
        self.processor_s.append(processes() - processor)
        self.wall_s.append(time.perf_counter() - wall)

    @property
    def medians(self) -> tuple[float, float]:
        return statistics.median(self.wall_s), statistics.median(self.processor_s)


def tell(what: str, wall: str, processor: str, aim: str = "-") -> None:
    print(f"| {what} | {wall} | {processor} | {aim} |", flush=True)


def tell_ms(what: str, spent: Spent, aim: str = "-") -> None:
    wall_s, processor_s = spent.medians
    tell(what, f"{wall_s * 1000:.1f} ms", f"{processor_s * 1000:.1f} ms", aim)


def processor_s() -> float:
    """Processor seconds of this process and all below it; where there is no /proc, of this one.

    Of processes that have ended, those count whose parents have waited for them, and those whose parents ended before
    them: this process adopts them from the first call on.
    """
    _adopt_orphans()
    parents: dict[int, list[int]] = {}
    times: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended while we looked
        pid = int(stat.parent.name)
        parents.setdefault(int(fields[1]), []).append(pid)
        times[pid] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    if os.getpid() not in times:
        return time.process_time()
    total, waiting = 0.0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        total += times.get(pid, 0.0)
        waiting += parents.get(pid, [])
    return total


@cache
def _adopt_orphans() -> None:
    """Nobody waits for them here, so what they took stays in /proc. Elsewhere than on Linux it isn't to be had."""
    if Path("/proc/self/stat").exists():
        ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)
