"""`python -m bench.lhbench`, or part i of `make bench`: LHBench's refresh on TPC-H, beside other table formats.

LHBench (Jain and others, CIDR 2023) loads tables, queries them, merges ten refreshes of 3 % of the rows by MERGE INTO,
and queries again. Here the table is TPC-H's `lineitem` as `tpchgen-cli` makes it, without partitions, and each
refresh also holds what TPC-H's own refresh does: orders of 0.1 % of the rows come and as many go.

Each contestant runs in a process of its own, one after the other, in the sessions and environments of the shared
folder `bench-peers`. What a table must hold, and what queries must answer, DuckDB calculates without any contestant.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.spent import Spent, processor_s
from bench.tpch import COLUMNS, KEY, QUERIES, Answer, Refreshes, digest, generate, plain, prepare, same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT.parent / "shared" / "bench-peers"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyhudi-judge"
CONTESTANTS = ("pyhudi", "hudi_1_2_0", "delta_4", "iceberg_1_11")
KINDS = ("cow", "mor")
NAMES = {"pyhudi": "PyHudi", "hudi_1_2_0": "Hudi 1.2.0", "delta_4": "Delta 4.1.0", "iceberg_1_11": "Iceberg 1.11.0"}
KIND_NAMES = {"cow": "copy on write", "mor": "merge on read"}
MERGE = """
    MERGE INTO {table} AS t USING {changes} AS s ON {same_key}
    WHEN MATCHED AND s.op = 'D' THEN DELETE
    WHEN MATCHED AND s.op <> 'D' THEN UPDATE SET {assignments}
    WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({values})"""
QUERY_REPEATS = 3


# ---- one contestant, in a process of its own


@dataclass(frozen=True)
class Plan:
    contestant: str
    kind: str
    home: str
    cores: int
    memory: str
    data: dict[str, Any]
    out: str


@dataclass
class Outcome:
    """What a contestant took, and where its table or its answers were wrong."""

    about: dict[str, Any] = field(default_factory=dict)
    steps: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    load_before: float = 0.0
    failed: bool = False

    def took(self, step: str) -> tuple[float, float] | None:
        """Seconds by the clock and of the processor: of queries the medians, else all of them."""
        times = self.steps.get(step)
        if not times:
            return None
        add = statistics.median if step[0] == "Q" else sum
        return add(times["wall_s"]), add(times["processor_s"])


@dataclass(frozen=True)
class Table:
    """The table of one contestant, in its SQL."""

    spark: SparkSession
    contestant: str
    kind: str
    name: str

    def load(self, file: str) -> None:
        self.spark.read.parquet(file).createOrReplaceTempView("source")
        using, properties = self._form()
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        self.spark.sql(f"CREATE TABLE {self.sql_name} USING {using} TBLPROPERTIES ({listed}) AS SELECT * FROM source")

    def merge(self, file: str) -> None:
        self.spark.read.parquet(file).createOrReplaceTempView("changes")
        values = [column for column in COLUMNS if column not in KEY]
        statement = MERGE.format(
            table=self.sql_name,
            changes="changes",
            same_key=" AND ".join(f"t.{column} = s.{column}" for column in KEY),
            assignments=", ".join(f"{column} = s.{column}" for column in values),
            columns=", ".join(COLUMNS),
            values=", ".join(f"s.{column}" for column in COLUMNS),
        )
        self.spark.sql(statement).collect()

    def ask(self, question: str) -> Answer:
        return plain(self.spark.sql(question.format(table=self.sql_name)).collect())

    @property
    def sql_name(self) -> str:
        return f"b.db.{self.name}" if self.contestant.startswith("iceberg") else self.name

    def _form(self) -> tuple[str, dict[str, str]]:
        """The provider, and the properties that say which kind of table it is; everything else is as it comes."""
        merge_on_read = self.kind == "mor"
        if self.contestant.startswith("delta"):
            return "delta", {"delta.enableDeletionVectors": str(merge_on_read).lower()}
        if self.contestant.startswith("iceberg"):
            mode = "merge-on-read" if merge_on_read else "copy-on-write"
            return "iceberg", {"write.merge.mode": mode, "format-version": "3" if merge_on_read else "2"}
        return "hudi", {"primaryKey": ",".join(KEY), "type": self.kind}


def contest(plan: Plan) -> None:
    """Runs all steps of a contestant; after each, what is known so far is in the file of the outcome."""
    outcome = Outcome()
    for _ in steps(plan, outcome):
        Path(plan.out).write_text(json.dumps(asdict(outcome)))


def steps(plan: Plan, outcome: Outcome) -> Iterator[None]:
    spark, outcome.about = session(plan)
    data = Refreshes(**plan.data)
    warm = Table(spark, plan.contestant, plan.kind, "warm")
    warm.load(data.warm[0])
    warm.merge(data.warm[1])
    for question in (*QUERIES.values(), digest("spark")):
        warm.ask(question)
    table = Table(spark, plan.contestant, plan.kind, "lineitem")
    loaded, merged = Spent(), Spent()
    loaded.run(partial(table.load, data.base), processor_s)
    outcome.steps["load"] = asdict(loaded)
    yield
    yield from query(table, "before", data.truth["before"], outcome)
    for batch in data.batches:
        merged.run(partial(table.merge, batch), processor_s)
        outcome.steps["merges"] = asdict(merged)
        yield
    yield from query(table, "after", data.truth["after"], outcome)
    spark.stop()


def query(table: Table, when: str, truth: dict[str, Answer], outcome: Outcome) -> Iterator[None]:
    """The queries, timed; then their answers and the digest, untimed, beside the truth."""
    for name, text in {**QUERIES, "digest": digest("spark")}.items():
        if name != "digest":
            spent = Spent()
            for _ in range(QUERY_REPEATS):
                spent.run(partial(table.ask, text), processor_s)
            outcome.steps[f"{name} {when}"] = asdict(spent)
        if not same(answer := table.ask(text), truth[name]):
            outcome.wrong.append(f"{name} {when}: {answer}, but true is {truth[name]}")
        yield


def session(plan: Plan) -> tuple[SparkSession, dict[str, Any]]:
    """The session in which the shared benchmark runs this contestant, with its jars and settings."""
    sys.path.append(str(PEERS))
    jars = [str(jar) for jar in (CACHE / "jars").glob("*.jar")]
    module = importlib.import_module(f"contestants.{plan.contestant}")
    contestant = module.CONTESTANT(plan.home, plan.cores, plan.memory, jars)
    about = contestant.start()
    if plan.contestant == "pyhudi":
        importlib.import_module("pyhudi").enable(contestant.session)
    if plan.contestant.startswith("iceberg"):
        contestant.session.sql("CREATE NAMESPACE IF NOT EXISTS b.db")
    return contestant.session, about


# ---- all of them


def run(given: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Runs all contestants; after each, what is known so far is in the file `out`."""
    import duckdb

    contestants = given.contestants.split(",")
    if peers := [name for name in contestants if name != "pyhudi"]:
        subprocess.run([str(PEERS / "setup"), *peers], check=True)
    with tempfile.TemporaryDirectory(prefix="pyhudi-lhbench-", dir=given.work) as name:
        folder = Path(name)
        with duckdb.connect(config={"threads": given.cores, "memory_limit": "4GB"}) as duck:
            data = prepare(duck, generate(folder, given.scale), given.rounds)
        report: dict[str, Any] = {
            "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
            "scale": given.scale, "rounds": given.rounds, "cores": given.cores, "memory": given.memory,
            "rows": {when: truth["digest"][0][0] for when, truth in data.truth.items()},
            "outcomes": {},
        }  # fmt: skip
        for kind in given.kinds.split(","):
            for contestant in contestants:
                report["outcomes"][f"{kind} {contestant}"] = started(folder, contestant, kind, data, given)
                out.write_text(json.dumps(report, indent=1))
    print(conditions(report), markdown(report), sep="\n\n")
    return report


def started(folder: Path, contestant: str, kind: str, data: Refreshes, given: argparse.Namespace) -> dict[str, Any]:
    home, out, log = folder / "home", folder / "outcome.json", folder / "log.txt"
    home.mkdir()
    plan = Plan(contestant, kind, str(home), given.cores, given.memory, asdict(data), str(out))
    (home / "plan.json").write_text(json.dumps(asdict(plan)))
    python, load = python_of(contestant), os.getloadavg()[0]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
        "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python, "PYTHONDONTWRITEBYTECODE": "1", "TZ": "UTC",
    }  # fmt: skip
    command = [python, "-m", "bench.lhbench", "--plan", str(home / "plan.json")]
    out.unlink(missing_ok=True)
    with log.open("w") as words:
        done = subprocess.run(
            command, env=environment, cwd=home, stdin=subprocess.DEVNULL, stdout=words, stderr=subprocess.STDOUT
        )
    outcome: dict[str, Any] = {
        **(json.loads(out.read_text()) if out.exists() else asdict(Outcome())),
        "load_before": load,
    }
    if done.returncode:
        outcome["failed"] = True
        print(log.read_text()[-5000:], file=sys.stderr)
    took = {step: Outcome(**outcome).took(step) for step in outcome["steps"]}
    print(f"{kind} {contestant}: {took} {outcome['wrong']}", file=sys.stderr, flush=True)
    shutil.rmtree(home)
    return outcome


def python_of(contestant: str) -> str:
    """That of the environment which bench-peers makes; ours is this one, or what bench-peers is told, too."""
    if contestant == "pyhudi":
        return os.environ.get("PYHUDI_BENCH_PYTHON") or sys.executable
    return str(CACHE / ("bench-spark35" if contestant.startswith("hudi_") else "bench-spark41") / "bin" / "python")


def conditions(report: dict[str, Any]) -> str:
    outcomes = report["outcomes"]
    sparks = {name.split(" ")[1]: outcome["about"].get("spark") for name, outcome in outcomes.items()}
    versions = ", ".join(f"{name} on Spark {version}" for name, version in sparks.items())
    busiest = max(outcome["load_before"] for outcome in outcomes.values())
    return (
        f"TPC-H scale {report['scale']:g}, {report['rows']['before']:,} rows; {report['machine']}, {report['cores']} "
        f"used, {report['memory']}; {report['when']}; load average up to {busiest:.1f}; {versions}."
    )


def markdown(report: dict[str, Any]) -> str:
    """A line for each kind of table and step: seconds of the first contestant, and ratios of the others to it.

    Two numbers of a cell are by the clock and of the processor. Above 1 the first contestant is faster.
    """
    outcomes = {name: Outcome(**outcome) for name, outcome in report["outcomes"].items()}
    kinds, names = (list(dict.fromkeys(name.split(" ")[at] for name in outcomes)) for at in (0, 1))
    ours, *others = names
    heads = [f"{NAMES.get(ours, ours)}, s", *(NAMES.get(name, name) for name in others)]
    merges = f"{report['rounds']} merges"
    lines = [f"| table | step | {' | '.join(heads)} |", "|---" * (len(names) + 2) + "|"]
    for kind in kinds:
        for step in ("load", "Q1 before", "Q6 before", "merges", "Q1 after", "Q6 after"):
            base = outcomes[f"{kind} {ours}"].took(step)
            cells = [cell(outcomes[f"{kind} {name}"], step, base if name != ours else None) for name in names]
            what = merges if step == "merges" else step.replace("after", f"after {merges}")
            lines.append(f"| {KIND_NAMES[kind]} | {what} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def cell(outcome: Outcome, step: str, base: tuple[float, float] | None) -> str:
    took = outcome.took(step)
    if took is None or (step == "merges" and outcome.failed):
        return "**failed**"
    numbers = [f"{seconds:.2f}" for seconds in took] if base is None else [
        f"{seconds / of:.2f}" for seconds, of in zip(took, base, strict=True)
    ]  # fmt: skip
    return f"{numbers[0]} ({numbers[1]})" + (" **wrong**" if is_wrong(outcome, step) else "")


def is_wrong(outcome: Outcome, step: str) -> bool:
    """A wrong digest before the refreshes is the load's, one after them that of the merges."""
    of_digest = {"load": "digest before", "merges": "digest after"}
    return any(words.startswith(of_digest.get(step, step)) for words in outcome.wrong)


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.lhbench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, help="of TPC-H: 1 is 6,001,215 rows (default 1)")
    parser.add_argument("--rounds", type=int, help="refreshes (default 10)")
    parser.add_argument("--contestants", default=",".join(CONTESTANTS), help="the first is what others are held to")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of tables")
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 2))
    parser.add_argument("--memory", default="5g", help="of the Spark driver")
    parser.add_argument("--work", help="folder for data (default: the system's temporary folder)")
    parser.add_argument("--quick", action="store_true", help="scale 0.01, two refreshes")
    parser.add_argument("--plan", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    given.scale = given.scale or (0.01 if given.quick else 1.0)
    given.rounds = given.rounds or (2 if given.quick else 10)
    return given


def main() -> None:
    given = arguments()
    if given.plan:
        contest(Plan(**json.loads(given.plan.read_text())))
        return
    out = ROOT / "bench" / "results" / f"lhbench-{time.strftime('%Y%m%d-%H%M%S')}.json"
    out.parent.mkdir(exist_ok=True)
    run(given, out)


if __name__ == "__main__":
    main()
