"""Tables that follow other tables through long lives: by all changes, and by the rows of new commits.

`PYHUDI_CHAIN_OPERATIONS` says how long a life is; `make stress` plays 1,000.
"""

from __future__ import annotations

import itertools
import json
import os
import random
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.support.tables.merge_on_read import VERSIONS

OPERATIONS = int(os.environ.get("PYHUDI_CHAIN_OPERATIONS", "60"))
SEED = int(os.environ.get("PYHUDI_CHAIN_SEED", "1"))
_NUMBERS = itertools.count()
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
# Cleaning and archiving come now and then, and leave what a follower of the last few commits needs.
SERVICES = {
    "hoodie.clean.commits.retained": "12",
    "hoodie.keep.min.commits": "14",
    "hoodie.keep.max.commits": "20",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "6",
}


def made(name: str, version: str, table_type: str, **options: str) -> HudiTable:
    """A table in memory: a long life waits for no disk."""
    given = {"hoodie.write.table.version": version, **options}
    path = f"memory://chains-{next(_NUMBERS)}-{name}"
    return HudiTable.create(
        path, SCHEMA, record_key="id", partition_by="p", ordering="ts", table_type=table_type, options=given
    )


def rows(table: HudiTable) -> list[tuple[Any, ...]]:
    found = table.scan(SCHEMA.names).to_arrow()
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))


class Life:
    """Random operations on one table. Keys stay in their partition; each version of a row is newer than the last."""

    def __init__(self, table: HudiTable, deletes: bool, seed: int) -> None:
        self.table, self.deletes = table, deletes
        self.random = random.Random(seed)
        self.ts = 0

    def step(self) -> None:
        words = ["upsert"] * 6 + ["insert", "update", "cluster", "compact", "merge"]
        word = self.random.choice(words + ["delete", "delete where", "delete partition"] * self.deletes)
        self.ts += 1
        many = [self._row(self.random.randrange(60)) for _ in range(self.random.randrange(1, 8))]
        batch = pa.Table.from_pylist(list({row["id"]: row for row in many}.values()), SCHEMA)
        table = self.table
        if word == "upsert":
            table.upsert(batch, options=SERVICES)
        elif word == "insert":
            table.insert(pa.Table.from_pylist([self._row(1000 + self.ts)], SCHEMA), options=SERVICES)
        elif word == "update":
            least = self.random.randrange(900)
            where = f"v BETWEEN {least} AND {least + 100}" if self.ts % 2 else "p = 'x'"
            table.update(where, set={"v": self.ts, "ts": self.ts})
        elif word == "merge":
            table.merge(batch).when_matched_update_all().when_not_matched_insert_all().execute()
        elif word == "delete":
            table.delete(batch.select(["id", "p"]), options=SERVICES)
        elif word == "delete where":
            table.delete(where=f"v > {self.random.randrange(500, 1000)}")
        elif word == "delete partition":
            table.delete_partitions([self.random.choice("xyz")])
        elif word == "cluster":
            table.cluster()
        elif table.state().config.is_merge_on_read:
            table.compact()

    def _row(self, number: int) -> dict[str, Any]:
        return {"id": f"k{number}", "p": "xyz"[number % 3], "ts": self.ts, "v": self.random.randrange(1000)}


def followed_by_changes(source: HudiTable, target: HudiTable, begin: str) -> str:
    """Bring all changes since `begin` to the target; where the next ones begin."""
    scan = source.changes(begin, format="cdc")
    last: dict[str, tuple[str, dict[str, Any]]] = {}
    for change in scan.to_arrow().to_pylist():
        # Of a change log an absent row is the text null.
        image = json.loads(change["after"] or "null") or json.loads(change["before"])
        last[image["id"]] = (change["op"], {name: image[name] for name in SCHEMA.names})
    gone = [row for op, row in last.values() if op == "d"]
    here = [row for op, row in last.values() if op != "d"]
    if gone:
        target.delete(pa.Table.from_pylist(gone, SCHEMA).select(["id", "p"]))
    if here:
        target.upsert(pa.Table.from_pylist(here, SCHEMA))
    return scan.checkpoint or begin


def followed_by_rows(source: HudiTable, target: HudiTable, begin: str) -> str:
    scan = source.changes(begin)
    new = scan.to_arrow().select(SCHEMA.names)
    if len(new):
        target.upsert(new)
    return scan.checkpoint or begin


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
def test_a_table_that_follows_all_changes_stays_equal(version: str, table_type: str) -> None:
    source = made("source", version, table_type, **{"hoodie.table.cdc.enabled": "true"})
    target = made("target", version, "COPY_ON_WRITE")
    life, begin = Life(source, True, SEED), "earliest"
    for number in range(OPERATIONS):
        life.step()
        if life.random.random() < 0.3 or number % 8 == 7 or number == OPERATIONS - 1:
            begin = followed_by_changes(source, target, begin)
            assert rows(target) == rows(source), f"seed {SEED}, operation {number}"


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
def test_a_chain_of_tables_that_take_the_rows_of_new_commits_stays_equal(version: str, table_type: str) -> None:
    source = made("source", version, table_type)
    middle, last = (made(name, version, kind) for name, kind in zip(("middle", "last"), TYPES, strict=True))
    life, begins = Life(source, False, SEED), ["earliest", "earliest"]
    for number in range(OPERATIONS):
        life.step()
        if life.random.random() < 0.3 or number % 8 == 7 or number == OPERATIONS - 1:
            begins[0] = followed_by_rows(source, middle, begins[0])
            begins[1] = followed_by_rows(middle, last, begins[1])
            assert rows(middle) == rows(source), f"seed {SEED}, operation {number}"
            assert rows(last) == rows(source), f"seed {SEED}, operation {number}"
