"""Methods in groups, names of other libraries, and names that are importable from the top."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, write_hudi
from tests.support.source import ROOT
from tests.support.tables.rides import ROWS


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    write_hudi(tmp_path / "t", ROWS, record_key="id", partition_by="city", ordering="ts")
    return HudiTable.open(tmp_path / "t")


def test_maintenance_has_the_services_with_their_own_signatures(table: HudiTable) -> None:
    verbs = [name for name in dir(table.maintenance) if not name.startswith("_")]
    assert {"archive", "clean", "cluster", "compact", "log_compact", "run_ttl"} <= set(verbs)
    for verb in verbs:
        method = getattr(table.maintenance, verb)
        assert inspect.signature(method) == inspect.signature(getattr(table, verb))
        assert method.__doc__ == getattr(table, verb).__doc__
    for _ in range(2):
        table.upsert(ROWS[:1], options={"hoodie.clean.automatic": "false"})
    assert len(table.maintenance.clean(commits_retained=1).planned) == 1


def test_savepoints_are_made_listed_and_deleted_in_one_place(table: HudiTable) -> None:
    made = table.savepoints.create(comment="before the move")
    assert table.savepoints() == table.savepoints.list() == list(table.savepoints) == [made]
    assert len(table.savepoints) == 1
    assert "before the move" in repr(table.savepoints)
    assert "before the move" in table.savepoints._repr_html_()
    table.savepoints.delete(made.instant_time)
    assert table.savepoints() == []


def test_history_is_called_or_looked_at(table: HudiTable) -> None:
    table.upsert(ROWS[:1])
    assert list(table.history) == table.history()
    assert len(table.history) == 2
    assert table.history(1) == table.history()[:1]
    assert repr(table.history) == repr(table.history())
    assert table.history.to_arrow() == table.history().to_arrow()
    assert table.history.to_pandas()["operation"].tolist() == ["UPSERT", "UPSERT"]
    assert list(inspect.signature(table.history).parameters) == ["limit", "archived", "since", "until"]
    with pytest.raises(TypeError, match=r"HistoryGroup has no argument 'n'\. Did you mean 'limit'"):
        table.history(n=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("vacuum", "clean"), ("to_pyarrow_table", "to_arrow"), ("optimize", "cluster"), ("append", "insert")],
)
def test_a_neighbours_method_is_told_ours(table: HudiTable, theirs: str, ours: str) -> None:
    with pytest.raises(AttributeError, match=f"What others call {theirs} is {ours} here"):
        getattr(table, theirs)


@pytest.mark.thorough
def test_another_name_is_left_to_pythons_own_guess(table: HudiTable) -> None:
    code = f"from pyhudi import HudiTable\nHudiTable.open({table.path!r}).upsrt"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stderr.strip().endswith("has no attribute 'upsrt'. Did you mean: 'upsert'?")
    assert not hasattr(table, "__arrow_c_array__")


def test_dir_of_a_table_shows_public_names_and_underscores_alone(table: HudiTable) -> None:
    public = {name for name in dir(table) if not name.startswith("_")}
    assert public == {name for name in dir(HudiTable) if not name.startswith("_")}
    assert {"maintenance", "savepoints", "history", "compact", "clean", "restore"} <= public


def test_changes_of_columns_come_from_the_top(table: HudiTable) -> None:
    table.alter(pyhudi.AddColumn("note", pa.string()), pyhudi.RenameColumn("v", "value"))
    assert table.schema.names == ["id", "city", "value", "ts", "note"]


def test_every_result_and_argument_type_of_a_public_method_is_importable_from_the_top() -> None:
    """Names in annotations that a user would write in the annotation of a variable."""
    results = {
        str(inspect.signature(getattr(HudiTable, verb)).return_annotation)
        for verb in dir(HudiTable)
        if not verb.startswith("_") and inspect.isfunction(getattr(HudiTable, verb))
    }
    plain = {"None", "bool", "int", "str", "HudiTable", "SparkDataFrame"}
    ours = {name for name in results if name.isidentifier() and name not in plain}
    assert {"WriteResult", "CleanResult", "Scan", "Merge", "IndexInfo"} <= ours
    assert sorted(ours - set(pyhudi.__all__)) == []
