"""Peak memory of Spark's Python workers and of a process, from /proc (Linux)."""

from __future__ import annotations

import os
import threading
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
PERIOD_S = 0.05


class WorkerMemory:
    """Samples the resident memory of every Python worker below this process while it is open.

    A worker is a child of PySpark's daemon, which forks it; the daemon itself does not count.
    """

    def __init__(self) -> None:
        self.peak_bytes = 0
        self.most_workers = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> WorkerMemory:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(PERIOD_S):
            sizes = [size for size in (resident_bytes(pid) for pid in worker_pids()) if size]
            self.peak_bytes = max(self.peak_bytes, *sizes, 0)
            self.most_workers = max(self.most_workers, len(sizes))


def peak_bytes(pid: int | None = None) -> int:
    """The most memory that a process has had, None: this one; not `getrusage`, which begins with that of the parent."""
    (line,) = [
        line for line in Path(f"/proc/{pid or 'self'}/status").read_text().splitlines() if line.startswith("VmHWM")
    ]
    return int(line.split()[1]) * 1024


def worker_pids() -> list[int]:
    """Processes whose command line is PySpark's daemon and whose parent is one too."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir() if Path("/proc").is_dir() else ():
        if entry.name.isdigit():
            try:
                if b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                    parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue  # it ended while we looked
    return [pid for pid, parent in parents.items() if parent in parents]


def resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    except (OSError, ValueError):
        return 0
