"""Schema on read on merge-on-read tables: base file and log blocks of one slice, each under the schema of its time.

PyHudi does not write schema histories, so the tests add one to a table that it wrote, as ALTER TABLE would have.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.actions.result import WriteResult

Columns = list[tuple[int, str, Any]]
INNER_OLD = pa.struct([("x", pa.int64()), ("gone", pa.string())])
INNER_NEW = pa.struct([("y", pa.int64())])
OLD = pa.schema([("id", pa.string()), ("a", pa.string()), ("b", pa.int64()), ("m", pa.map_(pa.string(), INNER_OLD))])
NEW = pa.schema(
    [("id", pa.string()), ("title", pa.string()), ("b", pa.int64()), ("m", pa.map_(pa.string(), INNER_NEW))]
)


def column(number: int, name: str, kind: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "optional": True, "type": kind}


def schema(version: str, *columns: dict[str, Any]) -> dict[str, Any]:
    return {"version_id": int(version), "max_column_id": 20, "type": "record", "fields": list(columns)}


def map_of(*parts: dict[str, Any]) -> dict[str, Any]:
    inner = {"type": "record", "fields": list(parts)}
    return {"type": "map", "key_id": 10, "value_id": 11, "key": "string", "value": inner, "value_optional": True}


def alter(folder: Path, change: WriteResult) -> None:
    """ALTER TABLE before `change`: a is now title, m.value.x is y, m.value.gone left, b left and was added again."""
    text, number = "string", "long"
    before = [column(5, "id", text), column(6, "a", text), column(7, "b", number)]
    before += [column(8, "m", map_of(column(12, "x", number), column(13, "gone", text)))]
    after = [column(5, "id", text), column(6, "title", text), column(9, "b", number)]
    after += [column(8, "m", map_of(column(12, "y", number)))]
    history = {"schemas": [schema(change.instant_time, *after), schema("0", *before)]}
    path = folder / ".hoodie" / ".schema" / f"{change.instant_time}.schemacommit"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(history))


def row(key: str, text: str, number: int | None, x: int, new: bool = False) -> dict[str, Any]:
    if new:
        return {"id": key, "title": text, "b": number, "m": [("k", {"y": x})]}
    return {"id": key, "a": text, "b": number, "m": [("k", {"x": x, "gone": "g"})]}


def written(folder: Path, block_format: str) -> HudiTable:
    """k1 is in the base file, k2 in a log block of before the change, k3 in one of after it."""
    options = {"hoodie.logfile.data.block.format": block_format, "hoodie.compact.inline": "false"}
    table = HudiTable.create(folder, OLD, record_key="id", table_type="MERGE_ON_READ")
    first = pa.Table.from_pylist([row(f"k{i}", "base", 1, i) for i in (1, 2, 3)], OLD)
    table.insert(first, options=options)
    table.upsert(pa.Table.from_pylist([row("k2", "log", 2, 20)], OLD), options=options)
    drop = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"}
    late = pa.Table.from_pylist([row("k3", "late", 3, 30, new=True)], NEW)
    alter(folder, table.upsert(late, options={**options, **drop}))
    return table


@pytest.mark.parametrize("block_format", ["avro", "parquet"])
def test_columns_of_base_file_and_log_blocks_are_matched_by_id(tmp_path: Path, block_format: str) -> None:
    table = written(tmp_path / "t", block_format)

    # b of the first two rows is another column, which was dropped.
    wanted = [row("k1", "base", None, 1, True), row("k2", "log", None, 20, True), row("k3", "late", 3, 30, True)]
    found = table.to_arrow(["id", "title", "b", "m"]).sort_by("id")
    assert found.to_pylist() == wanted
    assert found.schema.field("m").type == NEW.field("m").type


def test_one_renamed_column_is_read_alone_filtered_and_counted(tmp_path: Path) -> None:
    table = written(tmp_path / "t", "avro")

    assert sorted(table.to_arrow(["title"])["title"].to_pylist()) == ["base", "late", "log"]
    assert table.to_arrow(["id"], where="title = 'base'").to_pylist() == [{"id": "k1"}]
    assert table.scan().count() == 3


def test_before_the_change_the_old_names_hold(tmp_path: Path) -> None:
    table = written(tmp_path / "t", "avro")
    before = list(table.state().timeline.commits())[1].requested_time

    found = table.scan(["id", "a", "b"], as_of=before).to_arrow().sort_by("id").to_pylist()
    assert found == [
        {"id": "k1", "a": "base", "b": 1},
        {"id": "k2", "a": "log", "b": 2},
        {"id": "k3", "a": "base", "b": 1},
    ]
