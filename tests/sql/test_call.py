"""`CALL`: names and arguments as they are written, and the same from Python."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import ConfigError, DuckDbSession, HudiTable, TableNotFound
from pyhudi.sql.procedures.registry import PROCEDURES, REFUSED


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    for number in range(3):
        pyhudi.write_hudi(path, [{"id": f"k{number}", "n": number}], record_key="id")
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        "'t', 2",
        "table => 't', limit => 2",
        "'t', limit => 2",
        "LIMIT => '2', TABLE => 't'",
        "'{path}', 2L",
        '`table` => "t", limit => 2',
    ],
)
def test_arguments_are_given_by_place_or_by_name(table: Path, arguments: str):
    session = DuckDbSession({"t": table})
    for name in ("show_commits", "system.show_commits", "SHOW_COMMITS", "spark_catalog.system.show_commits"):
        found = session.sql(f"CALL {name}({arguments.format(path=table)})").to_arrow()
        assert found.num_rows == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("show_commits()", "needs the argument table"),
        ("show_commits('t', limt => 1)", r"no argument 'limt'.*table string!, limit integer=10"),
        ("show_commits('t', 1, 2)", "at most 2 arguments"),
        ("show_commits('t', table => 't')", "given twice"),
        ("show_commits('t', limit => 1, limit => 2)", "given twice"),
        ("show_commits(table => 't', 1)", "without a name"),
        ("show_commits('t', limit => 'many')", "integer values, found 'many'"),
        ("show_commits('t', limit => 1 + 1)", "Expected a constant"),
        ("show_commits(t)", "Expected a constant"),
        ("show_comits('t')", "Did you mean show_commits"),
        ("show_commits 't'", "expected"),
        ("show_timeline(limit => 1)", "needs the argument table, or path"),
    ],
)
def test_a_wrong_call_is_refused_with_the_reason(table: Path, text: str, message: str):
    with pytest.raises(ConfigError, match=message):
        DuckDbSession({"t": table}).sql(f"CALL {text}")


def test_a_table_that_is_not_there_is_reported():
    with pytest.raises(TableNotFound, match=r"show_commits.*nothing"):
        DuckDbSession().sql("CALL show_commits('nothing')")


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_has_no_counterpart_is_refused_by_name_with_the_reason(name: str):
    with pytest.raises(ConfigError, match=f"no procedure {name} here: .{{20}}"):
        DuckDbSession().sql(f"CALL {name}(table => 't')")
    assert name not in PROCEDURES


def test_a_procedure_of_another_catalog_is_left_to_the_engine():
    with pytest.raises(ConfigError, match="DuckDB"):
        DuckDbSession().sql("CALL iceberg.system.expire_snapshots('t')")


def test_a_filter_chooses_rows_and_functions_in_it_are_the_engines(table: Path):
    session = DuckDbSession({"t": table})
    of_all = session.sql("CALL show_table_properties('t', limit => -1)").to_arrow()
    assert of_all.num_rows > 10
    one = "CALL show_table_properties('t', limit => -1, filter => \"key = 'hoodie.table.name'\")"
    assert session.sql(one).to_arrow().to_pylist() == [{"key": "hoodie.table.name", "value": "t"}]
    by_function = "CALL show_table_properties('t', limit => -1, filter => \"upper(key) = 'HOODIE.TABLE.NAME'\")"
    assert session.sql(by_function).to_arrow().to_pylist() == [{"key": "hoodie.table.name", "value": "t"}]
    with pytest.raises(ConfigError):
        session.sql("CALL show_table_properties('t', filter => 'nothing = 1')").to_arrow()


def test_limits_and_filters_are_applied_in_hudis_order(table: Path):
    found = pyhudi.call("show_table_properties", table, limit=1, filter="key = 'hoodie.table.name'")
    assert found.num_rows == 0


def test_python_calls_take_a_table_or_its_path(table: Path):
    by_path = pyhudi.call("show_commits", table, limit=2)
    assert by_path.num_rows == 2
    assert pyhudi.call("show_commits", HudiTable.open(table), limit=2) == by_path
    assert pyhudi.call("show_fs_path_detail", table).column("storage_path").to_pylist() == [f"file:{table}"]
    with pytest.raises(ConfigError, match="no argument 'limt'"):
        pyhudi.call("show_commits", table, limt=2)


def test_help_lists_all_and_describes_each_like_hudi():
    listed = pyhudi.call("help").column("result")[0].as_py()
    assert all(f"\t{name}\t" in listed for name in PROCEDURES)
    described = pyhudi.call("help", cmd="show_commit_files").column("result")[0].as_py().split("\n")
    assert described[0] == "parameters:"
    assert described[1].split() == ["param", "type_name", "default_value", "required"]
    assert described[3].split() == ["limit", "integer", "10", "false"]
    assert described[4].split() == ["instant_time", "string", "null", "true"]
    assert described[-2].split() == ["file_size", "long", "true", "{}"]


def test_every_procedure_has_typed_columns_and_says_what_it_does():
    for procedure in PROCEDURES.values():
        assert isinstance(procedure.columns, pa.Schema)
        assert procedure.about.endswith(".")
        assert len({argument.name for argument in procedure.arguments}) == len(procedure.arguments)
