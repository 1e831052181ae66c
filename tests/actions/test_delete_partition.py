"""delete_partition: whole partitions leave the table in one commit, by name, pattern or by rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.actions.writes.delete_partition import matching
from pyhudi.errors import ConfigError, TableNotFound, WriteConflict
from pyhudi.formats.timeline.instant_files import decode_requested_replace
from pyhudi.model.instant import ActionKind, State
from pyhudi.model.options import WriteOptions
from pyhudi.services.compact.compaction import COMPACTION
from pyhudi.services.planned import call
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.calls import serve
from tests.support.tables.small import TestTable, rows_of

DAYS = ("2024-01-01", "2024-01-02", "2024-02-01")
START = [("a", DAYS[0], 1, 1), ("b", DAYS[1], 1, 2), ("c", DAYS[2], 1, 3)]


def loaded(version: str = "9", kind: str = "COPY_ON_WRITE") -> TestTable:
    options = {"hoodie.write.table.version": version, "hoodie.datasource.write.table.type": kind}
    table = TestTable(MemoryStorage(), {**options, "hoodie.compact.inline": "false"})
    table.bulk_insert(*START)
    return table


def drop(table: TestTable, partitions: str) -> Any:
    options = {"hoodie.datasource.write.partitions.to.delete": partitions}
    return table.write_as_is("delete_partition", rows_of(), options)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_partition_leaves_and_may_come_back(version: str, kind: str) -> None:
    table = loaded(version, kind)
    before = table.meta.timeline.last_commit()
    assert before is not None

    result = drop(table, DAYS[0])

    assert table.rows() == START[1:]
    assert result.partitions == (DAYS[0],)
    assert table.rows(as_of=before.requested_time) == START
    table.upsert(("a", DAYS[0], 0, 7))  # an older ordering value: the row is new
    assert table.rows() == [("a", DAYS[0], 0, 7), *START[1:]]


@pytest.mark.parametrize(
    ("patterns", "left"),
    [("2024-01-*", [2]), ("2024-01%2A", [2]), ("*", []), (f"{DAYS[0]},*-02-*", [1]), ("2023-*,none", [0, 1, 2])],
)
def test_partitions_are_named_by_patterns(patterns: str, left: list[int]) -> None:
    table = loaded()
    drop(table, patterns)
    assert table.rows() == [START[i] for i in left]


def test_a_pattern_is_no_regular_expression() -> None:
    assert matching(["a.c", "x+*"], ["abc", "a.c", "x+y", "xxy"]) == ("a.c", "x+y")


def test_rows_say_which_partitions_when_the_options_do_not() -> None:
    table = loaded()
    table.write_as_is("delete_partition", rows_of(("other", DAYS[1], 9, 9), ("more", DAYS[1], 9, 9)))
    assert table.rows() == [START[0], START[2]]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_the_timeline_says_it_as_hudi_does(version: str) -> None:
    """Bodies as in tables of real Hudi: from version 9 on the requested file names the operation."""
    table = loaded(version)
    drop(table, DAYS[0])

    instant = table.meta.timeline.last_commit()
    assert instant is not None
    assert instant.action is ActionKind.REPLACECOMMIT
    body = table.meta.reader.read_body(instant, State.REQUESTED)
    named = {"operationType": "DELETE_PARTITION", "clusteringPlan": None, "extraMetadata": {}, "version": 1}
    assert decode_requested_replace(body) == (named if version == "9" else dict.fromkeys(named))
    metadata = table.meta.commits.metadata(instant)
    assert metadata.operation_type == "DELETE_PARTITION"
    assert not metadata.partition_to_write_stats
    assert [(p, len(ids)) for p, ids in (metadata.partition_to_replace_file_ids or {}).items()] == [(DAYS[0], 1)]


def test_a_partition_that_a_pending_compaction_reads_stays() -> None:
    table = loaded("9", "MERGE_ON_READ")
    table.upsert(("a", DAYS[0], 2, 9))
    options = WriteOptions.parse({"hoodie.compact.inline.max.delta.commits": "1"})
    serve(table.storage, partial(call, COMPACTION, schedule_only=True), options, table.engine)

    with pytest.raises(WriteConflict, match="pending compaction"):
        drop(table, "*")
    drop(table, DAYS[1])
    serve(table.storage, partial(call, COMPACTION), options, table.engine)
    drop(table, DAYS[0])

    assert table.rows() == START[2:]


def test_partitions_are_deleted_and_the_table_is_emptied_by_the_table_object(tmp_path: Any) -> None:
    write_hudi(
        tmp_path / "t",
        rows_of(*START),
        record_key="id",
        partition_by="p",
        options={"hoodie.datasource.write.hive_style_partitioning": True},
    )
    table = HudiTable.open(tmp_path / "t")

    table.delete_partitions(f"p={DAYS[0]}")
    assert sorted(table.to_arrow(["id"]).column(0).to_pylist()) == ["b", "c"]
    result = table.delete_partitions("p=nowhere", matching=["p=2024-01*", "q=*"])
    assert result.partitions == (f"p={DAYS[1]}",)
    first = table.state().timeline.first_time
    table.delete_partitions(matching="*")
    assert table.to_arrow().num_rows == 0
    assert table.at(first).to_arrow().num_rows == 3
    with pytest.raises(ConfigError, match="No partitions"):
        table.delete_partitions([])
    with pytest.raises(ConfigError, match=r"no partition 'p=2024\*'.*matching"):
        table.delete_partitions("p=2024*")
    with pytest.raises(ConfigError, match="in the call instead"):
        table.delete_partitions("x", options={"hoodie.datasource.write.partitions.to.delete": "y"})


def test_a_table_without_partitions_is_emptied(tmp_path: Any) -> None:
    write_hudi(tmp_path / "t", pa.table({"id": ["a"], "v": [1]}), record_key="id")
    table = HudiTable.open(tmp_path / "t")
    table.delete_partitions(matching="*")
    assert table.to_arrow().num_rows == 0
    table.upsert(pa.table({"id": ["b"], "v": [2]}))
    assert table.to_arrow(["id"]).column(0).to_pylist() == ["b"]


def test_there_must_be_a_table(tmp_path: Any) -> None:
    with pytest.raises(TableNotFound):
        write_hudi(tmp_path / "t", rows_of(*START), "delete_partition", record_key="id", partition_by="p")


STYLES: dict[str, dict[str, str]] = {
    "*": {},
    "%2A": {"hoodie.datasource.write.partitionpath.urlencode": "true"},
    "p=*": {"hoodie.datasource.write.hive_style_partitioning": "true"},
    "a,b ": {},
}


@pytest.mark.parametrize(("name", "style"), STYLES.items())
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_partition_that_is_called_like_a_pattern_goes_alone(name: str, style: dict[str, str], kind: str) -> None:
    table = TestTable(options={**style, "hoodie.datasource.write.table.type": kind, "hoodie.compact.inline": "false"})
    value = "*" if style else name
    table.bulk_insert(("a", value, 1, 1), ("b", "x", 1, 2), ("c", "2024", 1, 3))
    opened = HudiTable(table.meta)
    assert name in opened.inspect.partitions().column("partition_path").to_pylist()

    assert opened.delete_partitions([name]).partitions == (name,)

    assert table.rows() == [("b", "x", 1, 2), ("c", "2024", 1, 3)]


@pytest.mark.parametrize("name", ["*", "%2A"])
def test_hudi_s_option_means_a_partition_of_that_very_name_first(name: str) -> None:
    table = TestTable()
    table.bulk_insert(("a", name, 1, 1), ("b", "x", 1, 2))

    drop(table, name)
    drop(table, name)  # its folder is still there
    assert table.rows() == [("b", "x", 1, 2)]


def test_a_pattern_that_is_called_like_a_partition_still_means_any_text() -> None:
    table = TestTable()
    table.bulk_insert(("a", "*", 1, 1), ("b", "x", 1, 2))
    HudiTable(table.meta).delete_partitions(matching="*")
    assert table.rows() == []


NAMES = {
    "y=2022": ("y=2022/", "/y=2022", "//y=2022//", "2022", "/2022/"),
    "2022": ("2022/", "/2022", "y=2022", "/y=2022/"),
    "y=2022/m=01": ("y=2022/m=01/", "/y=2022//m=01", "2022/01"),
    "2022/01": ("2022/01/", "y=2022/m=01"),
}


@pytest.mark.parametrize("door", ["path", "pattern", "option"])
@pytest.mark.parametrize(("path", "name"), [(path, name) for path, names in NAMES.items() for name in names])
def test_slashes_and_the_style_of_a_name_do_not_matter(path: str, name: str, door: str, tmp_path: Any) -> None:
    fields = "y,m" if path.count("/") else "y"
    rows = [{"id": 1, "y": "2022", "m": "01"}, {"id": 2, "y": "2023", "m": "01"}]
    write_hudi(
        tmp_path / "t",
        rows,
        record_key="id",
        partition_by=fields,
        options={"hoodie.datasource.write.hive_style_partitioning": "=" in path},
    )
    table = HudiTable.open(tmp_path / "t")
    if door == "path":
        result = table.delete_partitions(name)
    elif door == "pattern":
        result = table.delete_partitions(matching=name)
    else:
        options = {"hoodie.datasource.write.partitions.to.delete": name}
        written = write_hudi(tmp_path / "t", rows, "delete_partition", options=options)
        assert written is not None
        result = written
    assert result.partitions == (path,)
    assert HudiTable.open(tmp_path / "t").to_arrow(["id"])["id"].to_pylist() == [2]


@pytest.mark.parametrize("name", ["y=2021", "2021", "nowhere", "y=20", "/", "*/"])
@pytest.mark.parametrize("door", ["pattern", "option"])
def test_a_partition_that_is_not_there_is_warned_of_and_makes_no_commit(name: str, door: str, tmp_path: Any) -> None:
    rows = [{"id": 1, "y": "2022"}, {"id": 2, "y": "2023"}]
    write_hudi(
        tmp_path / "t",
        rows,
        record_key="id",
        partition_by="y",
        options={"hoodie.datasource.write.hive_style_partitioning": True},
    )
    table = HudiTable.open(tmp_path / "t")
    options = {"hoodie.datasource.write.partitions.to.delete": name}
    delete = {
        "pattern": lambda: table.delete_partitions(matching=name),
        "option": lambda: write_hudi(tmp_path / "t", rows, "delete_partition", options=options),
    }[door]
    with pytest.warns(UserWarning, match="no partition .* with rows.* Similar: 'y=202"):
        result = delete()
    assert result is not None
    assert result.instant_time == ""
    now = HudiTable.open(tmp_path / "t")
    assert now.state().timeline.commits() == table.state().timeline.commits()
    assert not now.state().timeline.pending().instants
    assert sorted(now.to_arrow(["id"])["id"].to_pylist()) == [1, 2]
    with pytest.warns(UserWarning, match="no partition 'y=2021'"):
        assert table.delete_partitions("y=2021").instant_time == ""


def test_a_folder_above_partitions_is_no_partition_and_those_in_it_are_named(tmp_path: Any) -> None:
    rows = [{"id": 1, "y": "2022", "m": "01"}]
    write_hudi(
        tmp_path / "t",
        rows,
        record_key="id",
        partition_by="y,m",
        options={"hoodie.datasource.write.hive_style_partitioning": True},
    )
    table = HudiTable.open(tmp_path / "t")
    with pytest.warns(UserWarning, match="Similar: 'y=2022/m=01'"):
        table.delete_partitions("y=2022/")
    assert table.delete_partitions(matching="y=2022/*").partitions == ("y=2022/m=01",)
    table.delete_partitions(matching="*")
    with pytest.warns(UserWarning, match="No partition of the table has any"):
        table.delete_partitions("y=2022/m=01")
