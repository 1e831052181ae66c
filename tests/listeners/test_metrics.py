"""Metrics: Hudi's names and right numbers, in memory, in the log, at Prometheus' endpoint and at a push gateway."""

from __future__ import annotations

import logging
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi import ConfigError, HudiTable, write_hudi
from pyhudi.listeners import metrics as module
from tests.support.http_receiver import http_receiver
from tests.support.source import ROOT

pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")

# What Hudi 1.2.0 pushed to a gateway of HoodieMetrics and HoodieLockMetrics: two upserts and a compaction.
OF_HUDI = set(
    """
    commit_latestCompletedCompactionInstant commit_timer compaction_commitTime
    clean_pendingCleanInstantCount clustering_pendingClusteringInstantCount
    compaction_compaction_completed_counter compaction_compaction_requested_counter
    compaction_duration compaction_pendingCompactionInstantCount compaction_totalBytesWritten
    compaction_totalCompactedRecordsUpdated compaction_totalCreateTime compaction_totalFilesInsert
    compaction_totalFilesUpdate compaction_totalInsertRecordsWritten
    compaction_totalLogFilesCompacted compaction_totalLogFilesSize
    compaction_totalLogRecordsCompacted compaction_totalPartitionsWritten
    compaction_totalRecordsDeleted compaction_totalRecordsWritten compaction_totalScanTime
    compaction_totalUpdateRecordsWritten compaction_totalUpsertTime
    conflict_resolution_success_counter conflict_resolution_timer deltacommit_commitTime
    deltacommit_duration deltacommit_timer deltacommit_totalBytesWritten
    deltacommit_totalCompactedRecordsUpdated deltacommit_totalCreateTime
    deltacommit_totalFilesInsert deltacommit_totalFilesUpdate deltacommit_totalInsertRecordsWritten
    deltacommit_totalLogFilesCompacted deltacommit_totalLogFilesSize
    deltacommit_totalLogRecordsCompacted deltacommit_totalPartitionsWritten
    deltacommit_totalRecordsDeleted deltacommit_totalRecordsWritten deltacommit_totalScanTime
    deltacommit_totalUpdateRecordsWritten deltacommit_totalUpsertTime finalize_duration
    finalize_numFilesFinalized finalize_timer lock_acquire_attempts lock_acquire_duration
    lock_acquire_success lock_request_latency rollback_pendingRollbackInstantCount
    source_read_and_index_duration_duration
    """.split()  # noqa: SIM905
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "_sets", {})
    monkeypatch.setattr(module, "_reporters", {})
    yield
    for reporter in module._reporters.values():
        server = getattr(reporter, "_server", None)
        if server is not None:
            server.shutdown()


def options(reporter: str = "INMEMORY", **more: object) -> dict[str, Any]:
    return {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.table.name": "my.rides",
        "hoodie.metrics.on": True,
        "hoodie.metrics.reporter.type": reporter,
        **more,
    }


def rows(*numbers: int, v: int = 1) -> list[dict[str, int]]:
    return [{"id": number, "v": v} for number in numbers]


def compacted_table(path: Path, given: dict[str, Any]) -> HudiTable:
    given = {**given, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    write_hudi(path, rows(1, 2, 3), options=given)
    write_hudi(path, rows(1, v=2), options=given)
    table = HudiTable.open(path)
    table.compact(options=_service(given) | {"hoodie.compact.inline.max.delta.commits": 1})
    return table


def _service(given: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if "metrics" in key}


def test_numbers_are_those_of_the_commit(tmp_path: Path) -> None:
    write_hudi(tmp_path / "t", rows(1, 2, 3), options=options())
    write_hudi(tmp_path / "t", rows(3, 4, v=2), options=options())
    found = pyhudi.metrics()

    totals = {name: value for name, value in found.items() if name.startswith("my_rides.commit.total") and value}
    assert {name.rpartition(".")[2]: value for name, value in totals.items() if "Time" not in name} == {
        "totalPartitionsWritten": 1,
        "totalFilesUpdate": 1,
        "totalRecordsWritten": 4,
        "totalUpdateRecordsWritten": 1,
        "totalInsertRecordsWritten": 1,
        "totalBytesWritten": HudiTable.open(tmp_path / "t").scan().files()["size_bytes"][0].as_py(),
    }
    assert found["my_rides.commit.timer.count"] == 2
    assert found["my_rides.finalize.numFilesFinalized"] == 1
    assert found["my_rides.commit.duration"] > 0


@pytest.mark.thorough
def test_an_upsert_and_a_compaction_have_the_names_that_hudi_pushes(tmp_path: Path) -> None:
    compacted_table(tmp_path / "t", options())
    from pyhudi.listeners.reporters.prometheus import _registry

    (numbers,) = module._sets.values()
    ours = {family.name for family in _registry(numbers).collect()}
    assert OF_HUDI - {name.removeprefix("my_rides_") for name in ours} == set()
    found = pyhudi.metrics()
    assert found["my_rides.compaction.totalLogFilesCompacted"] == 1
    assert found["my_rides.compaction.totalRecordsWritten"] == 3
    assert found["my_rides.compaction.compaction.completed.counter"] == 1
    assert found["my_rides.compaction.pendingCompactionInstantCount"] == 0


@pytest.mark.thorough
def test_cleans_rollbacks_clusterings_and_archiving_are_counted(tmp_path: Path) -> None:
    given = options(**{"hoodie.metrics.reporter.metricsname.prefix": "p"})
    for number in range(3):
        write_hudi(tmp_path / "t", rows(1, v=number), options=given)
    table = HudiTable.open(tmp_path / "t")
    table.clean(options=_service(given) | {"hoodie.clean.commits.retained": 1})
    table.cluster(options=_service(given))
    table.maintenance.archive(options=_service(given))
    table.rollback(options=_service(given))
    found = pyhudi.metrics()
    assert found["p.clean.numFilesDeleted"] == 1
    assert found["p.clustering.totalRecordsWritten"] == 1
    assert found["p.archive.numInstantsArchived"] == 0
    assert found["p.rollback.numFilesDeleted"] == 1
    assert not any(name.startswith("my_rides") for name in found)


@pytest.mark.thorough
def test_a_restore_counts_as_a_rollback_and_leaves_none_waiting(tmp_path: Path) -> None:
    given = options()
    write_hudi(tmp_path / "t", rows(1), options=given)
    table = HudiTable.open(tmp_path / "t")
    time = table.state().timeline.last_commit().requested_time  # type: ignore[union-attr]
    table.savepoints.create(options=_service(given))
    write_hudi(tmp_path / "t", rows(1, v=2), options=given)
    write_hudi(tmp_path / "t", rows(1, v=3), options=given)

    table.restore(time, options=_service(given))

    found = pyhudi.metrics()
    assert found["my_rides.rollback.numFilesDeleted"] == 2
    assert found["my_rides.rollback.duration"] == found["my_rides.restore.duration"] > 0
    assert found["my_rides.rollback.timer.count"] == 1
    assert found["my_rides.rollback.pendingRollbackInstantCount"] == 0
    assert "my_rides.rollback.earliestInflightRollbackInstant" not in found


@pytest.mark.thorough
def test_phases_that_hudi_times_have_timers(tmp_path: Path) -> None:
    given = options()
    write_hudi(tmp_path / "t", rows(1), options=given)
    write_hudi(tmp_path / "t", rows(2), options=given)
    HudiTable.open(tmp_path / "t").cluster(options=_service(given))

    found = pyhudi.metrics()
    assert found["my_rides.source_read_and_index.timer.count"] == 2
    assert found["my_rides.finalize.timer.count"] == 3
    assert 0 <= found["my_rides.clustering.fileCreationTime"] <= found["my_rides.clustering.duration"]


def test_prometheus_reads_the_endpoint(tmp_path: Path) -> None:
    write_hudi(tmp_path / "t", rows(1), options=options("PROMETHEUS", **{"hoodie.metrics.prometheus.port": 0}))
    (reporter,) = module._reporters.values()
    with urllib.request.urlopen(f"http://127.0.0.1:{reporter.port}/metrics") as answer:  # type: ignore[attr-defined]
        text = answer.read().decode()
    from prometheus_client.parser import text_string_to_metric_families

    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["my_rides_commit_totalRecordsWritten"].samples[0].value == 1
    assert families["my_rides_commit_timer"].type == "summary"
    assert {sample.labels.get("quantile") for sample in families["my_rides_commit_timer"].samples} >= {"0.5", "0.999"}


def test_a_port_in_use_is_warned_of_and_fails_no_write(tmp_path: Path) -> None:
    with http_receiver() as taken:
        given = options("PROMETHEUS", **{"hoodie.metrics.prometheus.port": taken.port})
        with pytest.warns(UserWarning, match="not reported"):
            write_hudi(tmp_path / "t", rows(1), options=given)
    assert HudiTable.open(tmp_path / "t").scan().count() == 1


PUSHING = """
import sys, pyhudi
options = {
    "hoodie.datasource.write.recordkey.field": "id", "hoodie.table.name": "my.rides", "hoodie.metrics.on": True,
    "hoodie.metrics.reporter.type": "PROMETHEUS_PUSHGATEWAY", "hoodie.metrics.pushgateway.host": "127.0.0.1",
    "hoodie.metrics.pushgateway.port": sys.argv[2], "hoodie.metrics.pushgateway.job.name": "job",
    "hoodie.metrics.pushgateway.report.labels": "team:rides",
    "hoodie.metrics.pushgateway.delete.on.shutdown": sys.argv[3],
    "hoodie.metrics.pushgateway.random.job.name.suffix": False,
}
pyhudi.write_hudi(sys.argv[1], [{"id": 1, "v": 1}], options=options)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("deletes", ["true", "false"])
def test_a_process_pushes_when_it_ends_and_deletes_if_it_is_to(tmp_path: Path, deletes: str) -> None:
    with http_receiver() as gateway:
        command = [sys.executable, "-c", PUSHING, str(tmp_path / "t"), str(gateway.port), deletes]
        subprocess.run(command, check=True, cwd=ROOT, timeout=120)
    assert [(r.method, r.path) for r in gateway.requests] == [
        ("POST", "/metrics/job/job/team/rides"),
        *([("DELETE", "/metrics/job/job/team/rides")] if deletes == "true" else []),
    ]
    assert b"my_rides_commit_totalRecordsWritten 1.0" in gateway.requests[0].body


def test_the_log_has_a_line_for_each_action(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pyhudi.metrics")
    write_hudi(tmp_path / "t", rows(1), options=options("SLF4J"))
    (record,) = [one for one in caplog.records if one.name == "pyhudi.metrics"]
    assert "my_rides.commit.totalRecordsWritten=1" in record.getMessage()


@pytest.mark.parametrize("reporter", ["GRAPHITE", "JMX", "DATADOG", "CLOUDWATCH", "M3", None])
def test_other_reporters_are_refused_by_name_with_those_that_there_are(tmp_path: Path, reporter: str | None) -> None:
    given = options() | {"hoodie.metrics.reporter.type": reporter}
    with pytest.raises(ConfigError, match="PROMETHEUS_PUSHGATEWAY"):
        write_hudi(tmp_path / "t", rows(1), options=given)
    assert not (tmp_path / "t").exists()


@pytest.mark.thorough
def test_prometheus_without_its_library_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    code = "import sys; sys.modules['prometheus_client'] = None\n" + PUSHING
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "t"), "1", "true"], cwd=ROOT, capture_output=True, text=True
    )
    assert 'pip install "pyhudi[metrics]"' in run.stderr
    assert not (tmp_path / "t").exists()


class Mine:
    """A user's own reporter."""

    heard: list[str] = []  # noqa: RUF012

    def __init__(self, metrics: object, options: object) -> None: ...

    @staticmethod
    def place(options: object) -> str:
        return "mine"

    def report(self, table: str, changed: dict[str, float]) -> None:
        self.heard.extend(changed)

    def flush(self) -> None: ...


def test_a_reporter_of_ones_own_is_named_in_full(tmp_path: Path) -> None:
    given = options() | {"hoodie.metrics.reporter.type": None, "hoodie.metrics.reporter.class": f"{__name__}:Mine"}
    write_hudi(tmp_path / "t", rows(1), options=given)
    assert "my_rides.commit.duration" in Mine.heard


def test_nothing_is_counted_where_metrics_are_off(tmp_path: Path) -> None:
    write_hudi(tmp_path / "t", rows(1), options=options() | {"hoodie.metrics.on": False})
    assert pyhudi.metrics() == {}
