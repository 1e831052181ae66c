"""Changes of a table's columns: the history that they make, what rows are then, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConfigError, SchemaMismatch, WriteConflict
from pyhudi.model.commit import CommitMetadata
from pyhudi.schema.changes import (
    FIRST,
    AddColumn,
    ChangeType,
    DropColumn,
    DropNotNull,
    MoveColumn,
    RenameColumn,
    SchemaChange,
    SetComment,
)
from pyhudi.schema.internal import InternalSchema, decode_history, load_schema_history
from tests.support.tables.merge_on_read import VERSIONS

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
COLUMNS = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("p", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("v", pa.int32()),
        pa.field("name", pa.string()),
        pa.field("at", pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.string())])),
        pa.field("list", pa.list_(pa.struct([pa.field("n", pa.int32())]))),
    ]
)


def made(path: Path, version: str = "9", table_type: str = "COPY_ON_WRITE") -> HudiTable:
    options = {"hoodie.write.table.version": version}
    table = HudiTable.create(
        str(path / "t"),
        COLUMNS,
        record_key="id",
        partition_by="p",
        ordering="ts",
        table_type=table_type,
        options=options,
    )
    table.upsert(pa.Table.from_pylist([row(number) for number in range(4)], COLUMNS))
    return table


def row(number: int, **other: Any) -> dict[str, Any]:
    values = {"id": f"k{number}", "p": "xy"[number % 2], "ts": 1, "v": number, "name": f"n{number}"}
    return {**values, "at": {"x": number, "y": "y"}, "list": [{"n": number}], **other}


def rows(table: HudiTable, **query: Any) -> dict[str, dict[str, Any]]:
    names = table.schema().names
    return {found["id"]: found for found in table.scan(names, **query).to_arrow().to_pylist()}


def history(table: HudiTable) -> tuple[InternalSchema, ...]:
    meta = table.state()
    return load_schema_history(meta.storage, meta.config, meta.timeline)


def last_body(table: HudiTable) -> CommitMetadata:
    meta = table.state()
    last = meta.timeline.last_commit()
    assert last is not None
    return meta.commits.metadata(last)


STEPS: list[Callable[[HudiTable], object]] = [
    lambda t: t.insert(
        [
            {"id": key, "v": at + 1, "name": f"n{at + 1}", "extra": 11 * (at + 1), "ts": 1, "p": "xyx"[at]}
            for at, key in enumerate("abc")
        ]
    ),
    lambda t: t.alter(RenameColumn("name", "title")),
    lambda t: t.insert([{"id": "d", "v": 4, "title": "t4", "extra": 44, "ts": 2, "p": "y"}]),
    lambda t: t.alter(ChangeType("v", pa.int64())),
    lambda t: t.alter(DropColumn("extra")),
    lambda t: t.alter(AddColumn("extra", pa.string(), comment="again", after="title")),
    lambda t: t.insert([{"id": "e", "v": 5_000_000_000, "title": "t5", "extra": "e5", "ts": 3, "p": "z"}]),
    lambda t: t.alter(MoveColumn("v", after="title")),
    lambda t: t.update("id = 'a'", set={"v": 100}),
]


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.2.0"])
def test_the_same_changes_make_the_history_and_the_rows_of_real_hudi(golden: Any, version: str, tmp_path: Path) -> None:
    path, description = golden(version, "evolution_schema_on_read")
    folder = Path(path) / ".hoodie" / ".schema"
    newest = max(file for file in folder.iterdir() if file.name.endswith(".schemacommit"))
    theirs = decode_history(newest.read_bytes())
    types = {"id": pa.string(), "v": pa.int32(), "name": pa.string(), "extra": pa.int32(), "ts": pa.int64()}
    columns = pa.schema([*types.items(), ("p", pa.string())])
    options = {"hoodie.write.table.version": str(description["table_version"])}
    table = HudiTable.create(
        str(tmp_path / "t"), columns, record_key="id", partition_by="p", ordering="ts", options=options
    )
    for step in STEPS:
        step(table)

    ours = history(table)
    assert [(s.max_column_id, s.columns) for s in ours] == [(s.max_column_id, s.columns) for s in theirs]
    expected = {found["id"]: found for found in description["expected"]["snapshot"]}
    assert rows(table) == {key: {name: found[name] for name in table.schema().names} for key, found in expected.items()}
    assert table.schema().names == HudiTable.open(path).schema().names
    real = HudiTable.open(path)
    fields = [json.loads(last_body(each).extra_metadata["schema"])["fields"] for each in (table, real)]
    assert [field["name"] for field in fields[0]] == [field["name"] for field in fields[1]]


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", TYPES)
def test_changes_and_writes_take_turns(version: str, table_type: str, tmp_path: Path) -> None:
    table = made(tmp_path, version, table_type)
    table.alter(
        RenameColumn("name", "title"),
        ChangeType("v", pa.string()),
        AddColumn("at.z", pa.float64(), after="x"),
        RenameColumn("list.element.n", "number"),
        AddColumn("first", pa.bool_(), after=FIRST),
    )
    assert rows(table)["k3"] == {
        "first": None,
        "id": "k3",
        "p": "y",
        "ts": 1,
        "v": "3",
        "title": "n3",
        "at": {"x": 3, "z": None, "y": "y"},
        "list": [{"number": 3}],
    }
    changed = {**rows(table)["k1"], "title": "changed", "ts": 2, "at": {"x": 9, "z": 1.5, "y": "z"}}
    table.upsert(pa.Table.from_pylist([changed], table.schema()))
    table.alter(DropColumn("v"))
    table.alter(AddColumn("v", pa.int32()))
    table.update("id = 'k2'", set={"v": 7})
    expected = {
        key: {**found, "v": 7 if key == "k2" else None} for key, found in {**rows(table), "k1": changed}.items()
    }
    assert rows(table) == expected
    if table_type == "MERGE_ON_READ":
        table.maintenance.log_compact(options={"hoodie.log.compaction.blocks.threshold": "1"})
        assert rows(table) == expected
        table.compact()
    table.cluster()
    assert rows(table) == rows(table, query_type="read_optimized") == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_with_new_columns_and_wider_types_add_a_schema_to_the_history(version: str, tmp_path: Path) -> None:
    table = made(tmp_path, version)
    table.alter(RenameColumn("name", "title"))
    before = history(table)[0]
    wider = pa.schema(
        [
            pa.field(f.name, pa.int64()) if f.name == "v" else f
            for f in [*table.schema(), pa.field("new", pa.struct([pa.field("a", pa.date32())]))]
        ]
    )
    result = table.upsert(pa.Table.from_pylist([{**rows(table)["k0"], "ts": 2, "v": 2**40, "new": {"a": None}}], wider))

    newest = history(table)[0]
    assert newest.version_id == int(result.instant_time)
    ids = {column.name: column.id for column in newest.columns}
    assert {name: ids[name] for name in ids if name != "new"} == {c.name: c.id for c in before.columns}
    assert ids["new"] == before.max_column_id + 1
    assert newest.max_column_id == before.max_column_id + 2, "the column and the one inside of it"
    assert json.loads(last_body(table).extra_metadata["latest_schema"])["version_id"] == int(result.instant_time)
    found = rows(table)
    assert (found["k0"]["v"], found["k0"]["new"], found["k1"]["v"], found["k1"]["new"]) == (2**40, {"a": None}, 1, None)


@pytest.mark.parametrize("version", VERSIONS)
def test_new_columns_at_the_end_wider_numbers_and_comments_need_no_history(version: str, tmp_path: Path) -> None:
    table = made(tmp_path, version)
    table.alter(AddColumn("new", pa.string()), ChangeType("v", pa.int64()), SetComment("name", "of the thing"))
    assert history(table) == ()
    assert table.schema().names == [*COLUMNS.names, "new"]
    assert rows(table)["k1"] == row(1, new=None)
    assert table.schema().field("v").type == pa.int64()
    fields = json.loads(last_body(table).extra_metadata["schema"])["fields"]
    assert [field["doc"] for field in fields if field["name"] == "name"] == ["of the thing"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_change_that_is_rolled_back_leaves_nothing(version: str, tmp_path: Path) -> None:
    table = made(tmp_path, version)
    table.alter(RenameColumn("name", "title"))
    table.alter(DropColumn("at"))
    table.rollback()
    assert table.schema().names == [name if name != "name" else "title" for name in COLUMNS.names]
    assert len(history(table)) == 2
    table.rollback()
    assert history(table) == ()
    assert not list((tmp_path / "t" / ".hoodie" / ".schema").iterdir())
    assert rows(table) == {f"k{number}": row(number) for number in range(4)}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (RenameColumn("nam", "title"), "no column 'nam'. Did you mean 'name'"),
        (RenameColumn("name", "V"), "a column 'v' already"),
        (AddColumn("name", pa.string()), "a column 'name' already"),
        (AddColumn("new", pa.string(), nullable=False), "as nullable"),
        (AddColumn("v.a", pa.string()), "has no columns inside"),
        (AddColumn("list.a", pa.string()), "a part of a list"),
        (AddColumn("new", pa.string(), after="nothing"), "no column 'nothing'"),
        (DropColumn("id"), "'id' is a key, partition or ordering column"),
        (RenameColumn("p", "q"), "'p' is a key, partition or ordering column"),
        (ChangeType("ts", pa.string()), "'ts' is a key, partition or ordering column"),
        (ChangeType("name", pa.int32()), "values of type string can't become int32"),
        (ChangeType("at", pa.string()), "is nested"),
        (DropColumn("_hoodie_record_key"), "Hudi's own columns"),
        (MoveColumn("v", after="v"), "after itself"),
        (ChangeType("v", pa.month_day_nano_interval()), "no Hudi table can hold"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_what_rows_can_not_follow_is_refused_before_anything_is_written(
    change: SchemaChange, says: str, tmp_path: Path
) -> None:
    table = made(tmp_path)
    before = table.history(None)
    with pytest.raises(SchemaMismatch, match=says):
        table.alter(change)
    assert len(table.history(None)) == len(before)
    assert rows(table) == {f"k{number}": row(number) for number in range(4)}


def test_a_history_is_made_in_any_case_or_not_at_all_when_the_caller_says_so(tmp_path: Path) -> None:
    table = made(tmp_path)
    with pytest.raises(ConfigError, match="makes a schema history"):
        table.alter(RenameColumn("name", "title"), schema_on_read=False)
    table.alter(AddColumn("new", pa.string()), schema_on_read=True)
    assert [column.id for column in history(table)[0].columns][-1] == 16
    assert rows(table)["k1"] == row(1, new=None)


def test_names_are_found_whatever_their_case(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.alter(RenameColumn("NAME", "title"), AddColumn("At.z", pa.int32(), after="X"), ChangeType("ID", pa.string()))
    assert rows(table)["k1"]["at"] == {"x": 1, "z": None, "y": "y"}
    assert rows(table)["k1"]["title"] == "n1"


def test_an_ordering_column_may_become_a_wider_number(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.alter(ChangeType("ts", pa.float64()), DropNotNull("v"))
    table.upsert(pa.Table.from_pylist([row(0, ts=1.5, v=50), row(1, ts=0.5, v=60)], table.schema()))
    assert (rows(table)["k0"]["v"], rows(table)["k1"]["v"]) == (50, 1)


def test_a_change_gives_way_to_a_compaction_that_was_planned_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files bear a later time than the change, and the columns of before."""
    from pyhudi.actions.alter import AlterSchema

    table = made(tmp_path, "9", "MERGE_ON_READ")
    table.upsert(pa.Table.from_pylist([row(1, ts=2, v=70)], COLUMNS))
    execute = AlterSchema.execute

    def meanwhile(self: AlterSchema, *arguments: Any) -> Any:
        table.compact(schedule_only=True)
        return execute(self, *arguments)

    monkeypatch.setattr(AlterSchema, "execute", meanwhile)
    with pytest.raises(WriteConflict, match="began after this change"):
        table.alter(RenameColumn("name", "title"), options={"hoodie.write.num.retries.on.conflict.failures": "0"})
    monkeypatch.undo()
    table.compact()
    assert table.schema().names == COLUMNS.names
    assert rows(table)["k1"]["v"] == 70
    table.alter(RenameColumn("name", "title"))
    assert rows(table)["k1"]["title"] == "n1"
