"""A driver that follows two tables into two others, until it is killed: `stream_driver <folder> [finish]`.

orders → copy      rows that are updated, upserted into a merge-on-read table with compactions next to
ledger → entries   rows that come once, inserted into a table without keys, so that a doubled batch shows
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

COPY = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.clean.async.enabled": "true",
}
ENTRIES = {"hoodie.datasource.write.operation": "insert"}
# What Spark says when a Python process of it is gone: whoever runs a stream starts it again then. The first one is also
# said on a busy machine, where Spark's ten seconds for the Python of a stream are not enough.
LOST_WORKER = ("failed to connect back", "exited unexpectedly", "EOFException", "Broken pipe", "Connection reset")
OURS = "pyhudi.errors"  # in the text of an error that no restart mends
LIMIT = {"hoodie.pyhudi.streaming.max.commits.per.batch": "2"}


def main(folder: Path, *, finish: bool) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    import pyhudi
    from tests.support.spark.sessions import CONF

    builder = SparkSession.builder.master("local[2]")
    for key, value in {**CONF, "spark.local.dir": str(folder / "local")}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    pyhudi.enable(spark)
    trigger: dict[str, Any] = {"availableNow": True} if finish else {"processingTime": "50 milliseconds"}
    roads = (("orders", "copy", COPY), ("ledger", "entries", ENTRIES))

    def start(source: str, target: str, options: dict[str, str]) -> Any:
        rows = spark.readStream.format("hudi").options(**LIMIT).load(str(folder / source)).select("id", "v", "ts")
        writer = rows.writeStream.format("hudi").options(**options).trigger(**trigger)
        return writer.option("checkpointLocation", str(folder / f"{source}.checkpoint")).start(str(folder / target))

    running: dict[str, Any] = {road[0]: start(*road) for road in roads}
    print("running", flush=True)
    while running:
        for road in roads:
            if road[0] not in running:
                continue
            try:
                query = running[road[0]] = running[road[0]] or start(*road)
                if query.isActive:
                    continue
                error = query.exception()
            except (PySparkException, Py4JJavaError) as failure:  # a source is looked up in a Python process, too
                error = failure
            if error is None:
                del running[road[0]]
            elif can_start_again(error, finish=finish):
                print(f"started again: {str(error)[:300]}", file=sys.stderr, flush=True)
                running[road[0]] = None
            else:
                raise error
        time.sleep(0.2)


def can_start_again(error: Exception, *, finish: bool) -> bool:
    """Is it the loss of a process? Where processes are killed, Spark has many words for that, and none of ours."""
    words = str(error)
    return any(known in words for known in LOST_WORKER) or not (finish or OURS in words)


if __name__ == "__main__":
    main(Path(sys.argv[1]), finish=sys.argv[2:] == ["finish"])
