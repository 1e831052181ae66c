"""On a real cluster, whose session knows neither its cores nor its shuffle partitions, all that needs workers works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.source import ROOT
from tests.support.spark.sessions import FLAVOUR
from tests.support.spark.standalone import standalone_cluster


@pytest.mark.cluster
@pytest.mark.skipif(FLAVOUR != "classic", reason="starts a classic session of its own, so once is enough")
def test_a_standalone_cluster_loads_upserts_reads_compacts_and_clusters(tmp_path: Path, java: None) -> None:
    with standalone_cluster(tmp_path, str(ROOT)) as master:
        played = subprocess.run(
            [sys.executable, "-m", "tests.support.spark.cluster_play", master, str(tmp_path)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            timeout=1200,
        )

    assert played.returncode == 0, played.stderr[-4000:]
