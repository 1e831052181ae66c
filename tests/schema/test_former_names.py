"""Former names of renamed or dropped columns, as a long-running writer still uses them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, SchemaMismatch
from pyhudi.schema.changes import AddColumn, DropColumn, RenameColumn, SchemaChange, changed_schema, numbered_schema
from pyhudi.schema.former_names import former_names
from pyhudi.schema.internal import InternalSchema

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("v", pa.int64()),
        ("addr", pa.struct([("town", pa.string()), ("zip", pa.string())])),
        ("items", pa.list_(pa.struct([("price", pa.int64())]))),
        ("ts", pa.int64()),
    ]
)
WHOLE = {"id": 1, "v": 2, "addr": {"town": "oslo", "zip": "1"}, "items": [{"price": 3}], "ts": 1}
NO_METADATA = {"hoodie.metadata.enable": "false"}


def history(*changes: SchemaChange) -> tuple[InternalSchema, ...]:
    """Newest first; the n-th change has the instant n."""
    schemas = [numbered_schema(COLUMNS, with_meta=False)]
    for number, change in enumerate(changes, 1):
        changed = changed_schema(schemas[0], [change])
        schemas.insert(0, InternalSchema(number, changed.max_column_id, changed.columns))
    return tuple(schemas)


def told(*changes: SchemaChange) -> dict[str, tuple[str | None, str]]:
    return {path: (name.path, name.changed_at) for path, name in former_names(history(*changes)).items()}


def test_a_former_name_leads_to_the_column_and_to_the_last_change_of_that_name() -> None:
    assert told() == {}
    assert told(RenameColumn("v", "w"), RenameColumn("w", "x")) == {"v": ("x", "1"), "w": ("x", "2")}
    assert told(RenameColumn("v", "w"), DropColumn("w")) == {"v": (None, "1"), "w": (None, "2")}
    assert told(DropColumn("v"), AddColumn("v", pa.string())) == {}


def test_nested_columns_are_found_below_the_present_names_of_their_outer_columns() -> None:
    changes = RenameColumn("addr", "address"), RenameColumn("address.town", "city"), DropColumn("address.zip")
    assert told(*changes) == {
        "addr": ("address", "1"),
        "address.town": ("address.city", "2"),
        "address.zip": (None, "3"),
    }
    assert told(RenameColumn("items.element.price", "cost")) == {"items.element.price": ("items.element.cost", "1")}


def made(name: str, **more: Any) -> HudiTable:
    table = HudiTable.create(
        f"memory://former-{name}", COLUMNS, record_key="id", ordering="ts", options=NO_METADATA, **more
    )
    table.upsert([WHOLE])
    return table


WRITES = {
    "upsert": lambda table, row: table.upsert([row]),
    "upsert of some columns": lambda table, row: table.upsert([{key: row[key] for key in row if key != "items"}]),
    "insert": lambda table, row: table.insert([row]),
    "bulk_insert": lambda table, row: table.bulk_insert([row]),
    "insert_overwrite": lambda table, row: table.insert_overwrite([row]),
    "overwrite": lambda table, row: table.overwrite([row]),
    "merge": lambda table, row: table.merge([row]).when_matched_update_all().execute(),
    "merge that inserts": lambda table, row: table.merge([row]).when_not_matched_insert("*").execute(),
}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("write", WRITES)
def test_an_open_writer_that_sends_the_old_name_of_a_renamed_column_is_refused(write: str, kind: str) -> None:
    table = made(f"renamed-{write}-{kind}", table_type=kind)
    change = HudiTable.open(table.path).alter(RenameColumn("v", "vv"))

    with pytest.raises(SchemaMismatch, match=f"'v': the table calls it 'vv' since {change.instant_time}; rename"):
        WRITES[write](table, {**WHOLE, "v": 9, "ts": 2})
    assert table.to_arrow(meta_columns=False).to_pylist() == [
        {"id": 1, "vv": 2, **{name: WHOLE[name] for name in ("addr", "items", "ts")}}
    ]


@pytest.mark.parametrize("write", WRITES)
def test_an_open_writer_does_not_bring_a_dropped_column_back(write: str) -> None:
    table = made(f"dropped-{write}")
    change = HudiTable.open(table.path).alter(DropColumn("v"))

    with pytest.raises(SchemaMismatch, match=f"'v': the table dropped it at {change.instant_time}.*AddColumn"):
        WRITES[write](table, {**WHOLE, "v": 9, "ts": 2})
    assert "v" not in table.schema().names


def test_a_name_inside_a_struct_counts_too_and_a_new_column_of_a_dropped_name_is_added_by_alter() -> None:
    table = made("nested")
    other = HudiTable.open(table.path)
    other.alter(DropColumn("addr.zip"))
    with pytest.raises(SchemaMismatch, match=r"'addr\.zip': the table dropped it"):
        table.upsert([{**WHOLE, "ts": 2}])

    other.alter(AddColumn("addr.zip", pa.string()))
    table.upsert([{**WHOLE, "addr": {"town": "rome", "zip": "2"}, "ts": 2}])
    assert table.to_arrow(["addr"]).to_pylist() == [{"addr": {"town": "rome", "zip": "2"}}]


def test_a_column_that_a_write_dropped_comes_back_only_where_its_writer_allows_drops() -> None:
    table = made("by-writes")
    drops = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"}
    rest = {key: value for key, value in WHOLE.items() if key != "v"}
    result = HudiTable.open(table.path).upsert([{**rest, "id": 2}], options=drops)
    with pytest.raises(SchemaMismatch, match=f"'v': the table dropped it at {result.instant_time}"):
        table.upsert([{**WHOLE, "v": 9, "ts": 2}])
    assert "v" not in table.schema().names

    table.upsert([{**WHOLE, "v": 9, "ts": 2}], options=drops)
    assert table.to_arrow(["v"], "id = 1").to_pylist() == [{"v": 9}]
