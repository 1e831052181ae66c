"""Scans: lazy, pinned to their moment, pruned without losing rows, streamed in bounded memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from pyhudi import ConfigError, CorruptFile, HudiError, HudiTable, write_hudi
from pyhudi.errors import PathNotFound
from pyhudi.expressions.binding import bind
from pyhudi.expressions.predicates import Predicate
from pyhudi.expressions.statistics.ranges import may_match
from pyhudi.expressions.where import parse_where
from pyhudi.formats.base.ranges import row_groups_that_may_match
from pyhudi.formats.parquet.footer import read_footer
from tests.support.sweeps import examples
from tests.support.values.predicates import PREDICATES, SCHEMA, VALUES, keeps

ROWS = [
    {
        name: [*values, None][(i * (position + 1)) % (len(values) + 1)]
        for position, (name, values) in enumerate(VALUES.items())
    }
    for i in range(90)
]


@pytest.fixture(scope="module", params=["s", "day", "i,b", "at"])
def partitioned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    """ROWS, partitioned by columns of several types, in several commits."""
    path = tmp_path_factory.mktemp("table") / "t"
    data = pa.Table.from_pylist(ROWS, schema=SCHEMA).append_column("row", pa.array(range(len(ROWS))))
    for start in range(0, len(ROWS), 30):
        write_hudi(
            path,
            data.slice(start, 30),
            "insert",
            record_key="row",
            partition_by=request.param,
            options={"hoodie.datasource.write.partitionpath.urlencode": True},
        )
    return HudiTable.open(path)


@pytest.mark.thorough
@settings(deadline=None, max_examples=examples(40))
@given(PREDICATES)
def test_a_filtered_scan_returns_the_rows_that_plain_python_keeps(partitioned: HudiTable, predicate: Predicate) -> None:
    found = sorted(partitioned.to_arrow(["row"], predicate)["row"].to_pylist())

    # Text columns that partition the table read "" as null, as in real Hudi.
    stored = {row.pop("row"): row for row in partitioned.to_arrow([*SCHEMA.names, "row"]).to_pylist()}
    assert found == sorted(number for number, row in stored.items() if keeps(predicate, row) is True)


def test_partitions_that_cannot_match_are_not_read(tmp_path: Path) -> None:
    rows = [{"id": i, "city": "abc"[i % 3], "day": date(2024, 1, 1 + i % 2)} for i in range(12)]
    write_hudi(
        tmp_path / "t",
        rows,
        record_key="id",
        partition_by="city,day",
        options={"hoodie.datasource.write.hive_style_partitioning": True},
    )
    table = HudiTable.open(tmp_path / "t")

    scan = table.scan(["id"], "city = 'a' AND day > DATE '2024-01-01'")

    assert scan.files()["partition_path"].to_pylist() == ["city=a/day=2024-01-02"]
    assert sorted(scan.to_arrow()["id"].to_pylist()) == [3, 9]
    assert "partitions  1 of 6, 5 pruned" in scan.explain()
    assert table.scan(where="city = 'x'").files().num_rows == 0
    assert table.scan(where="_hoodie_partition_path = 'city=a/day=2024-01-01'").files().num_rows == 1


def test_the_default_partition_holds_nulls_only(tmp_path: Path) -> None:
    rows = [{"id": 1, "p": None}, {"id": 2, "p": "x"}, {"id": 3, "p": ""}]
    write_hudi(tmp_path / "t", rows, record_key="id", partition_by="p")
    table = HudiTable.open(tmp_path / "t")

    assert sorted(table.to_arrow(["id"], "p IS NULL")["id"].to_pylist()) == [1, 3]
    assert table.to_arrow(["id"], "p IS NOT NULL")["id"].to_pylist() == [2]
    assert table.to_arrow(["id"], "p = ''").num_rows == 0


@pytest.mark.parametrize("value", ["p=x", "a/b", "b=c"])
def test_a_path_that_leaves_a_doubt_prunes_nothing(tmp_path: Path, value: str) -> None:
    write_hudi(tmp_path / "t", [{"id": 1, "p": value, "b": "y"}], record_key="id", partition_by="p,b")
    table = HudiTable.open(tmp_path / "t")

    assert table.to_arrow(["id"], [("p", "=", value)])["id"].to_pylist() == [1]
    assert table.to_arrow(["id"], "b = 'y'")["id"].to_pylist() == [1]


def test_row_groups_are_skipped_by_their_statistics(tmp_path: Path) -> None:
    data = pa.table(
        {
            "i": range(100),
            "f": [float(i) if i % 10 else float("nan") for i in range(100)],
            "s": [f"s{i:03d}" for i in range(100)],
            "day": [date(2024, 1, 1 + i // 10) for i in range(100)],
            "n": [None if i < 50 else i for i in range(100)],
            "st": [{"x": i} for i in range(100)],
            "l": [[i] for i in range(100)],
        }
    )
    pq.write_table(data, tmp_path / "f.parquet", row_group_size=10)
    with pa.OSFile(str(tmp_path / "f.parquet")) as source:
        footer = read_footer(source)

    def kept(where: str) -> list[int]:
        predicate = bind(parse_where(where), data.schema)
        return row_groups_that_may_match(footer, lambda ranges: may_match(predicate, ranges))

    assert kept("i = 55") == [5]
    assert kept("i < 10 OR i >= 95") == [0, 9]
    assert kept("s LIKE 's03%'") == [3]
    assert kept("day = DATE '2024-01-03'") == [2]
    assert kept("n IS NOT NULL") == [5, 6, 7, 8, 9]
    assert kept("n IS NULL") == [0, 1, 2, 3, 4]
    assert kept("st.x IN (12, 88)") == [1, 8]
    assert kept("f < 15") == [0, 1]
    assert len(kept("f > 1000")) == 10  # every group may hold NaN, which is greater
    assert len(kept("l IS NULL")) == 10


def test_row_groups_are_not_skipped_by_the_statistics_of_a_column_that_had_the_name_before(tmp_path: Path) -> None:
    """ALTER TABLE made a of b and b of a: a is from 0 to 9 in the older file, and from 100 to 109 in the table."""
    data = pa.table({"id": range(10), "a": range(10), "b": range(100, 110)})
    write_hudi(tmp_path / "t", data, "bulk_insert", record_key="id")
    altered = write_hudi(tmp_path / "t", [{"id": 10, "a": 110, "b": 10}], "bulk_insert").instant_time

    def schema(version: int, *names: str) -> dict[str, Any]:
        fields = [{"id": at, "name": name, "optional": True, "type": "long"} for at, name in enumerate(names, 5)]
        return {"version_id": version, "max_column_id": 7, "type": "record", "fields": fields}

    history = {"schemas": [schema(int(altered), "id", "b", "a"), schema(0, "id", "a", "b")]}
    folder = tmp_path / "t" / ".hoodie" / ".schema"
    folder.mkdir(exist_ok=True)
    (folder / f"{altered}.schemacommit").write_text(json.dumps(history))
    table = HudiTable.open(tmp_path / "t")

    assert table.to_arrow(["id", "a"], "a = 103").to_pylist() == [{"id": 3, "a": 103}]
    assert table.to_arrow(["id"], "b = 3 AND a > 50").to_pylist() == [{"id": 3}]
    assert table.to_arrow(["id"], "a < 50").num_rows == 0


def test_a_scan_keeps_the_moment_at_which_it_was_made(tmp_path: Path) -> None:
    write_hudi(tmp_path / "t", [{"id": 1}], record_key="id")
    table = HudiTable.open(tmp_path / "t")
    before = table.scan(["id"])
    table.upsert([{"id": 2}])

    assert before.to_arrow()["id"].to_pylist() == [1]
    assert table.scan(["id"]).count() == 2


def test_a_scan_checks_names_at_once_and_opens_no_file_before_rows_are_asked_for(tmp_path: Path) -> None:
    write_hudi(tmp_path / "t", [{"id": 1}], record_key="id")
    table = HudiTable.open(tmp_path / "t")

    with pytest.raises(ConfigError, match="no such column"):
        table.scan(["no such column"])
    for file in (tmp_path / "t").glob("*.parquet"):
        file.write_bytes(b"")
    scan = table.scan(["id"], "id = 1")
    with pytest.raises(HudiError):
        scan.to_arrow()


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    path = tmp_path_factory.mktemp("many") / "t"
    data = pa.table({"id": range(20_000), "p": [i % 10 for i in range(20_000)]})
    write_hudi(
        path,
        data,
        "bulk_insert",
        record_key="id",
        partition_by="p",
        options={"hoodie.parquet.bloom.filter.enabled": False},
    )
    return HudiTable.open(path)


@pytest.mark.thorough
def test_the_order_of_rows_does_not_depend_on_threads(many_files: HudiTable) -> None:
    scan = many_files.scan(["id"])

    assert scan.to_arrow(threads=1).equals(scan.to_arrow(threads=4))
    assert scan.count() == 20_000
    assert len(scan.files()) == 10


def test_a_stream_that_is_left_early_stops_its_threads(many_files: HudiTable) -> None:
    from pyhudi.queries.snapshot import read_batches

    plan, storage = many_files.scan().plan, many_files.state().storage
    stream: Iterator[pa.RecordBatch] = read_batches(plan, storage, threads=3, batch_rows=10)
    next(stream)
    stream.close()  # type: ignore[attr-defined]

    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("hudi-read")] == []


@pytest.mark.thorough
def test_batches_are_small_and_never_empty(many_files: HudiTable) -> None:
    from pyhudi.queries.snapshot import read_batches

    scan = many_files.scan(where="id < 100")
    batches = list(read_batches(scan.plan, many_files.state().storage, batch_rows=64))

    assert sum(batch.num_rows for batch in batches) == 100
    assert all(0 < batch.num_rows <= 64 for batch in batches)


def test_others_take_the_rows_through_arrows_stream(many_files: HudiTable) -> None:
    assert pa.table(many_files.scan(["id"], "id < 3")).num_rows == 3


def test_an_arrow_expression_filters_each_row(many_files: HudiTable) -> None:
    scan = many_files.scan(["p"], pc.field("id").isin([5, 7]) & (pc.field("p") > 5))

    assert scan.to_arrow()["p"].to_pylist() == [7]
    assert "each row" in scan.explain()
    assert scan.count() == 1


def test_counting_rows_reads_footers_only(tmp_path: Path) -> None:
    write_hudi(tmp_path / "t", [{"id": i} for i in range(7)], record_key="id")
    table = HudiTable.open(tmp_path / "t")
    file = tmp_path / "t" / table.inspect.files()["path"][0].as_py()
    data = bytearray(file.read_bytes())
    data[4:200] = b"\0" * 196  # the first pages
    file.write_bytes(data)

    assert table.scan().count() == 7
    assert table.scan(columns=[]).count() == 7


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"not parquet at all", None])
def test_an_unreadable_file_is_named(tmp_path: Path, damage: bytes | None) -> None:
    write_hudi(tmp_path / "t", [{"id": i} for i in range(7)], record_key="id")
    table = HudiTable.open(tmp_path / "t")
    name = table.inspect.files()["path"][0].as_py()
    file = tmp_path / "t" / name
    file.write_bytes(file.read_bytes()[:-100] if damage is None else damage)

    for read in (lambda: table.to_arrow(), lambda: table.scan().count(), lambda: table.to_arrow(where="id = 1")):
        with pytest.raises(CorruptFile, match=name):
            read()


def test_a_file_that_vanished_is_named(tmp_path: Path) -> None:
    write_hudi(tmp_path / "t", [{"id": 1}], record_key="id")
    scan = HudiTable.open(tmp_path / "t").scan()
    name = scan.files()["path"][0].as_py()
    (tmp_path / "t" / name).unlink()

    with pytest.raises(PathNotFound, match=name):
        scan.to_arrow()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"columns": ["idd"]}, "Did you mean 'id'"),
        ({"columns": "id"}, "give a list of names"),
        ({"columns": ["id", "id"]}, "twice"),
        ({"where": "idd = 1"}, "Did you mean 'id'"),
        ({"where": "id = 'x'"}, "no value of that type"),
        ({"where": pc.field("idd") == 1}, "can't be evaluated"),
        ({"query_type": "incremental"}, "needs the time after which it begins"),
        (
            {"options": {"hoodie.datasource.read.begin.instanttime": "20240101"}},
            "only incremental queries have a range",
        ),
        ({"query_type": "cdc"}, r"changes\(since, format='cdc'\)"),
        ({"query_type": "snapshoot"}, "Did you mean 'snapshot'"),
        ({"as_of": "soon"}, "is no moment"),
    ],
)
def test_a_scan_that_cannot_be_meant_says_what_to_do(tmp_path: Path, options: dict[str, Any], says: str) -> None:
    write_hudi(tmp_path / "t", [{"id": 1}], record_key="id")

    with pytest.raises(ConfigError, match=says):
        HudiTable.open(tmp_path / "t").scan(**options).to_arrow()


def test_columns_come_in_the_order_that_was_asked_for(tmp_path: Path) -> None:
    at = datetime(2024, 1, 1, tzinfo=timezone.utc)
    write_hudi(tmp_path / "t", [{"id": 1, "a": "x", "at": at}], record_key="id")
    table = HudiTable.open(tmp_path / "t")

    assert table.to_arrow(["at", "_hoodie_record_key", "id"]).to_pylist() == [
        {"at": at, "_hoodie_record_key": "1", "id": 1}
    ]
    assert table.scan().schema.names[5:] == ["id", "a", "at"]
    assert table.scan(columns=[]).schema.names == []


@pytest.mark.metadata_table
def test_a_scan_prints_what_it_is(tmp_path: Path) -> None:
    write_hudi(tmp_path / "t", [{"id": 1, "p": "a"}], record_key="id", partition_by="p")
    scan = HudiTable.open(tmp_path / "t").scan(["id"], "id > 0", as_of="2100-01-01")

    assert repr(scan).endswith("columns=['id'], where='id > 0', as_of='21000101000000000')")
    assert scan.explain().splitlines()[1:] == [
        "  as of       21000101000000000",
        "  columns     1: id",
        "  filter      id > 0 (row groups by their statistics, then each row)",
        "  partitions  1 of 1",
        f"  files       1 of 1, {scan.explain().rpartition(', ')[2].splitlines()[0]}",
        "  listing     from the metadata table",
    ]


def test_a_row_that_a_global_index_leaves_in_its_partition_has_that_partitions_value(tmp_path: Path) -> None:
    # As Apache Hudi 1.2.0 answers on a table of its own: the file holds p = "b", every query says "a".
    options = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"}
    write_hudi(tmp_path / "t", [{"id": 1, "p": "a", "n": 1}], record_key="id", partition_by="p", options=options)
    table = HudiTable.open(tmp_path / "t")
    table.upsert([{"id": 1, "p": "b", "n": 2}], options=options)

    assert table.to_arrow(["p", "n"]).to_pylist() == [{"p": "a", "n": 2}]
    assert table.to_arrow(["n"], "p = 'a'").num_rows == 1
    assert table.to_arrow(["n"], "p = 'b'").num_rows == 0


SLASHES = {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}
DAY, MOMENT = date(2024, 1, 15), datetime(2024, 1, 15, 10, tzinfo=timezone.utc)


@pytest.mark.parametrize("hive_style", [False, True])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("values", "literal"),
    [
        ((DAY, date(2024, 2, 1), None), "DATE '2024-01-15'"),
        ((MOMENT, datetime(2024, 2, 1, tzinfo=timezone.utc), None), "TIMESTAMP '2024-01-15 10:00:00Z'"),
        (("2024-01-15", "2024-02-01", None), "'2024-01-15'"),
        (("2024-1-5", "a-b", None), "'2024-1-5'"),
    ],
)
def test_slash_separated_dates_come_back_as_they_were_written(
    values: tuple[Any, ...], literal: str, table_type: str, hive_style: bool, tmp_path: Path
) -> None:
    rows = [{"id": number, "d": value, "v": 1} for number, value in enumerate(values)]
    options = {**SLASHES, "hoodie.datasource.write.hive_style_partitioning": hive_style}
    more = {"partition_by": "d", "table_type": table_type, "options": options}
    write_hudi(tmp_path / "t", rows, record_key="id", **more)
    write_hudi(tmp_path / "t", [{**rows[0], "v": 2}])
    table = HudiTable.open(tmp_path / "t")

    assert {row["id"]: row["d"] for row in table.to_arrow(["id", "d"]).to_pylist()} == dict(enumerate(values))
    assert table.to_arrow(["id", "v"], f"d = {literal}").to_pylist() == [{"id": 0, "v": 2}]
    assert table.to_arrow(["id"], "d IS NULL").to_pylist() == [{"id": 2}]
    if literal in ("DATE '2024-01-15'", "'2024-01-15'"):
        path = "d=2024/01/15" if hive_style else "2024/01/15"
        assert set(table.scan(where=f"d = {literal}").files()["partition_path"].to_pylist()) == {path}
    assert table.delete(where=f"d = {literal}").deleted == 1
    assert sorted(table.to_arrow(["id"])["id"].to_pylist()) == [1, 2]


def test_dropped_slash_separated_dates_come_from_the_path_with_dashes(tmp_path: Path) -> None:
    options = {**SLASHES, "hoodie.datasource.write.drop.partition.columns": "true"}
    rows = [{"id": 1, "d": "2024-01-15"}, {"id": 2, "d": None}]
    write_hudi(tmp_path / "t", rows, record_key="id", partition_by="d", options=options)

    assert HudiTable.open(tmp_path / "t").to_arrow(["id", "d"], "d = '2024-01-15'").to_pylist() == rows[:1]


def test_meta_columns_of_a_scan_come_and_go_with_its_rows(tmp_path: Path) -> None:
    write_hudi(tmp_path / "t", [{"id": 1, "n": 2}], record_key="id")
    table = HudiTable.open(tmp_path / "t")
    for scan in (table.scan(), table.scan(meta_columns=False), table.changes()):
        assert scan.to_arrow(meta_columns=False).schema.names == ["id", "n"]
        assert scan.to_arrow(meta_columns=True).schema.names[-2:] == ["id", "n"]
        assert len(scan.to_arrow(meta_columns=True).schema.names) == 7
        assert scan.to_arrow(["n"], meta_columns=True).schema.names == ["n"], "columns that are named say it all"
    assert table.scan(meta_columns=False).to_arrow(where="n = 2").schema.names == ["id", "n"]
