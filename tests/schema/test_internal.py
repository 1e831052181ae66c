"""Schema on read: tables of real Hudi whose columns were renamed, retyped, dropped, added again and moved."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.errors import CorruptFile
from pyhudi.meta_client import MetaClient
from pyhudi.schema.column_mapping import column_mapping
from pyhudi.schema.internal import (
    InternalSchema,
    decode_history,
    decode_internal_schema,
    load_schema_history,
    schema_as_of,
)
from pyhudi.storage import open_storage
from tests.support.golden.rows import differences

VERSIONS = ["0.15.0", "1.0.2", "1.2.0"]


def read_as_of(folder: Path, instant_time: str, history: tuple[InternalSchema, ...]) -> pa.Table:
    """The newest file of each group up to an instant, read under the schema of that instant."""
    query = schema_as_of(history, instant_time)
    assert query is not None
    newest: dict[str, tuple[str, Path]] = {}
    for path in folder.rglob("*.parquet"):
        file_id, _, written = path.stem.split("_")
        if written <= instant_time:
            newest[file_id] = max(newest.get(file_id, ("", path)), (written, path))
    parts = []
    for written, path in newest.values():
        plan = column_mapping(history, written, query)
        assert plan is not None
        with pq.ParquetFile(path) as file:
            parts.append(pickle.loads(pickle.dumps(plan))(file.read(list(plan.file_columns))))
    return pa.concat_tables(parts)


@pytest.mark.parametrize("version", VERSIONS)
def test_snapshot_and_every_time_travel_are_those_of_real_hudi(golden: Any, version: str) -> None:
    folder, description = golden(version, "evolution_schema_on_read")
    meta = MetaClient.load(open_storage(folder))
    history = load_schema_history(meta.storage, meta.config, meta.timeline)
    expected = description["expected"]

    snapshot = read_as_of(folder, "99999999999999999", history)
    assert differences(expected["snapshot"], snapshot) == []
    assert snapshot.schema.names == [name for name, _ in expected["columns"]]
    assert len(expected["as_of"]) >= 8
    for instant_time, rows in expected["as_of"].items():
        assert differences(rows, read_as_of(folder, instant_time, history)) == [], instant_time


@pytest.mark.parametrize("version", VERSIONS)
def test_the_newest_schema_is_the_one_in_the_newest_commit(golden: Any, version: str) -> None:
    folder, _ = golden(version, "evolution_schema_on_read")
    meta = MetaClient.load(open_storage(folder))
    newest = load_schema_history(meta.storage, meta.config, meta.timeline)[0]
    last = meta.timeline.last_commit()
    assert last is not None

    in_commit = decode_internal_schema(meta.commits.metadata(last).extra_metadata["latest_schema"])
    assert in_commit == newest
    assert pa.schema(list(newest.to_arrow())[5:]) == meta.table_schema()


def test_the_file_of_a_commit_that_failed_does_not_count(golden: Any) -> None:
    folder, _ = golden("1.2.0", "evolution_schema_on_read")
    residue = folder / ".hoodie" / ".schema" / "99990101000000000_99990101000000001.schemacommit"
    residue.write_text('{"schemas":[]}')
    meta = MetaClient.load(open_storage(folder))

    assert len(load_schema_history(meta.storage, meta.config, meta.timeline)) == 6


def test_a_table_without_changes_has_no_history(golden: Any) -> None:
    folder, _ = golden("1.2.0", "evolution_add_columns")
    meta = MetaClient.load(open_storage(folder))

    assert load_schema_history(meta.storage, meta.config, meta.timeline) == ()


def field(column_id: int, name: str, data_type: Any, **more: Any) -> dict[str, Any]:
    return {"id": column_id, "name": name, "optional": True, "type": data_type, **more}


def internal(version: int, *fields: dict[str, Any]) -> InternalSchema:
    body = {"max_column_id": 99, "version_id": version, "type": "record", "fields": list(fields)}
    return decode_internal_schema(json.dumps(body))


def test_nested_columns_match_by_id_too() -> None:
    struct = {"type": "record", "fields": [field(3, "x", "int"), field(4, "y", "string")]}
    renamed = {"type": "record", "fields": [field(4, "why", "string"), field(3, "x", "long"), field(9, "y", "string")]}

    def columns(inner: Any, names: tuple[str, str, str]) -> list[dict[str, Any]]:
        array = {"type": "array", "element_id": 5, "element": inner, "element_optional": True}
        entries = {
            "type": "map",
            "key_id": 6,
            "key": "string",
            "value_id": 7,
            "value": inner,
            "value_optional": True,
        }
        return [field(0, names[0], inner), field(1, names[1], array), field(2, names[2], entries)]

    history = (internal(20, *columns(renamed, ("t", "b", "n"))), internal(10, *columns(struct, ("s", "a", "m"))))
    row = {"x": 1, "y": "z"}
    item = pa.struct([("x", pa.int32()), ("y", pa.string())])
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([row, None], item),
            pa.array([[row], None], pa.list_(pa.field("array", item))),
            pa.array([[("k", row)], None], pa.map_(pa.string(), item)),
        ],
        ["s", "a", "m"],
    )
    plan = column_mapping(history, "15", history[0], ["n", "t", "b"])
    assert plan is not None
    assert plan.file_columns == ("m", "s", "a")
    out = plan(batch.select(list(plan.file_columns)))
    out.validate(full=True)

    new = {"why": "z", "x": 1, "y": None}
    assert out.to_pydict() == {"n": [[("k", new)], None], "t": [new, None], "b": [[new], None]}


def test_a_nested_field_that_was_dropped_and_added_again_is_null_in_older_files() -> None:
    def columns(inner: Any) -> list[dict[str, Any]]:
        array = {"type": "array", "element_id": 5, "element": inner, "element_optional": True}
        entries = {"type": "map", "key_id": 6, "key": "string", "value_id": 7, "value": inner, "value_optional": True}
        outer = {"type": "record", "fields": [field(8, "deep", inner)]}
        return [field(0, "s", inner), field(1, "a", array), field(2, "m", entries), field(9, "o", outer)]

    before = {"type": "record", "fields": [field(3, "x", "int"), field(4, "y", "string")]}
    after = {"type": "record", "fields": [field(3, "x", "int"), field(10, "y", "string")]}
    dropped = {"type": "record", "fields": [field(3, "x", "int")]}
    versions = ((30, after), (20, dropped), (10, before))
    history = tuple(internal(version, *columns(inner)) for version, inner in versions)
    row, item = {"x": 1, "y": "old"}, pa.struct([("x", pa.int32()), ("y", pa.string())])
    old = pa.table(
        {
            "s": pa.array([row, None], item),
            "a": pa.array([[row], None], pa.list_(pa.field("array", item))),
            "m": pa.array([[("k", row)], None], pa.map_(pa.string(), item)),
            "o": pa.array([{"deep": row}, None], pa.struct([("deep", item)])),
        }
    )

    def read(query: InternalSchema) -> dict[str, Any]:
        plan = column_mapping(history, "15", query)
        assert plan is not None
        found: dict[str, Any] = plan(old).to_pydict()
        return found

    for query, inside in zip(history, ({"x": 1, "y": None}, {"x": 1}, row), strict=True):
        wanted = {"s": inside, "a": [inside], "m": [("k", inside)], "o": {"deep": inside}}
        assert read(query) == {name: [value, None] for name, value in wanted.items()}


def test_swapped_names_follow_their_ids() -> None:
    history = (
        internal(20, field(1, "a", "int"), field(0, "b", "string")),
        internal(10, field(0, "a", "int"), field(1, "b", "int")),
    )
    plan = column_mapping(history, "10", history[0])
    assert plan is not None

    assert plan(pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([2], pa.int32())})).to_pydict() == {
        "a": [2],
        "b": ["1"],
    }


def test_files_older_than_the_history_have_no_plan() -> None:
    schema = internal(20, field(0, "a", "int"))

    assert column_mapping((schema,), "10", schema) is None


def test_all_type_words_are_read() -> None:
    words = ["boolean", "int", "long", "float", "double", "date", "time", "timestamp", "string", "uuid", "binary"]
    schema = internal(1, *(field(i, f"c{i}", w) for i, w in enumerate([*words, "fixed[3]", "decimal(5, 2)"])))

    assert [str(f.type) for f in schema.to_arrow()] == [
        "bool",
        "int32",
        "int64",
        "float",
        "double",
        "date32[day]",
        "time64[us]",
        "timestamp[us, tz=UTC]",
        "string",
        "string",
        "binary",
        "fixed_size_binary[3]",
        "decimal128(5, 2)",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"schemas": 3}',
        '{"schemas": [{"version_id": 1, "fields": 3}]}',
        '{"schemas": [{"version_id": "x", "fields": []}]}',
        '{"schemas": [{"version_id": 1, "fields": [{"id": 1, "name": "a", "type": "varchar"}]}]}',
        '{"schemas": [{"version_id": 1, "fields": [{"name": "a", "type": "int"}]}]}',
        '{"schemas": [{"version_id": 1, "fields": [{"id": 1, "name": "a", "type": {"type": "array"}}]}]}',
        '{"schemas": [{"version_id": 1, "fields": [{"id": 1, "name": "a", "type": "decimal(99, 2)"}]}]}',
    ],
)
def test_a_damaged_history_is_corrupt_and_names_the_file(text: str) -> None:
    with pytest.raises(CorruptFile, match=r"1\.schemacommit"):
        decode_history(text.encode(), "1.schemacommit")
