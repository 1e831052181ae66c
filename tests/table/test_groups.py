"""Methods in groups, names of other libraries, and names that are importable from the top."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
import pyhudi.results
from pyhudi import HudiTable, write_hudi
from pyhudi.meta_client import MetaClient
from pyhudi.schema import AddColumn, RenameColumn
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.wrong_names import RENAMED
from tests.support.source import ROOT
from tests.support.tables.rides import ROWS

PARTS = {"MetaClient", "HudiDataset"}  # of storage, and of pyarrow


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    write_hudi(tmp_path / "t", ROWS, record_key="id", partition_by="city", ordering="ts")
    return HudiTable.open(tmp_path / "t")


def test_savepoints_are_made_listed_and_deleted_in_one_place(table: HudiTable) -> None:
    made = table.savepoints.create(comment="before the move")
    assert table.savepoints.list() == [made]
    assert "before the move" in repr(table.savepoints)
    assert table.savepoints.delete(made.instant_time, dry_run=True) == made
    assert table.savepoints.list() == [made], "a dry run only looks it up"
    assert table.savepoints.delete(made.instant_time) == made
    assert table.savepoints.list() == []


@pytest.mark.metadata_table
def test_indexes_and_constraints_answer_each_change_with_what_it_was(table: HudiTable) -> None:
    assert table.indexes.create("record_index").name == "record_index"
    removal = table.indexes.drop("record_index")
    assert (removal.name, removal.partitions) == ("record_index", ("record_index",))
    assert table.constraints.add("young", "ts < 100").condition == "ts < 100"
    assert table.constraints.list() == {"young": "ts < 100"}
    assert table.constraints.drop("young").to_dict() == {"name": "young", "condition": "ts < 100"}
    assert table.constraints.list() == {}


def test_history_is_a_call(table: HudiTable) -> None:
    table.upsert(ROWS[:1])
    assert table.history(1) == table.history()[:1]
    assert table.history().to_pandas()["operation"].tolist() == ["UPSERT", "UPSERT"]
    with pytest.raises(TypeError, match=r"HudiTable\.history has no argument 'n'\. Did you mean 'limit'"):
        table.history(n=1)  # type: ignore[call-arg]


def test_no_property_of_a_table_reads_storage(tmp_path: Path) -> None:
    storage = MemoryStorage()
    write_hudi(storage, ROWS, record_key="id")
    table = HudiTable(MetaClient.load(storage))
    properties = [name for name, value in vars(HudiTable).items() if isinstance(value, property)]
    assert set(properties) == {"constraints", "indexes", "inspect", "maintenance", "metadata", "path", "savepoints"}
    before = len(storage.log)
    for name in properties:
        getattr(table, name)
    assert len(storage.log) == before


@pytest.mark.parametrize("name", sorted(RENAMED))
def test_a_name_of_an_earlier_release_is_answered_with_the_one_of_now(table: HudiTable, name: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"It is {RENAMED[name]} now")):
        getattr(table, name)
    group, _, verb = RENAMED[name].partition("(")[0].partition(".")
    if group != "pyhudi":
        owner = getattr(table, group)
        assert not verb or hasattr(owner if not callable(owner) else owner(), verb)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("vacuum", "clean"), ("to_pyarrow_table", "to_arrow"), ("optimize", "cluster"), ("append", "insert")],
)
def test_a_neighbours_method_is_answered_with_ours(table: HudiTable, theirs: str, ours: str) -> None:
    with pytest.raises(AttributeError, match=f"PyHudi's name for {theirs} is {ours}"):
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


def test_changes_of_columns_are_in_pyhudi_schema(table: HudiTable) -> None:
    table.alter(AddColumn("note", pa.string()), RenameColumn("v", "value"))
    assert table.schema().names == ["id", "city", "value", "ts", "note"]


def test_every_result_and_argument_type_of_a_public_method_is_importable() -> None:
    """Names in annotations that a user would write in the annotation of a variable."""
    results = {
        str(inspect.signature(getattr(HudiTable, verb)).return_annotation)
        for verb in dir(HudiTable)
        if not verb.startswith("_") and inspect.isfunction(getattr(HudiTable, verb))
    }
    plain = {"None", "bool", "int", "str", "HudiTable", "SparkDataFrame"}
    ours = {name for name in results if name.isidentifier() and name not in plain}
    assert {"WriteResult", "CleanResult", "Scan", "Merge", "History"} <= ours
    assert sorted(ours - {*pyhudi.__all__, *pyhudi.results.__all__, *PARTS}) == []
