"""What a write refuses, for each table version we write: the table stays as it was."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError, HudiError, KeyGenError, SchemaMismatch
from tests.support.tables.small import SCHEMA, TestTable, rows_of


@pytest.fixture(params=["6", "8", "9"])
def table(request: pytest.FixtureRequest) -> TestTable:
    return TestTable(options={"hoodie.write.table.version": request.param})


def test_policy_fail_refuses_known_keys_and_writes_nothing(table: TestTable) -> None:
    table.insert(("a", "x", 1, 10))
    before = table.meta.timeline
    with pytest.raises(ConfigError, match="'a'"):
        table.insert(("a", "x", 2, 11), ("b", "x", 1, 20), datasource_insert_dup_policy="fail")

    assert table.meta.timeline == before
    assert table.rows() == [("a", "x", 1, 10)]


def test_what_does_not_fit_the_schema_is_refused_before_anything_is_written(table: TestTable) -> None:
    table.upsert(("a", "x", 1, 10))
    before = table.meta.timeline
    wrong = pa.table({"id": ["a"], "p": ["x"], "ts": ["text"], "v": ["no number"]})
    with pytest.raises(SchemaMismatch, match=r"'ts'.*\n.*'v'"):
        table.write("upsert", wrong)
    assert table.meta.timeline == before


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "delete"])
def test_a_row_without_key_fails_the_write_and_leaves_nothing(table: TestTable, operation: str) -> None:
    table.upsert(("a", "x", 1, 10))
    files = {info.path for info in table.storage.walk("x")}
    with pytest.raises(KeyGenError):
        table.write(operation, rows_of(("b", "x", 1, 20), (None, "x", 1, 30)))  # type: ignore[arg-type]

    assert {info.path for info in table.storage.walk("x")} == files
    assert not table.meta.timeline.pending().instants
    assert table.rows() == [("a", "x", 1, 10)]


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "delete"])
def test_data_without_the_key_column_is_refused(table: TestTable, operation: str) -> None:
    table.upsert(("a", "x", 1, 10))
    before = table.meta.timeline
    with pytest.raises(HudiError, match="id"):
        table.write(operation, rows_of(("b", "x", 1, 20)).drop_columns(["id"]))

    assert table.meta.timeline == before


@pytest.mark.parametrize("value", ["../x", "a/../../x", "/x"])
def test_a_partition_value_that_would_leave_the_table_is_refused(table: TestTable, value: str) -> None:
    table.upsert(("a", "x", 1, 10))
    with pytest.raises(HudiError):
        table.upsert(("b", value, 1, 20))
    with pytest.raises(HudiError):
        table.bulk_insert(("b", value, 1, 20))

    assert table.rows() == [("a", "x", 1, 10)]
    assert not table.meta.timeline.pending().instants


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "delete"])
@pytest.mark.parametrize("value", [".", "a//b", "a/./b", "trail/"])
def test_a_partition_value_whose_folder_would_have_another_name_is_refused(
    table: TestTable, operation: str, value: str
) -> None:
    table.upsert(("a", "x", 1, 10))
    with pytest.raises(KeyGenError, match="Correct the values"):
        table.write(operation, rows_of(("b", value, 1, 20)))

    assert table.rows() == [("a", "x", 1, 10)]
    assert not table.meta.timeline.pending().instants


def test_a_first_write_that_is_refused_makes_no_table(table: TestTable) -> None:
    with pytest.raises(HudiError):
        table.write("upsert", rows_of(("a", "x", 1, 10)).drop_columns(["id"]))

    assert not list(table.storage.walk(""))


def test_a_type_that_no_table_can_hold_is_refused_before_there_is_a_table() -> None:
    table = TestTable()
    with pytest.raises(SchemaMismatch, match="odd"):
        table.write("upsert", rows_of(("a", "x", 1, 1)).append_column("odd", pa.array([1], pa.duration("s"))))
    assert not list(table.storage.walk(""))


def data_files(table: TestTable) -> set[str]:
    return {info.path for info in table.storage.walk("") if not info.path.startswith(".hoodie/")}


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite", "delete"])
@pytest.mark.parametrize("generator", ["TIMESTAMP", "CUSTOM"])
@pytest.mark.parametrize(("field", "kind"), [("v", "EPOCHMILLISECONDS"), ("p", "DATE_STRING")])
def test_a_row_whose_time_is_past_year_9999_fails_the_write_and_leaves_nothing(
    table: TestTable, operation: str, generator: str, field: str, kind: str
) -> None:
    time = "hoodie.keygen.timebased."
    table.options = {
        **table.options,
        "hoodie.datasource.write.keygenerator.type": generator,
        "hoodie.datasource.write.partitionpath.field": field if generator == "TIMESTAMP" else f"{field}:TIMESTAMP",
        f"{time}timestamp.type": kind,
        f"{time}output.dateformat": "yyyy/MM/dd",
        **({f"{time}input.dateformat": "yyyy-MM-dd"} if kind == "DATE_STRING" else {}),
    }
    table.upsert(("a", "2024-01-15", 1, 1_705_311_000_000))
    files, timeline = data_files(table), table.meta.timeline
    far = ("b", "2024-01-15", 1, 253_402_300_800_000) if field == "v" else ("b", "10000-01-01", 1, 1_705_311_000_000)
    with pytest.raises(KeyGenError, match=f"Row 1 .*'{field}' holds .*9999.*yyyy"):
        table.write(operation, rows_of(("a", "2024-01-15", 2, 1_705_311_000_001), far))

    assert data_files(table) == files
    assert operation == "bulk_insert" or table.meta.timeline == timeline  # it writes as it reads, and rolls back
    assert not table.meta.timeline.pending().instants
    assert table.rows() == [("a", "2024-01-15", 1, 1_705_311_000_000)]


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
def test_a_row_without_key_is_named_by_its_number_in_all_that_was_given(table: TestTable, operation: str) -> None:
    table.engine = LocalEngine(1)
    first, second = rows_of(("a", "x", 1, 1), ("b", "x", 1, 1), ("c", "x", 1, 1)), rows_of(("d", "x", 1, 1))
    nameless = pa.table({"id": [None], "p": ["x"], "ts": [1], "v": [1]}, SCHEMA)

    with pytest.raises(KeyGenError, match=r"^Row 4 \(counted from 0"):
        table.write(operation, pa.concat_tables([first, second, nameless]))


REQUIRED = pa.schema([pa.field(field.name, field.type, field.name not in ("ts", "v")) for field in SCHEMA])


def with_required(table_type: str, version: str, **options: str) -> TestTable:
    """A table with the row a, whose columns ts and v can't be null."""
    names = {"hoodie.datasource.write.table.type": table_type, "hoodie.write.table.version": version}
    table = TestTable(options={**names, **{f"hoodie.{name.replace('_', '.')}": v for name, v in options.items()}})
    table.write("upsert", rows_of(("a", "x", 1, 10)).cast(REQUIRED))
    return table


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"])
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_null_in_a_required_column_is_refused_before_anything_is_written(
    table_type: str, version: str, operation: str
) -> None:
    table = with_required(table_type, version)
    before = sorted(info.path for info in table.storage.walk(""))
    nulls = rows_of(("b", "x", 2, 20), ("a", "x", 2, None), ("c", "x", 2, None))  # type: ignore[arg-type]
    with pytest.raises(SchemaMismatch, match=r"'v' is NOT NULL.*'a'"):
        table.write(operation, nulls)
    lacking = rows_of(("a", "x", 2, 1)).drop_columns(["v"])
    with pytest.raises(SchemaMismatch, match=r"'v' is NOT NULL.*'a'"):
        table.write(operation, lacking, write_set_null_for_missing_columns="true")
    assert sorted(info.path for info in table.storage.walk("")) == before

    stream = pa.RecordBatchReader.from_batches(SCHEMA, iter(nulls.to_batches()))
    with pytest.raises(SchemaMismatch, match=r"'v' is NOT NULL.*'a'"):
        table.write(operation, stream)
    assert not table.meta.timeline.pending().instants
    assert table.rows() == [("a", "x", 1, 10)]

    table.write("upsert", rows_of(("a", "x", 2, 11)))
    assert table.rows() == [("a", "x", 2, 11)]
    assert table.meta.table_schema().field("v") == REQUIRED.field("v"), "a type that allows nulls has none"


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_deletes_need_no_values_in_required_columns(table_type: str) -> None:
    table = with_required(table_type, "9")
    table.upsert(("b", "x", 1, 1))
    flags = {"id": ["a"], "p": ["x"], "ts": pa.array([2]), "_hoodie_is_deleted": [True]}
    table.write("upsert", pa.table(flags), write_set_null_for_missing_columns="true")
    assert table.rows() == [("b", "x", 1, 1)]
    table.delete(("b", "x"))
    assert table.rows() == []


def test_where_nulls_stand_for_stored_values_required_columns_may_get_them() -> None:
    payload = "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"
    table = with_required("COPY_ON_WRITE", "6", datasource_write_payload_class=payload)
    table.upsert(("a", "x", 2, None))  # type: ignore[arg-type]
    assert table.rows() == [("a", "x", 2, 10)]
    with pytest.raises(SchemaMismatch, match=r"'v' is NOT NULL.*'b'"):
        table.upsert(("b", "x", 2, None))  # type: ignore[arg-type]
