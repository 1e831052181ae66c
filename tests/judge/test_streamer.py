"""Checkpoints of pipelines, ours before Hudi's own class, and Hudi's before ours."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Streamer, write_hudi
from tests.support.judge.hudi_on_s3 import judges_bundle, judges_python
from tests.support.judge.real_hudi import HUDI_OF_TABLE_VERSION, Judge
from tests.support.source import ROOT

PLAY = ROOT / "tests" / "support" / "judge" / "java" / "CheckpointPlay.java"


def found_by_hudi(extra: dict[str, str]) -> list[str]:
    """Class, text, reset text and ignored text that Hudi's CheckpointUtils finds in the metadata of a commit."""
    java = shutil.which("java")
    if java is None:
        pytest.skip("no java")
    spark = next(judges_python().parent.parent.glob("lib/python*/site-packages/pyspark/jars"))
    pairs = [f"{key}={text}" for key, text in extra.items() if key != "schema"]
    command = [java, "-cp", f"{judges_bundle()}:{spark}/*", str(PLAY), *pairs]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip().split("|")


def test_hudi_finds_the_checkpoints_of_our_commits_in_the_form_that_it_expects(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 1}\n')
    files = {"hoodie.streamer.source.dfs.root": str(tmp_path / "in"), "record_key": "id", "ignore-checkpoint": "i"}
    done = Streamer({"target-base-path": str(tmp_path / "a"), "checkpoint": "7", **files, "op": "INSERT"}).run()
    write_hudi(tmp_path / "s", pa.table({"id": [1]}), record_key="id")
    table = {
        "target-base-path": str(tmp_path / "b"),
        "record_key": "id",
        "source-class": "HoodieIncrSource",
        "hoodie.streamer.source.hoodieincr.path": str(tmp_path / "s"),
        "hoodie.streamer.source.hoodieincr.missing.checkpoint.strategy": "READ_UPTO_LATEST_COMMIT",
    }
    Streamer(table).run()

    ours = dict(HudiTable.open(tmp_path / "a").history()[0].extra)
    assert found_by_hudi(ours) == ["StreamerCheckpointV1", done.checkpoint, "7", "i"]
    completed = HudiTable.open(tmp_path / "s").history()[0].completion_time
    second = dict(HudiTable.open(tmp_path / "b").history()[0].extra)
    assert found_by_hudi(second) == ["StreamerCheckpointV2", completed, "null", "null"]


@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.slow)])
def test_a_pipeline_goes_on_from_checkpoints_of_either_form_that_hudi_wrote(
    version: int, judge: Judge, tmp_path: Path
) -> None:
    for name, ms in (("a", 1), ("b", 2), ("c", 3)):
        (tmp_path / "in").mkdir(exist_ok=True)
        path = tmp_path / "in" / name
        path.write_text(f'{{"id": "{name}", "ts": 1}}\n')
        os.utime(path, ns=(ms * 10**6, ms * 10**6))
    prefix = "hoodie.datasource.write.commitmeta.key.prefix"
    for key, text, rows in (("deltastreamer.checkpoint.key", "2", 1), ("streamer.checkpoint.key.v2", "1", 2)):
        table = tmp_path / key
        judge.write(
            table,
            HUDI_OF_TABLE_VERSION[version],
            schema="id string, ts bigint",
            options={
                "hoodie.datasource.write.recordkey.field": "id",
                "hoodie.datasource.write.precombine.field": "ts",
                "hoodie.table.name": "t",
                "hoodie.write.table.version": str(version),
                "hoodie.write.auto.upgrade": "false",
                prefix: key.partition(".")[0] + ".",
                key: text,
            },
            steps=[{"operation": "upsert", "rows": [{"id": "x", "ts": 1}]}],
        )
        done = Streamer({"target-base-path": str(table), "hoodie.streamer.source.dfs.root": str(tmp_path / "in")}).run()
        assert (done.rows, done.checkpoint) == (rows, "3")
