"""dbt's models on Hudi tables, by its session method: each kind of model passes, and passes again on what is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from tests.support.source import ROOT

PROJECT = ROOT / "tests" / "support" / "dbt"

pytestmark = [pytest.mark.slow, pytest.mark.classic]


@pytest.fixture
def has_dbt(java: None) -> None:
    if find_spec("dbt") is None or find_spec("dbt.adapters.spark") is None:
        pytest.skip("dbt-spark is not installed")


def dbt(folder: Path, *arguments: str) -> None:
    """dbt in a process of its own; names last in a metastore in the folder."""
    settings = {
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/names;create=true",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    submitted = " ".join(f"--conf '{key}={value}'" for key, value in settings.items())
    env = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--master local[2] {submitted} pyspark-shell", "PYTHONPATH": str(ROOT)}
    project = folder / "project"  # dbt writes into it
    shutil.copytree(PROJECT, project, dirs_exist_ok=True)
    command = [sys.executable, "-m", "pyhudi.session.dbt", *arguments, "--project-dir", project]
    command += ["--profiles-dir", project]
    ran = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-3000:]


def rows(folder: Path, table: str, *columns: str) -> list[tuple[Any, ...]]:
    found = pyhudi.HudiTable.open(str(folder / "warehouse" / "rides.db" / table)).to_arrow(list(columns)).to_pylist()
    return sorted(tuple(float(v) if hasattr(v, "as_tuple") else v for v in row.values()) for row in found)


def test_dbts_models_pass_twice(has_dbt: None, tmp_path: Path) -> None:
    dbt(tmp_path, "build")
    assert rows(tmp_path, "merged", "id", "fare") == [(1, 10.0), (2, 20.0), (3, 30.0)]

    dbt(tmp_path, "build", "--vars", "{arrived: 2}")
    assert rows(tmp_path, "merged", "id", "fare", "city") == [
        (1, 10.0, "oslo"),
        (2, 25.0, "rome"),
        (3, 30.0, "oslo"),
        (4, 40.0, "bern"),
    ]
    assert rows(tmp_path, "merged_columns", "id", "fare", "updated_at") == [
        (1, 10.0, 1),
        (2, 25.0, 1),
        (3, 30.0, 1),
        (4, 40.0, 2),
    ]
    assert rows(tmp_path, "overwritten", "id", "fare") == [(1, 10.0), (2, 25.0), (3, 30.0), (4, 40.0)]
    assert len(rows(tmp_path, "appended", "id")) == 6
    assert rows(tmp_path, "totals", "city", "rides") == [("bern", 1), ("oslo", 2), ("rome", 1)]
