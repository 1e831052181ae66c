"""What PyHudi writes on the oldest Spark is to real Hudi what it writes on the newest."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.judge.comparing import without_meta
from tests.support.judge.real_hudi import HUDI_OF_TABLE_VERSION, Judge
from tests.support.source import ROOT

OLDEST = ROOT / ".sparks" / "3.5.9" / "bin" / "python"
HUDI = HUDI_OF_TABLE_VERSION[9]
# Not upsert: Hudi 1.2.0 can't rewrite rows with nulls in lists, those that it wrote itself included.
STEPS = ["open", "read", "meta_columns"]


def written(python: Path, folder: Path) -> Path:
    folder.mkdir()
    environment = {key: text for key, text in os.environ.items() if key not in ("SPARK_HOME", "PYSPARK_PYTHON")}
    environment |= {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": str(python)}
    command = [str(python), "-m", "tests.support.judge.spark_writes", str(folder)]
    played = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert played.returncode == 0, played.stderr[-4000:]
    return folder


def digest(judge: Judge, table: Path) -> str:
    """Of all rows as real Hudi reads them, without what differs from write to write."""
    rows = sorted(json.dumps(row, sort_keys=True, default=str) for row in without_meta(judge.rows(table, HUDI)))
    return f"{len(rows)} rows {hashlib.sha256('/'.join(rows).encode()).hexdigest()}"


@pytest.mark.slow
@pytest.mark.skipif(not OLDEST.exists(), reason="needs the environment that `make sparks ARGS=3.5.9` makes")
def test_tables_written_on_spark_3_5_are_those_of_the_newest_to_real_hudi(judge: Judge, tmp_path: Path) -> None:
    oldest = written(OLDEST, tmp_path / "oldest")
    newest = written(Path(sys.executable), tmp_path / "newest")

    for kind in ("copy_on_write", "merge_on_read"):
        assert digest(judge, oldest / kind) == digest(judge, newest / kind), kind
        assert digest(judge, oldest / kind).startswith("370 rows"), kind
        judge.check(oldest / kind, HUDI, steps=STEPS, keep=str(tmp_path / f"kept_{kind}"))
