"""Copies of real Hudi's tables are clustered: no row changes but in the name of its file; its plans are run as well."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConfigError
from pyhudi.formats.avro.container import decode_container
from pyhudi.model.instant import ActionKind
from tests.support.golden.cases import given_up, golden_names
from tests.support.golden.folder import GoldenTable

Golden = Callable[[str, str], GoldenTable]
WRITERS = ("0.15.0", "1.0.2", "1.2.0")
PLANS = [*((version, "g2_clustering_pending") for version in WRITERS)]
SORT = {"hoodie.clustering.plan.strategy.sort.columns": "name"}


def rows(path: Path) -> list[str]:
    """The table's rows without the names of their files, as sorted text."""
    table = HudiTable.open(path).scan().to_arrow()
    columns = [name for name in table.column_names if name != "_hoodie_file_name"]
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in table.select(columns).to_pylist())


def file_groups(path: Path) -> int:
    return sum(HudiTable.open(path).inspect.partitions().column("files").to_pylist())


@pytest.mark.filterwarnings("ignore:.*metadata table.*")
@pytest.mark.parametrize(("version", "name"), [*golden_names("cow"), *golden_names("mor")])
def test_a_clustering_changes_no_row(golden: Golden, version: str, name: str) -> None:
    path, _ = golden(version, name)
    before = rows(path)
    groups = file_groups(path)
    with _refused(name):
        HudiTable.open(path).cluster(options=given_up(name))
    assert rows(path) == before
    assert file_groups(path) <= groups


def _refused(name: str) -> AbstractContextManager[object]:
    """Tables that are not clustered, and why."""
    if name in ("g2_bucket_simple", "index_bucket", "g2_nbcc"):
        return pytest.raises(ConfigError, match="are buckets of its index")
    return nullcontext()


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*metadata table.*")
@pytest.mark.parametrize(("version", "name"), PLANS)
def test_a_plan_of_real_hudi_is_run_as_it_stands(golden: Golden, version: str, name: str) -> None:
    path, _ = golden(version, name)
    before = rows(path)
    table = HudiTable.open(path)
    (plan,) = (
        i for i in table.state().timeline.pending() if i.action in (ActionKind.CLUSTERING, ActionKind.REPLACECOMMIT)
    )
    (run,) = table.cluster(instant_time=plan.requested_time).runs
    assert run.instant_time == plan.requested_time
    assert rows(path) == before
    assert not HudiTable.open(path).state().timeline.pending().instants
    read = HudiTable.open(path).scan(columns=["name", "_hoodie_file_name"]).to_arrow().to_pylist()
    names = [row["name"] for row in read if run.instant_time in row["_hoodie_file_name"]]
    assert names, "rows of the plan are in the new files"


@pytest.mark.thorough
@pytest.mark.parametrize("version", WRITERS)
def test_what_a_clustering_records_is_what_real_hudi_records(golden: Golden, version: str) -> None:
    """The same plan, run by real Hudi in one table and by us in the other."""
    theirs = _recorded(golden(version, "g2_clustering_executed")[0])
    path, _ = golden(version, "g2_clustering_pending")
    table = HudiTable.open(path)
    (plan,) = (
        i for i in table.state().timeline.pending() if i.action in (ActionKind.CLUSTERING, ActionKind.REPLACECOMMIT)
    )
    table.cluster(instant_time=plan.requested_time)
    assert _recorded(path) == theirs


def _recorded(path: Path) -> Any:
    meta = HudiTable.open(path).state()
    instant = next(i for i in meta.timeline.completed() if i.action is ActionKind.REPLACECOMMIT)
    body = meta.commits.metadata(instant)
    ignored = {"path", "file_id", "total_write_bytes", "file_size_in_bytes", "create_time_ms", "scan_time_ms"}
    stats = {
        partition: [{n: getattr(s, n) for n in s.__slots__ if n not in ignored} for s in stats]
        for partition, stats in body.partition_to_write_stats.items()
    }
    replaced = body.partition_to_replace_file_ids or {}
    groups = {partition: sorted(ids) for partition, ids in replaced.items()}
    return instant.requested_time, body.operation_type, body.compacted, stats, groups, body.extra_metadata


@pytest.mark.thorough
@pytest.mark.parametrize("version", WRITERS)
def test_a_plan_is_written_as_real_hudi_writes_it(golden: Golden, version: str) -> None:
    path, _ = golden(version, "g2_clustering_pending")
    meta = HudiTable.open(path).state()
    folder = path / meta.config.timeline_path
    requested = ("clustering.requested", "replacecommit.requested")
    (theirs,) = [file for file in folder.iterdir() if file.name.endswith(requested)]
    known, _ = decode_container(theirs.read_bytes(), "theirs")
    theirs.unlink()
    # What was inserted after the plan was made is left out by its time.
    later = sorted(file.name for file in folder.iterdir() if file.name.startswith("2"))[-1].partition(".")[0][:17]
    for file in folder.iterdir():
        if file.name.startswith(later):
            file.unlink()
    scheduled = HudiTable.open(path).cluster(schedule_only=True, options=SORT).scheduled
    assert scheduled is not None
    (ours,) = [file for file in folder.iterdir() if file.name.startswith(scheduled) and file.suffix == ".requested"]
    assert ours.name.partition(".")[2] == theirs.name.partition(".")[2]
    made, _ = decode_container(ours.read_bytes(), "ours")
    assert _comparable(made) == _comparable(known)


def _comparable(body: Any) -> Any:
    """Groups by partition, paths without the folder that the table was in."""
    plan = body["clusteringPlan"]
    for group in plan["inputGroups"]:
        for file_slice in group["slices"]:
            place = "/" + file_slice["partitionPath"] + "/"
            assert file_slice["dataFilePath"].startswith("file:/")
            file_slice["dataFilePath"] = file_slice["dataFilePath"].rpartition(place)[2]
            file_slice["deltaFilePaths"] = [name.rpartition(place)[2] for name in file_slice["deltaFilePaths"]]
        group["slices"].sort(key=lambda s: s["fileId"])
    plan["inputGroups"].sort(key=lambda g: g["slices"][0]["partitionPath"])
    return body


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["0.15.0", "1.2.0"])
def test_buckets_of_real_hudi_are_resized_again(golden: Golden, version: str) -> None:
    path, _ = golden(version, "g2_bucket_consistent")
    before = rows(path)
    engine = {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.bucket.index.hash.field": "id",
    }
    HudiTable.open(path).cluster(options={**engine, "hoodie.bucket.index.max.num.buckets": "6",
                                          "hoodie.parquet.max.file.size": "2000"})  # fmt: skip
    assert rows(path) == before
    grown = file_groups(path)
    assert grown > 7
    table = HudiTable.open(path)
    read = table.scan().to_arrow().select([f.name for f in table.state().table_schema()])
    table.upsert(read, options={**engine, "hoodie.compact.inline": "false"})
    keys = HudiTable.open(path).scan(columns=["id", "p"]).to_arrow().to_pylist()
    assert len(keys) == len(before)
    assert file_groups(path) == grown
