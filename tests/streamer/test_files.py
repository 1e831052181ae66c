"""Files as a source: each is read once, the oldest first, late ones too; one that is being written waits."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import fastavro
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, Streamer
from pyhudi.errors import ConfigError, SchemaMismatch, StorageError
from pyhudi.storage.base import FileInfo
from pyhudi.storage.clock import FixedClock, SystemClock
from pyhudi.storage.local import LocalStorage
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.json_messages import RowColumns
from pyhudi.streamer.settings import load_settings
from pyhudi.streamer.sources.files import source as files
from pyhudi.streamer.sources.registry import open_source
from pyhudi.streamer.sources.source import SourceSetting, SplitSource

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", None], "v": [0.5, None, 2.0]})


def config(tmp_path: Path, source: str = "JsonDFSSource", **more: object) -> dict[str, object]:
    (tmp_path / "in").mkdir(exist_ok=True)
    root = {"hoodie.streamer.source.dfs.root": str(tmp_path / "in"), "hoodie.streamer.csv.header": True}
    return {"target-base-path": str(tmp_path / "t"), "record_key": "id", "source-class": source, **root, **more}


def made(tmp_path: Path, name: str, *rows: object, ms: int | None = None) -> Path:
    path = tmp_path / "in" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
    if ms is not None:
        os.utime(path, ns=(ms * 10**6, ms * 10**6))
    return path


def rows(tmp_path: Path) -> list[dict[str, object]]:
    found = HudiTable.open(tmp_path / "t").scan(meta_columns=False).to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"])


def test_keys_of_csv_that_are_different_texts_stay_different_rows(tmp_path: Path) -> None:
    settings = config(tmp_path, "CsvDFSSource")
    (tmp_path / "in" / "a").write_text("id,v\n1.1,2.5\n1.10,2.50\n")

    assert Streamer(settings).run().rows == 2
    assert rows(tmp_path) == [{"id": "1.1", "v": 2.5}, {"id": "1.10", "v": 2.5}]


@pytest.mark.parametrize("kind", ["JsonDFSSource", "CsvDFSSource", "AvroDFSSource", "ParquetDFSSource", "ORCDFSSource"])
def test_files_of_each_format_come_into_the_table(tmp_path: Path, kind: str) -> None:
    settings = config(tmp_path, f"org.apache.hudi.utilities.sources.{kind}")
    path = str(tmp_path / "in" / "rows")
    if kind == "JsonDFSSource":
        with gzip.open(f"{path}.json.gz", "wt") as out:
            out.write("\r\n".join(json.dumps(row) for row in ROWS.to_pylist()))
    elif kind == "CsvDFSSource":
        pacsv.write_csv(ROWS, path)
    elif kind == "ParquetDFSSource":
        pq.write_table(ROWS, path)
    elif kind == "ORCDFSSource":
        orc.write_table(ROWS, path)
    else:
        types = {"id": "long", "name": ["null", "string"], "v": ["null", "double"]}
        fields = [{"name": name, "type": kind} for name, kind in types.items()]
        with open(path, "wb") as out:
            fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, ROWS.to_pylist(), "deflate")

    assert Streamer(settings).run().rows == 3
    assert rows(tmp_path) == ROWS.to_pylist()


def test_the_oldest_come_first_as_many_as_the_limit_allows_and_those_of_one_time_together(tmp_path: Path) -> None:
    settings = config(tmp_path, **{"source-limit": 1})
    made(tmp_path, "b", {"id": 2}, ms=2000)
    made(tmp_path, "sub/a", {"id": 1}, ms=1000)
    made(tmp_path, "c", {"id": 3}, ms=2000)
    made(tmp_path, "_temporary/x", {"id": 9}, ms=1)
    made(tmp_path, ".x", {"id": 9}, ms=1)

    first = Streamer(settings).run()
    assert (first.rows, first.checkpoint) == (1, "1000")
    second = Streamer(settings).run()
    assert (second.rows, second.checkpoint) == (2, "2000")
    assert Streamer(settings).run().rounds == 0


def test_a_file_that_comes_late_with_an_old_time_is_found_and_files_are_not_read_twice(tmp_path: Path) -> None:
    settings = config(tmp_path, op="INSERT")
    made(tmp_path, "a", {"id": 1}, ms=5000)
    Streamer(settings).run()
    made(tmp_path, "late", {"id": 2}, ms=1000)
    made(tmp_path, "same_millisecond", {"id": 3}, ms=5000)

    done = Streamer(settings).run()
    assert (done.rows, done.checkpoint) == (2, "5000")
    assert Streamer(settings).run().rounds == 0
    assert [row["id"] for row in rows(tmp_path)] == [1, 2, 3]


def test_a_note_of_many_files_keeps_the_newest_and_counts_older_ones_as_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_NOTED_MAX", 2)
    settings = config(tmp_path, op="INSERT")
    for number in range(1, 6):
        made(tmp_path, f"f{number}", {"id": number}, ms=number * 1000)
    Streamer(settings).run()
    made(tmp_path, "late", {"id": 6}, ms=4500)
    made(tmp_path, "too_late", {"id": 7}, ms=500)

    assert Streamer(settings).run().rows == 1
    assert Streamer(settings).run().rounds == 0


def test_a_file_that_waits_does_not_count_as_read_where_many_are_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_NOTED_MAX", 1)
    now_ms = SystemClock().now_ms()
    settings = config(tmp_path, op="INSERT")
    made(tmp_path, "new", {"id": 1}, ms=now_ms)
    Streamer(settings).run()
    made(tmp_path, "a", {"id": 2}, ms=now_ms - 1000)
    waits = made(tmp_path, "b.gz", "half of a file", ms=now_ms - 1000)
    first = Streamer(settings).run()
    assert (first.rows, first.checkpoint) == (1, str(now_ms))

    with gzip.open(waits, "wt") as out:
        out.write('{"id": 3}')
    os.utime(waits, ns=((now_ms - 1000) * 10**6,) * 2)
    assert Streamer(settings).run().rows == 1


def test_a_commit_of_a_round_in_which_a_file_waits_forgets_no_file_that_was_read(tmp_path: Path) -> None:
    settings = config(tmp_path, op="INSERT", **{"hoodie.streamer.allow-commit-on-no-checkpoint-change": True})
    made(tmp_path, "a", {"id": 1}, ms=5000)
    Streamer(settings).run()
    waits = made(tmp_path, "b.gz", "half of a file")
    assert Streamer(settings).run().commits == 1
    waits.unlink()
    made(tmp_path, "late", {"id": 2}, ms=1000)

    assert Streamer(settings).run().rows == 1
    assert [row["id"] for row in rows(tmp_path)] == [1, 2]


@pytest.mark.parametrize(
    ("key", "place", "words"),
    [
        ("hoodie.streamer.source.dfs.root", ".", "the table, .*/t, is in this folder"),
        ("hoodie.streamer.source.dfs.root", "t/day=1", "it is in the folder of the table"),
        ("hoodie.errortable.base.path", "./t", "need a table of their own"),
        ("hoodie.errortable.base.path", "in/refused", "the quarantine table, .*/in/refused, is in this folder"),
        ("hoodie.streamer.source.hoodieincr.path", "./t", "would read the rows of the one before"),
    ],
)
def test_a_pipeline_that_would_read_what_it_writes_is_refused(tmp_path: Path, key: str, place: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"{words}.* Nothing was written"):
        Streamer(config(tmp_path, **{key: f"{tmp_path}/{place}"}))
    assert not (tmp_path / "t").exists()


def test_a_table_below_a_hidden_name_of_the_source_folder_is_none_of_its_files(tmp_path: Path) -> None:
    made(tmp_path, "a", {"id": 1})
    settings = config(tmp_path, **{"target-base-path": str(tmp_path / "in" / "_lake" / "t")})
    assert Streamer(settings).run().rows == 1
    assert Streamer(settings).run().rounds == 0


def test_a_checkpoint_of_hudis_own_streamer_is_gone_on_from(tmp_path: Path) -> None:
    made(tmp_path, "a", {"id": 1}, ms=1000)
    made(tmp_path, "b", {"id": 2}, ms=2000)

    assert Streamer(config(tmp_path, checkpoint="1000")).run().rows == 1
    with pytest.raises(ConfigError, match=r"'orders,0:12'.* none of files"):
        Streamer(config(tmp_path, checkpoint="orders,0:12")).run()


def test_a_file_that_is_being_written_waits_and_a_broken_old_one_is_named(tmp_path: Path) -> None:
    settings = config(tmp_path, "ParquetDFSSource")
    pq.write_table(ROWS, tmp_path / "in" / "whole")
    os.utime(tmp_path / "in" / "whole", (1, 1))
    half = tmp_path / "in" / "half"
    pq.write_table(ROWS, half)
    whole = half.read_bytes()
    half.write_bytes(whole[:100])

    assert Streamer(settings).run().rows == 3
    assert Streamer(settings).run().rows == 0
    half.write_bytes(whole)
    assert Streamer(settings).run().rows == 3
    half.write_bytes(whole[:99])
    os.utime(half, (2, 2))
    with pytest.raises(SchemaMismatch, match=r"half: the file can't be read.*Nothing was written"):
        Streamer(settings).run()


def test_lines_that_are_no_rows_go_into_quarantine_and_the_batch_goes_on(tmp_path: Path) -> None:
    quarantine = {"hoodie.errortable.enable": True, "hoodie.errortable.base.path": str(tmp_path / "q")}
    settings = config(tmp_path, **quarantine, **{"hoodie.pyhudi.streamer.quarantine.max.share": 0.7})
    made(tmp_path, "a", {"id": 1, "v": 1}, ms=1000)
    Streamer(settings).run()
    made(tmp_path, "b", {"id": 2, "v": 2}, "{no json}\n", "\n", {"id": 3, "v": "text"}, "[1]\n", {"v": 4}, {"id": 5})

    done = Streamer(settings).run()

    assert (done.rows, done.rejected) == (2, 4)
    assert [row["id"] for row in rows(tmp_path)] == [1, 2, 5]
    aside = HudiTable.open(tmp_path / "q").scan(meta_columns=False).to_arrow().to_pylist()
    by_position = {row["position"]: row for row in aside}
    assert by_position["b:2"]["text"] == "{no json}"
    assert by_position["b:2"]["reason"].startswith("no JSON")
    assert "b:4" in by_position
    assert by_position["b:5"]["reason"] == "a row is an object, found list"
    assert len(aside) == 4


def test_a_last_line_that_has_no_end_waits_while_its_file_is_young(tmp_path: Path) -> None:
    settings = config(tmp_path)
    path = made(tmp_path, "a", {"id": 1, "v": 1}, '{"id": 2, "v"')
    assert Streamer(settings).run().rows == 0
    path.write_text('\ufeff{"id": 1, "v": 1}\n{"id": 2, "v": 2}')
    assert Streamer(settings).run().rows == 2
    assert rows(tmp_path) == [{"id": 1, "v": 1}, {"id": 2, "v": 2}]
    made(tmp_path, "b", {"id": 3, "v": 1}, '{"id": 4, "v"', ms=1000)
    with pytest.raises(SchemaMismatch, match=r"the first is b:2: no JSON"):
        Streamer(settings).run()


@pytest.mark.parametrize("source", ["ParquetDFSSource", "CsvDFSSource"])
def test_columns_without_any_value_wait_for_the_first_one(tmp_path: Path, source: str) -> None:
    settings = config(tmp_path, source)
    for number, value in enumerate([None, 5, None]):
        table = pa.table({"id": [number], "v": pa.nulls(1) if value is None else pa.array([value])})
        path = tmp_path / "in" / f"f{number}"
        (pq.write_table if source == "ParquetDFSSource" else pacsv.write_csv)(table, path)
        Streamer(settings).run()
    assert rows(tmp_path) == [{"id": 0, "v": None}, {"id": 1, "v": 5}, {"id": 2, "v": None}]
    assert HudiTable.open(tmp_path / "t").schema().field("v").type == pa.int64()


def test_avro_files_keep_identifiers_and_times_that_python_has_no_room_for(tmp_path: Path) -> None:
    settings = config(tmp_path, "AvroDFSSource")
    kinds = {"u": ("string", "uuid"), "t": ("long", "timestamp-micros"), "d": ("int", "date")}
    fields = [{"name": "id", "type": "long"}]
    fields += [{"name": n, "type": ["null", {"type": kind, "logicalType": x}]} for n, (kind, x) in kinds.items()]
    records = [{"id": 1, "u": UUID(int=5), "t": 10**18, "d": 10**6}, {"id": 2, "u": None, "t": None, "d": None}]
    with open(tmp_path / "in" / "f", "wb") as file:
        fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, records)

    Streamer(settings).run()

    table = HudiTable.open(tmp_path / "t").to_arrow(["u", "t", "d"])
    assert table.column("u").to_pylist() == ["00000000-0000-0000-0000-000000000005", None]
    assert table.column("t").cast(pa.int64()).to_pylist() == [10**18, None]
    assert table.column("d").cast(pa.int32()).to_pylist() == [10**6, None]


def test_rows_with_values_that_their_column_cannot_hold_go_into_quarantine(tmp_path: Path) -> None:
    quarantine = {"hoodie.errortable.enable": True, "hoodie.errortable.base.path": str(tmp_path / "q")}
    settings = config(tmp_path, "ParquetDFSSource", **quarantine)
    settings["hoodie.pyhudi.streamer.quarantine.max.share"] = 0.5
    times = pa.array([1000, 1001, 2000], pa.timestamp("ns"))
    pq.write_table(pa.table({"id": [1, 2, 3], "t": times, "x": [0.5, 1.5, None]}), tmp_path / "in" / "a")
    first = Streamer(settings).run()
    pq.write_table(pa.table({"id": [4, 5], "x": [2**53, 2**53 + 1]}), tmp_path / "in" / "b")
    second = Streamer(settings).run()

    assert [(done.rows, done.rejected) for done in (first, second)] == [(2, 1), (1, 1)]
    assert [(row["id"], row["x"]) for row in rows(tmp_path)] == [(1, 0.5), (3, None), (4, 2.0**53)]
    aside = HudiTable.open(tmp_path / "q").scan(["text", "reason"]).to_arrow().to_pylist()
    assert sorted(json.loads(row["text"])["id"] for row in aside) == [2, 5]
    assert all("with all its digits" in row["reason"] for row in aside)


def test_the_quarantine_keeps_each_text_of_a_place_once_for_each_pipeline(tmp_path: Path) -> None:
    quarantine = {"hoodie.errortable.enable": True, "hoodie.errortable.base.path": str(tmp_path / "q")}
    settings = config(tmp_path, **quarantine, **{"hoodie.pyhudi.streamer.quarantine.max.share": 1.0})
    made(tmp_path, "a", {"id": 1, "v": 1}, "{one}\n", {"v": 4}, {"v": 4}, ms=1000)
    Streamer(settings).run()
    made(tmp_path, "a", {"id": 1, "v": 1}, "{two}\n", {"v": 4}, {"v": 4}, ms=2000)
    Streamer(settings).run()
    Streamer({**settings, "target-base-path": str(tmp_path / "u")}).run()

    aside = HudiTable.open(tmp_path / "q").scan(["target", "text"]).to_arrow().to_pylist()
    texts = Counter((row["target"].rpartition("/")[2], row["text"]) for row in aside)
    row = '{"id": null, "v": 4}'
    assert texts == {("t", "{one}"): 1, ("t", "{two}"): 1, ("t", row): 2, ("u", "{two}"): 1, ("u", row): 2}


def test_too_large_a_share_that_does_not_fit_stops_the_batch_and_nothing_is_written(tmp_path: Path) -> None:
    quarantine = {"hoodie.errortable.enable": True, "hoodie.errortable.base.path": str(tmp_path / "q")}
    settings = config(tmp_path, **quarantine)
    made(tmp_path, "a", {"id": 1}, "no\n")

    with pytest.raises(SchemaMismatch, match=r"1 of 2 rows .*share of 50%.*allows 10%.*a:2: no JSON"):
        Streamer(settings).run()
    with pytest.raises(SchemaMismatch, match=r"errortable\.enable=true"):
        Streamer(config(tmp_path)).run()
    assert not (tmp_path / "t").exists()
    assert not (tmp_path / "q").exists()
    assert (
        Streamer(config(tmp_path, **{"commit-on-errors": True, "hoodie.pyhudi.streamer.quarantine.max.share": 1}))
        .run()
        .rows
        == 1
    )


def test_a_file_that_only_the_reading_process_does_not_see_is_an_error_and_no_removed_one(tmp_path: Path) -> None:
    given = {"target-base-path": str(tmp_path / "t"), "hoodie.streamer.source.dfs.root": str(tmp_path / "in")}
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text('{"id": 1}')
    source = open_source(SourceSetting(load_settings(given), SystemClock()))
    assert isinstance(source, SplitSource)
    plan, columns = source.plan(Start(None), None), RowColumns(pa.schema([]))
    (split,) = source.splits(plan, 1)

    (tmp_path / "in").rename(tmp_path / "elsewhere")  # as on another machine
    fetched = source.fetch(split, columns)
    assert source.batch(plan, [(split, fetched)], columns).said == ["a was removed before it was read"]
    (tmp_path / "elsewhere").rename(tmp_path / "in")

    with pytest.raises(StorageError, match=r"a is there, and was not where it was read\. On Spark all workers"):
        source.batch(plan, [(split, fetched)], columns)


def parquet(tmp_path: Path, name: str, ms: int, **columns: object) -> None:
    (tmp_path / "in").mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), tmp_path / "in" / name)
    os.utime(tmp_path / "in" / name, ns=(ms * 10**6, ms * 10**6))


def test_files_of_an_old_and_a_new_schema_may_be_in_one_batch_and_in_several(tmp_path: Path) -> None:
    settings = config(tmp_path, "ParquetDFSSource")
    parquet(tmp_path, "a", 1000, id=pa.array([1], pa.int32()), v=pa.array([1], pa.int32()), gone=["x"])
    parquet(tmp_path, "b", 2000, new=[1.5], v=pa.array([2**40]), id=pa.array([2]))
    assert Streamer(settings).run().rows == 2
    parquet(tmp_path, "c", 3000, v=pa.array([3], pa.int32()), id=pa.array([3], pa.int32()), renamed=["y"])
    assert Streamer(settings).run().rows == 1

    assert [[*row.values()] for row in rows(tmp_path)] == [
        [1, 1, "x", None, None],
        [2, 2**40, None, 1.5, None],
        [3, 3, None, None, "y"],
    ]
    assert [str(kind) for kind in HudiTable.open(tmp_path / "t").schema().types[:2]] == ["int64", "int64"]


def test_a_file_whose_columns_have_other_types_is_named_and_goes_into_quarantine_alone(tmp_path: Path) -> None:
    quarantine = {"hoodie.errortable.enable": True, "hoodie.errortable.base.path": str(tmp_path / "q")}
    share = {"hoodie.pyhudi.streamer.quarantine.max.share": 1}
    parquet(tmp_path, "a", 1000, id=[1], v=[1])
    parquet(tmp_path, "b", 2000, id=[2], v=[[1]])
    parquet(tmp_path, "c", 3000, id=[3], v=[3])
    with pytest.raises(SchemaMismatch, match=r"the first is b: its rows don't fit: .*Field v .*Nothing was written"):
        Streamer(config(tmp_path, "ParquetDFSSource")).run()

    settings = config(tmp_path, "ParquetDFSSource", **quarantine, **share)
    assert Streamer(settings).run().rejected == 1
    parquet(tmp_path, "d", 4000, id=[4], v=["text"])
    parquet(tmp_path, "e", 5000, id=[5], v=[5])
    assert Streamer(settings).run().rejected == 1
    assert [row["id"] for row in rows(tmp_path)] == [1, 3, 5]
    aside = HudiTable.open(tmp_path / "q").scan(meta_columns=False).to_arrow().to_pylist()
    assert sorted(row["position"] for row in aside) == ["b", "d"]
    assert "the table has int64, the data string" in {row["position"]: row["reason"] for row in aside}["d"]


def test_a_part_whose_columns_have_other_types_is_of_the_next_batch_and_so_is_what_is_behind_it(tmp_path: Path) -> None:
    for name, value in (("a", 1), ("b", "text"), ("c", 3)):
        made(tmp_path, name, {"id": 1, "v": value}, ms=7000)
    source = open_source(SourceSetting(load_settings(config(tmp_path)), SystemClock()))
    assert isinstance(source, SplitSource)
    plan, columns = source.plan(Start(None), None), RowColumns(pa.schema([]))
    splits = source.splits(plan, 3)
    batch = source.batch(plan, [(split, source.fetch(split, columns)) for split in splits], columns)

    assert (list(batch.splits), batch.rows.to_pylist()) == ([0], [{"id": 1, "v": 1}])
    assert batch.checkpoint == "6999", "Hudi, too, would find the others"
    assert batch.said == ["b and what is behind it come in the next batch: other types of columns"]
    left = source.plan(Start(batch.checkpoint, notes=batch.notes), None)
    assert [file.path for file in left.files] == ["b", "c"]


def test_maps_and_lists_of_structs_grow_fields_that_the_files_require(tmp_path: Path) -> None:
    for number, name in enumerate("xy"):
        struct = pa.struct([pa.field(name, pa.int64(), nullable=False)])
        lists = {"l": pa.array([[{name: 1}]], pa.list_(struct)), "big": pa.array([[{name: 1}]], pa.large_list(struct))}
        maps = pa.array([[("k", {name: 1})]], pa.map_(pa.string(), struct))
        parquet(tmp_path, name, 1000 + number, id=[number], m=maps, **lists)

    assert Streamer(config(tmp_path, "ParquetDFSSource")).run().rows == 2
    first, second = {"x": 1, "y": None}, {"x": None, "y": 1}
    assert [(row["m"], row["l"], row["big"]) for row in rows(tmp_path)] == [
        ([("k", one)], [one], [one]) for one in (first, second)
    ]


def test_files_of_one_second_are_cut_where_memory_ends_and_none_is_lost_or_comes_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_FILES_MAX", 2)
    monkeypatch.setattr(files, "_NOTED_MAX", 1)
    monkeypatch.setattr(files, "_HELD_MAX", 3)
    settings = config(tmp_path, op="INSERT")
    for number in range(5):
        made(tmp_path, f"f{number}", {"id": number}, ms=7000)
    first = Streamer(settings).run()
    assert (first.rows, first.checkpoint) == (2, "6999"), "Hudi, too, would find the others"
    made(tmp_path, "f00", {"id": 5}, ms=7000)
    made(tmp_path, "g", {"id": 6}, ms=8000)

    assert Streamer(settings).run(until_empty=True).rows == 5
    assert [row["id"] for row in rows(tmp_path)] == [0, 1, 2, 3, 4, 5, 6]
    assert HudiTable.open(tmp_path / "t").history()[0].extra["deltastreamer.checkpoint.key"] == "8000"


def test_of_a_folder_with_100_000_files_the_oldest_are_found_in_bounded_memory_by_one_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = 0

    class Bucket:
        def walk(self, path: str) -> Iterator[FileInfo]:
            nonlocal listed
            listed += 1
            for number in range(100_000):
                yield FileInfo(f"day/{number:06}.json", 1000, (number * 7919) % 100_000 + 1)

    settings = load_settings(config(tmp_path))
    source = files.JsonFiles(SourceSetting(settings, SystemClock()))
    monkeypatch.setattr(source, "storage", Bucket())
    held: list[int] = []
    first = files._first
    monkeypatch.setattr(files, "_first", lambda some, limit: (held.append(len(some)), first(some, limit))[1])

    plan = source.plan(Start(None), None)

    assert plan is not None
    assert [file.modified_ms for file in plan.files] == list(range(1, 10_001))
    assert (listed, max(held)) == (1, 50_001)


DATED = "hoodie.streamer.source.dfs.datepartitioned."
SELECTOR = {
    "hoodie.streamer.source.input.selector": "org.apache.hudi.utilities.sources.helpers.DatePartitionPathSelector"
}


def test_of_folders_with_dates_those_of_the_last_days_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, "eu/2026-08-07/a", {"id": 1})
    made(tmp_path, "eu/2026-08-08/b", {"id": 2})
    made(tmp_path, "us/day=2026-08-10/hour=1/c", {"id": 3})
    made(tmp_path, "us/2026-08-11/d", {"id": 4})
    made(tmp_path, "us/_temporary/e", {"id": 5})
    made(tmp_path, "us/f", {"id": 6})
    dated = {**SELECTOR, f"{DATED}selector.depth": 2, f"{DATED}selector.currentdate": "2026-08-10"}
    walked: list[str] = []
    walk = LocalStorage.walk
    monkeypatch.setattr(LocalStorage, "walk", lambda self, path: (walked.append(path), walk(self, path))[1])

    assert Streamer(config(tmp_path, **dated)).run().rows == 2
    assert [row["id"] for row in rows(tmp_path)] == [2, 3]
    assert walked[:2] == ["eu/2026-08-08", "us/day=2026-08-10"]  # the others are of the table
    wider = {**dated, f"{DATED}selector.lookback.days": 3}
    assert Streamer(config(tmp_path, **wider)).run().rows == 1
    clock = FixedClock(1_786_449_600_000)  # 2026-08-11, 12:00 in UTC
    by_clock = {key: one for key, one in dated.items() if "currentdate" not in key}
    assert Streamer(config(tmp_path, **by_clock), clock=clock).run().rows == 1
    assert [row["id"] for row in rows(tmp_path)] == [1, 2, 3, 4]


def test_dates_have_other_forms_and_a_folder_without_one_is_named(tmp_path: Path) -> None:
    made(tmp_path, "20260810/a", {"id": 1})
    dated = {**SELECTOR, f"{DATED}selector.depth": 1, f"{DATED}selector.currentdate": "2026-08-10"}
    assert Streamer(config(tmp_path, **dated, **{f"{DATED}date.format": "yyyyMMdd"})).run().rows == 1
    with pytest.raises(ConfigError, match=r"in/20260810: its name is no date of the form yyyy-MM-dd"):
        Streamer(config(tmp_path, **dated)).run()
    for wrong, said in (
        ({**dated, f"{DATED}date.format": "yyyy-DDD"}, "expected yyyy, MM and dd once each"),
        ({**dated, f"{DATED}selector.currentdate": "today"}, r"expected 2026-08-10"),
        ({f"{DATED}selector.depth": 1}, "is of DatePartitionPathSelector"),
        ({"hoodie.streamer.source.input.selector": "my.own.Selector"}, "a class of Java. Use DFSPathSelector or Date"),
    ):
        with pytest.raises(ConfigError, match=said):
            Streamer(config(tmp_path, **wrong))
