"""ALTER of a table's columns: one commit without files, after which rows are read and written under the new schema."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.model.commit import CommitMetadata
from pyhudi.schema.changes import AddColumn, ChangeType, DropColumn, RenameColumn, SetComment
from pyhudi.schema.internal import load_schema_history

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int32()), ("name", pa.string()), ("ts", pa.int64())])
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
ANY_VERSION = [6, 8, 9]


def table_with_a_row(tmp_path: Any, table_type: str = "COPY_ON_WRITE", version: int = 9) -> HudiTable:
    table = HudiTable.create(
        tmp_path / "t",
        SCHEMA,
        record_key="id",
        ordering="ts",
        table_type=table_type,
        options={"hoodie.write.table.version": str(version)},
    )
    table.upsert(pa.table([["a", "b"], [1, 2], ["n1", "n2"], [1, 1]], schema=SCHEMA))
    return table


def rows(table: HudiTable, *columns: str) -> list[tuple[Any, ...]]:
    found = table.to_arrow(list(columns))
    return sorted(zip(*(found.column(name).to_pylist() for name in columns), strict=True))


def last_body(table: HudiTable) -> CommitMetadata:
    meta = table._meta.reload()
    last = meta.timeline.last_commit()
    assert last is not None
    return meta.commits.metadata(last)


@pytest.mark.parametrize("table_type", TYPES)
def test_columns_are_added_widened_and_moved_without_a_schema_history(tmp_path: Any, table_type: str) -> None:
    table = table_with_a_row(tmp_path, table_type)
    files = table.files()

    table.alter(AddColumn("x", pa.float64(), comment="new"), ChangeType("v", pa.int64()), SetComment("v", "wide"))

    assert table.schema.names == ["id", "v", "name", "ts", "x"]
    assert rows(table, "id", "x", "v", "name") == [("a", None, 1, "n1"), ("b", None, 2, "n2")]
    assert table.files() == files
    body = last_body(table)
    assert (body.operation_type, "latest_schema" in body.extra_metadata) == ("ALTER_SCHEMA", False)
    assert table.timeline.commits().instants[-1].action.value == (
        "commit" if table_type == "COPY_ON_WRITE" else "deltacommit"
    )
    table.upsert(pa.table([["a"], [5_000_000_000], ["n3"], [2], [1.5]], schema=table.schema))
    assert rows(table, "id", "x", "v") == [("a", 1.5, 5_000_000_000), ("b", None, 2)]


@pytest.mark.parametrize("version", ANY_VERSION)
@pytest.mark.parametrize("table_type", TYPES)
def test_renamed_and_dropped_columns_are_matched_by_id(tmp_path: Any, table_type: str, version: int) -> None:
    table = table_with_a_row(tmp_path, table_type, version)

    table.alter(RenameColumn("name", "title"), DropColumn("v"), schema_on_read=True)
    table.alter(AddColumn("v", pa.string()))

    assert rows(table, "id", "title", "v") == [("a", "n1", None), ("b", "n2", None)]
    table.upsert(pa.table([["a"], ["t"], [2], ["text"]], schema=table.schema))
    assert rows(table, "id", "title", "v") == [("a", "t", "text"), ("b", "n2", None)]
    first = table.timeline.commits().instants[0].requested_time
    assert table.to_arrow(as_of=first).column("name").to_pylist() == ["n1", "n2"]


@pytest.mark.parametrize(("version", "parts"), [(6, 1), (9, 2)])
def test_the_history_has_the_first_schema_and_each_change_under_its_instant(
    tmp_path: Any, version: int, parts: int
) -> None:
    table = table_with_a_row(tmp_path, version=version)
    table.alter(RenameColumn("name", "title"), schema_on_read=True)
    table.alter(RenameColumn("title", "name"))
    meta = table._meta.reload()
    times = [instant.requested_time for instant in meta.timeline.commits().instants]

    history = load_schema_history(meta.storage, meta.config, meta.timeline)

    assert [schema.version_id for schema in history] == [int(times[2]), int(times[1]), 0]
    assert json.loads(last_body(table).extra_metadata["latest_schema"])["version_id"] == int(times[2])
    files = sorted(path.name for path in (tmp_path / "t/.hoodie/.schema").iterdir())
    assert [name for name in files if name.endswith((".requested", ".inflight"))] == [
        f"{time}.schemacommit.{state}" for time in times[1:] for state in ("inflight", "requested")
    ]
    complete = [name for name in files if name.endswith(".schemacommit")]
    assert [len(name.removesuffix(".schemacommit").split("_")) for name in complete] == [parts, parts]


def test_renames_and_drops_need_ids_which_are_for_good(tmp_path: Any) -> None:
    table = table_with_a_row(tmp_path)

    with pytest.raises(ConfigError, match=r"hoodie\.schema\.on\.read\.enable=false"):
        table.alter(DropColumn("name"), schema_on_read=False)

    assert len(table.timeline.commits().instants) == 1
    table.alter(SetComment("v", "a number"), schema_on_read=True)
    table.alter(DropColumn("name"))
    assert table.schema.names == ["id", "v", "ts"]


def test_a_refused_change_leaves_nothing_behind(tmp_path: Any) -> None:
    table = table_with_a_row(tmp_path)
    before = sorted(path for path in (tmp_path / "t").rglob("*"))

    with pytest.raises(SchemaMismatch, match="id"):
        table.alter(AddColumn("x", pa.int32()), DropColumn("id"), schema_on_read=True)

    assert sorted(path for path in (tmp_path / "t").rglob("*")) == before


def test_an_empty_commit_is_made_whatever_the_option_says(tmp_path: Any) -> None:
    table = table_with_a_row(tmp_path)

    result = table.alter(AddColumn("x", pa.int32()), options={"hoodie.allow.empty.commit": "false"})

    assert result.instant_time == table.timeline.commits().instants[-1].requested_time
    assert "x" in table.schema.names
