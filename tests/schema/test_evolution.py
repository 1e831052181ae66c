"""Schema evolution: the resulting schemas, and refusals."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import SchemaMismatch
from pyhudi.formats.avro.schema import storable
from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import META_COLUMNS
from pyhudi.schema.evolution import evolve
from pyhudi.schema.projection import project
from pyhudi.storage import open_storage
from tests.support.values.strategies import RELAXED, SCHEMAS, tables

TABLE = pa.schema(
    [
        ("id", pa.string()),
        ("part", pa.string()),
        ("ts", pa.int64()),
        ("n", pa.int32()),
        ("s", pa.struct([("x", pa.int32())])),
        ("price", pa.decimal128(10, 2)),
    ]
)
KEYS = ("id", "part")


def changed(**types: pa.DataType | None) -> pa.Schema:
    """TABLE with columns of other types, new columns at the end, and without those given as None."""
    fields = [pa.field(f.name, types.get(f.name, f.type)) for f in TABLE if types.get(f.name, f.type) is not None]
    return pa.schema(fields + [pa.field(n, t) for n, t in types.items() if n not in TABLE.names and t is not None])


def refusal(incoming: pa.Schema, **options: Any) -> str:
    with pytest.raises(SchemaMismatch) as raised:
        evolve(TABLE, incoming, protected=KEYS, ordering_fields=("ts",), **options)
    return str(raised.value)


def test_a_new_table_takes_the_schema_of_its_first_data_in_storable_types() -> None:
    incoming = pa.schema([pa.field("id", pa.large_string(), nullable=False), ("n", pa.int16())])

    assert evolve(pa.schema([]), incoming) == pa.schema(
        [pa.field("id", pa.string(), nullable=False), ("n", pa.int32())]
    )


def test_the_same_schema_in_any_order_with_or_without_meta_columns_changes_nothing() -> None:
    incoming = pa.schema([*[(name, pa.string()) for name in META_COLUMNS], *reversed(list(TABLE))])

    assert evolve(TABLE, incoming) is TABLE


def test_new_columns_come_last_and_may_be_null() -> None:
    new = pa.field("extra", pa.map_(pa.string(), pa.int32()), nullable=False)
    evolved = evolve(TABLE, pa.schema([new, *TABLE]))

    assert evolved == pa.schema([*TABLE, new.with_nullable(True)])


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: inner,
        pa.list_,
        lambda inner: pa.map_(pa.string(), inner),
        lambda inner: pa.struct([("deep", pa.list_(inner))]),
    ],
)
def test_new_fields_inside_come_last_in_their_struct_and_may_be_null(wrap: Any) -> None:
    old = wrap(pa.struct([("x", pa.int32())]))
    new = wrap(pa.struct([pa.field("y", pa.string(), nullable=False), ("x", pa.int32())]))
    evolved = evolve(pa.schema([("c", old)]), pa.schema([("c", new)]))

    assert (
        evolved.field("c").type
        == storable(pa.schema([("c", wrap(pa.struct([("x", pa.int32()), ("y", pa.string())])))])).field("c").type
    )


@pytest.mark.parametrize("wider", [pa.int64(), pa.float32(), pa.float64()])
def test_a_number_is_promoted_to_what_can_hold_it(wider: pa.DataType) -> None:
    assert evolve(TABLE, changed(n=wider)).field("n").type == wider


@pytest.mark.parametrize(
    ("stored", "arriving", "becomes"),
    [
        (pa.int32(), pa.string(), "text"),
        (pa.int64(), pa.large_string(), "text"),
        (pa.float32(), pa.string(), "text"),
        (pa.float64(), pa.dictionary(pa.int8(), pa.string()), "text"),
        (pa.string(), pa.binary(), "bytes"),
    ],
)
@pytest.mark.parametrize(
    ("wrap", "name"),
    [
        (lambda inner: inner, "c"),
        (lambda inner: pa.struct([("x", inner)]), "c.x"),
        (pa.list_, "c.element"),
        (lambda inner: pa.map_(pa.string(), inner), "c.value"),
    ],
)
def test_a_column_becomes_of_another_kind_only_when_an_option_says_so(
    stored: pa.DataType, arriving: pa.DataType, becomes: str, wrap: Any, name: str
) -> None:
    table, incoming = pa.schema([("c", wrap(stored))]), pa.schema([("c", wrap(arriving))])

    message = rf"column '{name}': the table has {stored}.*become {becomes}.*hoodie\.pyhudi\.schema\.allow\.kind\.change"
    with pytest.raises(SchemaMismatch, match=message):
        evolve(table, incoming)
    assert evolve(table, incoming, allow_kind_change=True) == storable(incoming)


def test_a_string_may_become_binary_and_nested_numbers_wider() -> None:
    old = pa.schema([("t", pa.string()), ("l", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.int32()))])
    new = pa.schema([("t", pa.binary()), ("l", pa.list_(pa.int64())), ("m", pa.map_(pa.string(), pa.float64()))])

    assert evolve(old, new, allow_kind_change=True) == storable(new)


@pytest.mark.parametrize(
    "narrower",
    [
        {"ts": pa.int32()},
        {"ts": pa.int8()},
        {"price": pa.decimal128(8, 1)},
        {"s": pa.struct([("x", pa.int16())])},
        {"id": pa.dictionary(pa.int32(), pa.string())},
    ],
)
def test_narrower_data_leaves_the_table_as_it_is(narrower: dict[str, pa.DataType]) -> None:
    assert evolve(TABLE, changed(**narrower)) is TABLE


def test_timestamps_of_another_unit_are_taken() -> None:
    table = pa.schema([("ms", pa.timestamp("ms", "UTC")), ("us", pa.timestamp("us"))])
    incoming = pa.schema([("ms", pa.timestamp("us", "Asia/Tokyo")), ("us", pa.timestamp("ns"))])

    assert evolve(table, incoming) is table


def test_binaries_of_a_fixed_size_and_of_any_fit_each_others_columns() -> None:
    for table, data in ((pa.binary(2), pa.binary()), (pa.binary(), pa.binary(2))):
        assert evolve(pa.schema({"b": table}), pa.schema({"b": data})) == pa.schema({"b": table})
    with pytest.raises(SchemaMismatch, match=r"the table has fixed_size_binary\[2\], the data fixed_size_binary\[3\]"):
        evolve(pa.schema({"b": pa.binary(2)}), pa.schema({"b": pa.binary(3)}))


def test_a_type_that_allows_nulls_leaves_required_columns_required_at_every_depth() -> None:
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    listed = pa.list_(pa.field("element", inner, nullable=False))
    mapped = pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))
    table = pa.schema([pa.field("id", pa.string(), nullable=False), ("s", inner), ("l", listed), ("m", mapped)])
    loose = pa.struct([("x", pa.int32())])
    incoming = pa.schema([("id", pa.string()), ("s", loose), ("l", pa.list_(loose)), ("m", pa.map_("utf8", "int64"))])

    assert evolve(table, incoming) is table


def test_nullable_columns_stay_nullable_when_the_data_says_required() -> None:
    assert evolve(TABLE, pa.schema([field.with_nullable(False) for field in TABLE])) is TABLE


def test_everything_that_does_not_fit_is_named_in_one_message() -> None:
    message = refusal(
        pa.schema(
            [
                ("id", pa.int64()),
                ("ts", pa.string()),
                ("N", pa.int32()),
                ("s", pa.struct([("x", pa.bool_()), ("X", pa.int32())])),
                ("price", pa.decimal128(12, 2)),
            ]
        )
    )

    for named in ("'id'", "'part'", "'ts'", "'N'", "'n'", "'s.x'", "'s.X'", "'price'"):
        assert named in message
    for text in ("string", "int64", "bool", "decimal128(10, 2)", "decimal128(12, 2)", "letter by letter"):
        assert text in message


@pytest.mark.parametrize(
    "types",
    [
        {"n": pa.bool_()},
        {"n": pa.date32()},
        {"n": pa.decimal128(10, 0)},
        {"s": pa.int32()},
        {"s": pa.list_(pa.int32())},
        {"price": pa.float64()},
        {"price": pa.string()},
    ],
)
def test_unrelated_types_are_refused(types: dict[str, pa.DataType]) -> None:
    assert "not a widening" in refusal(changed(**types))


def test_local_times_do_not_become_moments() -> None:
    with pytest.raises(SchemaMismatch, match="zone"):
        evolve(pa.schema([("t", pa.timestamp("us", "UTC"))]), pa.schema([("t", pa.timestamp("us"))]))


def test_an_ordering_column_may_become_a_wider_number_only() -> None:
    table = pa.schema([("ts", pa.int32())])

    assert evolve(table, pa.schema([("ts", pa.int64())]), ordering_fields=("ts",)).field("ts").type == pa.int64()
    with pytest.raises(SchemaMismatch, match="compared"):
        evolve(table, pa.schema([("ts", pa.string())]), ordering_fields=("ts",))


def test_a_key_column_is_never_promoted_also_inside_a_struct() -> None:
    table = pa.schema([("s", pa.struct([("k", pa.int32())]))])
    with pytest.raises(SchemaMismatch, match=r"'s\.k'"):
        evolve(table, pa.schema([("s", pa.struct([("k", pa.int64())]))]), protected=("s.k",))


@pytest.mark.parametrize(
    ("stored", "arriving"),
    [
        (pa.string(), pa.int64()),
        (pa.float64(), pa.int32()),
        (pa.decimal128(10, 2), pa.decimal128(8, 1)),
        (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
    ],
)
def test_keys_whose_text_would_differ_are_refused(stored: pa.DataType, arriving: pa.DataType) -> None:
    table, incoming = pa.schema([("k", stored)]), pa.schema([("k", arriving)])

    assert evolve(table, incoming) is table
    with pytest.raises(SchemaMismatch, match="found again"):
        evolve(table, incoming, protected=("k",))


def test_keys_may_be_narrower_numbers_of_the_same_text() -> None:
    table = pa.schema([("k", pa.int64()), ("f", pa.float64())])

    assert evolve(table, pa.schema([("k", pa.int16()), ("f", pa.float32())]), protected=("k", "f")) is table


def test_missing_columns_are_refused_unless_an_option_says_what_to_do() -> None:
    incoming = changed(n=None, price=None)

    message = refusal(incoming)
    assert "'n'" in message
    assert "'price'" in message
    assert "set.null.for.missing.columns" in message
    assert evolve(TABLE, incoming, null_for_missing=True, protected=KEYS) is TABLE
    assert evolve(TABLE, incoming, reconcile=True, protected=KEYS) is TABLE
    assert evolve(TABLE, incoming, allow_drop=True, protected=KEYS).names == ["id", "part", "ts", "s"]
    assert evolve(TABLE, incoming, allow_drop=True, null_for_missing=True) is TABLE


def test_a_required_column_that_is_missing_stays_required() -> None:
    table = pa.schema([("id", pa.string()), pa.field("n", pa.int32(), nullable=False)])

    assert evolve(table, pa.schema([("id", pa.string())]), null_for_missing=True) is table


@pytest.mark.parametrize("option", ["null_for_missing", "allow_drop", "reconcile"])
@pytest.mark.parametrize("name", ["id", "part", "ts"])
def test_key_partition_and_ordering_columns_can_not_be_missing(name: str, option: str) -> None:
    assert f"'{name}'" in refusal(changed(**{name: None}), **{option: True})


@RELAXED
@given(tables(), SCHEMAS, st.booleans())
def test_what_evolves_can_be_written_and_older_rows_read(table: pa.Table, incoming: pa.Schema, allow: bool) -> None:
    try:
        evolved = evolve(table.schema, incoming, null_for_missing=True, allow_kind_change=allow)
    except SchemaMismatch:
        return
    # Of a batch without rows every column is projected all the same; a table without rows has no arrays to look at.
    project(pa.RecordBatch.from_pylist([], schema=table.schema), evolved)
    project(pa.RecordBatch.from_pylist([], schema=storable(incoming)), evolved)
    assert project(table, evolved).num_rows == table.num_rows
    assert evolve(evolved, incoming, null_for_missing=True, allow_kind_change=allow) == evolved


def commit_schemas(golden: Any, version: str, name: str) -> list[pa.Schema]:
    """The table's schema after each commit of real Hudi."""
    folder, _ = golden(version, name)
    meta = MetaClient.load(open_storage(folder))
    schemas = []
    for instant in meta.timeline.commits():
        before = MetaClient(meta.storage, meta.config, meta.timeline.up_to(instant.requested_time))
        schemas.append(before.table_schema())
    return schemas


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.2.0"])
def test_promotions_and_new_columns_lead_where_real_hudi_went(golden: Any, version: str) -> None:
    promoted = commit_schemas(golden, version, "evolution_promotion")
    assert [str(schema.field("a").type) for schema in promoted] == ["int32", "int64", "float", "double", "string"]
    for before, after in pairwise(promoted):
        assert evolve(before, after, allow_kind_change=True) == after

    grown = commit_schemas(golden, version, "evolution_add_columns")
    extra = pa.schema([field for field in grown[2] if field.name != "extra"])
    assert evolve(grown[0], grown[1]) == grown[1]
    assert evolve(grown[1], extra, null_for_missing=True) == grown[2]


def test_missing_and_dropped_columns_lead_where_real_hudi_went(golden: Any) -> None:
    before, after = commit_schemas(golden, "1.2.0", "evolution_missing_columns")
    narrower = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int32()), ("ts", pa.int32())])
    assert before.field("v").type == pa.int64()
    assert evolve(before, narrower, null_for_missing=True) == after

    before, after = commit_schemas(golden, "1.2.0", "evolution_drop_column")
    assert "w" not in after.names
    assert evolve(before, after, allow_drop=True) == after


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_an_untyped_null_at_any_depth_takes_the_type_that_the_table_has_there(
    tmp_path: Path, table_type: str, operation: str
) -> None:
    def schema(number: pa.DataType, moment: pa.DataType) -> pa.Schema:
        return pa.schema(
            [
                ("id", pa.int64()), ("n", number), ("l", pa.list_(number)),
                ("m", pa.map_(pa.string(), pa.struct([("x", number)]))),
                ("s", pa.struct([("a", pa.list_(moment)), ("b", pa.list_(pa.struct([("q", moment)])))])),
            ]
        )  # fmt: skip

    typed, untyped = schema(pa.decimal128(5, 2), pa.timestamp("us", "UTC")), schema(pa.null(), pa.null())
    rows = [
        {"id": 1, "n": None, "l": [None], "m": [("k", {"x": None})], "s": {"a": [None], "b": [{"q": None}]}},
        {"id": 2, "n": None, "l": None, "m": [], "s": None},
    ]
    write_hudi(tmp_path, typed.empty_table(), record_key="id", table_type=table_type)
    write_hudi(tmp_path, pa.Table.from_pylist(rows, untyped), operation)
    table = HudiTable.open(tmp_path)
    assert table.schema().equals(typed)
    assert sorted(table.to_arrow(typed.names).to_pylist(), key=lambda row: row["id"]) == rows
