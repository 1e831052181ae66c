"""What the options of cleaning say, and that tables of every kind are cleaned."""

from __future__ import annotations

import warnings

import pytest

from pyhudi.errors import ConfigError
from pyhudi.model.options import HudiOptionWarning, WriteOptions
from pyhudi.services.archive.archiving import archive
from pyhudi.services.clean.planner import last_clean
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.calls import serve
from tests.support.tables.cleaned import NEVER, RETAINED, call, commits, files, table_of, update
from tests.support.tables.small import TestTable, rows_of


def test_a_number_alone_says_the_policy() -> None:
    parse = WriteOptions.parse
    assert parse({"hoodie.cleaner.fileversions.retained": 2}).cleaning.policy == "KEEP_LATEST_FILE_VERSIONS"
    assert parse({"hoodie.clean.hours.retained": 2}).cleaning.policy == "KEEP_LATEST_BY_HOURS"
    both = {"hoodie.clean.hours.retained": 2, "hoodie.clean.fileversions.retained": 2}
    assert parse(both).cleaning.policy == "KEEP_LATEST_COMMITS"


def test_retention_is_checked_against_archiving() -> None:
    with pytest.warns(HudiOptionWarning, match="so archiving keeps 41 at least"):
        WriteOptions.parse({RETAINED: 40, "hoodie.keep.min.commits": 30, "hoodie.keep.max.commits": 35})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WriteOptions.parse({RETAINED: 40})


def test_the_last_clean_is_what_the_newest_one_says() -> None:
    table = table_of(**{RETAINED: "1"})
    assert last_clean(table.meta) is None
    update(table, 4)
    found = last_clean(table.meta)
    assert found is not None
    assert (found.earliest, found.last_commit) == (commits(table)[-1], commits(table)[-1])


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.datasource.write.partitionpath.field": ""},
        {"hoodie.datasource.write.hive_style_partitioning": "true"},
        {"hoodie.datasource.write.partitionpath.field": "p,ts"},
        {"hoodie.table.base.file.format": "ORC"},
        {"hoodie.populate.meta.fields": "false"},
    ],
    ids=["no partitions", "hive style", "nested", "orc", "virtual keys"],
)
def test_every_kind_of_table_is_cleaned(options: dict[str, str]) -> None:
    table = TestTable(MemoryStorage(), {**NEVER, **options})
    odd = "a b%=c"
    table.bulk_insert(("a", odd, 1, 0), ("b", "y", 1, 0))
    for value in range(3):
        table.upsert(("a", odd, 1, value))
    rows = table.rows(["id", "v"])

    result = call(table, clean_commits_retained="1")

    assert result.runs[0].files_deleted == 2
    assert table.rows(["id", "v"]) == rows == [("a", 2), ("b", 0)]
    gone = set(result.files_planned)
    assert not gone & {info.path for info in table.storage.walk("")}


# ---- partitions ------------------------------------------------------------------------------------------------------

WHOLE = {"clean_incremental_enabled": "false", "clean_commits_retained": "1"}
SELECTED, REGEX = "clean_partition_filter_selected", "clean_partition_filter_regex"


def three_partitions(**options: str) -> TestTable:
    """Five versions of the one file of x, xy and y."""
    table = TestTable(MemoryStorage(), {**NEVER, **options})
    for value in range(5):
        table.upsert(("a", "x", value, value), ("b", "xy", value, value), ("c", "y", value, value))
    return table


def versions_left(table: TestTable) -> tuple[int, ...]:
    return tuple(len(files(table, partition)) for partition in ("x", "xy", "y"))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({SELECTED: "x"}, (2, 5, 5)),
        ({SELECTED: "x,y"}, (2, 5, 2)),
        ({SELECTED: "unknown"}, (5, 5, 5)),
        ({REGEX: "x"}, (2, 5, 5)),
        ({REGEX: "x.*"}, (2, 2, 5)),
        ({REGEX: "x.*", SELECTED: "y"}, (5, 5, 2)),
    ],
)
def test_only_partitions_that_the_filter_lets_through_are_cleaned(given: dict[str, str], left: tuple[int, ...]) -> None:
    table = three_partitions()
    rows = table.rows()
    call(table, **WHOLE, **given)
    assert versions_left(table) == left
    assert table.rows() == rows


@pytest.mark.thorough
def test_selected_partitions_are_the_only_ones_that_are_listed() -> None:
    table = three_partitions()
    table.storage.reset_faults()
    call(table, **WHOLE, **{SELECTED: "y"})
    assert not {path for verb, path in table.storage.log if verb == "list"} & {"", "x", "xy"}


@pytest.mark.thorough
def test_the_next_clean_looks_at_the_partitions_that_a_filter_left_out() -> None:
    table = three_partitions()
    call(table, **WHOLE, **{SELECTED: "y"})
    call(table, clean_commits_retained="1")
    assert versions_left(table) == (2, 2, 2)


@pytest.mark.thorough
def test_a_write_after_it_looks_at_them_too() -> None:
    table = three_partitions()
    call(table, **WHOLE, **{SELECTED: "y"})
    table.options = {RETAINED: "1", "hoodie.clean.automatic": "true"}
    table.insert(("new", "z", 1, 1))
    assert versions_left(table) == (1, 1, 1)


@pytest.mark.thorough
def test_what_a_filter_left_out_is_not_archived_away() -> None:
    """The replaced group's rows would be back if its replacecommit went before its files."""
    table = TestTable(MemoryStorage(), {**NEVER, "hoodie.archive.automatic": "false"})
    table.bulk_insert(("a", "x", 1, 1), ("b", "y", 1, 1))
    replaced = table.write("insert_overwrite", rows_of(("a2", "x", 1, 1))).instant_time
    for value in range(6):
        table.upsert(("b", "y", value, value))
    rows = table.rows()
    keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", RETAINED: "1"}

    call(table, **WHOLE, **{SELECTED: "y"})
    serve(table.storage, archive, WriteOptions.parse(keep), table.engine)
    assert table.rows() == rows
    assert replaced in commits(table)

    call(table, clean_commits_retained="1")
    serve(table.storage, archive, WriteOptions.parse(keep), table.engine)
    assert table.rows() == rows
    assert replaced not in commits(table)


def test_a_filter_is_refused_with_incremental_cleaning_as_in_hudi() -> None:
    with pytest.raises(ConfigError, match=r"Set hoodie\.clean\.incremental\.enabled=false"):
        WriteOptions.parse({"hoodie.cleaner.partition.filter.selected": "x"})
    with pytest.raises(ConfigError, match="no regular expression"):
        WriteOptions.parse({"hoodie.clean.partition.filter.regex": "(", "hoodie.clean.incremental.enabled": "false"})
