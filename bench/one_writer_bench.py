"""`python -m bench.one_writer_bench`: what a writer that is alone pays for expecting others.

Two tables take the same small upserts in turns: one as it comes (optimistic, a lock by place, a heartbeat), one by a
writer that says that it is the only one and locks within its process.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import warnings

import pyarrow as pa

from pyhudi import write_hudi

ALONE = {"hoodie.write.concurrency.mode": "SINGLE_WRITER", "hoodie.write.lock.provider": "IN_PROCESS"}
WRITERS: dict[str, dict[str, str]] = {"alone": ALONE, "as it comes": {}}


def upsert_ms(folder: str, name: str, number: int) -> tuple[float, float]:
    """Wall and processor time of an upsert of one row."""
    row = pa.table({"id": [str(number % 100)], "v": [number]})
    wall_s, processor_s = time.perf_counter(), time.process_time()
    write_hudi(f"{folder}/{name}", row, record_key="id", table_name="t", options=WRITERS[name])
    return (time.perf_counter() - wall_s) * 1000, (time.process_time() - processor_s) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100)
    pairs = parser.parse_args().pairs
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for name in WRITERS:
            upsert_ms(folder, name, 0)
        times = []
        for number in range(pairs):
            order = list(WRITERS) if number % 2 else list(reversed(WRITERS))
            times.append({name: upsert_ms(folder, name, number) for name in order})
    print("| | alone, ms | as it comes, ms | ratio | more, ms |\n|---|---|---|---|---|")
    for kind, title in enumerate(("wall", "processor")):
        alone, usual = ([pair[name][kind] for pair in times] for name in WRITERS)
        one, other = statistics.median(alone), statistics.median(usual)
        more = statistics.median(b - a for a, b in zip(alone, usual, strict=True))
        print(f"| {title} | {one:.1f} | {other:.1f} | {other / one:.2f} | {more:.1f} |")


if __name__ == "__main__":
    main()
