"""What a statement reads of stored rows before it writes: keys, ordering values, and nothing that it can leave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.actions.changes.slice_reader import SliceReader

duckdb = pytest.importorskip("duckdb")

SCHEMA = pa.schema(
    [("id", pa.int32()), ("ts", pa.int64()), ("a", pa.int64()), ("b", pa.string()), pa.field("c", pa.list_(pa.int32()))]
)
OPTIONS = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.table.ordering.fields": "ts"}
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]


def write(place: str, kind: str, *rows: tuple[Any, ...]) -> None:
    named = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
    options = {**OPTIONS, "hoodie.datasource.write.table.type": kind}
    pyhudi.write_hudi(place, pa.Table.from_pylist(named, SCHEMA), "upsert", options=options)


def rows_of(place: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in pyhudi.HudiTable.open(place).to_arrow(SCHEMA.names).to_pylist())


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The columns that write tasks have read."""
    found: set[str] = set()
    honest = SliceReader.batches

    def watched(self: SliceReader, *given: Any) -> Iterator[tuple[pa.Table, pa.Table]]:
        for stored, shown in honest(self, *given):
            found.update(stored.column_names)
            yield stored, shown

    monkeypatch.setattr(SliceReader, "batches", watched)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_statement_reads_no_columns_that_the_rows_keep(tmp_path: Path, read: set[str], kind: str) -> None:
    place = str(tmp_path / "t")
    write(place, kind, (1, 1, 10, "x", [1]), (2, 1, 20, "y", None), (3, 1, 30, None, [3]))
    session = pyhudi.DuckDbSession({"t": place})

    session.sql("UPDATE t SET a = a + 1 WHERE id < 3")
    session.sql(
        "MERGE INTO t USING (SELECT 2 AS id, 'm' AS b, false AS gone UNION ALL SELECT 3, 'm', true) s ON t.id = s.id "
        "WHEN MATCHED AND gone THEN DELETE WHEN MATCHED AND t.a > 0 THEN UPDATE SET b = s.b"
    )

    assert rows_of(place) == [(1, 1, 11, "x", [1]), (2, 1, 21, "m", None)]
    assert {"ts", "_hoodie_record_key"} <= read
    if kind == "COPY_ON_WRITE":  # in log files a row that comes late must find the whole row
        assert not {"a", "b", "c"} & read


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_clauses_that_set_different_columns_keep_the_others_row_by_row(tmp_path: Path, kind: str) -> None:
    place = str(tmp_path / "t")
    write(place, kind, (1, 1, 10, "x", [1]), (2, 1, 20, "y", [2]), (3, 1, 30, "z", [3]))
    pyhudi.DuckDbSession({"t": place}).sql(
        "MERGE INTO t USING (SELECT 1 AS id, 'a' AS what UNION ALL SELECT 2, 'b' UNION ALL SELECT 9, 'n') s "
        "ON t.id = s.id WHEN MATCHED AND what = 'a' THEN UPDATE SET a = 0 "
        "WHEN MATCHED THEN UPDATE SET b = 'set', ts = 5 "
        "WHEN NOT MATCHED THEN INSERT (id, ts, b) VALUES (s.id, 1, s.what) "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET c = NULL"
    )
    assert rows_of(place) == [
        (1, 1, 0, "x", [1]),
        (2, 5, 20, "set", [2]),
        (3, 1, 30, "z", None),
        (9, 1, None, "n", None),
    ]


@pytest.mark.thorough
def test_rows_that_have_beaten_a_late_version_are_read_and_written_whole(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    write(place, "MERGE_ON_READ", *((number, 10, number, f"b{number}", [number]) for number in range(8)))
    write(place, "MERGE_ON_READ", (5, 1, 1000, "late", [1000]))
    session = pyhudi.DuckDbSession({"t": place})

    session.sql("UPDATE t SET a = a + 100 WHERE id IN (1, 5)")
    session.sql("UPDATE t SET b = 'new' WHERE id IN (1, 5)")

    found = {row[0]: row for row in rows_of(place)}
    assert found[1] == (1, 10, 101, "new", [1])
    assert found[5] == (5, 10, 105, "new", [5]), "nothing of the late version"
    assert found[6] == (6, 10, 6, "b6", [6])
