"""What every metrics reporter promises, run over each row of the registry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi import write_hudi
from pyhudi.listeners import metrics as module
from pyhudi.listeners.metrics import REPORTERS
from pyhudi.listeners.reporters.base import MetricSet, Reporter
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.reporting import MetricsOptions
from tests.support.http_receiver import http_receiver
from tests.support.source import ROOT

pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")


@pytest.fixture(params=sorted(REPORTERS.entries))
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(module, "_sets", {})
    monkeypatch.setattr(module, "_reporters", {})
    yield str(request.param)
    for reporter in module._reporters.values():
        server = getattr(reporter, "_server", None)
        if server is not None:
            server.shutdown()


@pytest.fixture
def gateway() -> Iterator[Any]:
    with http_receiver() as receiver:
        yield receiver


def options(name: str, gateway: Any, **more: object) -> dict[str, Any]:
    """Options that any reporter can be made with."""
    return {
        "hoodie.metrics.on": True,
        "hoodie.metrics.reporter.type": name,
        "hoodie.metrics.prometheus.port": 0,
        "hoodie.metrics.pushgateway.host": "127.0.0.1",
        "hoodie.metrics.pushgateway.port": gateway.port,
        "hoodie.metrics.pushgateway.delete.on.shutdown": False,
        "hoodie.metrics.pushgateway.random.job.name.suffix": False,
        **more,
    }


def parsed(given: dict[str, Any]) -> MetricsOptions:
    return WriteOptions.parse({key: str(value) for key, value in given.items()}).metrics


def test_a_reporter_takes_numbers_at_any_time_and_brings_them_when_asked(name: str, gateway: Any) -> None:
    given, numbers = parsed(options(name, gateway)), MetricSet()
    reporter: Reporter = REPORTERS.load(name)(numbers, given)  # type: ignore[call-arg]
    module._reporters["made"] = reporter  # its server is shut down in the end
    reporter.flush()
    numbers.set({"t.commit.totalRecordsWritten": 3})
    numbers.count("t.lock.acquire.attempts")
    numbers.time("t.commit.timer", 0.5)

    reporter.report("/lake/t", {"t.commit.totalRecordsWritten": 3})
    reporter.report("/lake/t", {})
    reporter.flush()

    assert numbers.numbers() == {"t.commit.totalRecordsWritten": 3, "t.lock.acquire.attempts": 1}
    assert numbers.timers()["t.commit.timer"].count == 1


@pytest.mark.thorough
def test_the_place_is_a_text_that_equal_options_share(name: str, gateway: Any) -> None:
    kind = REPORTERS.load(name)
    place = kind.place(parsed(options(name, gateway)))

    assert isinstance(place, str)
    assert place
    assert kind.place(parsed(options(name, gateway))) == place
    assert kind.place(parsed(options(name, gateway, **{"hoodie.metrics.lock.enable": False}))) == place


@pytest.mark.thorough
def test_tables_of_one_place_share_a_reporter_and_all_their_numbers_are_there(
    name: str, gateway: Any, tmp_path: Path
) -> None:
    for table in ("one", "two"):
        rows = [{"id": number} for number in range(3)]
        write_hudi(tmp_path / table, rows, record_key="id", table_name=table, options=options(name, gateway))

    assert len(module._reporters) == 1
    found = pyhudi.metrics()
    for table in ("one", "two"):
        assert found[f"{table}.commit.totalRecordsWritten"] == 3
        assert found[f"{table}.commit.timer.count"] == 1
    pyhudi.flush_metrics()


@pytest.mark.thorough
def test_a_reporter_that_fails_fails_no_write(
    name: str, gateway: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(REPORTERS.load(name), "report", fail)
    with pytest.warns(UserWarning, match=r"could not be delivered. RuntimeError: no"):
        write_hudi(tmp_path / "t", [{"id": 1}], record_key="id", options=options(name, gateway))
    assert len(pyhudi.HudiTable.open(tmp_path / "t")) == 1


@pytest.mark.thorough
def test_a_reporter_is_documented(name: str) -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    rows = re.findall(r"^\| (`.*?`) \|", page, re.MULTILINE)
    assert any(f"`{name}`" in row for row in rows)
