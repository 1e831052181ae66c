"""Statistics in the Delta log: readers skip files by them, and find the rows that they find without."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyarrow.dataset import dataset

from pyhudi import HudiTable, write_hudi
from pyhudi.exports.delta_statistics import statistics_text
from pyhudi.exports.footer_bounds import ColumnBounds, bounds_in_footer
from pyhudi.formats.parquet.footer import ParquetFooter, read_footer
from pyhudi.schema.changes import AddColumn

OFF = {"hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false", "hoodie.parquet.small.file.limit": "0"}
UTC = timezone.utc
LONG = "x" * 32
MICROSECOND = timedelta(microseconds=1)
# The values of a column, a file each: at bounds, beside bounds, null and not null together.
COLUMNS: dict[str, tuple[pa.DataType, list[list[Any]]]] = {
    "i32": (pa.int32(), [[-(2**31), -1], [0], [0, 1, None], [None], [2**31 - 1]]),
    "i64": (pa.int64(), [[-(2**63)], [2**53, 2**53 + 1], [None, 5], [None], [2**63 - 1, 2**63 - 2]]),
    "f64": (pa.float64(), [[float("nan"), 7.0], [-0.0], [0.0, None], [float("inf"), float("nan")], [-float("inf")]]),
    "f32": (pa.float32(), [[0.1], [float("nan")], [None], [-1.5, 1.5], [3.0e38]]),
    "text": (pa.string(), [[LONG, LONG + "a"], [LONG + "b"], ["\U0010ffff" * 40], ["", None], ["é" * 40, "e\x00"]]),
    "edge": (pa.string(), [["\ud7ff" * 33], ["\ue000"], [None], ["a" * 31 + "\U0010ffff\U0010ffff"], ["a" * 31 + "b"]]),
    "small": (
        pa.decimal128(9, 2),
        [[Decimal("-0.01")], [Decimal("0.00")], [None], [Decimal("1234567.89")], [Decimal(1)]],
    ),
    "big": (
        pa.decimal128(38, 10),
        [[Decimal("1234567890123456789012345678.0000000001")], [Decimal("-1e27")], [None], [Decimal(0)], [Decimal(1)]],
    ),
    "day": (pa.date32(), [[date(1, 1, 1)], [date(1969, 12, 31)], [None], [date(2026, 11, 28)], [date(9999, 12, 31)]]),
    "at": (
        pa.timestamp("us", "UTC"),
        [
            [datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)],
            [datetime(2026, 1, 1, 0, 0, 0, 1500, UTC), datetime(2026, 1, 1, 0, 0, 0, 1999, UTC)],
            [None],
            [datetime(2026, 1, 1, 0, 0, 0, 2000, UTC)],
            [datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)],
        ],
    ),
    "local": (
        pa.timestamp("us"),
        [
            [datetime(2026, 1, 1, 0, 0, 0, 1)],
            [datetime(1582, 10, 4)],
            [None],
            [datetime(1, 1, 1)],
            [datetime(2026, 1, 2)],
        ],
    ),
    "flag": (pa.bool_(), [[True], [False], [None], [True, False], [True, None]]),
}


def files() -> list[pa.Table]:
    """A table for each file."""
    tables = []
    for number in range(5):
        width = max(len(parts[number]) for _, parts in COLUMNS.values())
        columns = {
            name: pa.array([*parts[number], *[parts[number][-1]] * (width - len(parts[number]))], kind)
            for name, (kind, parts) in COLUMNS.items()
        }
        ids = pa.array([f"{number}-{row}" for row in range(width)])
        tables.append(pa.table({"id": ids, **columns, "part": pa.array([{"x": number}] * width)}))
    return tables


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("statistics") / "t"
    for rows in files():
        write_hudi(str(path), rows, record_key="id", operation="bulk_insert", options=OFF)
    HudiTable.open(path).export_metadata("delta")
    return path


def logged(path: Path) -> list[dict[str, Any]]:
    lines = (line for file in sorted((path / "_delta_log").glob("*.json")) for line in file.read_text().splitlines())
    return [json.loads(action["add"]["stats"]) for line in lines if "add" in (action := json.loads(line))]


def filters(name: str) -> list[Any]:
    column = pc.field(name)
    kind, parts = COLUMNS[name]
    values = [value for part in parts for value in part if value is not None]
    if pa.types.is_timestamp(kind):
        values += [value + MICROSECOND for value in values if value.year < 9999]
    scalars = [pa.scalar(value, kind) for value in values]
    compared: list[Any] = [
        test
        for value in scalars
        for test in (column == value, column != value, column < value, column <= value, column > value, column >= value)
    ]
    return [*compared, *[~test for test in compared], column.is_null(), column.is_valid()]


def ids(table: pa.Table) -> list[str]:
    return sorted(map(str, table["id"].to_pylist()))


@pytest.mark.parametrize("name", COLUMNS)
def test_a_filter_finds_the_rows_that_it_finds_without_statistics(name: str, exported: Path) -> None:
    delta = DeltaTable(exported)
    read = delta.to_pyarrow_dataset()
    # pyarrow itself skips row groups that have NaN by their other values
    rows = None if name in ("f32", "f64") else HudiTable.open(exported).scan().to_arrow()
    plain = dataset([file.removeprefix("file://") for file in delta.file_uris()])
    for test in filters(name):
        expected = plain.to_table(filter=test) if rows is None else rows.filter(test)
        assert ids(read.to_table(filter=test)) == ids(expected), str(test)


@pytest.mark.parametrize("name", [name for name in COLUMNS if name not in ("f32", "f64", "flag")])
def test_files_that_cannot_have_a_value_are_not_read(name: str, exported: Path) -> None:
    kind, parts = COLUMNS[name]
    value = pa.scalar(next(one for one in parts[-1] if one is not None), kind)
    read = DeltaTable(exported).to_pyarrow_dataset()

    assert len(list(read.get_fragments(pc.field(name) == value))) < 5


def test_the_log_has_counts_and_bounds_of_the_columns_that_its_property_names(exported: Path) -> None:
    names = [name for name in COLUMNS if name not in ("f32", "f64", "flag")]
    plain = ["_hoodie_commit_time", "_hoodie_record_key", "id", *names]
    assert DeltaTable(exported).metadata().configuration["delta.dataSkippingStatsColumns"] == ",".join(plain)
    by_commit = {one["minValues"]["_hoodie_record_key"]: one for one in logged(exported) if "minValues" in one}
    assert by_commit.keys() == {"0-0", "1-0", "3-0"}  # the others have a bound that can't be said
    for one in by_commit.values():
        assert list(one["nullCount"]) == plain
        assert one["minValues"].keys() == one["maxValues"].keys() <= set(plain)
    first = by_commit["0-0"]
    assert first["numRecords"] == 2
    assert (first["minValues"]["at"], first["maxValues"]["at"]) == (
        "1969-12-31T23:59:59.999Z",
        "1970-01-01T00:00:00.000Z",
    )
    assert (first["minValues"]["text"], first["maxValues"]["text"]) == (LONG, "x" * 31 + "y")


def test_a_column_that_was_added_later_has_no_statistics_and_every_row_is_found(tmp_path: Path) -> None:
    write_hudi(str(tmp_path), [{"id": 1}], record_key="id", options=OFF)
    table = HudiTable.open(tmp_path)
    table.export_metadata("delta")
    table.alter(AddColumn("late", pa.int64()))
    write_hudi(str(tmp_path), [{"id": 2, "late": 5}], record_key="id", operation="bulk_insert", options=OFF)

    assert table.export_metadata("delta").replaced == ""

    read = DeltaTable(tmp_path).to_pyarrow_dataset()
    assert "late" not in logged(tmp_path)[-1]["nullCount"]
    assert logged(tmp_path)[-1]["minValues"]["id"] == 2
    assert read.to_table(filter=pc.field("late").is_null())["id"].to_pylist() == [1]
    assert read.to_table(filter=pc.field("late") == 5)["id"].to_pylist() == [2]


def test_a_partition_column_has_no_statistics(tmp_path: Path) -> None:
    write_hudi(str(tmp_path), [{"id": 1, "p": "a"}], record_key="id", partition_by="p", options=OFF)
    HudiTable.open(tmp_path).export_metadata("delta")

    assert all("p" not in part for part in logged(tmp_path)[0].values() if isinstance(part, dict))


@pytest.mark.parametrize(
    ("text", "above"),
    [
        ("a" * 33, "a" * 31 + "b"),
        ("a" * 31 + "\U0010ffff" * 2, "a" * 30 + "b"),
        ("a" * 31 + "\ud7ff" * 2, "a" * 31 + "\ue000"),
        ("\U0010ffff" * 33, None),
        ("a" * 32, "a" * 32),
    ],
)
def test_a_long_greatest_text_is_rounded_up_or_left_out(text: str, above: str | None) -> None:
    said = json.loads(statistics_text(1, [ColumnBounds("c", 1, 0, text, text)], {"c": pa.string()}))

    assert said.get("maxValues", {}).get("c") == above
    assert said.get("minValues", {}).get("c") == (None if above is None else text[:32])


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")])
def test_times_outside_of_the_calendar_have_no_bounds(kind: pa.DataType) -> None:
    said = json.loads(statistics_text(1, [ColumnBounds("c", 1, 0, -(2**31), 2**62)], {"c": kind}))

    assert said == {"numRecords": 1}


def footer_of_table(table: pa.Table, **options: Any) -> ParquetFooter:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return read_footer(pa.BufferReader(sink.getvalue()))


def test_a_row_group_without_statistics_leaves_a_column_without_bounds() -> None:
    footer = footer_of_table(pa.table({"a": [1, 2], "b": [1, None]}), write_statistics=["a"], row_group_size=1)

    assert list(bounds_in_footer(footer, {"a": pa.int64(), "b": pa.int64()})) == [
        ColumnBounds("a", 2, 0, 1, 2),
        ColumnBounds("b", 2, None),
    ]


def test_a_stored_type_that_is_not_widened_to_the_columns_has_no_bounds() -> None:
    footer = footer_of_table(pa.table({"a": pa.array([1], pa.int64()), "b": pa.array([1.0], pa.float64())}))
    bounds = bounds_in_footer(footer, {"a": pa.int32(), "b": pa.float32()})

    assert [(one.least, one.greatest) for one in bounds] == [(None, None)] * 2
