"""The console script of the wheel with the extra `cli` alone: no Spark, no store. The arguments are lines of pages,
which are run on tables in ./rides and ./lake/rides. Prints the least seconds
of a processor that starting takes, and holds them against imports of Python's own: processors differ by a factor of
five.
"""

from __future__ import annotations

import json
import resource
import shlex
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(sys.executable).parent / "pyhudi"
OWN = (sys.executable, "-c", "import asyncio, http.client")
TRIES = 5
# Times what Python needs for them. Measured: 0.6 to 0.8, and 1.8 to 2.9; an import of PyArrow adds 2.
HELP_MOST, DESCRIBE_MOST = 1.5, 4


def run(*words: str, code: int = 0, given: str = "") -> str:
    """What a command writes to standard output. It must end with this exit code."""
    ended = subprocess.run([PROGRAM, *words], input=given, capture_output=True, text=True, check=False)
    assert ended.returncode == code, f"{words}: exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def least_s(*command: str | Path) -> float:
    """The least seconds of a processor that a command takes."""
    spent = []
    for _ in range(TRIES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


assert "table describe" in run("--help")
assert "--storage-option" in run("table", "history", "--help")
rows = "id,city,fare\na,rome,1\nb,oslo,2\n"
run("write", "./rides", "-", "--format", "csv", "--record-key", "id", given=rows)
assert json.loads(run("table", "describe", "./rides", "--json"))["record_key"] == ["id"]
assert [row["id"] for row in json.loads(run("head", "./rides", "--json"))] == ["a", "b"]
run("compact", "./rides", code=1)  # a copy-on-write table
run("rollback", "./rides", code=1)  # nobody said yes
run("tabel", code=2)
run("table", "health", "./rides")
run("write", "./lake/rides", "-", "--format", "csv", "--record-key", "id", given=rows)
assert len(sys.argv) > 1
for line in sys.argv[1:]:
    program, *words = shlex.split(line)
    assert program == "pyhudi"
    assert run(*words), line
help_s, describe_s = least_s(PROGRAM, "--help"), least_s(PROGRAM, "table", "describe", "./rides")
own_s = least_s(*OWN)
print(f"pyhudi --help {help_s:.3f} s, table describe {describe_s:.3f} s, imports of Python's own {own_s:.3f} s")
assert help_s < HELP_MOST * own_s
assert describe_s < DESCRIBE_MOST * own_s
print("done")
