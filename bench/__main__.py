"""`python -m bench`: runs the cases, prints a Markdown table, writes JSON to bench/results."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pyarrow
import pyspark
from pyspark.sql import SparkSession

import pyhudi
from bench import cases, lhbench, mor_cases, peers, sync_bench, time_bench
from bench.memory import WorkerMemory

RESULTS = Path(__file__).resolve().parent / "results"
MIB = 1 << 20


def main() -> None:
    given = arguments()
    with tempfile.TemporaryDirectory(prefix="pyhudi-bench-", dir=given.work) as name:
        folder = Path(name)
        conditions = {
            "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "cores": given.cores,
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
            "load_before": os.getloadavg()[0],
            "rows": given.rows,
            "repeats": given.repeats,
            "spark_memory": given.memory,
            "python": platform.python_version(),
            "pyspark": pyspark.__version__,
            "pyarrow": pyarrow.__version__,
            "pyhudi": pyhudi.__version__,
        }
        report: dict[str, object] = {"conditions": conditions}
        if given.only == "mor":
            report["cases"] = [{**asdict(result), "ratio": result.ratio} for result in run_merge_on_read(given, folder)]
        elif set(given.only) & set("abcde"):
            results, memory = run_cases(given, folder)
            report |= {"cases": [{**asdict(result), "ratio": result.ratio} for result in results], "memory": memory}
            print(markdown(results, memory, conditions))
        if "h" in given.only:
            start, chosen = partial(session, given, folder), given.cases.split(",")
            report["time"] = time_bench.run(folder / "time", start, chosen, quick=given.quick, batches=given.batches)
        if "g" in given.only:
            report["sync"] = sync_bench.run(folder / "sync", given.repeats, 10 * given.repeats)
    RESULTS.mkdir(exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    if "f" in given.only:
        report["peers"] = run_peers(given, RESULTS / f"peers-{stamp}.json", peers.WORKLOADS)
    if given.only == "mor" and not given.quick:
        report["peers"] = run_peers(given, RESULTS / f"peers-{stamp}.json", peers.MERGE_ON_READ)
    if "h" in given.only and "read" in given.cases.split(","):
        report["incremental"] = run_peers(given, RESULTS / f"peers-time-{stamp}.json", peers.INCREMENTAL)
    if "i" in given.only:
        words = [*(["--quick"] if given.quick else ()), *(["--scale", str(given.scale)] if given.scale else ())]
        report["lhbench"] = lhbench.run(lhbench.arguments(words), RESULTS / f"lhbench-{stamp}.json")
    out = RESULTS / f"bench-{stamp}.json"
    out.write_text(json.dumps(report, indent=1, default=str))
    print(f"Written to {out}", file=sys.stderr)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rows", type=int, help="rows of cases a to e (default 4,000,000)")
    parser.add_argument("--peer-rows", type=int, help="rows of case f (default 1,000,000)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 2))
    parser.add_argument("--memory", default="3g", help="of the Spark driver")
    parser.add_argument("--only", default="abcdefgh", help="letters of the cases to run, a to i, or: mor")
    parser.add_argument("--cases", default=",".join(time_bench.CASES), help="of case h")
    parser.add_argument("--scale", type=float, help="of TPC-H, of case i (default 1)")
    parser.add_argument("--batches", type=int, help="of the stream of case h (default 200)")
    parser.add_argument("--contestants", default="pyhudi,hudi_1_2_0,floor_spark", help="of case f")
    parser.add_argument("--work", help="folder for data (default: the system's temporary folder)")
    parser.add_argument("--quick", action="store_true", help="200,000 rows, one repeat, without case f")
    given = parser.parse_args()
    given.rows = given.rows or (200_000 if given.quick else 4_000_000)
    given.batches = given.batches or (12 if given.quick else 200)
    given.peer_rows = given.peer_rows or 1_000_000
    if given.quick:
        given.repeats, given.only = 1, given.only.replace("f", "")
        given.cases = given.cases.replace(",read", "")
    return given


def run_cases(given: argparse.Namespace, folder: Path) -> tuple[list[cases.Result], dict[str, object]]:
    spark = session(given, folder)
    setting = cases.Setting(spark, folder, given.rows, given.repeats, given.cores)
    results: list[cases.Result] = []
    peaks: dict[str, object] = {}
    cases.warm_up(setting)
    plan = {
        "a": [lambda: cases.bulk_insert(setting)],
        "b": [lambda: cases.upsert(setting, 0.01, "b 1 %"), lambda: cases.upsert(setting, 0.1, "b 10 %")],
        "c": [lambda: cases.small_commit(setting)],
        "d": [
            lambda: cases.scan(setting, "d 4 columns", "aggregate over 4 columns", cases.scan_aggregate),
            lambda: cases.scan(setting, "d all", "all columns", cases.scan_all),
        ],
    }
    if not set(given.only) & {"a"}:
        cases.save(cases.data.source(spark, setting.staged, given.rows), setting.table, "bulk_insert")
    for letter, runs in plan.items():
        for run in runs if letter in given.only else ():
            with WorkerMemory() as memory:
                results.append(run())
            peaks[results[-1].case] = {"peak_mib": memory.peak_bytes // MIB, "workers": memory.most_workers}
            print(f"{results[-1].case}: {results[-1].ratio:.2f}", file=sys.stderr, flush=True)
    spark.stop()
    return results, peaks


def run_merge_on_read(given: argparse.Namespace, folder: Path) -> list[cases.Result]:
    spark = session(given, folder)
    setting = cases.Setting(spark, folder, given.rows, given.repeats, given.cores)
    results: list[cases.Result] = []

    def report(result: cases.Result) -> None:
        results.append(result)
        ours, floor = statistics.median(result.ours_s), statistics.median(result.floor_s)
        print(f"| {result.case} | {result.what} | {ours:.3f} | {floor:.3f} | **{result.ratio:.2f}** | {result.aim} |",
              flush=True)  # fmt: skip

    print("| case | what | PyHudi, s | floor, s | ratio | aim |\n|---|---|---|---|---|---|")
    mor_cases.run(setting, report)
    spark.stop()
    return results


def session(given: argparse.Namespace, folder: Path) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(RESULTS.parent.parent), os.environ.get("PYTHONPATH", "")])
    )
    builder = SparkSession.builder.master(f"local[{given.cores}]").appName("PyHudi bench")
    for key, value in {
        "spark.driver.memory": given.memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(4 * given.cores),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder / "spark"),
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    pyhudi.enable(spark)
    return spark


def run_peers(given: argparse.Namespace, out: Path, workloads: dict[str, int | None]) -> object:
    if not peers.PEERS.exists():
        print("left out: case f (the benchmark of the peers is absent)", file=sys.stderr)
        return None
    results = peers.run(given.peer_rows, out, tuple(given.contestants.split(",")), tuple(workloads))
    print(peers.markdown(results, workloads))
    return results


def markdown(results: list[cases.Result], memory: dict[str, object], conditions: dict[str, object]) -> str:
    c = conditions
    about = (
        f"{c['rows']:,} rows x 20 columns; {c['machine']}, {c['cores']} used; Python {c['python']}, "
        f"PySpark {c['pyspark']}, PyArrow {c['pyarrow']}; {c['when']}; medians of {c['repeats']} interleaved "
        f"repeats; load before {c['load_before']:.1f}."
    )
    lines = [
        about,
        "",
        "| case | what | PyHudi, s | floor, s | ratio | aim | floor is | Python worker peak, MiB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        ours, floor = statistics.median(result.ours_s), statistics.median(result.floor_s)
        over = result.notes.get("over_the_floor_s")
        ratio = f"{result.ratio:.2f}" if over is None else f"+{over:.2f} s"
        peak = memory[result.case]["peak_mib"]  # type: ignore[index]
        cells = (
            result.case,
            result.what,
            f"{ours:.2f}",
            f"{floor:.2f}",
            f"**{ratio}**",
            result.aim,
            result.floor,
            str(peak),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
    shutil.rmtree(RESULTS.parent / "spark-warehouse", ignore_errors=True)
