"""The examples for supervisors and schedulers: their configurations can be checked, their files parse."""

from __future__ import annotations

import ast
import configparser
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyhudi import Streamer
from pyhudi.cli.commands import command_of
from pyhudi.cli.parsing import parsed
from tests.support.source import ROOT

PIPELINES = ROOT / "examples" / "pipelines"
EVENT = {"id": 1, "customer": "a", "ts": 1}


@pytest.fixture
def address() -> Iterator[str]:
    """That of a mock broker with an event in each topic of the examples."""
    kafka = pytest.importorskip("confluent_kafka")
    producer = kafka.Producer(
        {"test.mock.num.brokers": 1, "bootstrap.servers": "x:1"}
    )  # the cluster lives as long as it
    at = next(iter(producer.list_topics("orders", timeout=10).brokers.values()))
    for topic in ("orders", "customers"):
        producer.produce(topic, json.dumps(EVENT))
    assert producer.flush(10) == 0
    yield f"{at.host}:{at.port}"
    del producer


def kubernetes() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    return {one["kind"]: one for one in yaml.safe_load_all((PIPELINES / "kubernetes.yaml").read_text())}


@pytest.mark.parametrize("name", ["lake.toml", "kubernetes.yaml"])
def test_a_configuration_of_the_examples_takes_at_most_15_lines_and_can_be_checked(
    name: str, address: str, tmp_path: Path
) -> None:
    whole = name.endswith(".toml")
    text = (PIPELINES / name).read_text() if whole else kubernetes()["ConfigMap"]["data"]["orders.toml"]
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) <= 15
    path = tmp_path / "p.toml"
    path.write_text(text.replace("/lake", f"{tmp_path}/lake").replace("kafka:9092", address))
    streamer = Streamer(path)

    checked = streamer.check()
    assert checked.waiting == (2 if whole else 1)
    assert list(checked.tables) == (["shop.orders", "shop.customers"] if whole else [])
    streamer.close()


def is_stream_of(words: list[str], folder: str) -> bool:
    assert Path(words[0]).name == "pyhudi"
    named = command_of(words[1:])
    assert named is not None
    command, rest = named
    _, arguments = parsed(command, rest)
    return command.words == "stream" and str(arguments["config"]).startswith(folder)


def test_the_unit_of_systemd_runs_a_command_that_there_is_and_gives_a_batch_time_to_end() -> None:
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(PIPELINES / "pyhudi-stream@.service")

    assert is_stream_of(shlex.split(unit["Service"]["ExecStart"]), "/etc/pyhudi")
    assert int(unit["Service"]["TimeoutStopSec"]) >= 600
    assert unit["Service"].get("KillSignal", "SIGTERM") == "SIGTERM"


def test_the_pod_of_kubernetes_is_alone_and_reads_the_configuration_that_is_beside_it() -> None:
    found = kubernetes()
    spec = found["Deployment"]["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]

    assert is_stream_of(container["command"], container["volumeMounts"][0]["mountPath"])
    assert Path(container["command"][-1]).name in found["ConfigMap"]["data"]
    assert pod["volumes"][0]["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]
    assert (spec["replicas"], spec["strategy"]["type"]) == (1, "Recreate")
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    assert pod["terminationGracePeriodSeconds"] >= 600


def test_the_dag_compiles_and_calls_the_streamer_as_it_is() -> None:
    text = (PIPELINES / "airflow_pipeline.py").read_text()
    compile(text, "airflow_pipeline.py", "exec")
    calls = [one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Call)]
    (run,) = [one for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == "run"]
    assert {one.arg for one in run.keywords} <= {*Streamer.run.__annotations__}
