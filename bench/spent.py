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
    """Processor seconds of this process and all below it since its start; where there is no /proc, of this one.

    Of processes that have ended, those count whose parents have waited for them, and what others had taken at the call
    before: Spark's daemon waits for none of the idle workers that it stops.
    """
    now = _processes()
    if os.getpid() not in now:
        return time.process_time()
    ended: dict[int, float] = {}
    for pid in _KNOWN.processes.keys() - now.keys():
        over = _KNOWN.processes[pid].parent
        while over not in now and over in _KNOWN.processes:
            over = _KNOWN.processes[over].parent
        ended[over] = ended.get(over, 0.0) + _KNOWN.processes[pid].all_s
    for over in ended.keys() & now.keys():
        before = _KNOWN.processes.get(over)
        _KNOWN.lost_s += max(0.0, ended[over] - now[over].waited_s + (before.waited_s if before else 0.0))
    _KNOWN.processes = now
    return sum(process.all_s for process in now.values()) + _KNOWN.lost_s


@dataclass(frozen=True)
class _Process:
    """Seconds that a process took itself, and those of processes that it has waited for."""

    parent: int
    own_s: float
    waited_s: float

    @property
    def all_s(self) -> float:
        return self.own_s + self.waited_s


@dataclass
class _Known:
    """The processes at the call before, and the seconds of ended ones that nobody has waited for."""

    processes: dict[int, _Process] = field(default_factory=dict)
    lost_s: float = 0.0


_KNOWN = _Known()


def _processes() -> dict[int, _Process]:
    """This process and all below it, by their numbers."""
    every: dict[int, _Process] = {}
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended while we looked
        own, waited = (sum(map(int, fields[at : at + 2])) / os.sysconf("SC_CLK_TCK") for at in (11, 13))
        every[int(stat.parent.name)] = _Process(int(fields[1]), own, waited)
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    below, waiting = dict[int, _Process](), [os.getpid()]
    while waiting:
        pid = waiting.pop()
        if pid in every:
            below[pid] = every[pid]
            waiting += children.get(pid, [])
    return below
