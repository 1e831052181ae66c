"""Columns that are added, widened, renamed and dropped, and types that Delta lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pyhudi import HudiTable, UnsupportedTable, write_hudi
from pyhudi.exports.delta_schema import delta_columns
from pyhudi.schema.changes import AddColumn, ChangeType, DropColumn, RenameColumn
from tests.support.exports.delta import assert_equal, instants

OFF = {"hoodie.metadata.enable": "false"}
ROWS = pa.table({"id": ["a", "b"], "n": pa.array([1, 2], pa.int32()), "s": [{"x": 1}, {"x": 2}]})


def written(path: Path, rows: Any = ROWS) -> HudiTable:
    write_hudi(str(path), rows, record_key="id", options=OFF)
    return HudiTable.open(path)


def exported(path: Path) -> HudiTable:
    table = written(path)
    table.export_metadata("delta")
    return table


def names(path: Path) -> list[str]:
    return [field.name for field in DeltaTable(path).schema().fields if not field.name.startswith("_hoodie")]


def test_an_added_column_is_null_in_older_files(tmp_path: Path) -> None:
    table = exported(tmp_path)
    table.insert(ROWS.slice(0, 1).set_column(0, "id", [["z"]]).append_column("late", [["x"]]))

    assert table.export_metadata("delta").replaced == ""
    assert_equal(table)
    assert names(tmp_path) == ["id", "n", "s", "late"]


def test_a_version_that_adds_columns_names_the_commit_that_the_export_has_already(tmp_path: Path) -> None:
    table = exported(tmp_path)
    table.alter(AddColumn("late", pa.string()))
    table.export_metadata("delta")

    first, second = (one.requested_time for one in table.state().timeline.commits())
    assert instants(tmp_path) == [first, first, second]


def test_a_wider_column_makes_the_log_again(tmp_path: Path) -> None:
    table = exported(tmp_path)
    table.alter(ChangeType("n", pa.int64()))
    table.insert([{"id": "z", "n": 2**40, "s": {"x": 3}}], options=OFF)

    assert "'n'" in table.export_metadata("delta").replaced
    assert_equal(table)


def test_a_dropped_column_makes_the_log_again(tmp_path: Path) -> None:
    table = exported(tmp_path)
    table.alter(DropColumn("n"))

    assert "'n'" in table.export_metadata("delta").replaced
    assert names(tmp_path) == ["id", "s"]
    assert_equal(table)


def test_a_part_that_is_added_to_a_struct_makes_the_log_again(tmp_path: Path) -> None:
    table = exported(tmp_path)
    table.alter(AddColumn("s.y", pa.string()))

    assert "'s'" in table.export_metadata("delta").replaced
    assert_equal(table)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([RenameColumn("n", "m")], "'n' was renamed to 'm'"),
        ([RenameColumn("s.x", "z")], r"'s\.x' was renamed"),
        ([DropColumn("n"), AddColumn("n", pa.int32())], "'n' was dropped and added again"),
        ([ChangeType("n", pa.string())], "'n' as int32, and the table has string"),
    ],
    ids=["renamed", "renamed inside", "added again", "another type"],
)
def test_a_change_that_others_would_read_wrongly_is_refused_until_files_are_rewritten(
    changes: list[Any], words: str, tmp_path: Path
) -> None:
    table = exported(tmp_path)
    before = DeltaTable(tmp_path).version()
    for change in changes:
        table.alter(change, schema_on_read=True)

    with pytest.raises(UnsupportedTable, match=words):
        table.export_metadata("delta")
    assert DeltaTable(tmp_path).version() == before

    table.cluster(options={"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"})
    table.export_metadata("delta")
    assert_equal(table)


@pytest.mark.parametrize("kind", [pa.time64("us"), pa.list_(pa.time64("us"))], ids=str)
def test_a_type_that_delta_lacks_is_refused_by_name_and_nothing_is_made(kind: pa.DataType, tmp_path: Path) -> None:
    table = written(tmp_path, pa.table({"id": ["a"], "at": pa.array([None], kind)}))

    with pytest.raises(UnsupportedTable, match=r"column 'at.*time64.*Delta lacks"):
        table.export_metadata("delta")
    assert not (tmp_path / "_delta_log").exists()


def test_columns_that_differ_only_in_case_are_refused() -> None:  # of other writers: ours make none
    with pytest.raises(UnsupportedTable, match=r"'x'.*upper and lower case"):
        delta_columns(pa.schema([("x", pa.int64()), ("X", pa.int64())]), "t")


def test_all_types_that_both_have_are_read_alike(tmp_path: Path) -> None:
    from datetime import date, datetime, timezone
    from decimal import Decimal

    moment = datetime(2026, 11, 28, 1, 2, 3, 456000)
    row = {
        "id": "a", "f": 1.5, "d": 2.5, "i": 1, "l": 2**40, "b": True, "y": b"\x00\xff", "day": date(2026, 11, 28),
        "ts": moment.replace(tzinfo=timezone.utc), "ms": moment.replace(tzinfo=timezone.utc), "local": moment,
        "dec": Decimal("1.25"), "many": [1, None], "by": [("k", 1)], "s": {"x": {"y": "z"}},
    }  # fmt: skip
    schema = pa.schema(
        [
            ("id", pa.string()), ("f", pa.float32()), ("d", pa.float64()), ("i", pa.int32()), ("l", pa.int64()),
            ("b", pa.bool_()), ("y", pa.binary()), ("day", pa.date32()), ("ts", pa.timestamp("us", "UTC")),
            ("ms", pa.timestamp("ms", "UTC")), ("local", pa.timestamp("us")), ("dec", pa.decimal128(10, 2)),
            ("many", pa.list_(pa.int64())), ("by", pa.map_(pa.string(), pa.int32())),
            ("s", pa.struct([("x", pa.struct([("y", pa.string())]))])),
        ]
    )  # fmt: skip
    table = written(tmp_path, pa.Table.from_pylist([row, {"id": "b"}], schema))
    table.export_metadata("delta")
    assert_equal(table)
