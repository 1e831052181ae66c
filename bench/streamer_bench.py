"""Kafka JSON into a merge-on-read table with a bucket index: `python -m bench.streamer_bench [--events N]`.

The contestants take the same topic in turns, each in a process of its own on two cores: the Streamer on Spark, where
the driver writes small batches; the same with all writes by tasks; the Streamer in one process; and Structured
Streaming of Spark 3.5 into Apache Hudi 1.2.0. Each takes a small topic first,
so that its session is warm. It needs the folder `shared` beside the checkout (services/kafka, judge).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

SHARED = Path(__file__).resolve().parents[2] / "shared"
JUDGE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyhudi-judge"
WARM_EVENTS, PARTITIONS = 20_000, 4
TABLE = {
    "hoodie.table.name": "streamed",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "8",
    "hoodie.compact.inline": "false",
}
SESSION = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
}


def produce(bootstrap: str, topic: str, events: int) -> None:
    """Events of some 100 bytes; each key twice."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
        made.result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
    for number in range(events):
        key = number % (events // 2)
        row = {"id": f"k{key:08}", "ts": number, "city": f"c{number % 97}", "fare": number / 4, "note": "x" * 20}
        producer.produce(topic, json.dumps(row), partition=key % PARTITIONS)
        if number % 50_000 == 0:
            producer.poll(0)
    assert producer.flush(300) == 0


# ---- contestants: each runs in its own process, and prints the seconds


def pyhudi_streamer(bootstrap: str, topic: str, path: str, batch: int, spark: Any, engine: str = "auto") -> None:
    """The Streamer, on Spark or in this process."""
    from pyhudi import Streamer

    streamer = Streamer(
        {
            **TABLE,
            "target-base-path": path,
            "ordering": "ts",
            "source-class": "JsonKafkaSource",
            "hoodie.streamer.source.kafka.topic": topic,
            "hoodie.streamer.kafka.source.maxEvents": batch,
            "bootstrap.servers": bootstrap,
            "auto.offset.reset": "earliest",
            "hoodie.pyhudi.engine": engine,
        },
        spark=spark,
    )
    streamer.run(until_empty=True)
    streamer.close()


def hudi(bootstrap: str, topic: str, path: str, batch: int, spark: Any) -> None:
    """Structured Streaming into real Hudi."""
    from pyspark.sql import functions as F

    options = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(batch),
    }
    text = F.col("value").cast("string")
    row = F.from_json(text, "id string, ts bigint, city string, fare double, note string").alias("r")
    rows = spark.readStream.format("kafka").options(**options).load().select(row).select("r.*")
    query = (
        rows.writeStream.format("hudi")
        .options(**TABLE, **{"hoodie.datasource.write.precombine.field": "ts"})
        .option("hoodie.datasource.compaction.async.enable", "false")
        .option("checkpointLocation", f"{path}-checkpoint")
        .trigger(availableNow=True)
        .start(path)
    )
    query.awaitTermination()


def session(more: Mapping[str, str]) -> Any:
    """A session on two cores."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for key, value in {**SESSION, **more}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def contestant(name: str, bootstrap: str, topic: str, folder: str, batch: int, jars: str) -> None:
    """Warm up, and take the topic."""
    spark: Any = None
    run: Callable[..., None] = pyhudi_streamer
    if name.startswith("pyhudi on Spark"):
        spark = session({})
        run = partial(pyhudi_streamer, engine="spark" if name.endswith("tasks") else "auto")
    elif name == "hudi":
        run = hudi
        spark = session(
            {
                "spark.jars": jars,
                "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
                "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
                "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
            }
        )
    run(bootstrap, "warm", f"{folder}/warm", batch, spark)
    began = time.monotonic()
    run(bootstrap, topic, f"{folder}/table", batch, spark)
    print(json.dumps({"seconds": time.monotonic() - began}), flush=True)


def rows_of(folder: str) -> int:
    """How many rows the table has, by PyHudi."""
    from pyhudi import HudiTable

    return int(HudiTable.open(f"{folder}/table").scan(["id"]).to_arrow().num_rows)


def main() -> None:
    """All contestants in turns."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--batch", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", default="pyhudi on Spark,pyhudi on Spark by tasks,pyhudi,hudi")
    parser.add_argument("--contestant", nargs=6)
    given = parser.parse_args()
    if given.contestant:
        name, bootstrap, topic, folder, batch, jars = given.contestant
        contestant(name, bootstrap, topic, folder, int(batch), jars)
        return
    seconds: dict[str, list[float]] = {name: [] for name in given.only.split(",")}
    with tempfile.TemporaryDirectory(prefix="pyhudi-streamer-bench-") as folder:
        kafka, services = f"{folder}/kafka", SHARED / "services" / "kafka"
        subprocess.run([services / "start", kafka], check=True, stdout=subprocess.DEVNULL)
        try:
            bootstrap = Path(kafka, "address").read_text().strip().partition("=")[2]
            produce(bootstrap, "warm", WARM_EVENTS)
            produce(bootstrap, "events", given.events)
            bundle = str(JUDGE / "jars" / "hudi-spark3.5-bundle_2.12-1.2.0.jar")
            kafka_jars = subprocess.run(
                [services / "spark-jars", kafka, "3.5"], check=True, capture_output=True, text=True
            )
            jars = ",".join([kafka_jars.stdout.strip().splitlines()[-1], bundle])
            for number in range(given.rounds):
                for name in seconds:
                    place = f"{folder}/{name.replace(' ', '-')}-{number}"
                    python = str(next(JUDGE.glob("venv-*/bin/python"))) if name == "hudi" else sys.executable
                    words = [name, bootstrap, "events", place, str(given.batch), jars]
                    ran = subprocess.run(
                        [python, __file__, "--contestant", *words], capture_output=True, text=True, check=False
                    )
                    if ran.returncode:
                        sys.exit(f"{name}: {ran.stdout[-2000:]}{ran.stderr[-3000:]}")
                    took = json.loads(ran.stdout.strip().splitlines()[-1])["seconds"]
                    assert rows_of(place) == given.events // 2, f"{name}: {rows_of(place)} rows"
                    seconds[name].append(took)
                    print(f"{name}: {given.events / took:,.0f} rows/s", flush=True)
        finally:
            subprocess.run([services / "stop", kafka], check=False, stdout=subprocess.DEVNULL)
    middle = {name: statistics.median(times) for name, times in seconds.items()}
    for name, took in middle.items():
        ratio = f", {middle['hudi'] / took:.2f} x hudi" if "hudi" in middle else ""
        print(f"{name}: {given.events / took:,.0f} rows/s{ratio}")


if __name__ == "__main__":
    main()
