"""Who follows the changes of a table has the rows that the table has."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi import HudiTable
from pyhudi.model.change_logs import LOGGING_MODES
from tests.support.sweeps import examples
from tests.support.tables.change_logs import (
    A1,
    B1,
    C1,
    LATEST,
    VERSIONS,
    Image,
    changes,
    image,
    logged,
    plan,
    replayed,
)
from tests.support.tables.clustered import TYPES, Clustered
from tests.support.tables.model import ROWS
from tests.support.tables.small import Row, rows_of

OPERATIONS = st.sampled_from(["upsert", "insert", "delete", "insert_overwrite", "mark", "compact", "cluster"])
LIFE = st.lists(st.tuples(OPERATIONS, ROWS), min_size=2, max_size=6)


def live(table: Clustered, operation: str, rows: list[Row]) -> None:
    """One step of a table's life."""
    if operation == "compact":
        if table.meta.config.is_merge_on_read:
            table.compact_now()
    elif operation == "cluster":
        table.cluster()
    elif operation == "delete":
        table.delete(*{row[:2] for row in rows})
    elif operation == "mark":
        table.mark_deleted(*rows)
    else:
        known = {(row[0], row[1]) for row in table.rows()} if operation == "insert" else set()
        fresh = [row for row in rows if (row[0], row[1]) not in known]
        if fresh:
            table.write(operation, rows_of(*fresh))


@pytest.mark.thorough
@settings(max_examples=examples(25))
@given(LIFE, st.sampled_from(VERSIONS), st.sampled_from(TYPES), st.sampled_from(LOGGING_MODES), st.data())
def test_a_table_that_follows_the_changes_is_always_equal(
    life: list[tuple[str, list[Row]]], version: str, table_type: str, mode: str, data: st.DataObject
) -> None:
    """Changes of any cut of the timeline, replayed in order: each finds the row that it says was there before."""
    table = logged(version, table_type, mode, small=data.draw(st.booleans()), datasource_write_payload_class=LATEST)
    target: dict[Image, Image] = {}
    begin = "earliest"
    for operation, rows in [("upsert", [("first", "x", 0, 0)]), *life]:
        live(table, operation, rows)
        if data.draw(st.booleans()):
            planned = plan(table, begin)
            replayed(target, changes(table, begin))
            begin = planned.checkpoint or begin
            assert sorted(target.values()) == sorted(table.rows())
    replayed(target, changes(table, begin))
    assert sorted(target.values()) == sorted(table.rows())


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("mode", LOGGING_MODES)
def test_changes_by_filters_and_merges_are_found_too(tmp_path: Path, table_type: str, mode: str) -> None:
    """On merge-on-read tables these write the changed columns only."""
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
    more = {
        "cdc": True,
        "options": {"hoodie.table.cdc.supplemental.logging.mode": mode},
        "table_type": table_type,
        "partition_by": "p",
    }
    table = HudiTable.create(tmp_path / "t", schema, record_key="id", ordering="ts", **more)
    table.insert(rows_of(A1, B1, C1))
    table.update("id = 'a'", set={"v": 9})
    table.merge([{"id": "b", "p": "x", "v": 5}, {"id": "n", "p": "x", "v": 6}]).when_matched_update(
        {"v": "source.v"}
    ).when_not_matched_insert({"v": "source.v", "ts": 1}).execute()
    table.delete(where="id = 'c'")

    target: dict[Image, Image] = {}
    found = table.changes("earliest", format="cdc").to_arrow().to_pylist()
    replayed(target, [(row["op"], image(row["before"]), image(row["after"])) for row in found])
    assert sorted(target.values()) == [("a", "x", 1, 9), ("b", "x", 1, 5), ("n", "x", 1, 6)]
    assert len(found) == 7
