"""On a real cluster, whose session knows neither its cores nor its shuffle partitions, all that needs workers works.

Whatever happens to tasks and executors, the rows are right, and there is no file that no commit names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.servers.s3_server import make_bucket, options_of, s3_server
from tests.support.source import ROOT
from tests.support.spark.sessions import FLAVOUR
from tests.support.spark.standalone import standalone_cluster
from tests.support.spark.task_faults import FAULTS, SITE
from tests.support.sweeps import SAMPLED

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(FLAVOUR != "classic", reason="starts a classic session of its own, so once is enough"),
]

SPECULATIVE = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "500ms",
    # A task whose copy was faster is only asked to end: what it does then is the subject here.
    "spark.python.task.killTimeout": "300s",
}


# The shuffle files of an executor go with it, so one that others read from stays: `shuffleTracking`.
DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.executorIdleTimeout": "1s",
    "spark.dynamicAllocation.cachedExecutorIdleTimeout": "3s",
    "spark.dynamicAllocation.shuffleTracking.timeout": "5s",
}
# A session that knows its cores makes fewer tasks, each of which takes long to start.
SMALL = {"spark.default.parallelism": "4", "spark.sql.shuffle.partitions": "4"}
TABLE_TYPES = ["MERGE_ON_READ"] if SAMPLED else ["COPY_ON_WRITE", "MERGE_ON_READ"]


@dataclass(frozen=True)
class Cluster:
    """A standalone cluster, whose workers load the faults that plays arm."""

    master: str
    folder: Path
    environment: Mapping[str, str]

    def play(self, name: str, table_type: str, root: Path | str, conf: Mapping[str, str] = {}) -> None:
        """A play of `cluster_play` in a process of its own, with its table below `root`."""
        for left in (self.folder / "faults").iterdir():  # by a play that failed
            left.unlink()
        module = "tests.support.spark.cluster_play"
        settings = json.dumps({"spark.sql.warehouse.dir": str(self.folder / "warehouse"), **conf})
        command = [sys.executable, "-m", module, name, table_type, self.master, str(root), settings]
        played = subprocess.run(
            command, cwd=ROOT, env=dict(self.environment), capture_output=True, text=True, timeout=1200
        )
        assert played.returncode == 0, played.stderr[-4000:]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    for name in ("site", "faults"):
        (folder / name).mkdir()
    (folder / "site" / "sitecustomize.py").write_text(SITE)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, FAULTS: str(folder / "faults")}
    environment["PYTHONPATH"] = str(ROOT)
    with standalone_cluster(folder, os.pathsep.join([str(folder / "site"), str(ROOT)]), environment) as master:
        yield Cluster(master, folder, environment)


@pytest.mark.parametrize("table_type", TABLE_TYPES)
def test_a_standalone_cluster_loads_upserts_reads_compacts_and_clusters(
    cluster: Cluster, table_type: str, tmp_path: Path
) -> None:
    cluster.play("life", table_type, tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("table_type", TABLE_TYPES)
def test_tasks_that_go_on_when_their_copies_have_done_the_work_leave_nothing(
    cluster: Cluster, table_type: str, tmp_path: Path
) -> None:
    cluster.play("late tasks", table_type, tmp_path, {**SMALL, **SPECULATIVE})


@pytest.mark.thorough
@pytest.mark.parametrize("table_type", TABLE_TYPES)
def test_executors_that_are_killed_leave_nothing(cluster: Cluster, table_type: str, tmp_path: Path) -> None:
    cluster.play("deaths", table_type, tmp_path, SMALL)


@pytest.mark.thorough
def test_executors_that_come_and_go_leave_nothing(cluster: Cluster, tmp_path: Path) -> None:
    cluster.play("life", "MERGE_ON_READ", tmp_path, DYNAMIC)


@pytest.mark.thorough
def test_a_cluster_whose_only_storage_is_s3_does_the_same(cluster: Cluster) -> None:
    pytest.importorskip("moto.server")
    with s3_server() as port:
        make_bucket(port, "lake")
        store = {f"spark.hadoop.{key}": text for key, text in options_of(port).items()}
        cluster.play("life", "MERGE_ON_READ", "s3a://lake", store)
