"""The command line on large tables: least seconds of whole processes, and of a processor.

PYTHONPATH=. python -m bench.cli_bench [--commits 1000] [--files 100000] [--repeats 5]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.tables.large_state import make_large_state

_COMMANDS = ("--help", "table describe {}", "table files {}", "table health {}", "table history {} --limit 20")


def main() -> None:
    """Prints a line for each command."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--commits", type=int, default=1_000)
    arguments.add_argument("--files", type=int, default=100_000)
    arguments.add_argument("--repeats", type=int, default=5)
    args = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table"
        table.mkdir()
        make_large_state(table, args.commits, args.files)
        for words in _COMMANDS:
            walls, spent = zip(*(_run(words.format(table).split()) for _ in range(args.repeats)), strict=True)
            print(f"{words.format('TABLE'):<36} {min(walls):.2f} s ({min(spent):.2f} s of a processor)", flush=True)


def _run(words: list[str]) -> tuple[float, float]:
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run([sys.executable, "-m", "pyhudi.cli", *words], stdout=subprocess.DEVNULL, check=False)
    assert ended.returncode in (0, 3), ended
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
