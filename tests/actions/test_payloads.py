"""Payload classes and merge modes, written by PyHudi: the seed document's tables, and what real Hudi makes of the same
batches (golden tables `g2_payload_*`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import ConfigError, HudiTable, UnsupportedTable
from pyhudi.storage import open_storage
from pyhudi.timeline.table_properties import load_table_config, update_table_config
from tests.support.golden.folder import SHARED, shared_folder

MODEL = "org.apache.hudi.common.model."
OVERWRITE, DEFAULT = f"{MODEL}OverwriteWithLatestAvroPayload", f"{MODEL}DefaultHoodieRecordPayload"
PARTIAL, NON_DEFAULTS = f"{MODEL}PartialUpdateAvroPayload", f"{MODEL}OverwriteNonDefaultsWithLatestAvroPayload"
FIRST, AWS = f"{MODEL}FirstValueAvroPayload", f"{MODEL}AWSDmsAvroPayload"
MYSQL, POSTGRES = f"{MODEL}debezium.MySqlDebeziumAvroPayload", f"{MODEL}debezium.PostgresDebeziumAvroPayload"
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
VERSIONS = (6, 8, 9)
PAYLOAD = "hoodie.datasource.write.payload.class"
SEED = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("name", pa.string()), ("price", pa.string())])

# ---- the seed document: current record, incoming record, result


def after_upsert(path: Path, payload: str, version: int, table_type: str, *rows: tuple[Any, ...]) -> list[Any]:
    options: dict[str, Any] = {PAYLOAD: payload}
    table = HudiTable.create(
        path, SEED, record_key="id", ordering="ts", table_type=table_type, table_version=version, options=options
    )
    for row in rows:
        table.upsert(pa.Table.from_pylist([dict(zip(SEED.names, row, strict=True))], SEED), options=options)
    return [tuple(row.values()) for row in table.to_arrow(SEED.names).to_pylist()]


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("payload", "stored", "incoming", "result"),
    [
        (OVERWRITE, ("1", 2, "name_2", "price_2"), ("1", 1, "name_1", "price_1"), ("1", 1, "name_1", "price_1")),
        (DEFAULT, ("1", 2, "name_2", "price_2"), ("1", 1, "name_1", "price_1"), ("1", 2, "name_2", "price_2")),
        (PARTIAL, ("1", 2, "name_1", None), ("1", 1, None, "price_1"), ("1", 2, "name_1", "price_1")),
        # not in the seed document
        (PARTIAL, ("1", 1, "name_1", "price_1"), ("1", 2, None, "price_2"), ("1", 2, "name_1", "price_2")),
        (NON_DEFAULTS, ("1", 2, "name_2", "price_2"), ("1", 1, None, "price_1"), ("1", 1, "name_2", "price_1")),
        (FIRST, ("1", 2, "name_2", "price_2"), ("1", 2, "name_1", "price_1"), ("1", 2, "name_2", "price_2")),
        (FIRST, ("1", 2, "name_2", "price_2"), ("1", 3, "name_1", "price_1"), ("1", 3, "name_1", "price_1")),
    ],
)
def test_a_payload_class_makes_of_two_rows_what_the_seed_document_shows(
    tmp_path: Path, payload: str, version: int, table_type: str, stored: Any, incoming: Any, result: Any
) -> None:
    assert after_upsert(tmp_path / "t", payload, version, table_type, stored, incoming) == [result]


@pytest.mark.parametrize("table_type", TYPES)
def test_a_batch_is_merged_with_itself_by_the_same_rules(tmp_path: Path, table_type: str) -> None:
    table = HudiTable.create(
        tmp_path / "t", SEED, record_key="id", ordering="ts", table_type=table_type, options={PAYLOAD: PARTIAL}
    )
    rows = [("1", 2, "name_1", None), ("2", 5, "two", None), ("1", 1, None, "price_1"), ("1", 3, None, None)]

    table.upsert(pa.Table.from_pylist([dict(zip(SEED.names, row, strict=True)) for row in rows], SEED))

    assert sorted(tuple(row.values()) for row in table.to_arrow(SEED.names).to_pylist()) == [
        ("1", 3, "name_1", "price_1"),
        ("2", 5, "two", None),
    ]


def test_a_stored_row_that_stays_as_it_was_keeps_its_commit_and_a_filled_one_gets_the_new_one(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", SEED, record_key="id", ordering="ts", options={PAYLOAD: PARTIAL})
    rows = [("kept", 2, "a", "b"), ("filled", 2, "a", None)]
    first = table.upsert(pa.Table.from_pylist([dict(zip(SEED.names, row, strict=True)) for row in rows], SEED))
    late = [("kept", 1, "x", "y"), ("filled", 1, "x", "y")]

    second = table.upsert(pa.Table.from_pylist([dict(zip(SEED.names, row, strict=True)) for row in late], SEED))

    found = {r["id"]: r for r in table.to_arrow(["id", "name", "price", "_hoodie_commit_time"]).to_pylist()}
    assert (found["kept"]["name"], found["kept"]["_hoodie_commit_time"]) == ("a", first.instant_time)
    assert (found["filled"]["name"], found["filled"]["price"]) == ("a", "y")
    assert found["filled"]["_hoodie_commit_time"] == second.instant_time
    assert (second.updated, second.unchanged) == (1, 1)


def test_a_stored_row_is_not_filled_by_a_late_one_that_lacks_the_same_values(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", SEED, record_key="id", ordering="ts", options={PAYLOAD: PARTIAL})
    first = table.upsert(pa.Table.from_pylist([{"id": "1", "ts": 2, "name": "a", "price": None}], SEED))

    late = table.upsert(pa.Table.from_pylist([{"id": "1", "ts": 1, "name": "x", "price": None}], SEED))

    (row,) = table.to_arrow(["name", "price", "_hoodie_commit_time"]).to_pylist()
    assert row == {"name": "a", "price": None, "_hoodie_commit_time": first.instant_time}
    assert (late.updated, late.unchanged) == (0, 1)


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_field_and_its_marker_say_which_rows_are_deletes(tmp_path: Path, version: int, table_type: str) -> None:
    options = {"hoodie.payload.delete.field": "name", "hoodie.payload.delete.marker": "D", PAYLOAD: DEFAULT}
    table = HudiTable.create(
        tmp_path / "t", SEED, record_key="id", ordering="ts", table_type=table_type, table_version=version,
        options=options,
    )  # fmt: skip
    rows = [("gone", 1, "a", None), ("late", 5, "a", None), ("lower", 1, "a", None)]
    table.upsert(pa.Table.from_pylist([dict(zip(SEED.names, r, strict=True)) for r in rows], SEED), options=options)
    deletes = [("gone", 2, "D", None), ("late", 3, "D", None), ("lower", 2, "d", None)]

    table.upsert(pa.Table.from_pylist([dict(zip(SEED.names, r, strict=True)) for r in deletes], SEED), options=options)

    assert sorted(table.to_arrow(["id"])["id"].to_pylist()) == ["late", "lower"]


@pytest.mark.parametrize("version", [8, 9])
def test_a_write_can_t_change_how_a_table_merges(tmp_path: Path, version: int) -> None:
    table = HudiTable.create(
        tmp_path / "t", SEED, record_key="id", ordering="ts", table_version=version, options={PAYLOAD: PARTIAL}
    )
    rows = pa.Table.from_pylist([{"id": "1", "ts": 1}], SEED)

    with pytest.raises(ConfigError, match="was made with"):
        table.upsert(rows, options={PAYLOAD: NON_DEFAULTS})
    with pytest.raises(ConfigError, match=r"merges by|was made with"):
        table.upsert(rows, options={"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"})
    table.upsert(rows, options={PAYLOAD: PARTIAL})


def test_a_payload_class_that_nobody_knows_is_refused_for_merging_reads(tmp_path: Path) -> None:
    table = HudiTable.create(
        tmp_path / "t", SEED, record_key="id", ordering="ts", table_type="MERGE_ON_READ", options={PAYLOAD: FIRST}
    )
    for price in ("a", "b"):
        table.upsert(pa.Table.from_pylist([{"id": "1", "ts": 1, "price": price}], SEED))
    update_table_config(open_storage(tmp_path / "t"), {"hoodie.compaction.payload.class": "com.example.Mine"}, ())
    opened = HudiTable.open(tmp_path / "t")

    with pytest.raises(UnsupportedTable, match=r"com\.example\.Mine.*read_optimized"):
        opened.to_arrow()
    with pytest.raises(UnsupportedTable, match=r"com\.example\.Mine"):
        opened.upsert(pa.Table.from_pylist([{"id": "1", "ts": 1}], SEED))
    assert opened.scan(["price"], query_type="read_optimized").to_arrow().to_pylist() == [{"price": "a"}]


# ---- the batches of the golden tables `g2_payload_*`, written by us

_NUMBERS = {f"k{i}": (100, f"a{i}", i, i * 0.25) for i in range(9)}
_UNAVAILABLE = "__debezium_unavailable_value"
_STEP_2 = {
    "k0": (200, "newer", 70, 7.5), "k1": (50, "late", 71, 7.5), "k2": (100, "equal", 72, 7.5),
    "k3": (200, None, 73, None), "k4": (50, None, 74, 9.5), "k5": (200, "DELETE", None, None),
    "k6": (50, "DELETE", None, None), "k9": (100, "new", 1, 1.5), "k10": (100, None, None, 2.5),
}  # fmt: skip
_STEP_3 = {
    "k0": (150, "late vs log", 80, None), "k3": (300, _UNAVAILABLE, None, 3.5), "k4": (300, _UNAVAILABLE, None, None),
    "k5": (150, "re-insert late", 85, 2.5), "k6": (300, None, 86, None), "k10": (90, "late fill", 5, None),
    "k7": (300, "x", 77, 2.5),
}  # fmt: skip
_PLAIN = [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())]
_REST = [("a", pa.string()), ("b", pa.int32()), ("c", pa.float64())]
_EVENTS = {
    "mysql_debezium": [("_event_seq", pa.string()), ("_event_bin_file", pa.string()), ("_event_pos", pa.int64())],
    "postgres_debezium": [("_event_lsn", pa.int64())],
}
GOLDEN = {
    "default_record": (DEFAULT, "ts"), "overwrite_latest": (OVERWRITE, "ts"), "partial_update": (PARTIAL, "ts"),
    "overwrite_non_defaults": (NON_DEFAULTS, "ts"), "aws_dms": (AWS, "ts"),
    "mysql_debezium": (MYSQL, "_event_seq"), "postgres_debezium": (POSTGRES, "_event_lsn"),
}  # fmt: skip
HUDI_OF = {6: "0.15.0", 8: "1.0.2", 9: "1.2.0"}


def rows_of(name: str, batch: dict[str, tuple[Any, ...]]) -> pa.Table:
    """A batch as the golden table of that name got it."""
    debezium = name.endswith("debezium")
    fields = [*_PLAIN, *_REST, *_EVENTS.get(name, ())]
    fields.append(("_change_operation_type", pa.string()) if debezium else ("Op", pa.string()))
    if not debezium and name != "aws_dms":
        fields[-1] = ("_hoodie_is_deleted", pa.bool_())
    rows = []
    for key, (ts, a, b, c) in batch.items():
        gone = a == "DELETE"
        a = None if gone or (a == _UNAVAILABLE and not debezium) else a
        row = {"id": key, "p": "xy"[int(key[1:]) % 2], "ts": ts, "a": a, "b": b, "c": c}
        row |= {"_event_seq": f"{ts // 100:06}.{ts}", "_event_bin_file": f"{ts // 100:06}", "_event_pos": ts}
        row |= {"_event_lsn": ts, "_change_operation_type": "d" if gone else "u", "Op": "D" if gone else "U"}
        rows.append(row | {"_hoodie_is_deleted": gone})
    return pa.Table.from_pylist(rows, pa.schema(fields))


def golden_payloads() -> Iterator[tuple[int, str, str]]:
    for version, hudi in HUDI_OF.items():
        for path in sorted((SHARED / "golden" / hudi).glob("g2_payload_*.json")):
            name, _, table_type = path.stem.removeprefix("g2_payload_").rpartition("_")
            yield version, name, table_type


def answers(description: dict[str, Any]) -> list[list[Any]]:
    """For each step but the first: what one of the Hudis returns, data columns only."""
    own, newest = description["expected"], description.get("expected_by_1.2.0", {})
    result = [[rows, newest.get("as_of", {}).get(instant)] for instant, rows in own["as_of"].items()]
    return [*result, [own["snapshot"], newest.get("snapshot")]]


def comparable(rows: list[dict[str, Any]]) -> list[Any]:
    return sorted((r["id"], r["p"], r["ts"], r["a"], r["b"], r["c"]) for r in rows)


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "name", "table_type"), list(golden_payloads()))
def test_batches_written_by_pyhudi_give_the_rows_that_real_hudi_makes_of_them(
    tmp_path: Path, version: int, name: str, table_type: str
) -> None:
    path = shared_folder() / "golden" / HUDI_OF[version] / f"g2_payload_{name}_{table_type}.json"
    description = json.loads(path.read_text())
    payload, ordering = GOLDEN[name]
    options = {PAYLOAD: payload, "hoodie.parquet.small.file.limit": "0"}
    kind = "MERGE_ON_READ" if table_type == "mor" else "COPY_ON_WRITE"
    table = HudiTable.create(
        tmp_path / "t", rows_of(name, _NUMBERS).schema, record_key="id", partition_by="p", ordering=ordering,
        table_type=kind, table_version=version, options=options,
    )  # fmt: skip
    table.upsert(rows_of(name, _NUMBERS), options=options)
    deletes = {"k7": (300, None, None, None), "k8": (50, None, None, None)}
    found = []
    for operation, batch in ((table.upsert, _STEP_2), (table.upsert, _STEP_3), (table.delete, deletes)):
        operation(rows_of(name, batch), options=options)
        found.append(comparable(table.to_arrow(["id", "p", "ts", "a", "b", "c"]).to_pylist()))

    for step, (rows, expected) in enumerate(zip(found, answers(description), strict=True), 2):
        right = [comparable(answer) for answer in expected if isinstance(answer, list)]
        assert rows in right, (step, set(rows) ^ set(right[-1]))


@pytest.mark.parametrize(("version", "name", "table_type"), list(golden_payloads()))
def test_a_table_stores_of_its_payload_class_what_real_hudi_stores(
    tmp_path: Path, golden: Any, version: int, name: str, table_type: str
) -> None:
    theirs = load_table_config(open_storage(golden(HUDI_OF[version], f"g2_payload_{name}_{table_type}")[0]))
    payload, ordering = GOLDEN[name]
    table = HudiTable.create(
        tmp_path / "ours", rows_of(name, _NUMBERS).schema, record_key="id", partition_by="p", ordering=ordering,
        table_type="MERGE_ON_READ" if table_type == "mor" else "COPY_ON_WRITE", table_version=version,
        options={PAYLOAD: payload},
    )  # fmt: skip

    assert about_merging(table.state().config.properties) == about_merging(theirs.properties)


def about_merging(properties: Mapping[str, str]) -> dict[str, str]:
    words = ("merge", "payload", "partial.update", "ordering", "precombine")
    return {key: text for key, text in properties.items() if any(word in key for word in words)}
