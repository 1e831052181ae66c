"""What commits say next to their files: empty commits, extra metadata, and values that are carried on."""

from __future__ import annotations

import pytest

from pyhudi.model.options import WriteOptions
from pyhudi.services.clean.cleaning import clean
from pyhudi.services.clean.planner import last_clean
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.calls import serve
from tests.support.tables.small import TestTable, rows_of

VERSIONS = ("6", "8", "9")
ROLLING = {"hoodie.write.rolling.metadata.keys": "_offset,_other"}


def table_of(version: str = "9", **options: str) -> TestTable:
    table = TestTable(MemoryStorage(), {"hoodie.write.table.version": version, **options})
    table.bulk_insert(("a", "x", 1, 1))
    return table


def write(table: TestTable, value: int, **extra: str) -> None:
    plain = table.options
    table.options = {**plain, **extra}
    table.upsert(("a", "x", value, value))
    table.options = plain


def newest(table: TestTable) -> dict[str, str]:
    instant = table.meta.timeline.last_commit()
    assert instant is not None
    extra = table.meta.commits.metadata(instant).extra_metadata
    return {key: text for key, text in extra.items() if key != "schema"}


# ---- empty commits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "delete", "insert_overwrite"])
def test_a_write_without_rows_makes_a_commit_unless_the_options_say_no(operation: str) -> None:
    table = table_of()
    empty = rows_of()
    result = table.write(operation, empty, allow_empty_commit="false")
    assert result.instant_time == ""
    assert "without commit" in str(result)
    assert len(table.meta.timeline) == 1, "no trace of it"
    assert not list(table.storage.walk(".hoodie/.temp"))

    asked = {"allow_empty_commit": "true"} if operation == "delete" else {}
    result = table.write(operation, empty, **asked)
    assert table.meta.timeline.last_commit() is not None
    assert len(table.meta.timeline) == 2
    assert table.rows() == [("a", "x", 1, 1)]


def test_a_write_with_rows_is_a_commit_in_any_case() -> None:
    table = table_of()
    assert table.upsert(("b", "x", 1, 1), allow_empty_commit="false").instant_time
    assert len(table.rows()) == 2


# ---- extra metadata --------------------------------------------------------------------------------------------------


def test_options_with_the_prefix_go_into_the_commit() -> None:
    table = table_of()
    write(table, 2, _offset="17")
    assert newest(table) == {"_offset": "17"}
    write(table, 3)
    assert newest(table) == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_rolling_keys_are_carried_on_until_they_get_a_new_value(version: str) -> None:
    table = table_of(version, **ROLLING)
    write(table, 2, _offset="17", _mine="1")
    write(table, 3)
    assert newest(table) == {"_offset": "17"}
    write(table, 4, _offset="18", _other="x")
    write(table, 5)
    assert newest(table) == {"_offset": "18", "_other": "x"}
    table.write("delete_partition", rows_of(("a", "x", 1, 1)))
    assert newest(table) == {"_offset": "18", "_other": "x"}


def test_an_empty_value_is_none() -> None:
    table = table_of(**ROLLING)
    write(table, 2, _offset="17")
    write(table, 3, _offset="")
    assert newest(table) == {"_offset": "17"}


def test_the_look_back_ends_somewhere() -> None:
    table = table_of()
    write(table, 2, _offset="17")
    write(table, 3)
    write(table, 4)
    table.options = {**ROLLING, "hoodie.write.rolling.metadata.timeline.lookback.commits": "2"}
    write(table, 5)
    assert newest(table) == {}
    table.options = {**ROLLING, "hoodie.write.rolling.metadata.timeline.lookback.commits": "4"}
    write(table, 6)
    assert newest(table) == {"_offset": "17"}


def test_cleans_carry_values_on_too() -> None:
    table = table_of(**{"hoodie.clean.automatic": "false"})
    for n in range(2, 6):
        write(table, n, _offset=str(n))
    options = WriteOptions.parse({**ROLLING, "hoodie.clean.commits.retained": "1"})
    serve(table.storage, clean, options, table.engine)
    found = last_clean(table.meta)
    assert found is not None
    assert found.extra_metadata["_offset"] == "5"


def test_services_carry_values_on_too() -> None:
    compacting = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline.max.delta.commits": "1"}
    table = table_of(**ROLLING, **compacting)
    write(table, 2, _offset="17")
    write(table, 3)
    instant = table.meta.timeline.last_commit()
    assert instant is not None
    assert instant.action.value == "commit", "a compaction"
    assert newest(table) == {"_offset": "17"}


# ---- the operation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "operation", ["bulk_insert", "insert", "upsert", "delete", "insert_overwrite", "insert_overwrite_table"]
)
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_says_its_operation_in_its_result_and_its_commit(version: str, table_type: str, operation: str) -> None:
    table = table_of(version, **{"hoodie.datasource.write.table.type": table_type})
    result = table.write(operation, rows_of(("a", "x", 2, 2)))
    instant = table.meta.timeline.last_commit()
    assert instant is not None

    assert result.operation == operation.upper()
    assert result.instant_time == instant.requested_time
    assert table.meta.commits.metadata(instant).operation_type == operation.upper()
