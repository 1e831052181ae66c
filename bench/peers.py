"""(f) Side by side with Apache Hudi on the same data, by the benchmark in the shared folder next to the project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT.parent / "shared" / "bench-peers" / "bench"
# Workload → how many times faster than Apache Hudi it should be.
WORKLOADS: dict[str, int | None] = {
    "load": 4, "upsert_cow_1pct": 10, "upsert_cow_10pct": 10, "tiny_commit_cow": 10, "read_cow": None,
}  # fmt: skip
MERGE_ON_READ: dict[str, int | None] = {
    "load_mor": None, "upsert_mor_1pct": 5, "read_mor": 4, "tiny_commit_mor": 15, "compact": 6,
}  # fmt: skip
INCREMENTAL: dict[str, int | None] = {"incremental_read": None}


def run(rows: int, out: Path, contestants: tuple[str, ...], workloads: tuple[str, ...]) -> dict[str, Any]:
    """Seconds by contestant and workload. Raises when the shared folder is absent or the peer benchmark fails."""
    environment = {
        **os.environ,
        "PYHUDI_BENCH_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
    }
    command = [str(PEERS), "run", "--contestants", ",".join(contestants), "--workloads", ",".join(workloads),
               "--rows", str(rows), "--out", str(out)]  # fmt: skip
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    if not out.exists():
        raise RuntimeError(f"{PEERS} ended with exit code {done.returncode} and no results; its words are above")
    return json.loads(out.read_text())  # a contestant that failed says so in its cells


def markdown(
    results: dict[str, Any], workloads: dict[str, int | None], ours: str = "pyhudi", base: str = "hudi_1_2_0"
) -> str:
    """One line for each workload: seconds of everybody, and how many times faster than Apache Hudi we are."""
    names = list(results["contestants"])
    lines = [
        f"| workload, {results['rows']:,} rows | "
        + " | ".join(f"{name}, s" for name in names)
        + " | faster than Hudi | aim |",
        "|---" * (len(names) + 3) + "|",
    ]
    for workload, aim_at_least in workloads.items():
        cells = {name: results["contestants"][name]["workloads"].get(workload, {}) for name in names}
        shown = [
            f"{cell['seconds']:.2f}" + (" **wrong**" if cell.get("wrong") else "")
            if "seconds" in cell
            else "**failed**"
            if cell.get("error")
            else "-"
            for cell in cells.values()
        ]
        factor, aim = "-", f">= {aim_at_least}x" if aim_at_least else ""
        if "seconds" in cells.get(ours, {}) and "seconds" in cells.get(base, {}):
            factor = f"**{cells[base]['seconds'] / cells[ours]['seconds']:.1f}x**"
        lines.append(f"| {workload} | {' | '.join(shown)} | {factor} | {aim} |")
    return "\n".join(lines) + "\n"
