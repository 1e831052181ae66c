"""Where merging is associative: the same history ends alike wherever its versions meet.

A copy-on-write table merges each row with the stored one as it comes; merge-on-read merges log records among themselves
and then with the base file, in a query or in a compaction, which may come at any time. What the two kinds leave out is
where they differ, in Apache Hudi as here (docs/merging.md, "Modes").
"""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi import HudiTable
from tests.support.sweeps import examples

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("a", pa.int64()), ("b", pa.string())])
MODEL = "org.apache.hudi.common.model."
ONE_BY_ONE = {"hoodie.compact.inline": "false", "hoodie.metadata.enable": "false"}
AT_ONCE = {**ONE_BY_ONE, "hoodie.compact.inline.max.delta.commits": "1"}
NAMES = itertools.count()
WHOLE = [
    ("6", "DefaultHoodieRecordPayload"), ("8", "DefaultHoodieRecordPayload"), ("9", "DefaultHoodieRecordPayload"),
    ("8", "OverwriteWithLatestAvroPayload"), ("9", "OverwriteWithLatestAvroPayload"), ("9", "EventTimeAvroPayload"),
]  # fmt: skip
FILLING = [
    (v, f"{name}AvroPayload") for v in ("8", "9") for name in ("PartialUpdate", "OverwriteNonDefaultsWithLatest")
]

Row = dict[str, Any]
ROWS = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["k0", "k1"]),
        "ts": st.integers(1, 4),
        "a": st.none() | st.integers(0, 9),
        "b": st.none() | st.sampled_from(["m", "n"]),
    }
)
VERBS = ("upsert", "upsert", "update a", "update b", "merge", "delete", "delete where", "log_compact")
STEPS = st.lists(st.tuples(st.sampled_from(VERBS), ROWS), min_size=3, max_size=7)
SETTINGS = settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Three:
    """A table that merges as rows come, one that merges when it is read, and one that compacts after each step."""

    def __init__(self, version: str, payload: str, index: str) -> None:
        self.options = {
            **ONE_BY_ONE, "hoodie.write.table.version": version,
            "hoodie.datasource.write.payload.class": MODEL + payload,
            "hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "1",
        }  # fmt: skip
        self.cow, self.mor, self.compacted = (self.made(kind) for kind in ("COPY_ON_WRITE", *["MERGE_ON_READ"] * 2))
        self.tables = (self.cow, self.mor, self.compacted)

    def made(self, table_type: str) -> HudiTable:
        return HudiTable.create(
            f"memory://anywhere-{next(NAMES)}", SCHEMA, record_key="id", ordering="ts", table_type=table_type,
            table_name="t", options=self.options,
        )  # fmt: skip

    def do(self, verb: str, row: Row) -> None:
        rows, key = pa.Table.from_pylist([row], SCHEMA), f"id = '{row['id']}'"
        for table in self.tables:
            if verb == "upsert":
                table.upsert(rows, options=self.options)
            elif verb.startswith("update"):
                table.update(key, values={verb[-1]: row[verb[-1]]}, options=self.options)
            elif verb == "merge":
                table.merge(rows, options=self.options).when_matched_update({"a": "source.a"}).execute()
            elif verb == "delete":
                table.delete(rows.select(["id"]), options=self.options)
            elif verb == "delete where":
                table.delete(where=key, options=self.options)
            elif table is self.mor:
                table.maintenance.log_compact(options={**self.options, "hoodie.log.compaction.blocks.threshold": "2"})
        if verb != "log_compact":
            self.compacted.compact(options=AT_ONCE)

    def found(self, table: HudiTable) -> list[Row]:
        return sorted(table.to_arrow(SCHEMA.names).to_pylist(), key=repr)

    def check(self, verb: str) -> None:
        expected = self.found(self.cow)
        assert self.found(self.mor) == expected, f"log files, after {verb}"
        assert self.found(self.compacted) == expected, f"compacted, after {verb}"

    def end(self) -> None:
        self.mor.compact(options=AT_ONCE)
        self.check("a compaction")


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "payload"), WHOLE)
@SETTINGS
@given(steps=STEPS, index=st.sampled_from(["SIMPLE", "BUCKET"]))
def test_whole_rows_end_alike_but_for_a_row_that_comes_late_behind_a_delete(
    version: str, payload: str, steps: list[tuple[str, Row]], index: str
) -> None:
    three = Three(version, payload, index)
    by_value = not payload.startswith("OverwriteWithLatest")
    deleted: dict[str, int] = {}
    for verb, row in steps:
        stored = {found["id"]: found for found in three.found(three.cow)}
        there = stored.get(row["id"])
        if by_value and verb == "upsert" and there is None and row["ts"] < deleted.get(row["id"], 0):
            continue
        if verb.startswith("delete") and there is not None:
            deleted[row["id"]] = max(there["ts"], deleted.get(row["id"], 0))
        three.do(verb, row)
        three.check(verb)
    three.end()


@pytest.mark.parametrize(("version", "payload"), FILLING)
@SETTINGS
@given(steps=STEPS, index=st.sampled_from(["SIMPLE", "BUCKET"]))
def test_rows_that_fill_each_other_end_alike_where_none_comes_late_and_none_behind_a_delete(
    version: str, payload: str, steps: list[tuple[str, Row]], index: str
) -> None:
    three = Three(version, payload, index)
    deleted: set[str] = set()
    for number, (verb, row) in enumerate(steps):
        if row["id"] in deleted:
            continue
        if verb.startswith("delete"):
            deleted.add(row["id"])
        three.do(verb, {**row, "ts": number})
        three.check(verb)
    three.end()
