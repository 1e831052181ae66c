"""The examples for schedulers run as they are. Source: examples/jobs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from tests.support.source import ROOT

JOBS = ROOT / "examples" / "jobs"
ROWS = pa.table({"id": ["a", "b"], "city": ["rome", "oslo"], "fare": [1.0, 2.0]})


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables of a process that finds `pyhudi` on its PATH."""
    program = tmp_path / "bin" / "pyhudi"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pyhudi.cli "$@"\n')
    program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}


def run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.thorough
def test_the_care_of_one_night_compacts_cleans_and_looks(tmp_path: Path, environment: dict[str, str]) -> None:
    path = tmp_path / "rides"
    write_hudi(path, ROWS, record_key="id", table_type="MERGE_ON_READ")
    write_hudi(path, ROWS.slice(0, 1))
    (line,) = [line for line in (JOBS / "crontab").read_text().splitlines() if line[:1].isdigit()]
    command = line.split(maxsplit=5)[5].partition(" >>")[0]
    command = command.replace("/opt/lake", str(JOBS)).replace("/lake/rides", str(path))

    ended = run(["bash", "-c", command], environment)

    assert ended.returncode == 0, ended.stderr
    assert HudiTable.open(path).inspect.files()["log_files"].to_pylist() == [0]
    assert run(["bash", "-c", command.replace(str(path), str(tmp_path / "none"))], environment).returncode == 1


@pytest.mark.thorough
def test_steps_of_github_actions_run(tmp_path: Path, environment: dict[str, str]) -> None:
    yaml = pytest.importorskip("yaml")
    write_hudi(tmp_path / "rides", ROWS, record_key="id")
    workflow: dict[str, Any] = yaml.safe_load((JOBS / "github_actions.yml").read_text())
    steps = [step["run"] for step in workflow["jobs"]["maintain"]["steps"] if "run" in step]
    variables = {"LAKE_TABLE": str(tmp_path / "rides"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}

    ended = [run(["bash", "-e", "-c", step], {**environment, **variables}) for step in steps if "pip " not in step]

    assert [one.stderr for one in ended if one.returncode] == []
    assert len(ended) == 4
    assert "upsert" in (tmp_path / "summary").read_text()


@pytest.mark.thorough
def test_tables_of_dbt_models_are_cared_for(tmp_path: Path, environment: dict[str, str]) -> None:
    write_hudi(tmp_path / "lake" / "sales" / "rides", ROWS, record_key="id")
    models = {
        "model.shop.rides": {
            "resource_type": "model",
            "config": {"file_format": "hudi"},
            "schema": "sales",
            "alias": "rides",
        },
        "model.shop.notes": {"resource_type": "model", "config": {}, "schema": "sales", "alias": "notes"},
    }
    (tmp_path / "manifest.json").write_text(json.dumps({"nodes": models}))
    command = ["bash", str(JOBS / "dbt_nightly.sh"), str(tmp_path), str(tmp_path / "lake")]

    ended = run(command, {**environment, "DBT_BUILD": "no"})

    assert ended.returncode == 0, ended.stderr
    assert '"policy": "KEEP_LATEST_COMMITS"' in ended.stdout


def test_the_dag_of_airflow_runs(tmp_path: Path, environment: dict[str, str]) -> None:
    pytest.importorskip("airflow", reason="Airflow is not installed")
    write_hudi(tmp_path / "rides", ROWS, record_key="id")
    shutil.copy(JOBS / "airflow_maintenance.py", tmp_path)
    variables = {"AIRFLOW_HOME": str(tmp_path / "home"), "LAKE_TABLE": str(tmp_path / "rides"),
                 "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "false"}  # fmt: skip
    code = "import airflow_maintenance as dags; run = dags.maintenance.test(); assert run.state == 'success'"

    migrated = run([sys.executable, "-m", "airflow", "db", "migrate"], {**environment, **variables})
    paths = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    ended = run([sys.executable, "-c", code], {**environment, **variables, **paths})

    assert migrated.returncode == 0, migrated.stderr[-2000:]
    assert ended.returncode == 0, ended.stderr[-2000:]


def test_the_asset_and_the_job_of_dagster_run(tmp_path: Path, environment: dict[str, str]) -> None:
    pytest.importorskip("dagster", reason="Dagster is not installed")
    code = (
        "import dagster as dg, dagster_maintenance as jobs\n"
        "assert dg.materialize([jobs.rides]).success and jobs.maintenance.execute_in_process().success"
    )
    variables = {"LAKE_TABLE": str(tmp_path / "rides"), "PYTHONPATH": os.pathsep.join([str(JOBS), str(ROOT)])}

    ended = run([sys.executable, "-c", code], {**environment, **variables})

    assert ended.returncode == 0, ended.stderr[-2000:]
    assert HudiTable.open(tmp_path / "rides").count() == 2
