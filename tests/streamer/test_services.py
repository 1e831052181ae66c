"""Table services, exports and catalogs beside the rounds of a pipeline: none of them loses a batch, or stops it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable, Streamer, flush_metrics, metrics
from pyhudi.model.instant import ActionKind
from pyhudi.services import beside
from pyhudi.services.beside import cluster_waiting, compact_waiting
from tests.support.catalogs import catalogs_in_memory
from tests.support.http_receiver import http_receiver
from tests.support.source import ROOT

COMPACTS = {"table-type": "MERGE_ON_READ", "hoodie.compact.inline.max.delta.commits": "2"}
CLUSTERS = {
    "hoodie.clustering.async.enabled": "true",
    "hoodie.clustering.async.max.commits": "2",
    "hoodie.clustering.plan.strategy.small.file.limit": "1000000000",
    "op": "INSERT",
    "hoodie.parquet.small.file.limit": "0",
}


class Updates:
    """Ten rows, `until` times; `v` is the number of the batch. An insert has ids of its own."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.until = int(settings.get("own.until", "5"))
        self.is_new = settings.get("own.new") == "true"

    def read(self, checkpoint: str | None, limit: int | None) -> tuple[Any, str] | None:
        number = int(checkpoint or 0)
        first = 10 * number if self.is_new else 0
        if number >= self.until:
            return None
        return {"id": list(range(first, first + 10)), "v": [number] * 10}, str(number + 1)


def config(tmp_path: Path, **more: object) -> dict[str, object]:
    source = {"source-class": f"{__name__}:Updates"}
    return {"target-base-path": str(tmp_path / "t"), "record_key": "id", **source, **more}


def rows(tmp_path: Path) -> set[tuple[int, int]]:
    found = HudiTable.open(tmp_path / "t").scan(["id", "v"], meta_columns=False).to_arrow().to_pylist()
    assert len(found) == len({row["id"] for row in found})
    return {(row["id"], row["v"]) for row in found}


def done(tmp_path: Path, kind: str) -> int:
    return sum((one.operation or "").lower() == kind for one in HudiTable.open(tmp_path / "t").history(limit=1000))


def pending(tmp_path: Path) -> list[ActionKind]:
    return [instant.action for instant in HudiTable.open(tmp_path / "t").state().timeline.pending()]


@pytest.mark.parametrize("version", ["6", "9"])
def test_compactions_within_the_batches_of_a_continuous_run_change_no_row(version: str, tmp_path: Path) -> None:
    more = {**COMPACTS, "hoodie.compact.inline": "true", "hoodie.write.table.version": version}
    found = Streamer(config(tmp_path, continuous=True, **more)).run(until_empty=True)

    assert (found.rows, found.commits) == (50, 5)
    assert done(tmp_path, "compact") == 2
    assert rows(tmp_path) == {(number, 4) for number in range(10)}


def test_compactions_of_a_continuous_run_are_made_by_a_thread_beside_it_and_the_run_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def seen(context: Any) -> Any:
        threads.append(threading.current_thread().name)
        return compact_waiting(context)

    monkeypatch.setattr(beside, "compact_waiting", seen)
    found = Streamer(config(tmp_path, continuous=True, **COMPACTS)).run(until_empty=True)

    assert found.rows == 50
    assert threads
    assert all(name.startswith("hudi-streamer-services") for name in threads)
    assert done(tmp_path, "compact") > 0
    assert pending(tmp_path) == []
    assert rows(tmp_path) == {(number, 4) for number in range(10)}


def test_a_single_round_compacts_within_its_batch(tmp_path: Path) -> None:
    Streamer(config(tmp_path, **COMPACTS)).run(until_empty=True)
    assert done(tmp_path, "compact") == 2


@pytest.mark.parametrize(
    "more",
    [
        {"disable-compaction": True},
        {"hoodie.compact.inline": False, "hoodie.datasource.compaction.async.enable": False},
    ],
)
def test_nothing_is_compacted_where_the_options_leave_it_to_another_process(more: Any, tmp_path: Path) -> None:
    Streamer(config(tmp_path, continuous=True, **COMPACTS, **more)).run(until_empty=True)
    assert done(tmp_path, "compact") == 0
    assert pending(tmp_path) == []


def test_batches_only_plan_where_another_process_executes(tmp_path: Path) -> None:
    more = {"hoodie.compact.inline": False, "hoodie.compact.schedule.inline": True}
    more |= {"hoodie.datasource.compaction.async.enable": False}
    Streamer(config(tmp_path, continuous=True, **COMPACTS, **more)).run(until_empty=True)
    assert ActionKind.COMPACTION in pending(tmp_path)

    HudiTable.open(tmp_path / "t").compact()
    assert rows(tmp_path) == {(number, 4) for number in range(10)}


def test_a_service_that_fails_is_said_and_neither_stops_the_run_nor_costs_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(context: Any) -> Any:
        raise OSError("the disk is full")

    monkeypatch.setattr(beside, "compact_waiting", fail)
    lines: list[str] = []
    found = Streamer(config(tmp_path, continuous=True, **COMPACTS)).run(until_empty=True, told=lines.append)

    assert found.rows == 50
    assert any(
        "fail beside the pipeline failed; it is tried again" in line and "disk is full" in line for line in lines
    )
    assert ActionKind.COMPACTION in pending(tmp_path)
    monkeypatch.undo()
    Streamer(config(tmp_path, continuous=True, **{**COMPACTS, "own.until": "6"})).run(until_empty=True)
    assert pending(tmp_path) == []
    assert rows(tmp_path) == {(number, 5) for number in range(10)}


def test_no_batch_begins_while_more_plans_wait_than_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go, most = threading.Event(), [0]

    def slow(context: Any) -> Any:
        if ActionKind.COMPACTION in pending(tmp_path):
            assert go.wait(30)
        return compact_waiting(context)

    monkeypatch.setattr(beside, "compact_waiting", slow)
    more = {**COMPACTS, "max-pending-compactions": 1, "hoodie.compact.inline.max.delta.commits": "1"}
    streamer = Streamer(config(tmp_path, continuous=True, **more, **{"own.until": "4"}))

    def tell(line: str) -> None:
        if line.startswith(f"{tmp_path}/t: 10 rows") and ActionKind.COMPACTION in pending(tmp_path):
            most[0] += 1
            threading.Timer(1.0, go.set).start()

    assert streamer.run(until_empty=True, told=tell).rows == 40
    assert most[0] == 1 or go.is_set()
    assert done(tmp_path, "compact") > 0


def test_a_run_that_is_stopped_waits_for_the_service_that_is_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, ended = threading.Event(), threading.Event()

    def slow(context: Any) -> Any:
        began.set()
        threading.Event().wait(0.5)
        ended.set()
        return ()

    monkeypatch.setattr(beside, "compact_waiting", slow)
    streamer = Streamer(config(tmp_path, continuous=True, **COMPACTS))
    running = threading.Thread(target=streamer.run)
    running.start()
    assert began.wait(30)
    streamer.stop()
    running.join(30)
    assert ended.is_set()


def test_clusterings_beside_a_continuous_run_change_no_row(tmp_path: Path) -> None:
    more = {**CLUSTERS, "own.new": "true", "own.until": "6"}
    found = Streamer(config(tmp_path, continuous=True, **more)).run(until_empty=True)

    assert found.rows == 60
    assert done(tmp_path, "cluster") > 0
    assert rows(tmp_path) == {(number, number // 10) for number in range(60)}


def test_a_batch_that_a_running_clustering_is_in_the_way_of_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(context: Any) -> Any:
        threading.Event().wait(0.4)
        return cluster_waiting(context)

    monkeypatch.setattr(beside, "cluster_waiting", slow)
    more = {**CLUSTERS, "op": "UPSERT", "own.until": "5"}
    assert Streamer(config(tmp_path, continuous=True, **more)).run(until_empty=True).rows == 50
    assert done(tmp_path, "cluster") > 0
    assert rows(tmp_path) == {(number, 4) for number in range(10)}


def test_cleaning_beside_a_continuous_run_leaves_the_newest_rows(tmp_path: Path) -> None:
    more = {"hoodie.clean.async.enabled": "true", "hoodie.clean.commits.retained": "1", "own.until": "6"}
    Streamer(config(tmp_path, continuous=True, **more)).run(until_empty=True)

    assert ActionKind.CLEAN in [one.action for one in HudiTable.open(tmp_path / "t").state().timeline.instants]
    assert rows(tmp_path) == {(number, 5) for number in range(10)}


@pytest.mark.thorough
def test_processes_killed_while_services_run_beside_them_lose_and_double_nothing(tmp_path: Path) -> None:
    settings = config(tmp_path, continuous=True, **{**COMPACTS, "own.until": "400"})
    path = tmp_path / "p.properties"
    path.write_text("\n".join(f"{key}={value}" for key, value in settings.items()))
    command = [sys.executable, "-m", "pyhudi.cli", "stream", str(path)]
    for rounds in (3, 6, 5):  # behind its second or third batch each compacts
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        running = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert running.stderr is not None
        for _ in range(rounds):
            assert b"10 rows" in running.stderr.readline()
        running.kill()
        running.communicate()
    checkpoint = int(HudiTable.open(tmp_path / "t").inspect.checkpoint().value or 0)
    assert rows(tmp_path) == {(number, checkpoint - 1) for number in range(10)}

    Streamer({**settings, "own.until": checkpoint + 2}).run(until_empty=True)
    assert rows(tmp_path) == {(number, checkpoint + 1) for number in range(10)}
    assert pending(tmp_path) == []


@pytest.mark.thorough
def test_ctrl_c_waits_for_a_running_service_and_leaves_whole_batches(tmp_path: Path) -> None:
    settings = config(tmp_path, continuous=True, **{**COMPACTS, "own.until": "400"})
    path = tmp_path / "p.properties"
    path.write_text("\n".join(f"{key}={value}" for key, value in settings.items()))
    command = [sys.executable, "-m", "pyhudi.cli", "stream", str(path)]
    running = subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    for _ in range(4):
        assert "10 rows" in running.stderr.readline()
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)

    assert running.returncode in (5, 130), err  # 5: a commit had completed in the call
    assert "Traceback" not in err
    checkpoint = int(HudiTable.open(tmp_path / "t").inspect.checkpoint().value or 0)
    assert rows(tmp_path) == {(number, checkpoint - 1) for number in range(10)}
    assert pending(tmp_path) in ([], [ActionKind.COMPACTION])


def test_each_batch_is_exported_and_in_the_catalog_when_the_next_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deltalake = pytest.importorskip("deltalake")
    versions: list[tuple[int, int]] = []
    with catalogs_in_memory(monkeypatch) as catalog:
        sync = {"sync-tool-classes": "org.apache.hudi.hive.HiveSyncTool", "enable-sync": True}
        more = {"hoodie.pyhudi.export.formats": "delta", "own.new": "true", "hoodie.metadata.enable": "false"}
        streamer = Streamer(config(tmp_path, **sync, **more))

        def tell(line: str) -> None:
            table = deltalake.DeltaTable(str(tmp_path / "t"))
            versions.append((table.to_pyarrow_table().num_rows, len(catalog.databases["default"])))

        streamer.run(until_empty=True, told=tell)
    assert versions == [(10 * number, 1) for number in range(1, 6)]


def test_a_catalog_that_is_away_stops_no_batch(tmp_path: Path) -> None:
    sync = {"enable-sync": True, "hoodie.datasource.hive_sync.metastore.uris": "thrift://127.0.0.1:1"}
    with pytest.warns(UserWarning, match="sync"):
        assert Streamer(config(tmp_path, **sync)).run(until_empty=True).rows == 50
    assert len(rows(tmp_path)) == 10


def test_callbacks_of_each_batch_carry_its_checkpoint(tmp_path: Path) -> None:
    with http_receiver() as receiver:
        more = {"hoodie.write.commit.callback.on": True, "hoodie.write.commit.callback.http.url": receiver.url}
        Streamer(config(tmp_path, **more)).run(until_empty=True)
        flush_metrics()
    noted = [one.json["extraMetadata"]["val"]["deltastreamer.checkpoint.key"] for one in receiver.requests]
    assert noted == ["1", "2", "3", "4", "5"]


def test_rounds_have_the_metrics_of_hudis_streamer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on = {"hoodie.metrics.on": True, "hoodie.metrics.reporter.type": "INMEMORY", "hoodie.table.name": "pipe"}
    streamer = Streamer(config(tmp_path, **on))
    streamer.run(until_empty=True)

    found = {name: value for name, value in metrics().items() if name.startswith("pipe.deltastreamer.")}
    assert found["pipe.deltastreamer.numSuccessfulSyncs"] == 6  # the last one finds nothing
    assert found["pipe.deltastreamer.rows"] == 50
    assert found["pipe.deltastreamer.lastSync"] == found["pipe.deltastreamer.heartbeatTimestampMs"] > 1.7e12
    assert found["pipe.deltastreamer.duration"] > 0
    assert metrics()["pipe.timer.deltastreamer.count"] == 6

    monkeypatch.setattr(Updates, "read", lambda *arguments: 1 / 0)
    for number in (1, 2):
        with pytest.raises(ZeroDivisionError):
            streamer.run()
        assert metrics()["pipe.deltastreamer.numConsecutiveFailures"] == number
    assert metrics()["pipe.deltastreamer.numFailedSyncs"] == 2
