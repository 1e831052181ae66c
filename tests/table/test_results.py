"""What calls return, and what tables are described by: a line, plain values, a table in a notebook."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.model.timeline import Timeline
from pyhudi.result import Result

# Calls in the order in which the table takes them; each returns a result.
CALLS = {
    "WriteResult": "table.upsert(rows)",
    "CompactionResult": "table.compact()",
    "ClusteringResult": "table.cluster()",
    "CleanResult": "table.clean(dry_run=True)",
    "ArchiveResult": "table.maintenance.archive(dry_run=True)",
    "Savepoint": "table.savepoints.create()",
    "TtlResult": "table.maintenance.run_ttl(dry_run=True)",
    "MetadataRebuild": "table.metadata.rebuild(dry_run=True)",
    "RestoreResult": "table.restore(table.savepoints.list()[0].instant_time)",
    "RollbackResult": "table.rollback(table.upsert(rows).instant_time)",
    "VersionChange": "table.maintenance.downgrade(8)",
    "HistoryEntry": "table.history()[0]",
    "IndexInfo": "table.indexes.list()[0]",
    "TableHealth": "table.inspect.health()",
    "Timeline": "table.state().timeline",
    "TableConfig": "table.state().config",
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    table, rows = _table(tmp_path_factory.mktemp("results") / "rides"), _rows()
    return {name: eval(call, {"table": table, "rows": rows}) for name, call in CALLS.items()}


@pytest.mark.thorough
@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_one_short_line_in_a_session_of_python(results: dict[str, Result], name: str) -> None:
    line = repr(results[name])
    assert line.startswith(f"{name}(")
    assert "\n" not in line
    assert len(line) < 230


@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_json_with_its_fields(results: dict[str, Result], name: str) -> None:
    values = json.loads(results[name].to_json())
    assert values == results[name].to_dict()
    assert [name for name in results[name].__dataclass_fields__ if not name.startswith("_")] == list(values)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_html_and_can_be_sent_to_another_process(results: dict[str, Result], name: str) -> None:
    assert results[name]._repr_html_().startswith(("<div>", "<table>"))
    assert pickle.loads(pickle.dumps(results[name])) == results[name]


def test_instants_file_groups_and_mappings_are_plain_values(results: dict[str, Result]) -> None:
    write, timeline = results["WriteResult"].to_dict(), results["Timeline"].to_dict()
    assert write["updated"] == 2
    assert write["file_groups"][0].keys() == {"partition_path", "file_id"}
    assert isinstance(write["seconds"]["commit"], float)
    assert timeline["instants"][0]["action"] == "deltacommit"
    assert timeline["instants"][0]["state"] == "completed"


def test_lists_of_history_savepoints_and_indexes_are_tables_for_arrow_and_pandas(tmp_path: Path) -> None:
    table = _table(tmp_path / "t")
    saved = table.savepoints.create(comment="<b>before</b>").instant_time
    history = table.history().to_arrow()
    assert history.column("action").to_pylist() == ["savepoint", "deltacommit", "deltacommit"]
    assert history.schema.field("extra").type == pa.map_(pa.string(), pa.string())
    assert table.history().to_pandas()["rows_inserted"].tolist() == [0, 0, 2]
    assert table.savepoints.list().to_arrow().column("instant_time").to_pylist() == [saved]
    assert table.savepoints.list().to_dicts()[0]["comment"] == "<b>before</b>"
    assert "<td>&lt;b&gt;before&lt;/b&gt;</td>" in table.savepoints.list()._repr_html_()
    assert table.indexes.list().to_arrow().schema.field("columns").type == pa.list_(pa.string())
    assert json.loads(table.history().to_json()) == table.history().to_dicts()


def test_an_empty_list_has_its_columns_all_the_same(tmp_path: Path) -> None:
    savepoints = _table(tmp_path / "t").savepoints.list().to_arrow()
    assert (savepoints.num_rows, savepoints.column_names[0]) == (0, "instant_time")


def test_the_table_at_a_moment_and_an_empty_timeline_are_one_line(tmp_path: Path) -> None:
    table = _table(tmp_path / "t")
    assert repr(table.state()).startswith(f"MetaClient({tmp_path / 't'}, 't': MERGE_ON_READ, version 9, key id, ")
    assert repr(table.state()).endswith(": 2 deltacommit)")
    assert repr(Timeline()) == "Timeline(no instants)"


def test_a_scan_shows_its_query_in_a_notebook_and_escapes_it(tmp_path: Path) -> None:
    shown = _table(tmp_path / "t").scan(["id"], where="city = '<i>'")._repr_html_()
    assert "<td>city = &#x27;&lt;i&gt;&#x27;</td>" in shown
    assert "<td>id</td>" in shown


def test_a_long_timeline_shows_its_newest_instants_in_a_notebook(tmp_path: Path) -> None:
    timeline = _table(tmp_path / "t").state().timeline
    newest = timeline.instants[-1].requested_time
    long = Timeline(tuple(timeline.instants[:1] * 200) + timeline.instants[1:])
    assert long._repr_html_().index(newest) < long._repr_html_().index(timeline.instants[0].requested_time)
    assert "and 101 earlier ones" in long._repr_html_()


def _table(path: Path) -> HudiTable:
    for _ in range(2):
        options = {"hoodie.compact.inline": "false"}
        write_hudi(path, _rows(), record_key="id", partition_by="city", table_type="MERGE_ON_READ", options=options)
    return HudiTable.open(path)


def _rows() -> pa.Table:
    return pa.table({"id": ["a", "b"], "city": ["oslo", "rome"], "n": [1, 2]})
