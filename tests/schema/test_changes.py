"""Changes of schemas whose columns have ids; tests/actions/test_alter.py compares them with those of real Hudi."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from pyhudi.schema.changes import (
    FIRST,
    AddColumn,
    ChangeType,
    DropColumn,
    RenameColumn,
    SetComment,
    changed_schema,
    numbered_schema,
)
from pyhudi.schema.internal import (
    InternalSchema,
    MapType,
    StructType,
    decode_history,
    decode_internal_schema,
    encode_history,
    encode_internal_schema,
)

NESTED = pa.schema(
    [
        ("id", pa.string()),
        ("s", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.struct([("x", pa.int32())])))])),
        ("m", pa.map_(pa.string(), pa.struct([("y", pa.float32())]))),
        ("last", pa.int32()),
    ]
)


def names(schema: InternalSchema) -> list[str]:
    return [column.name for column in schema.columns[5:]]


def test_ids_are_given_level_by_level() -> None:
    schema = numbered_schema(NESTED, with_meta=True)

    assert [column.id for column in schema.columns] == list(range(9))
    struct, entries = schema.columns[6].type, schema.columns[7].type
    assert isinstance(struct, StructType)
    assert [column.id for column in struct.columns] == [9, 10]
    assert isinstance(entries, MapType)
    assert (entries.key.id, entries.value.id, schema.max_column_id) == (13, 14, 15)
    assert schema.to_arrow().remove_metadata().names[5:] == NESTED.names


def test_fields_inside_structs_arrays_and_maps_are_changed() -> None:
    schema = changed_schema(
        numbered_schema(NESTED, with_meta=True),
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
    schema = changed_schema(
        numbered_schema(NESTED, with_meta=True), [DropColumn("last"), AddColumn("last", pa.int32())]
    )

    assert schema.columns[-1].id == 16
    assert changed_schema(schema, [DropColumn("last")]).max_column_id == 16


def test_every_type_comes_back_from_its_json() -> None:
    kinds = [pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32(), pa.string(), pa.binary()]
    kinds += [pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC"), pa.timestamp("us"), pa.decimal128(10, 2)]
    kinds += [pa.binary(4), pa.time64("us"), pa.timestamp("ms"), pa.time32("ms"), *NESTED.types]
    fields = [pa.field(f"c{at}", kind, metadata={b"doc": b"said"}) for at, kind in enumerate(kinds)]
    schema = numbered_schema(pa.schema(fields), with_meta=True)

    assert decode_internal_schema(encode_internal_schema(schema)) == schema
    newest = replace(schema, version_id=7)
    texts = [encode_internal_schema(each) for each in (newest, schema)]
    assert decode_history(encode_history(texts)) == (newest, schema)
