"""What a first hour waits for: the import, the first small write of a process, an upsert of ten rows in a warm one.

PYTHONPATH=. python -m bench.first_hour_bench [--repeats 11]

Each figure is the least and the median of the runs, by the clock on the wall, and the least of the processor. The start
of Python itself is not in it. `without pandas`: pyarrow loads pandas, where it is installed, the first time it makes an
array of Python values.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bench.spent import Spent
from pyhudi import HudiTable, write_hudi

_FIRST_WRITE = """
import sys, time
if "{pandas}" == "no":
    class Lacking:
        def find_spec(self, name, path=None, target=None):
            if name == "pandas":
                raise ModuleNotFoundError(name)
    sys.meta_path.insert(0, Lacking())
start, begun = time.perf_counter(), time.process_time()
from pyhudi import write_hudi
write_hudi(sys.argv[1], [{{"id": n, "city": "ab"[n % 2], "fare": n / 2}} for n in range(10)], record_key="id")
print(time.perf_counter() - start, time.process_time() - begun)
"""
_IMPORT = """
import time
start, begun = time.perf_counter(), time.process_time()
import pyhudi
print(time.perf_counter() - start, time.process_time() - begun)
"""


def main() -> None:
    """Prints a table with a line for each figure."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=11)
    repeats = arguments.parse_args().repeats
    print("| seconds | least | median | least of the processor | aim |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        new_places = (str(Path(folder) / f"new{number}") for number in range(10_000))
        _measure("import pyhudi", partial(_in_process, _IMPORT), repeats, 0.1)
        for pandas, what in (("yes", ""), ("no", ", without pandas")):
            code = _FIRST_WRITE.format(pandas=pandas)

            def first_write(spent: Spent, code: str = code) -> None:
                _in_process(code, spent, next(new_places))

            _measure(f"first write of a process{what}", first_write, repeats, 1.0)
        for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
            place = str(Path(folder) / kind)
            write_hudi(place, _rows(range(1_000)), record_key="id", partition_by="city", table_type=kind)
            table = HudiTable.open(place)
            upsert = partial(table.upsert, _rows(range(10)))
            _measure(f"upsert of 10 rows of 1,000, {kind}", lambda spent, work=upsert: spent.run(work), repeats, 0.05)  # type: ignore[misc]


def _measure(what: str, work: Callable[[Spent], None], repeats: int, aim_s: float) -> None:
    work(Spent())  # caches of the machine
    spent = Spent()
    for _ in range(repeats):
        work(spent)
    print(
        f"| {what} | {min(spent.wall_s):.3f} | {spent.medians[0]:.3f} | {min(spent.processor_s):.3f} | < {aim_s} |",
        flush=True,
    )


def _in_process(code: str, spent: Spent, *arguments: str) -> None:
    """What a new process prints: its seconds."""
    answer = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    wall, processor = answer.stdout.split()
    spent.wall_s.append(float(wall))
    spent.processor_s.append(float(processor))


def _rows(ids: Sequence[int]) -> list[dict[str, object]]:
    return [{"id": n, "city": "ab"[n % 2], "fare": n / 2} for n in ids]


if __name__ == "__main__":
    main()
