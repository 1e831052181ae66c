"""PyHudi writes partial updates; real Hudi reads them, compacts them and writes on; both read the same all along."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable, write_hudi
from tests.support.judge.compactions import call, kept
from tests.support.judge.comparing import assert_pyhudi_reads, assert_same, write
from tests.support.judge.real_hudi import HUDI_OF_TABLE_VERSION, Judge
from tests.support.judge.stories import AVRO_LOGS, KEYS, MERGE_ON_READ, NO_COMPACTION, Row, Step, Story, rows

BY_COMMIT_TIME = {key: text for key, text in KEYS.items() if "ordering" not in key}
KINDS = [
    pytest.param(9, KEYS, {}, id="v9"),
    pytest.param(8, KEYS, {}, id="v8", marks=pytest.mark.slow),
    pytest.param(8, BY_COMMIT_TIME, AVRO_LOGS, id="v8-commit-time-avro", marks=pytest.mark.slow),
    pytest.param(9, BY_COMMIT_TIME, AVRO_LOGS, id="v9-commit-time-avro", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("version", "keys", "more"), KINDS)
def test_partial_updates_are_read_compacted_and_followed_by_real_hudi(
    version: int, keys: dict[str, str], more: dict[str, str], judge: Judge, tmp_path: Path
) -> None:
    steps = (Step("bulk_insert", rows(range(40), 10)), Step("upsert", rows(range(10), 20)))
    story = Story(f"partial_v{version}", version, {**keys, **MERGE_ON_READ, **more}, steps)
    hudi, path = HUDI_OF_TABLE_VERSION[version], tmp_path / "t"
    for step in story.steps:
        write(path, story, step)
    expected = {row["id"]: row for row in story.expected()}
    options = {**NO_COMPACTION, **more, "hoodie.spark.sql.merge.into.partial.updates": "true"}
    table = HudiTable.open(str(path))

    table.update("seq >= 5 AND seq < 20", set={"note": "'late'", "fare": pc.field("fare") * 2}, options=options)
    for number in range(5, 20):
        row = expected[f"k{number:04d}"]
        row |= {"note": "late", "fare": row["fare"] * 2}
    table.merge(
        [{"id": "k0007", "region": "south", "fare": 1.5}, {"id": "k0900", "region": "south", "fare": 2.5}],
        options=options,
    ).when_matched_update({"fare": "source.fare"}).when_not_matched_insert(
        {"fare": "source.fare", "ts": 1, "note": "'merged'"}
    ).execute()  # fmt: skip
    expected["k0007"]["fare"] = 1.5
    inserted = dict.fromkeys(story.schema.names) | {"region": "south", "ts": 1, "note": "merged"}
    found = [{**inserted, "id": "k0900", "fare": 2.5}, *expected.values()]

    returned = judge.rows(path, hudi)
    assert_same(returned, found, story.schema, f"Hudi {hudi} reads partial updates of PyHudi")
    assert_pyhudi_reads(path, returned, "PyHudi reads its partial updates")

    upserted(path, story, [{**row, "ts": 30, "note": "whole again"} for row in list(expected.values())[3:8]])
    before = judge.rows(path, hudi)
    assert_pyhudi_reads(path, before, "a whole row follows a partial update")
    call(judge, path, hudi, "schedule")
    call(judge, path, hudi, "run")
    after = judge.rows(path, hudi)
    assert kept(after) == kept(before), f"Hudi {hudi} compacts partial updates"
    assert_pyhudi_reads(path, after, f"Hudi {hudi} compacted partial updates")

    table.update("seq < 3", set={"note": None}, options=options)
    before = judge.rows(path, hudi)
    assert {row["note"] for row in before if row["seq"] is not None and row["seq"] < 3} == {None}
    assert table.compact().runs
    assert kept(judge.rows(path, hudi)) == kept(before), "PyHudi compacts partial updates"
    judge.check(path, hudi, steps=["read", "as_of", "upsert", "compaction"], options=NO_COMPACTION)


def upserted(path: Path, story: Story, given: list[Row]) -> None:
    write_hudi(str(path), story.data(Step("upsert", given)), options=story.write_options())
