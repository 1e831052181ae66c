"""A pipeline from a real broker, with aborted transactions, while Spark's Python workers are killed: each row once."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyhudi import HudiTable, Streamer
from tests.support.servers.shared import shared_service

pytestmark = [pytest.mark.servers, pytest.mark.classic]
kafka = pytest.importorskip("confluent_kafka")
EVENTS = 20_000


def produced(bootstrap: str) -> int:
    """Events in three partitions, two of them of transactions, some of which were aborted: how many of them count."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic("orders", 3, 1)]).values():
        made.result(30)
    plain = kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    bound = kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": "t", "linger.ms": 20})
    bound.init_transactions(30)
    for begin in range(0, EVENTS, 500):
        plain.poll(0)
        bound.begin_transaction()
        for number in range(begin, begin + 500):
            value = json.dumps({"id": number, "v": f"v{number}"})
            (plain if number % 3 == 0 else bound).produce("orders", value, partition=number % 3)
        bound.commit_transaction(30)
        bound.begin_transaction()
        bound.produce("orders", json.dumps({"id": -begin - 1, "v": "aborted"}), partition=1 + begin % 2)
        bound.flush(30)
        bound.abort_transaction(30)
    assert plain.flush(30) == 0
    return EVENTS


def workers() -> list[int]:
    """The Python workers that the JVM of this process has started, without their common parent."""
    parents: dict[int, int] = {}
    daemons = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
            if "pyspark.daemon" in Path(f"/proc/{name}/cmdline").read_text():
                daemons.append(int(name))
        except (FileNotFoundError, ProcessLookupError):
            continue

    def is_ours(pid: int) -> bool:
        return pid == os.getpid() or (pid in parents and is_ours(parents[pid]))

    return [pid for pid in daemons if parents[pid] in daemons and is_ours(pid)]


@contextmanager
def killing(every_s: float, most: int) -> Iterator[list[int]]:
    """Kill a worker now and then."""
    ends, killed = threading.Event(), list[int]()

    def kill() -> None:
        while len(killed) < most and not ends.wait(every_s * (0.5 + random.random())):
            for pid in random.sample(there := workers(), min(1, len(there))):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        ends.set()
        thread.join()


def test_each_event_comes_once_whatever_workers_are_killed(spark: SparkSession, tmp_path: Path) -> None:
    with shared_service("kafka") as server:
        count = produced(server["bootstrap"])
        settings: dict[str, Any] = {
            "target-base-path": str(tmp_path / "t"),
            "record_key": "id",
            "source-class": "JsonKafkaSource",
            "op": "INSERT",
            "hoodie.streamer.source.kafka.topic": "orders",
            "hoodie.streamer.kafka.source.maxEvents": 3_000,
            "bootstrap.servers": server["bootstrap"],
            "auto.offset.reset": "earliest",
        }
        failures = 0
        until_s = time.monotonic() + 300
        with killing(3, most=8) as killed:
            while time.monotonic() < until_s:
                streamer = Streamer(settings, spark=spark)
                try:
                    streamer.run(until_empty=True)
                    break
                except Exception:  # ours, or Spark's own
                    failures += 1
                finally:
                    streamer.close()
        run = Streamer(settings).run()  # one process finds nothing that is left

    print(f"{len(killed)} workers killed, {failures} runs failed")
    assert killed
    assert run.rounds == 0
    ids = HudiTable.open(tmp_path / "t").scan(["id"]).to_arrow().column("id").to_pylist()
    assert sorted(ids) == list(range(count))
