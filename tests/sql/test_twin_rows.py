"""A key twice in a file group, as INSERT INTO makes it: on copy on write single rows of it change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import ConfigError

pytest.importorskip("duckdb")

SCHEMA = pa.schema([("id", pa.int32()), ("v", pa.string()), ("ts", pa.int64())])
RECORD_INDEX = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
}
CHANGES = {"hoodie.table.cdc.enabled": "true"}


def twins(place: Path, options: dict[str, str], table_type: str = "COPY_ON_WRITE") -> pyhudi.DuckDbSession:
    """Rows 1 a, 1 b, 2 c, 3 d in one file group."""
    for rows in ([(1, "a", 1), (2, "c", 1)], [(1, "b", 2), (3, "d", 1)]):
        table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
        pyhudi.write_hudi(
            str(place), table, "insert", record_key="id", ordering="ts", table_type=table_type, options=options
        )
    return pyhudi.DuckDbSession({"t": str(place)}, options=options)


def rows_of(place: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in HudiTable.open(str(place)).to_arrow(SCHEMA.names).to_pylist())


@pytest.mark.thorough
@pytest.mark.parametrize("options", [{}, RECORD_INDEX, CHANGES], ids=["bloom", "record index", "change log"])
def test_one_row_of_a_key_is_changed_and_its_twin_stays(tmp_path: Path, options: dict[str, str]) -> None:
    place = tmp_path / "t"
    session = twins(place, options)
    session.sql("UPDATE t SET v = concat(v, '!') WHERE id = 1 AND ts = 1 OR id = 3")
    assert rows_of(place) == [(1, "a!", 1), (1, "b", 2), (2, "c", 1), (3, "d!", 1)]
    session.sql("DELETE FROM t WHERE v = 'b' OR v = 'c'")
    assert rows_of(place) == [(1, "a!", 1), (3, "d!", 1)]


@pytest.mark.thorough
@pytest.mark.parametrize("options", [{}, RECORD_INDEX], ids=["bloom", "record index"])
def test_a_key_is_still_found_when_one_of_its_rows_is_deleted(tmp_path: Path, options: dict[str, str]) -> None:
    place = tmp_path / "t"
    session = twins(place, options)
    session.sql("DELETE FROM t WHERE id = 1 AND v = 'a'")
    keys = pa.Table.from_pylist([{"id": 1, "v": "", "ts": 9}, {"id": 2, "v": "", "ts": 9}], SCHEMA)
    pyhudi.write_hudi(str(place), keys, "delete", options=options)
    assert rows_of(place) == [(3, "d", 1)]


@pytest.mark.thorough
def test_changes_of_single_rows_are_reported_with_their_own_images(tmp_path: Path) -> None:
    place = tmp_path / "t"
    session = twins(place, CHANGES)
    session.sql("UPDATE t SET v = concat(v, '!') WHERE id = 1")
    session.sql("DELETE FROM t WHERE id = 1 AND ts = 1")
    table = HudiTable.open(str(place))
    times = [instant.completion_time for instant in table.state().timeline.commits().instants]
    changes = session.sql(f"SELECT op, before, after FROM hudi_table_changes('t', 'cdc', '{times[1]}')").to_arrow()
    kinds = sorted((row["op"], '"v":"a' in row["before"].replace(" ", "")) for row in changes.to_pylist())
    assert kinds == [("d", True), ("u", False), ("u", True)]


@pytest.mark.thorough
def test_one_row_of_a_key_in_log_files_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "t"
    session = twins(place, {}, "MERGE_ON_READ")
    before = rows_of(place)
    with pytest.raises(ConfigError, match="key '1' twice in one file group"):
        session.sql("UPDATE t SET v = 'z' WHERE id = 1 AND ts = 1")
    assert rows_of(place) == before


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_row_that_several_rows_of_a_source_delete_is_deleted(tmp_path: Path, table_type: str) -> None:
    place = tmp_path / "t"
    session = twins(place, {}, table_type)
    source = "(SELECT * FROM (VALUES (2, 'c'), (2, 'd'), (3, 'd')) AS v(id, v))"
    session.sql(f"MERGE INTO t USING {source} AS s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert rows_of(place) == [(1, "a", 1), (1, "b", 2)]
