"""What a newcomer gets wrong, and what is said then: where, what was expected, what was found, what to do."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from pyhudi import ConfigError, HudiError, HudiTable, write_hudi
from tests.support.tables.rides import ROWS, SCHEMA, ids


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    made = HudiTable.create(tmp_path / "rides", SCHEMA, record_key="id", partition_by="city", ordering="ts")
    made.insert(ROWS)
    return made


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("city = 'a", "the quote ' at character 8 is not closed"),
        ("citty = 'a'", "Did you mean 'city'?"),
        ("soundex(city) = 'A'", "the function soundex is not among those"),
        ("v + 1", "is of type double; expected true or false"),
        ("v + 1 > ", "for more give a pyarrow.compute expression"),
        ("SELECT * FROM rides", "'*' at character 8 is not understood. where knows comparisons"),
    ],
)
def test_a_filter_that_is_not_understood_says_what_filters_are(table: HudiTable, where: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        table.to_arrow(where=where)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda table: table.to_arrow([1]), "columns=[1]: 1 is no name of a column"),
        (lambda table: table.delete("city = 'a'"), "found a text; delete(where="),
        (lambda table: table.delete(pa.table({"v": [1.0]})), "Key field 'id' is not in the data. Columns: v."),
        (lambda table: table.update("id = 1", set={"v": "rome"}), "The text itself is a value as \"'rome'\""),
        (lambda table: table.history(since="last week"), "'last week' is no moment"),
        (
            lambda table: table.merge(ROWS).when_matched_update({"city2": "source.v"}).execute(),
            "no column 'city2' to set",
        ),
    ],
)
def test_a_wrong_argument_is_refused_with_what_to_give(table: HudiTable, call: Any, says: str) -> None:
    with pytest.raises(HudiError) as caught:
        call(table)
    assert says in str(caught.value)


def test_a_column_that_the_source_of_a_merge_lacks_is_not_taken_for_a_text(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("note", pa.string())])
    table = HudiTable.create(tmp_path / "t", schema, record_key="id")
    table.upsert([{"id": 1, "note": "old"}])
    source = [{"id": 1, "note": "new"}]

    with pytest.raises(ConfigError, match=r"'source\.nott', but the source has no column 'nott'; it has id, note"):
        table.merge(source).when_matched_update({"note": "source.nott"}).execute()
    table.merge(source).when_matched_update({"note": pa.scalar("source.nott")}).execute()
    assert table.to_arrow(["note"])["note"].to_pylist() == ["source.nott"]


@pytest.mark.parametrize("wrong", [{"record_key": "idd"}, {"partition_by": "town"}, {"ordering": "time"}])
def test_a_first_write_names_the_field_that_its_rows_have_not(tmp_path: Path, wrong: dict[str, str]) -> None:
    ((name, field),) = wrong.items()
    with pytest.raises(ConfigError, match=rf"no column for {name}='{field}' \(hoodie.*Columns: id, city, v, ts"):
        write_hudi(tmp_path / "new", ROWS, **{"record_key": "id", **wrong})
    assert not HudiTable.exists(tmp_path / "new")


@pytest.mark.parametrize("wrong", [{"partition_by": "town"}, {"table_name": "a/b", "table_version": 7}])
def test_a_wrong_overwrite_leaves_the_old_table(table: HudiTable, wrong: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        write_hudi(table.path, ROWS[:1], mode="overwrite", record_key="id", **wrong)
    assert ids(table) == [0, 1, 2, 3, 4, 5]


def test_a_python_name_among_hudis_keys_is_refused_and_the_key_is_named(table: HudiTable) -> None:
    with pytest.raises(ConfigError, match=r"'record_key'.*here 'hoodie\.datasource\.write\.recordkey\.field'"):
        table.upsert(ROWS[:1], options={"record_key": "id"})
    with pytest.raises(ConfigError, match=r"'query_type'.*here 'hoodie\.datasource\.query\.type'"):
        table.scan(options={"query_type": "read_optimized"})


def test_columns_without_a_value_and_lists_without_a_row_are_written(table: HudiTable) -> None:
    frame = pd.DataFrame({"id": [1, 9], "city": ["b", "a"], "v": [None, None], "ts": [2, 2]})
    for data in (frame, pa.Table.from_pandas(frame).to_reader()):
        assert pa.types.is_null(pa.table(frame)["v"].type)
        table.upsert(data)
        assert table.to_arrow(["id", "v"], "v IS NULL").sort_by("id")["id"].to_pylist() == [1, 9]

    result = table.upsert([])
    assert (result.inserted, result.updated) == (0, 0)


def test_a_stretch_of_history_is_asked_for_by_moments(table: HudiTable) -> None:
    (only,) = table.history()
    time = only.instant_time
    day = f"{time[:4]}-{time[4:6]}-{time[6:8]}"

    assert [entry.instant_time for entry in table.history(since=day)] == [time]
    assert table.history(until=day) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [entry.instant_time for entry in table.history(since=time, until=int(time))] == [time]
