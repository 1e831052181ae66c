"""Changes of columns lead where real Hudi's ALTER TABLE led, ids and all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.errors import SchemaMismatch
from pyhudi.schema.changes import (
    FIRST,
    AddColumn,
    ChangeType,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SchemaChange,
    SetComment,
    changed_schema,
    with_ids,
)
from pyhudi.schema.internal import InternalSchema, MapType, StructType, decode_history, decode_internal_schema
from pyhudi.schema.internal_json import history_json, schema_json

BY_HUDI: list[SchemaChange] = [
    RenameColumn("name", "title"),
    ChangeType("v", pa.int64()),
    DropColumn("extra"),
    AddColumn("extra", pa.string(), comment="again", after="title"),
    MoveColumn("v", "title"),
]
NESTED = pa.schema(
    [
        ("id", pa.string()),
        ("s", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.struct([("x", pa.int32())])))])),
        ("m", pa.map_(pa.string(), pa.struct([("y", pa.float32())]))),
        ("last", pa.int32()),
    ]
)


def history_of(golden: Path) -> list[InternalSchema]:
    """The schemas of real Hudi's table, oldest first."""
    files = sorted((golden / ".hoodie/.schema").glob("*.schemacommit"))
    return list(reversed(decode_history(files[-1].read_bytes())))


def names(schema: InternalSchema) -> list[str]:
    return [column.name for column in schema.columns[5:]]


def test_ids_and_places_are_those_of_real_hudi_after_each_change(golden: Any) -> None:
    folder, _ = golden("1.2.0", "evolution_schema_on_read")
    by_hudi = history_of(folder)
    assert len(by_hudi) == len(BY_HUDI) + 1
    ours = with_ids(pa.schema(by_hudi[0].to_arrow()).remove_metadata())
    assert ours.columns[5:] == by_hudi[0].columns[5:]
    for change, expected in zip(BY_HUDI, by_hudi[1:], strict=True):
        ours = changed_schema(ours, [change], protected=("id", "p"), ordering_fields=("ts",))
        assert ours.columns == expected.columns
        assert ours.max_column_id == expected.max_column_id


def test_ids_are_given_level_by_level() -> None:
    schema = with_ids(NESTED)

    assert [column.id for column in schema.columns] == list(range(9))
    struct, entries = schema.columns[6].type, schema.columns[7].type
    assert isinstance(struct, StructType)
    assert [column.id for column in struct.columns] == [9, 10]
    assert isinstance(entries, MapType)
    assert (entries.key.id, entries.value.id, schema.max_column_id) == (13, 14, 15)
    assert schema.to_arrow().remove_metadata().names[5:] == NESTED.names


def test_fields_inside_structs_arrays_and_maps_are_changed() -> None:
    schema = changed_schema(
        with_ids(NESTED),
        [
            AddColumn("S.c", pa.string(), after=FIRST),
            RenameColumn("s.b.element.x", "z"),
            ChangeType("m.value.y", pa.float64()),
            AddColumn("first", pa.date32(), after=FIRST),
            SetComment("first", "said"),
        ],
    )

    assert str(schema.to_arrow().field("s").type) == ("struct<c: string, a: int32, b: list<element: struct<z: int32>>>")
    assert str(schema.to_arrow().field("m").type) == "map<string, struct<y: double>>"
    assert names(schema) == ["first", "id", "s", "m", "last"]


def test_a_column_that_comes_back_is_another_one() -> None:
    schema = changed_schema(with_ids(NESTED), [DropColumn("last"), AddColumn("last", pa.int32())])

    assert schema.columns[-1].id == 16
    assert changed_schema(schema, [DropColumn("last")]).max_column_id == 16


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (DropColumn("id"), "id can't be dropped: id is a key"),
        (RenameColumn("s", "t"), "s can't be renamed: s.a is a key"),
        (ChangeType("s.a", pa.int64()), r"s\.a can't be given another type"),
        (AddColumn("LAST", pa.int32()), "a column LAST already"),
        (RenameColumn("last", "M"), "a column M already"),
        (DropColumn("nope"), "no column nope; there are id, s, m, last"),
        (ChangeType("last", pa.int16()), "last can't become int16"),
        (ChangeType("last", pa.date32()), "last can't become date32"),
        (ChangeType("m", pa.string()), "m is nested"),
        (AddColumn("new", pa.int32(), nullable=False), "new is required"),
        (DropColumn("_hoodie_record_key"), "Hudi's own"),
        (RenameColumn("m.value", "v"), "only the type and comment of value"),
        (AddColumn("last.x", pa.int32()), "no field inside"),
        (AddColumn("x", pa.int32(), after="nope"), "no column nope"),
    ],
)
def test_what_a_table_does_not_take_is_said(change: SchemaChange, message: str) -> None:
    with pytest.raises(SchemaMismatch, match=message):
        changed_schema(with_ids(NESTED), [change], protected=("id", "s.a"))


def test_an_ordering_column_becomes_a_wider_number_and_nothing_else() -> None:
    schema = with_ids(NESTED)

    wide = changed_schema(schema, [ChangeType("last", pa.int64())], ordering_fields=("last",))

    assert wide.to_arrow().field("last").type == pa.int64()
    with pytest.raises(SchemaMismatch, match="only become a wider number"):
        changed_schema(schema, [ChangeType("last", pa.string())], ordering_fields=("last",))


def test_every_type_comes_back_from_its_json() -> None:
    kinds = [pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32(), pa.string(), pa.binary()]
    kinds += [pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC"), pa.timestamp("us"), pa.decimal128(10, 2)]
    kinds += [pa.binary(4), pa.time64("us"), pa.timestamp("ms"), pa.time32("ms"), *NESTED.types]
    fields = [pa.field(f"c{at}", kind, metadata={b"doc": b"said"}) for at, kind in enumerate(kinds)]
    schema = with_ids(pa.schema(fields))

    assert decode_internal_schema(schema_json(schema)) == schema
    newest = replace(schema, version_id=7)
    assert decode_history(history_json(newest, [{**_body(schema)}]).encode()) == (newest, schema)


def _body(schema: InternalSchema) -> dict[str, object]:
    from pyhudi.schema.internal_json import schema_body

    return schema_body(schema)
