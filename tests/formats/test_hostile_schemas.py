"""Avro schemas that are recursive, or that double by references: refused before anything is decoded."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.formats.avro.checked import (
    MAX_DEPTH,
    MAX_FIXED_BYTES,
    MAX_SCHEMA_CHARS,
    MAX_SYMBOL_CHARS,
    MAX_TYPES,
    checked_schema,
)
from pyhudi.formats.avro.decode import AvroDecoder
from pyhudi.formats.avro.encode import AvroEncoder
from pyhudi.formats.avro.schema import arrow_from_avro
from pyhudi.formats.timeline.instant_files import decode_avro_record
from tests.support.values.limits import output_within
from tests.support.values.strategies import RELAXED

RECURSIVE: dict[str, Any] = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "r"}]}


def doubling(levels: int) -> dict[str, Any]:
    """Each record has the one below it twice: 2^levels types in some thirty bytes a level."""
    kind: Any = "int"
    for level in range(levels):
        name = f"r{level}"
        below = kind if isinstance(kind, str) else kind["name"]
        kind = {"type": "record", "name": name, "fields": [{"name": "a", "type": kind}, {"name": "b", "type": below}]}
    assert isinstance(kind, dict)
    return kind


def container(schema: dict[str, Any], record: bytes = b"") -> bytes:
    """An Avro container with any schema."""
    text = json.dumps(schema).encode()
    number = lambda n: bytes([n << 1 & 0x7F | 0x80, n >> 6 & 0x7F | 0x80, n >> 13])  # noqa: E731
    header = b"Obj\x01" + number(1) + number(11) + b"avro.schema" + number(len(text)) + text + b"\x00" + bytes(16)
    return header + number(1) + number(len(record)) + record + bytes(16)


DOORS = {
    "a body": lambda schema: decode_avro_record(container(schema), "x.rollback"),
    "a table": lambda schema: arrow_from_avro(json.dumps(schema)),
    "a log block": lambda schema: AvroDecoder(json.dumps(schema)),
    "an encoder": lambda schema: AvroEncoder(json.dumps(schema)),
}


def test_a_container_by_hand_is_read() -> None:
    assert decode_avro_record(container({**RECURSIVE, "fields": [{"name": "a", "type": "int"}]}, b"\x06"), "x") == {
        "a": 3
    }


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "schema",
    [
        RECURSIVE,
        {**RECURSIVE, "fields": [{"name": "a", "type": ["null", "r"]}]},
        {**RECURSIVE, "fields": [{"name": "a", "type": {"type": "array", "items": {"type": "map", "values": "r"}}}]},
        {**RECURSIVE, "namespace": "n", "fields": [{"name": "a", "type": "n.r"}]},
        doubling(20),
        doubling(MAX_DEPTH - 1),
        doubling(MAX_DEPTH + 10),
    ],
    ids=["itself", "null or itself", "in lists", "by full name", "doubling", "doubling often", "deep"],
)
def test_a_schema_without_end_or_of_too_many_types_is_refused_at_every_door(door: str, schema: dict[str, Any]) -> None:
    with pytest.raises((CorruptFile, UnsupportedTable), match=r"recursive|more than"):
        DOORS[door](schema)


def test_hostile_schemas_take_neither_the_process_nor_time_nor_memory() -> None:
    """A recursive one ended the process, one that doubles took minutes and gigabytes."""
    output = output_within(
        "from tests.formats.test_hostile_schemas import *",
        "for schema in (RECURSIVE, doubling(24), doubling(60)):\n"
        "    for door in DOORS.values():\n"
        "        try: door(schema)\n"
        "        except (CorruptFile, UnsupportedTable): print('refused')\n",
        memory_mb=200,
        cpu_s=5,
    )
    assert output.split() == ["refused"] * 12


def test_types_are_counted_through_references_up_to_the_limit() -> None:
    fields = lambda count: [{"name": f"c{n}", "type": "int"} for n in range(count)]  # noqa: E731
    inner = {"type": "record", "name": "i", "fields": fields(999)}  # 1000 types with itself
    twice = lambda count: [  # noqa: E731
        {"name": "d", "type": inner},
        *({"name": f"d{n}", "type": "i"} for n in range(count - 1)),
    ]
    fits = {"type": "record", "name": "r", "fields": [*twice(MAX_TYPES // 1000 - 1), *fields(999)]}
    too_many = {"type": "record", "name": "r", "fields": [*twice(MAX_TYPES // 1000 - 1), *fields(1000)]}

    assert checked_schema(json.dumps(fits)).name == "r"
    with pytest.raises(UnsupportedTable, match=str(MAX_TYPES)):
        checked_schema(json.dumps(too_many))


def test_a_name_means_the_type_of_its_own_namespace_first() -> None:
    of = lambda namespace, size: {"type": "fixed", "name": "f", "namespace": namespace, "size": size}  # noqa: E731
    fields = [("a", of("", 2)), ("b", of("n", 3)), ("c", "f"), ("d", "n.f")]
    schema = {"type": "record", "name": "r", "namespace": "n", "fields": [{"name": n, "type": t} for n, t in fields]}

    assert [str(field.type) for field in arrow_from_avro(json.dumps(schema))] == [
        "fixed_size_binary[2]",
        "fixed_size_binary[3]",
        "fixed_size_binary[3]",
        "fixed_size_binary[3]",
    ]


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"name": "\ud800", "type": "int"}, "surrogates"),
        ({"name": "a", "type": "int", "doc": "\udfff"}, "surrogates"),
        ({"name": "a", "type": ["null", "null", "int"]}, "null twice"),
        ({"name": "a", "type": {"type": "enum", "name": "e"}}, "symbols"),
        ({"name": "a", "type": {"type": "enum", "name": "e", "symbols": ["x" * 256]}}, "symbols"),
        ({"name": "a", "type": {"type": "fixed", "name": "f", "size": True}}, "size"),
        ({"name": "a", "type": {"type": "fixed", "name": "f", "size": 2**31}}, "size"),
        ({"name": "a", "type": {"type": "array"}}, "no type"),
        ({"name": "b", "type": "int"}, "twice"),
        ({"name": "a", "type": {"type": "enum", "name": "e", "symbols": ["x", 1]}}, "symbols"),
        ({"name": "a", "type": {"type": "fixed", "name": "f", "size": -1}}, "size -1"),
        ({"name": "a", "type": ["null", ["int"]]}, "a union directly inside a union at 'a'"),
        ({"name": "a", "type": "nobody"}, "unknown type 'nobody' at 'a'"),
        ({"name": "a", "type": {"type": "record", "fields": []}}, "a record without a name"),
        ({"name": "a", "type": {"type": "fixed", "name": "", "size": 1}}, "a fixed without a name"),
        ({"name": "a", "type": {"type": "fixed", "name": "f", "namespace": 5, "size": 1}}, "is not text, found 5"),
        ({"name": "a", "type": {"type": "record", "name": "inner", "fields": {}}}, "'inner' has no list of fields"),
        ({"name": "a"}, "lacks name or type"),
        ({"name": 1, "type": "int"}, "lacks name or type"),
        (5, "lacks name or type"),  # type: ignore[list-item]
    ],
)
def test_what_no_schema_has_is_a_corrupt_file(field: dict[str, Any], message: str) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "b", "type": "int"}, field]}
    with pytest.raises(CorruptFile, match=message):
        AvroDecoder(json.dumps(schema))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"int"', "Expected an Avro record schema"),
        ('{"type": "array", "items": "int"}', "Expected an Avro record schema"),
        ("[]", "Expected an Avro record schema"),
        ("{", "the JSON can't be read"),
        ("[" * 100_000, "the JSON can't be read"),
        (" " * (MAX_SCHEMA_CHARS + 1), f"of {MAX_SCHEMA_CHARS + 1} characters; at most {MAX_SCHEMA_CHARS} are read"),
    ],
    ids=["int", "array", "list", "open", "deep", "long"],
)
def test_a_text_that_is_no_record_schema_is_a_corrupt_file(text: str, message: str) -> None:
    with pytest.raises(CorruptFile, match=message):
        checked_schema(text)


def test_limits_of_schemas_are_in() -> None:
    limits = [
        {"type": "enum", "name": "e", "symbols": ["x" * MAX_SYMBOL_CHARS]},
        {"type": "fixed", "name": "f", "size": MAX_FIXED_BYTES},
        {"type": "fixed", "name": "g", "size": 0},
    ]
    schema = {"type": "record", "name": "r", "fields": [{"name": f"c{n}", "type": t} for n, t in enumerate(limits)]}
    text = json.dumps(schema)

    assert checked_schema(text.ljust(MAX_SCHEMA_CHARS)).name == "r"
    assert checked_schema(text) == checked_schema(text.ljust(MAX_SCHEMA_CHARS))


def _named(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.builds(
            lambda name, namespace, types: {
                "type": "record", "name": name, **({} if namespace is None else {"namespace": namespace}),
                "fields": [{"name": f"f{n}", "type": kind} for n, kind in enumerate(types)],
            },
            st.sampled_from(["A", "B", "n.A"]), st.sampled_from([None, "", "n", "n.A", 5]), fields,
        ),
        inner.map(lambda kind: ["null", kind]),
        inner.map(lambda kind: {"type": "array", "items": kind}),
        inner.map(lambda kind: {"type": kind}),
    )  # fmt: skip


SCHEMAS = st.recursive(st.sampled_from(["int", "string", "A", "B", "n.A"]), _named, max_leaves=8)


def assert_ends(kind: Any, named: dict[str, Any], opened: frozenset[str]) -> None:
    """Follow the names in fastavro's form of a schema, in which they are full."""
    if isinstance(kind, str) and kind in named:
        assert kind not in opened, kind
        return assert_ends(named[kind], named, opened)
    if isinstance(kind, list):
        for branch in kind:
            assert_ends(branch, named, opened)
    elif isinstance(kind, dict) and kind["type"] == "record":
        named[kind["name"]] = kind
        for field in kind["fields"]:
            assert_ends(field["type"], named, opened | {kind["name"]})
    elif isinstance(kind, dict):
        for part in ("type", "items"):
            assert_ends(kind.get(part), named, opened)
    return None


@RELAXED
@given(SCHEMAS)
def test_fastavro_finds_no_end_missing_where_we_found_none(kind: Any) -> None:
    """Names are resolved in two places: here, and in fastavro, which gets the schemas that pass here."""
    text = json.dumps({"type": "record", "name": "A", "fields": [{"name": "x", "type": kind}]})
    with suppress(CorruptFile, UnsupportedTable):
        written = checked_schema(text).written
        with suppress(fastavro.schema.SchemaParseException, fastavro.schema.UnknownType, TypeError):
            assert_ends(fastavro.parse_schema(written), {}, frozenset())
