"""Our lists of base files for BigQuery have the lines of those that Hudi's own writer makes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from tests.support.judge.hudi_on_s3 import judges_bundle, judges_python
from tests.support.judge.real_hudi import Judge
from tests.support.source import ROOT

PLAY = ROOT / "tests" / "support" / "judge" / "java" / "ManifestPlay.java"
OFF = {"hoodie.metadata.enable": "false"}
KEY = "hoodie.gcp.bigquery.sync."
LISTS = {"true": "absolute-path-manifest", "false": "manifest"}  # by use_bq_manifest_file


def made(path: Path, kind: str, version: int) -> HudiTable:
    """Files that were replaced, updated and deleted, partitions that are gone, and a pending write's file."""
    options = {
        **OFF,
        "hoodie.write.table.version": str(version),
        "hoodie.datasource.write.hive_style_partitioning": "true",
    }
    rows = pa.table({"id": range(6), "p": ["a", "b", "c d", "a", "b", "c d"], "v": [1] * 6})
    write_hudi(str(path), rows, record_key="id", partition_by="p", table_type=kind, options=options)
    table = HudiTable.open(path)
    table.upsert([{"id": 0, "p": "a", "v": 2}, {"id": 9, "p": "e", "v": 1}], options=OFF)
    table.cluster(options=OFF)
    table.delete_partitions(["p=b"], options=OFF)
    table.upsert([{"id": 3, "p": "a", "v": 3}], options=OFF)
    return table


def by_hudi(*tables: Path) -> None:
    java = shutil.which("java")
    if java is None:
        pytest.skip("no java")
    spark = next(judges_python().parent.parent.glob("lib/python*/site-packages/pyspark/jars"))
    command = [java, "-cp", f"{judges_bundle()}:{spark}/*", str(PLAY), *map(str, tables)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]


def listed(path: Path, name: str) -> list[str]:
    file = path / ".hoodie" / name / "latest-snapshot.csv"
    lines = sorted(file.read_text().splitlines())
    file.unlink()
    return lines


def test_hudis_own_lists_have_the_same_lines(judge: Judge, tmp_path: Path) -> None:
    ours = {}
    paths = [tmp_path / f"{kind}-{version}" for kind in ("COPY_ON_WRITE", "MERGE_ON_READ") for version in (6, 8, 9)]
    for path in paths:
        kind, _, version = path.name.partition("-")
        table = made(path, kind, int(version))
        for uses_manifest, name in LISTS.items():
            given = {f"{KEY}use_bq_manifest_file": uses_manifest, f"{KEY}dataset_name": "lake"}
            if uses_manifest == "false":
                given[f"{KEY}source_uri"] = f"file:{path}/p=*"
            table.sync("bigquery", options=given)
            ours[path, name] = listed(path, name)

    by_hudi(*paths)

    for (path, name), lines in ours.items():
        assert len(lines) >= 3
        assert lines == listed(path, name), (path.name, name)
