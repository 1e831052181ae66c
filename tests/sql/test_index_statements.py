"""CREATE, DROP, SHOW and REFRESH INDEX."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyhudi
from pyhudi import ConfigError, DuckDbSession, HudiTable, TableNotFound
from pyhudi.table.groups.lists import TableIndexes
from tests.support.golden.folder import Golden


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    path = tmp_path / "t"
    rows = [{"id": f"k{n}", "name": f"n{n % 2}", "ts": n} for n in range(6)]
    pyhudi.write_hudi(path, rows, record_key="id")
    return HudiTable.open(path)


@pytest.fixture
def session(table: HudiTable) -> DuckDbSession:
    return DuckDbSession({"t": table.path})


def shown(session: DuckDbSession) -> set[tuple[str, ...]]:
    return {tuple(row.values()) for row in session.sql("SHOW INDEXES FROM t").to_arrow().to_pylist()}


@pytest.mark.thorough
def test_indexes_are_made_shown_rebuilt_and_dropped_by_either_name(session: DuckDbSession, table: HudiTable):
    session.sql("CREATE INDEX record_index ON TABLE t USING record_index (id)")
    session.sql("CREATE INDEX by_name ON t (name)")
    record, secondary = ("record_index", "record_index", ""), ("secondary_index_by_name", "secondary_index", "name")
    assert {record, secondary} <= shown(session)
    assert session.sql("SHOW INDEXES IN t").to_arrow().schema.names == ["index_name", "index_type", "col_name"]
    for name in ("by_name", "secondary_index_by_name"):
        session.sql(f"REFRESH INDEX {name} ON t")
        assert table.metadata.validate() == ()
        session.sql(f"DROP INDEX {name} ON TABLE t")
        assert secondary not in shown(session)
        session.sql("CREATE INDEX IF NOT EXISTS by_name ON t USING secondary_index (`name`)")
        assert secondary in shown(session)


@pytest.mark.thorough
def test_an_index_that_is_there_or_missing_is_an_error_unless_it_may_be(session: DuckDbSession):
    session.sql("CREATE INDEX record_index ON t (id)")
    with pytest.raises(ConfigError, match="record_index"):
        session.sql("CREATE INDEX record_index ON t (id)")
    session.sql("CREATE INDEX IF NOT EXISTS record_index ON t (id)")
    session.sql("DROP INDEX record_index ON t")
    for text in ("DROP INDEX record_index ON t", "REFRESH INDEX record_index ON t"):
        with pytest.raises(ConfigError, match="has no index 'record_index'"):
            session.sql(text)
    session.sql("DROP INDEX IF EXISTS record_index ON t")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE INDEX record_index ON t (name)", "of the record key"),
        ("CREATE INDEX i ON t ()", "name its columns"),
        ("CREATE INDEX i ON t (name) OPTIONS (colour = 'red')", "unknown key 'colour'"),
        ("CREATE INDEX i ON t (name, ts) OPTIONS (expr = 'lower')", "of one column"),
        ("CREATE INDEX i ON t (name) OPTIONS (expr = 'lower', colour = 'red')", "unknown key 'colour'"),
        ("CREATE INDEX i ON t name", "expected"),
        ("SHOW INDEXES t", "FROM"),
    ],
)
def test_a_wrong_statement_is_refused(session: DuckDbSession, text: str, message: str):
    with pytest.raises(ConfigError, match=message):
        session.sql(text)


def test_options_of_an_expression_are_one_call(session: DuckDbSession, monkeypatch: pytest.MonkeyPatch):
    asked: list[dict[str, object]] = []
    monkeypatch.setattr(TableIndexes, "create", lambda indexes, name, **given: asked.append(given))
    session.sql(
        "CREATE INDEX d ON t USING column_stats (ts) "
        "OPTIONS (expr = 'from_unixtime', format = 'yyyy-MM-dd', hoodie.x = 1)"
    )
    session.sql("CREATE INDEX r ON t (name OPTIONS (expr = 'regexp_replace', replacement = '''', pattern = 'a'))")
    assert asked[0]["expression"] == "from_unixtime(ts, 'yyyy-MM-dd')"
    assert asked[0]["index_type"] == "column_stats"
    assert asked[0]["options"] == {"hoodie.x": "1"}
    assert asked[1]["expression"] == "regexp_replace(name, 'a', '''')"


def test_indexes_of_tables_that_are_not_ours_are_the_engines(session: DuckDbSession):
    session.sql("CREATE TABLE own (id INT)")
    session.sql("CREATE INDEX i ON own (id)")
    with pytest.raises(TableNotFound):
        session.sql("SHOW INDEXES FROM own")


def test_the_indexes_of_a_table_of_real_hudi_are_shown_as_it_shows_them(golden: Golden):
    path, _ = golden("1.2.0", "mdt_all_cow")
    assert shown(DuckDbSession({"t": path})) == {
        ("bloom_filters", "bloom_filters", ""),
        ("column_stats", "column_stats", ""),
        ("partition_stats", "partition_stats", ""),
        ("record_index", "record_index", ""),
        ("expr_index_low", "bloom_filters", "s"),
        ("secondary_index_by_s", "secondary_index", "s"),
        ("expr_index_day", "column_stats", "ts"),
    }
