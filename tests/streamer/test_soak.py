"""Events of a real broker into a table by two pipelines at once, with processes and the broker killed, and partitions
added: each event once, and checkpoints that never go back.

    PYHUDI_SOAK_EVENTS=1000000 PYHUDI_SOAK_KILLS=50 make streamer ARGS="-k soak -s"
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable, Streamer
from pyhudi.streamer.sources.kafka.offsets import offsets_of
from tests.support.servers.kafka import KafkaServer, kafka_server
from tests.support.source import ROOT

EVENTS = int(os.environ.get("PYHUDI_SOAK_EVENTS", "0"))
KILLS = int(os.environ.get("PYHUDI_SOAK_KILLS", "6"))
SEED = int(os.environ.get("PYHUDI_SOAK_SEED", random.SystemRandom().randrange(1 << 30)))
TOPIC, V1 = "soak", "deltastreamer.checkpoint.key"
BROKER_EVERY, PARTITION_EVERY = 3, 4  # kills


def settings(table: Path, address: str, kind: str) -> dict[str, object]:
    return {
        "target-base-path": str(table),
        "record_key": "id",
        "op": "INSERT",  # an event that comes twice is two rows
        "table-type": kind,
        "source-class": "JsonKafkaSource",
        "source-limit": max(200, EVENTS // 100),
        "hoodie.streamer.source.kafka.topic": TOPIC,
        "hoodie.streamer.source.kafka.append.offsets": True,
        "bootstrap.servers": address,
        "auto.offset.reset": "earliest",
        "topic.metadata.refresh.interval.ms": 1000,
        "continuous": True,
        "retry-on-source-failures": True,
        "retry-interval-seconds": 1,
        "max-retry-count": 8,
        "hoodie.clustering.async.enabled": True,
        "hoodie.clustering.async.max.commits": 10,
        "hoodie.keep.min.commits": 12,
        "hoodie.keep.max.commits": 16,
        "hoodie.clean.commits.retained": 8,
    }


class Pipelines:
    """Two processes of one configuration, on one table."""

    def __init__(self, folder: Path, config: dict[str, object]) -> None:
        self._folder, path = folder, folder / "p.properties"
        path.write_text(
            "".join(f"{key}={str(value).lower() if value is True else value}\n" for key, value in config.items())
        )
        self._command = [sys.executable, "-m", "pyhudi.cli", "stream", str(path)]
        self._running = [self._start(number) for number in range(2)]

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        with (self._folder / f"log{number}").open("ab") as log:
            return subprocess.Popen(self._command, stderr=log, stdout=log, env={**os.environ, "PYTHONPATH": str(ROOT)})

    def kill(self, number: int) -> None:
        """Kill one, and start it again. None ends by itself."""
        self.check()
        self._running[number].kill()
        self._running[number].wait()
        self._running[number] = self._start(number)

    def check(self) -> None:
        for number, one in enumerate(self._running):
            assert one.poll() is None, (self._folder / f"log{number}").read_text()[-2000:]

    def end(self) -> None:
        """SIGTERM ends both after their batch."""
        self.check()
        for one in self._running:
            one.terminate()
        # 143: it was about to start.
        assert {one.wait(120) for one in self._running} <= {0, 143}

    def close(self) -> None:
        for one in self._running:
            one.kill()
            one.wait()


class Events:
    """A producer that sends each event once, also when the broker dies; partitions are added on the way."""

    def __init__(self, address: str) -> None:
        kafka = pytest.importorskip("confluent_kafka")
        self._admin_module = pytest.importorskip("confluent_kafka.admin")
        self._admin = self._admin_module.AdminClient({"bootstrap.servers": address, "log_level": 0})
        self.partitions = 2
        self._admin.create_topics([self._admin_module.NewTopic(TOPIC, 2, 1)])[TOPIC].result(30)
        self._producer = kafka.Producer({
            "bootstrap.servers": address, "log_level": 0, "enable.idempotence": True, "message.timeout.ms": 0,
            "linger.ms": 20, "topic.metadata.refresh.interval.ms": 1000, "sticky.partitioning.linger.ms": 0,
            "queue.buffering.max.messages": 2_000_000,
        })  # fmt: skip
        self.sent = 0
        self.delivered: dict[int, int] = {}  # partition → events
        self._errors: list[str] = []

    def send(self, until: int) -> None:
        for number in range(self.sent, until):
            self._producer.produce(TOPIC, json.dumps({"id": number, "v": number * 7}), on_delivery=self._note)
            if number % 1000 == 0:
                self._producer.poll(0)
        self.sent = until

    def add_partition(self) -> None:
        self.partitions += 1
        more = [self._admin_module.NewPartitions(TOPIC, self.partitions)]
        self._admin.create_partitions(more)[TOPIC].result(60)

    def flush(self) -> None:
        assert self._producer.flush(300) == 0
        assert self._errors == []
        assert sum(self.delivered.values()) == self.sent

    def _note(self, error: Any, message: Any) -> None:
        if error is not None:
            self._errors.append(str(error))
        else:
            self.delivered[message.partition()] = self.delivered.get(message.partition(), 0) + 1


@pytest.mark.servers
@pytest.mark.skipif(not EVENTS, reason="minutes long: PYHUDI_SOAK_EVENTS says how many events; make streamer does")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_soak_with_kills_of_two_pipelines_and_the_broker_brings_each_event_once(kind: str, tmp_path: Path) -> None:
    chance = random.Random(f"{SEED} {kind}")
    began_s = time.monotonic()
    with kafka_server() as broker:
        config = settings(tmp_path / "t", broker.address, kind)
        events = Events(broker.address)
        pipelines = Pipelines(tmp_path, config)
        try:
            play(events, pipelines, broker, chance)
        finally:
            pipelines.close()
        lines: list[str] = []
        Streamer({**config, "continuous": False}).run(until_empty=True, told=lines.append)
    check(tmp_path / "t", events.delivered, lines)
    print(f"{kind}, seed {SEED}: {EVENTS:,} events, {KILLS} kills, {time.monotonic() - began_s:.0f} s")


def play(events: Events, pipelines: Pipelines, broker: KafkaServer, chance: random.Random) -> None:
    for number in range(1, KILLS + 1):
        events.send(EVENTS * number // (KILLS + 1))
        time.sleep(chance.uniform(1.0, 8.0))
        if number % PARTITION_EVERY == 0:
            events.add_partition()
        if number % BROKER_EVERY == 0:
            broker.kill()
            time.sleep(chance.uniform(0.0, 3.0))
            broker.start()
        else:
            pipelines.kill(chance.randrange(2))
    events.send(EVENTS)
    events.flush()
    time.sleep(chance.uniform(1.0, 8.0))
    pipelines.end()


def check(path: Path, delivered: dict[int, int], lines: list[str]) -> None:
    """Each event once, by partition. `delivered`: partition → events of the broker; `lines`: of the last run."""
    table = HudiTable.open(path)
    rows = table.scan(meta_columns=False).to_arrow()
    of_partition = rows.group_by("_hoodie_kafka_source_partition").aggregate(
        [("_hoodie_kafka_source_offset", function) for function in ("min", "max", "count_distinct", "count")]
    )
    offsets = {
        one["_hoodie_kafka_source_partition"]: tuple(
            one[f"_hoodie_kafka_source_offset_{name}"] for name in ("min", "max", "count_distinct", "count")
        )
        for one in of_partition.to_pylist()
    }
    expected = {partition: (0, count - 1, count, count) for partition, count in delivered.items()}
    assert offsets == expected, story(table, rows, delivered, lines)
    ids = rows["id"].combine_chunks()
    assert (len(ids), len(ids.unique())) == (EVENTS, EVENTS)
    assert (pc.min(ids).as_py(), pc.max(ids).as_py()) == (0, EVENTS - 1)
    assert pc.all(pc.equal(rows["v"], pc.multiply(rows["id"], 7))).as_py()
    texts = [entry.extra[V1] for entry in reversed(table.history()) if V1 in entry.extra]
    assert_monotone([offsets_of(text, TOPIC) for text in texts])


def story(table: HudiTable, rows: pa.Table, delivered: dict[int, int], lines: list[str]) -> str:
    """What a run that lost or doubled events leaves to look at: which offsets, and who wrote when."""
    texts = []
    for partition, count in sorted(delivered.items()):
        offsets = rows.filter(pc.equal(rows["_hoodie_kafka_source_partition"], partition))[
            "_hoodie_kafka_source_offset"
        ].to_numpy()
        times = np.bincount(offsets, minlength=count)
        texts.append(f"partition {partition}: missing {ranges(times == 0)}, more than once {ranges(times > 1)}")
    texts += [
        f"{one.instant_time} {one.action} {one.state} {one.rows_written} {one.extra.get(V1)}" for one in table.history()
    ]
    return "\n".join([*texts, *lines])


def ranges(marks: Any) -> list[tuple[int, int]]:
    """Where marks are set: first and last of each range."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marks, [False]]).astype(int)))
    return [(int(first), int(end) - 1) for first, end in edges.reshape(-1, 2)]


def assert_monotone(checkpoints: list[dict[int, int]]) -> None:
    """Each commit's offsets are those of the one before, or later."""
    assert len(checkpoints) > 1
    for before, after in pairwise(checkpoints):
        assert set(before) <= set(after)
        assert all(after[partition] >= offset for partition, offset in before.items()), (before, after)
        assert before != after


def test_the_check_of_checkpoints_sees_one_that_goes_back() -> None:
    found: list[dict[int, Any]] = [{0: 1}, {0: 3, 1: 0}, {0: 2, 1: 4}]
    with pytest.raises(AssertionError):
        assert_monotone(found)
