"""Plans and results of clusterings are shared with real Hudi: either schedules, the other runs, both read the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from tests.support.golden.rows import differences
from tests.support.judge.compactions import kept, pending, upsert
from tests.support.judge.comparing import as_json, assert_pyhudi_reads, assert_same, write
from tests.support.judge.real_hudi import HUDI_OF_TABLE_VERSION, Judge
from tests.support.judge.stories import (
    BY_VALUE,
    DDL,
    KEYS,
    MERGE_ON_READ,
    NO_COMPACTION,
    Step,
    Story,
    log_steps,
    rows,
    standard_steps,
)

SLOW = pytest.mark.slow
TABLES = [
    (9, "MERGE_ON_READ"),
    pytest.param(9, "COPY_ON_WRITE", marks=SLOW),
    pytest.param(8, "MERGE_ON_READ", marks=SLOW),
    pytest.param(8, "COPY_ON_WRITE", marks=SLOW),
    pytest.param(6, "MERGE_ON_READ", marks=SLOW),
    pytest.param(6, "COPY_ON_WRITE", marks=SLOW),
]
Z_ORDER = {
    "hoodie.clustering.plan.strategy.sort.columns": "fare,at",
    "hoodie.layout.optimize.strategy": "ZORDER",
}
BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.hash.field": "id",
    "hoodie.storage.layout.type": "BUCKET",
    "hoodie.storage.layout.partitioner.class": "org.apache.hudi.table.action.commit.SparkBucketIndexPartitioner",
}
RESIZE = {
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.bucket.index.max.num.buckets": "8",
    "hoodie.parquet.max.file.size": "2000",
    "hoodie.clustering.plan.strategy.class": "org.apache.hudi.client.clustering.plan.strategy."
    "SparkConsistentBucketClusteringPlanStrategy",
    "hoodie.clustering.execution.strategy.class": "org.apache.hudi.client.clustering.run.strategy."
    "SparkConsistentBucketClusteringExecutionStrategy",
    "hoodie.clustering.updates.strategy": "org.apache.hudi.client.clustering.update.strategy."
    "SparkConsistentBucketDuplicateUpdateStrategy",
}


def story_of(version: int, table_type: str) -> Story:
    by_value = BY_VALUE if version < 8 else {}
    options = {**KEYS, **by_value, "hoodie.parquet.small.file.limit": "0"}
    if table_type == "COPY_ON_WRITE":
        return Story(f"clustered_v{version}", version, options, standard_steps(), check_options=by_value)
    steps = log_steps(revives=version != 8)
    check = {**NO_COMPACTION, **by_value}
    return Story(f"clustered_v{version}", version, {**options, **MERGE_ON_READ}, steps, check_options=check)


def call(judge: Judge, table: Path, hudi: str, operation: str, order: str = "") -> None:
    sorting = f", order => '{order}'" if order else ""
    sql = f"call run_clustering(op => '{operation}', table => '{{table}}'{sorting})"
    answer = judge.ask(command="sql", sql=sql, table=str(table), hudi=hudi)
    assert answer["ok"], answer


def file_groups(table: Path) -> int:
    return sum(HudiTable.open(str(table)).inspect.partitions().column("files").to_pylist())


@pytest.mark.parametrize(("version", "table_type"), TABLES)
def test_pyhudi_and_real_hudi_run_each_others_clusterings(
    version: int, table_type: str, judge: Judge, tmp_path: Path
) -> None:
    story, hudi, table = story_of(version, table_type), HUDI_OF_TABLE_VERSION[version], tmp_path / "t"
    for step in story.steps:
        write(table, story, step)
    ours = HudiTable.open(str(table))
    groups = file_groups(table)

    assert ours.cluster(options=Z_ORDER).runs
    assert file_groups(table) < groups
    returned = judge.rows(table, hudi)
    assert_same(returned, story.expected(), story.schema, f"Hudi {hudi} reads what PyHudi clustered")
    assert_pyhudi_reads(table, returned, "PyHudi clustered")

    upsert(table, story, range(20, 30), 70)
    write(table, story, Step("insert", rows(range(200, 220), 70)))
    assert ours.cluster(schedule_only=True, options=Z_ORDER).scheduled
    write(table, story, Step("insert", rows(range(220, 230), 75)))
    before = judge.rows(table, hudi)
    assert_pyhudi_reads(table, before, "a plan of PyHudi waits")
    call(judge, table, hudi, "execute")
    assert not pending(table)
    after = judge.rows(table, hudi)
    assert kept(after) == kept(before), f"Hudi {hudi} ran a plan of PyHudi"
    assert_pyhudi_reads(table, after, f"Hudi {hudi} ran a plan of PyHudi")

    call(judge, table, hudi, "schedule", "seq")
    (theirs,) = pending(table)
    write(table, story, Step("insert", rows(range(230, 240), 80)))
    before = judge.rows(table, hudi)
    assert_pyhudi_reads(table, before, f"a plan of Hudi {hudi} waits")
    assert ours.cluster(instant_time=theirs).instant_times == (theirs,)
    after = judge.rows(table, hudi)
    assert kept(after) == kept(before), f"PyHudi ran a plan of Hudi {hudi}"
    assert not differences(after, ours.scan().to_arrow())
    steps = ["footers", "as_of", "hudi_rs", "upsert", "upsert_bloom", "delete", "clustering"]
    judge.check(table, hudi, steps=steps, options=dict(story.check_options))


@pytest.mark.parametrize("version", [9, pytest.param(6, marks=SLOW)])
def test_consistently_hashed_buckets_are_shared_and_resized_by_both(version: int, judge: Judge, tmp_path: Path) -> None:
    hudi, table = HUDI_OF_TABLE_VERSION[version], tmp_path / "t"
    by_value = BY_VALUE if version < 8 else {}
    options = {**KEYS, **MERGE_ON_READ, **BUCKETS, **by_value, "hoodie.metadata.enable": "false"}
    steps = (
        Step("upsert", rows(range(60), 10)),
        Step("upsert", [*rows(range(20), 20), *rows(range(60, 70), 20)]),
        Step("delete", rows(range(10, 15), 40)),
    )
    story = Story(f"ring_v{version}", version, options, steps)
    for step in steps:
        write(table, story, step)
    assert_same(judge.rows(table, hudi), story.expected(), story.schema, f"Hudi {hudi} reads")

    def by_hudi(numbers: range, ts: int, **more: str) -> list[dict[str, Any]]:
        given = [*rows(numbers, ts)]
        theirs = {**story.write_options(), "hoodie.write.auto.upgrade": "false", **RESIZE, **more}
        if version < 9:  # Hudi before 1.1 knows the older key only
            theirs["hoodie.datasource.write.precombine.field"] = theirs.pop("hoodie.table.ordering.fields")
        spec = {
            "options": theirs,
            "schema": DDL,
            "steps": [{"operation": "upsert", "rows": as_json(given)}],
        }
        judge.write(table, hudi, **spec)
        return given

    written = [*steps, Step("upsert", by_hudi(range(20, 75), 50))]
    returned = judge.rows(table, hudi)
    assert_same(returned, story.expected(written), story.schema, f"Hudi {hudi} finds the keys that PyHudi wrote")
    assert_pyhudi_reads(table, returned, f"Hudi {hudi} wrote to the buckets")

    before = file_groups(table)
    HudiTable.open(str(table)).cluster(options={**BUCKETS, **RESIZE, "hoodie.bucket.index.max.num.buckets": "4"})
    assert file_groups(table) > before
    assert kept(judge.rows(table, hudi)) == kept(returned), "PyHudi split the buckets"
    written.append(Step("upsert", by_hudi(range(40, 90), 60)))
    returned = judge.rows(table, hudi)
    assert_same(returned, story.expected(written), story.schema, f"Hudi {hudi} finds the keys in split buckets")

    before = file_groups(table)
    inline = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
    written.append(Step("upsert", by_hudi(range(10), 70, **inline)))
    assert file_groups(table) > before, f"Hudi {hudi} split the buckets"
    for step in (Step("upsert", rows(range(20, 100, 3), 80)), Step("delete", rows(range(21, 60, 5), 90))):
        write(table, story, step)
        written.append(step)
    returned = judge.rows(table, hudi)
    assert_same(returned, story.expected(written), story.schema, "PyHudi finds the keys in buckets that Hudi split")
    assert_pyhudi_reads(table, returned, "PyHudi wrote to buckets that Hudi split")
