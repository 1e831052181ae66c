"""Arrow schemas as Hudi's Avro JSON: against the schemas in real commits, and against fastavro."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given

from pyhudi.errors import CorruptFile, SchemaMismatch, UnsupportedTable
from pyhudi.formats.avro.schema import (
    arrow_from_avro,
    avro_from_arrow,
    avro_name,
    storable,
    without_meta,
)
from pyhudi.formats.timeline.instant_files import decode_commit
from pyhudi.model.keys import META_COLUMNS
from tests.support.golden.bodies import AVRO_MAGIC, golden_bodies
from tests.support.values.strategies import RELAXED, SCHEMAS, tables


def record(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": list(fields)})


def column(avro_type: Any) -> pa.Field:
    return arrow_from_avro(record({"name": "c", "type": avro_type})).field("c")


def test_table_schemas_of_real_commits_come_back_letter_by_letter(shared: Path) -> None:
    checked = 0
    for body in golden_bodies(shared):
        if "/metadata/" in body.path or not body.path.endswith(("commit", "inflight")) or "schemacommit" in body.path:
            continue
        if body.data[:4] == AVRO_MAGIC and b"MetadataV2" in body.data[:200]:
            continue
        text = decode_commit(body.data, body.where).schema_json
        if text is None:
            continue
        table_name = json.loads(text)["name"].removesuffix("_record")
        arrow = arrow_from_avro(text)
        has_meta = META_COLUMNS[0] in arrow.names
        assert avro_from_arrow(arrow, table_name, with_meta=has_meta) == text, body.where
        checked += 1

    assert checked > 700


def test_all_types_have_the_arrow_types_of_the_golden_table(golden: Any) -> None:
    folder, _ = golden("1.2.0", "types_insert")
    body = max((folder / ".hoodie" / "timeline").glob("*.commit")).read_bytes()
    schema = arrow_from_avro(decode_commit(body).schema_json or "")

    assert [(field.name, str(field.type)) for field in schema] == [
        ("id", "string"),
        ("p", "string"),
        ("b1", "int32"),
        ("b2", "int32"),
        ("b4", "int32"),
        ("b8", "int64"),
        ("f4", "float"),
        ("f8", "double"),
        ("d5", "decimal128(5, 2)"),
        ("d18", "decimal128(18, 6)"),
        ("d38", "decimal128(38, 10)"),
        ("s", "string"),
        ("bin", "binary"),
        ("flag", "bool"),
        ("day", "date32[day]"),
        ("at", "timestamp[us, tz=UTC]"),
        ("arr", "list<element: int32>"),
        ("arrs", "list<element: string>"),
        ("m", "map<string, int64>"),
        ("st", "struct<x: int32, y: struct<z: string, t: timestamp[us, tz=UTC]>>"),
        ("ast", "list<element: struct<q: int32, w: string>>"),
        ("mst", "map<string, struct<k: double>>"),
        ("aa", "list<element: list<element: int32>>"),
        ("ts", "int64"),
    ]


@RELAXED
@given(SCHEMAS)
def test_any_schema_survives_the_way_through_avro(schema: pa.Schema) -> None:
    assert arrow_from_avro(avro_from_arrow(schema, "trips", with_meta=False)) == schema
    with_meta = arrow_from_avro(avro_from_arrow(schema, "trips", with_meta=True))
    assert with_meta.names[:5] == list(META_COLUMNS)
    assert without_meta(with_meta) == schema


@RELAXED
@given(tables())
def test_fastavro_writes_and_reads_values_under_our_schemas(table: pa.Table) -> None:
    parsed = fastavro.parse_schema(json.loads(avro_from_arrow(table.schema, "trips", with_meta=False)))
    rows = table.to_pylist(maps_as_pydicts="lossy")
    out = io.BytesIO()
    fastavro.writer(out, parsed, rows)
    out.seek(0)

    read = list(fastavro.reader(out))
    assert pa.Table.from_pylist(read, schema=table.schema) == table


def test_meta_columns_are_printed_as_hudi_prints_them() -> None:
    text = avro_from_arrow(pa.schema([pa.field("id", pa.string(), nullable=False)]), "t", with_meta=True)

    assert text.startswith(
        '{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[{"name":"_hoodie_commit_time",'
        '"type":["null","string"],"doc":"","default":null},'
    )
    assert text.endswith('{"name":"id","type":"string"}]}')


def test_a_table_name_becomes_a_legal_avro_name() -> None:
    assert [avro_name(name) for name in ("trips", "my-table.v2", "1st", "été")] == [
        "trips",
        "my__table__v2",
        "__st",
        "__t__",
    ]


def test_nullable_is_a_union_with_null_in_either_order() -> None:
    assert column(["null", "int"]) == pa.field("c", pa.int32())
    assert column(["int", "null"]) == pa.field("c", pa.int32())
    assert column("int") == pa.field("c", pa.int32(), nullable=False)


@pytest.mark.parametrize(
    ("avro", "arrow"),
    [
        ({"type": "enum", "name": "e", "symbols": ["A"]}, pa.string()),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "string", "avro.java.string": "String"}, pa.string()),
        ({"type": "fixed", "name": "f", "size": 3}, pa.binary(3)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, pa.decimal128(9, 2)),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", "UTC")),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, pa.timestamp("ms")),
        ({"type": "int", "logicalType": "time-millis"}, pa.time32("ms")),
        ({"type": "int", "logicalType": "timestamp-micros"}, pa.int32()),
        ({"type": {"type": "long"}}, pa.int64()),
    ],
)
def test_every_avro_type_has_an_arrow_type(avro: Any, arrow: pa.DataType) -> None:
    assert column(avro).type == arrow


def test_a_named_type_is_found_again_by_short_and_full_name() -> None:
    inner = {"type": "record", "name": "p", "namespace": "n", "fields": [{"name": "x", "type": "int"}]}
    schema = arrow_from_avro(
        json.dumps(
            {
                "type": "record",
                "name": "r",
                "namespace": "n",
                "fields": [
                    {"name": "a", "type": inner},
                    {"name": "b", "type": "n.p"},
                    {"name": "c", "type": ["null", "p"]},
                ],
            }
        )
    )

    assert schema.field("a").type == schema.field("b").type == schema.field("c").type


@pytest.mark.parametrize(
    "avro",
    [
        ["int", "string"],
        {"type": "record", "name": "n", "fields": [{"name": "next", "type": ["null", "n"]}]},
        {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 2},
    ],
)
def test_what_no_column_can_be_is_unsupported(avro: Any) -> None:
    with pytest.raises(UnsupportedTable, match="'c"):
        column(avro)


def test_deep_nesting_is_unsupported_and_does_not_exhaust_the_stack() -> None:
    avro: Any = "int"
    for _ in range(150):
        avro = {"type": "array", "items": avro}
    with pytest.raises(UnsupportedTable, match="levels"):
        column(avro)


@pytest.mark.parametrize("text", ["", "{", "[]", '"int"', '{"type":"record"}', record({"name": "c", "type": "nope"})])
def test_what_is_no_record_schema_is_corrupt(text: str) -> None:
    with pytest.raises(CorruptFile):
        arrow_from_avro(text)


def test_types_are_stored_in_their_nearest_hudi_type() -> None:
    incoming = pa.schema(
        {
            "b": pa.int8(),
            "s": pa.int16(),
            "u": pa.uint32(),
            "h": pa.float16(),
            "l": pa.large_string(),
            "v": pa.string_view(),
            "d": pa.dictionary(pa.int8(), pa.string()),
            "n": pa.timestamp("ns", "Europe/Berlin"),
            "a": pa.large_list(pa.field("item", pa.int8())),
            "f": pa.list_(pa.int64(), 2),
        }
    )

    assert [str(field.type) for field in storable(incoming)] == [
        "int32",
        "int32",
        "int64",
        "float",
        "string",
        "string",
        "string",
        "timestamp[us, tz=UTC]",
        "list<element: int32>",
        "list<element: int64>",
    ]


def test_every_column_that_can_not_be_stored_is_named() -> None:
    schema = pa.schema(
        [
            ("ok", pa.int32()),
            ("a b", pa.int32()),
            ("1st", pa.int32()),
            ("big", pa.uint64()),
            ("m", pa.map_(pa.int32(), pa.string())),
            ("s", pa.struct([("x", pa.null())])),
            ("twice", pa.int32()),
            ("twice", pa.int32()),
        ]
    )
    with pytest.raises(SchemaMismatch) as raised:
        avro_from_arrow(schema, "t", with_meta=False)

    for name in ("'a b'", "'1st'", "'big'", "'m'", "'s.x'", "'twice'"):
        assert name in str(raised.value)
    assert "'ok'" not in str(raised.value)


def test_column_comments_are_kept() -> None:
    text = record({"name": "c", "type": ["null", "int"], "doc": "how many", "default": None})

    assert json.loads(avro_from_arrow(arrow_from_avro(text), "r", with_meta=False))["fields"][0]["doc"] == "how many"
