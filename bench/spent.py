"""Time that runs take: by the clock on the wall, and of the processor; and lines of a table that say it."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


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

    Of processes that have ended, those count whose parents have waited for them.
    """
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
