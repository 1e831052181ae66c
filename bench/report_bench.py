"""The page of a large table: seconds of the whole call of `HudiTable.inspect.report`, and the size of the page.

PYTHONPATH=. python -m bench.report_bench [--commits 1000] [--files 100000] [--repeats 5]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from pyhudi import HudiTable
from tests.support.tables.large_state import make_large_state


def main() -> None:
    """Prints each run, of a table that is opened anew."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--commits", type=int, default=1_000)
    arguments.add_argument("--files", type=int, default=100_000)
    arguments.add_argument("--repeats", type=int, default=5)
    args = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table, page = Path(folder) / "table", Path(folder) / "page.html"
        table.mkdir()
        make_large_state(table, args.commits, args.files)
        for _ in range(args.repeats):
            wall, processor = time.perf_counter(), time.process_time()
            HudiTable.open(table).inspect.report(page)
            print(
                f"{time.perf_counter() - wall:.2f} s ({time.process_time() - processor:.2f} s of processors), "
                f"{page.stat().st_size / 1e6:.2f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
