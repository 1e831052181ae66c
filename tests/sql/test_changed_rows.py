"""UPDATE, DELETE and MERGE among other writers, and on tables without meta columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import ConfigError, CorruptFile, OutdatedRows
from pyhudi.sql.session import SqlFrame

duckdb = pytest.importorskip("duckdb")

SCHEMA = pa.schema([("id", pa.int32()), ("a", pa.int64()), ("dt", pa.string())])
OPTIONS = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "dt"}


class Overtaken(pyhudi.DuckDbSession):
    """A session that others overtake: they commit when the query of a change has been made."""

    left = 0
    place = ""

    def view_of(self, frame: SqlFrame) -> Any:
        if self.left:
            self.left -= 1
            write(self.place, [(50 + self.left, 1, "x")])
        return super().view_of(frame)


def write(place: str, rows: list[tuple[int, int, str]], **more: str) -> None:
    named = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
    pyhudi.write_hudi(place, pa.Table.from_pylist(named, SCHEMA), "upsert", options={**OPTIONS, **more})


def rows_of(place: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in pyhudi.HudiTable.open(place).to_arrow(SCHEMA.names).to_pylist())


def overtaken(place: str, times: int) -> Overtaken:
    session = Overtaken({"t": place})
    session.left, session.place = times, place
    return session


@pytest.mark.thorough
def test_a_change_that_is_overtaken_sees_the_rows_of_the_other_write(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    write(place, [(1, 1, "x"), (2, 2, "y")])
    overtaken(place, 2).sql("UPDATE t SET a = a + 10")
    assert rows_of(place) == [(1, 11, "x"), (2, 12, "y"), (50, 11, "x"), (51, 11, "x")]


@pytest.mark.thorough
def test_a_change_that_is_overtaken_each_time_gives_up_and_changes_nothing(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    write(place, [(1, 1, "x")])
    with pytest.raises(OutdatedRows, match="another write completed"):
        overtaken(place, 9).sql("UPDATE t SET a = 0")
    assert (1, 1, "x") in rows_of(place)


@pytest.mark.parametrize("times", [0, 1])
def test_a_stream_of_the_caller_is_the_whole_source_of_a_statement_and_of_the_next_one(
    tmp_path: Path, times: int
) -> None:
    place = str(tmp_path / "t")
    write(place, [(1, 1, "x"), (2, 2, "y")])
    changes = pa.table({"id": [1, 9], "a": [7, 9], "dt": ["x", "z"]}).to_reader()
    assert isinstance(changes, pa.RecordBatchReader)
    session = overtaken(place, times)
    session.sql(
        "MERGE INTO t USING changes AS s ON t.id = s.id WHEN MATCHED AND t.a < 5 THEN UPDATE SET a = s.a "
        "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.id < 50 THEN DELETE"
    )
    assert [row for row in rows_of(place) if row[0] < 50] == [(1, 7, "x"), (9, 9, "z")]
    session.sql("DELETE FROM t WHERE id IN (SELECT id FROM changes WHERE a = 9)")
    assert [row for row in rows_of(place) if row[0] < 50] == [(1, 7, "x")]


@pytest.mark.thorough
def test_tables_without_meta_columns_are_changed_by_their_keys(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    write(place, [(1, 1, "x"), (2, 2, "y"), (3, 3, "y")], **{"hoodie.populate.meta.fields": "false"})
    session = pyhudi.DuckDbSession({"t": place})
    session.sql("UPDATE t SET a = a * 2 WHERE id < 3")
    session.sql("DELETE FROM t WHERE a = 4")
    session.sql(
        "MERGE INTO t USING (SELECT 3 AS id, 7 AS a, 'y' AS dt UNION ALL SELECT 9, 9, 'z') s ON t.id = s.id "
        "AND t.dt = s.dt WHEN MATCHED THEN UPDATE SET a = t.a + s.a WHEN NOT MATCHED THEN INSERT *"
    )
    assert rows_of(place) == [(1, 2, "x"), (3, 10, "y"), (9, 9, "z")]


@pytest.mark.thorough
def test_a_merge_by_key_alone_reads_no_row_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path / "t")
    write(place, [(1, 1, "x"), (2, 2, "y")])
    monkeypatch.setattr(pyhudi.DuckDbSession, "frame_of", lambda *_: pytest.fail("the table was read"))
    pyhudi.DuckDbSession({"t": place}).sql(
        "MERGE INTO t USING (SELECT 1 AS id, 7 AS a, 'x' AS dt, 'd' AS op UNION ALL SELECT 2, 8, 'y', 'u') s "
        "ON t.id = s.id AND s.dt = t.dt WHEN MATCHED AND op = 'd' THEN DELETE WHEN MATCHED THEN UPDATE SET *"
    )
    assert rows_of(place) == [(2, 8, "y")]


def test_a_merge_that_is_an_upsert_is_written_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path / "t")
    write(place, [(1, 1, "x"), (2, 9, "y")], **{"hoodie.datasource.write.precombine.field": "a"})
    monkeypatch.setattr("pyhudi.sql.dml.merge.change", lambda *_: pytest.fail("stored rows were read"))
    pyhudi.DuckDbSession({"t": place}).sql(
        "MERGE INTO t USING (SELECT 1 AS id, 7 AS a, 'x' AS dt UNION ALL SELECT 2, 8, 'y' UNION ALL SELECT 1, 3, 'x' "
        "UNION ALL SELECT 4, 4, 'z') s ON t.id = s.id AND s.dt = t.dt WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    assert rows_of(place) == [(1, 7, "x"), (2, 9, "y"), (4, 4, "z")]


@pytest.mark.thorough
def test_a_merge_that_moves_a_row_leaves_one_of_it(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    write(place, [(1, 1, "x"), (2, 2, "x")], **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    pyhudi.DuckDbSession({"t": place}).sql(
        "MERGE INTO t USING (SELECT 1 AS id, 'y' AS place) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET dt = s.place"
    )
    assert rows_of(place) == [(1, 1, "y"), (2, 2, "x")]


def test_rows_that_name_a_file_group_that_there_is_not_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "t")
    write(place, [(1, 1, "x")])
    session = pyhudi.DuckDbSession({"t": place})
    honest = session.frame_of

    def forged(*arguments: Any) -> SqlFrame:
        found: Any = honest(*arguments)
        rows = found.to_arrow_table()
        at = rows.schema.get_field_index("_hoodie_file_name")
        return session.frame_from(rows.set_column(at, "_hoodie_file_name", pa.array(["other_0.parquet"])))

    monkeypatch.setattr(session, "frame_of", forged)
    with pytest.raises(CorruptFile, match="file group other of partition 'x'"):
        session.sql("UPDATE t SET a = 5")
    assert rows_of(place) == [(1, 1, "x")]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE t SET b = 1", "has no column 'b'"),
        ("UPDATE t SET a = 1, A = 2", "sets the column a twice"),
        ("UPDATE t SET a.b = 1", "a has no field .b.; it is no struct"),
        ("UPDATE t SET a WHERE true", "expected '='"),
        ("UPDATE t SET a = 1 WHERE", "expected a condition"),
        ("DELETE FROM t WHERE nothing = 1", "nothing"),
        ("DELETE FROM t id = 1", "expected"),
        ("INSERT INTO t (id, a, id) VALUES (1, 1, 1)", "column id twice"),
        ("INSERT INTO t PARTITION (a = 1) SELECT 1, 'x'", "not a partition column"),
        ("INSERT INTO t", "expected a query"),
        ("INSERT OVERWRITE t PARTITION (dt = 'x') IF NOT EXISTS SELECT 1, 1", "IF NOT EXISTS"),
        ("MERGE INTO t USING u ON t.id = u.id", "expected WHEN MATCHED"),
        ("MERGE INTO t USING (SELECT 1 AS x) s ON t.id = s.x WHEN MATCHED THEN UPDATE SET *", "none of the table's"),
        ("MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE",
         "only the last clause"),
        ("MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *",
         "values of the source"),
        ("MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, a) VALUES (1)",
         "2 columns and has 1 values"),
        ("MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 5", "record key"),
    ],
)  # fmt: skip
def test_what_a_statement_has_wrong_is_said_and_nothing_is_written(
    table_of_one_row: str, statement: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        pyhudi.DuckDbSession({"t": table_of_one_row}).sql(statement)
    assert rows_of(table_of_one_row) == [(1, 1, "x")]


@pytest.fixture(scope="module")
def table_of_one_row(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("refused") / "t")
    write(place, [(1, 1, "x")])
    return place


class Planned(pyhudi.DuckDbSession):
    """A session that notes the queries it is given."""

    def query(self, text: str) -> SqlFrame:
        self.asked = [*getattr(self, "asked", []), text]
        return super().query(text)


@pytest.mark.parametrize(
    ("source", "queries"),
    [
        ("SELECT 1::INTEGER AS id, 9::BIGINT AS a, 'x' AS dt", 1),
        ("SELECT 1::INTEGER AS id, 9::INTEGER AS a, 'x' AS dt", 2),
        ("SELECT 1::INTEGER AS id, 9::BIGINT AS A, 'x' AS dt", 2),
        ("SELECT 1::INTEGER AS id, 9::BIGINT AS a, 'x' AS dt, true AS more", 2),
    ],
    ids=["the table's columns", "another type", "other capitals", "one more column"],
)
def test_a_merge_of_the_tables_own_columns_plans_its_source_once(tmp_path: Path, source: str, queries: int) -> None:
    place = str(tmp_path / "t")
    write(place, [(1, 1, "x"), (2, 2, "x")], **{"hoodie.table.ordering.fields": "a"})
    session = Planned(tables={"t": place})
    session.sql(
        f"MERGE INTO t USING ({source}) AS s ON t.id = s.id AND t.dt = s.dt "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )

    assert rows_of(place) == [(1, 9, "x"), (2, 2, "x")]
    assert len(session.asked) == queries
