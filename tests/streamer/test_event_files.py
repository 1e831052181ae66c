"""Files that a table of events names: each is read once, commit by commit, as many as the limit allows."""

from __future__ import annotations

import io
import itertools
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, Streamer, write_hudi
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.storage import MemoryStorage, open_storage
from pyhudi.streamer.sources.cloud_events import files as event_files

CLOUD = "hoodie.streamer.source.cloud.data."
CHECKPOINT = "deltastreamer.checkpoint.key"
_NUMBERS = itertools.count()


@pytest.fixture
def bucket() -> MemoryStorage:
    return MemoryStorage(f"bucket-{next(_NUMBERS)}")


def put(bucket: MemoryStorage, key: str, *rows: dict[str, object]) -> tuple[str, str, int]:
    data = "\n".join(map(json.dumps, rows)).encode()
    bucket.write(key, data)
    return bucket._name, key, len(data)


def written(
    tmp_path: Path, *objects: tuple[str, str, int], second: int = 0, options: dict[str, object] | None = None
) -> str:
    """A commit of events, and its time."""
    rows = [
        {
            "eventTime": f"2026-01-01T00:00:{second:02}.000Z",
            "s3": {"bucket": {"name": name}, "object": {"key": key, "size": size, "sequencer": f"{second:04}"}},
        }
        for name, key, size in objects
    ]
    ids = [next(_NUMBERS) for _ in rows]
    table = pa.Table.from_pylist(rows).append_column("n", pa.array(ids))
    return write_hudi(tmp_path / "events", table, record_key="n", operation="insert", options=options).instant_time


def config(tmp_path: Path, **more: object) -> dict[str, object]:
    source = {"source-class": "S3EventsHoodieIncrSource", "target-base-path": str(tmp_path / "t"), "record_key": "id"}
    path = {"hoodie.streamer.source.hoodieincr.path": str(tmp_path / "events"), f"{CLOUD}datafile.format": "json"}
    return {**source, **path, "op": "INSERT", "hoodie.streamer.source.s3incr.fs.prefix": "memory", **more}


def ids(tmp_path: Path) -> list[int]:
    return sorted(HudiTable.open(tmp_path / "t").scan(["id"], meta_columns=False).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(("version", "kind"), [(9, "COPY_ON_WRITE"), (9, "MERGE_ON_READ"), (6, "COPY_ON_WRITE")])
def test_files_come_commit_by_commit_and_the_checkpoint_is_the_last_one(
    tmp_path: Path, bucket: MemoryStorage, version: int, kind: str
) -> None:
    options = {"hoodie.write.table.version": version, "hoodie.datasource.write.table.type": kind}
    written(tmp_path, put(bucket, "a.json", {"id": 1}), put(bucket, "b.json", {"id": 2}), options=options)
    second = written(tmp_path, put(bucket, "c.json", {"id": 3}), second=1)
    settings = config(tmp_path)

    done = Streamer(settings).run()
    assert (done.rows, done.checkpoint) == (3, second)
    assert Streamer(settings).run().rounds == 0
    times = [written(tmp_path, put(bucket, f"d{number}.json", {"id": number}), second=number) for number in (4, 5, 6)]
    done = Streamer({**settings, "hoodie.streamer.source.hoodieincr.num_instants": 2}).run()
    assert (done.rows, done.checkpoint) == (2, times[1])
    assert HudiTable.open(tmp_path / "t").history()[0].extra[CHECKPOINT] == times[1]
    assert Streamer(settings).run(until_empty=True).rows == 1
    assert ids(tmp_path) == [1, 2, 3, 4, 5, 6]


def test_a_limit_cuts_a_commit_behind_a_key_and_the_next_batch_goes_on_there(
    tmp_path: Path, bucket: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_files, "_MERGED_ROWS", 0)
    other = MemoryStorage(f"{bucket._name}-other")
    first = [put(bucket, f"k{number}.json", {"id": number}) for number in range(5)]
    time = written(tmp_path, *reversed(first), put(other, "k1.json", {"id": 11}))
    size = first[0][2]
    settings = config(tmp_path, **{"source-limit": 2 * size})

    done = Streamer(settings).run()
    assert (done.rows, done.checkpoint) == (3, f"{time}#k1.json"), "objects of one key in two buckets stay together"
    done = Streamer(config(tmp_path, **{f"{CLOUD}max.files.per.sync": 1})).run()
    assert (done.rows, done.checkpoint) == (1, f"{time}#k2.json")
    second = written(tmp_path, put(bucket, "k0.json", {"id": 20}), second=1)
    done = Streamer(config(tmp_path, **{"source-limit": 1})).run()
    assert (done.rows, done.checkpoint) == (1, f"{time}#k3.json")
    done = Streamer(config(tmp_path)).run()
    assert (done.rows, done.checkpoint) == (2, second)
    assert ids(tmp_path) == [0, 1, 2, 3, 4, 11, 20]


def test_an_event_that_is_in_the_table_twice_brings_its_file_once_and_a_new_version_brings_it_again(
    tmp_path: Path, bucket: MemoryStorage
) -> None:
    file = put(bucket, "a.json", {"id": 1})
    written(tmp_path, file, file, second=1)
    written(tmp_path, file, second=1)
    settings = config(tmp_path)
    assert Streamer(settings).run().rows == 1
    written(tmp_path, file, second=1)
    assert Streamer(settings).run().rows == 0
    put(bucket, "a.json", {"id": 2})
    written(tmp_path, file, second=2)
    written(tmp_path, file, second=3)
    assert Streamer(settings).run().rows == 1
    assert ids(tmp_path) == [1, 2]


def test_no_commit_is_read_behind_one_that_is_not_complete(tmp_path: Path, bucket: MemoryStorage) -> None:
    first = written(tmp_path, put(bucket, "a.json", {"id": 1}))
    lost = written(tmp_path, put(bucket, "b.json", {"id": 2}), second=1)
    written(tmp_path, put(bucket, "c.json", {"id": 3}), second=2)
    (complete,) = (tmp_path / "events" / ".hoodie" / "timeline").glob(f"{lost}_*.commit")
    body = complete.read_bytes()
    complete.unlink()

    done = Streamer(config(tmp_path)).run()
    assert (done.rows, done.checkpoint) == (1, first)
    complete.write_bytes(body)
    assert Streamer(config(tmp_path)).run(until_empty=True).rows == 2
    assert ids(tmp_path) == [1, 2, 3]


def test_events_whose_commits_were_archived_are_found_from_the_beginning_and_from_a_checkpoint(
    tmp_path: Path, bucket: MemoryStorage
) -> None:
    keep = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1}
    times = [
        written(tmp_path, put(bucket, f"f{number}.json", {"id": number}), second=number, options=keep)
        for number in range(8)
    ]
    assert HudiTable.open(tmp_path / "events")._handle.meta.timeline.active_since > times[2]

    assert Streamer(config(tmp_path, checkpoint=times[1])).run(until_empty=True).rows == 6
    assert ids(tmp_path) == [2, 3, 4, 5, 6, 7]
    elsewhere = {**config(tmp_path), "target-base-path": str(tmp_path / "all")}
    assert Streamer(elsewhere).run().rows == 8


def test_only_files_of_the_choice_are_read(tmp_path: Path, bucket: MemoryStorage) -> None:
    names = ["in/a.json", "in/b.jsonl", "in/c.txt", "in/tmp/d.json", "in/old/e.json", "out/f.json", "in/a b%2Bc.json"]
    files = [put(bucket, name, {"id": number}) for number, name in enumerate(names)]
    encoded = [(name, key.replace("%", "%25").replace(" ", "+"), size) for name, key, size in files]
    written(tmp_path, *encoded, (bucket._name, "in/empty.json", 0))

    def found(**given: object) -> list[int]:
        target = str(tmp_path / f"t{next(_NUMBERS)}")
        choice = {f"{CLOUD}{key.replace('__', '.')}": value for key, value in given.items()}
        Streamer({**config(tmp_path, **choice), "target-base-path": target}).run()
        return sorted(HudiTable.open(target).scan(["id"], meta_columns=False).to_arrow()["id"].to_pylist())

    assert found() == [0, 3, 4, 5, 6]
    assert found(select__file__extension="json,jsonl") == [0, 1, 3, 4, 5, 6]
    assert found(select__relpath__prefix="in/", ignore__relpath__prefix="in/old") == [0, 3, 6]
    assert found(ignore__relpath__substring="/tmp/") == [0, 4, 5, 6]
    assert found(select__relpath__prefix="in", select__relative__path__regex=r"[a-z]\.json$") == [0]


def test_files_of_each_format_and_columns_of_their_paths(tmp_path: Path, bucket: MemoryStorage) -> None:
    rows = pa.table({"id": [1, 2]})
    out = io.BytesIO()
    pq.write_table(rows, out)
    bucket.write("day=5/hour=a/x.parquet", out.getvalue())
    written(tmp_path, (bucket._name, "day=5/hour=a/x.parquet", 9))
    by_path = {f"{CLOUD}datafile.format": "parquet", f"{CLOUD}partition.fields.from.path": "day,minute"}
    assert Streamer(config(tmp_path, **by_path)).run().rows == 2
    found = HudiTable.open(tmp_path / "t").scan(["day", "minute"], meta_columns=False).to_arrow().to_pylist()
    assert found == [{"day": "5", "minute": None}] * 2

    text = io.BytesIO()
    pacsv.write_csv(pa.table({"id": [3]}), text)
    bucket.write("x.csv", text.getvalue())
    written(tmp_path, (bucket._name, "x.csv", 5), second=1)
    with pytest.raises(ConfigError, match=r'datasource\.options=\{"header": "true"\}'):
        Streamer(config(tmp_path, **{f"{CLOUD}datafile.format": "csv"}))
    header = {f"{CLOUD}datafile.format": "csv", f"{CLOUD}datasource.options": '{"header": "true"}'}
    assert Streamer(config(tmp_path, **header)).run().rows == 1


def test_files_that_are_gone_or_damaged_are_named(tmp_path: Path, bucket: MemoryStorage) -> None:
    written(tmp_path, (bucket._name, "gone.json", 5), put(bucket, "a.json", {"id": 1}))
    told: list[str] = []
    assert Streamer(config(tmp_path)).run(told=told.append).rows == 1
    assert told[0] == f"{bucket._name}/gone.json was removed before it was read"
    written(tmp_path, put(bucket, "b.parquet", {"id": 1}), second=1)
    with pytest.raises(SchemaMismatch, match=rf"{bucket._name}/b\.parquet: the file can't be read"):
        Streamer(config(tmp_path, **{f"{CLOUD}datafile.format": "parquet"})).run()
    bucket.write("c.json", b'{"id": 2}\nno\n')
    written(tmp_path, (bucket._name, "c.json", 13), second=2)
    with pytest.raises(SchemaMismatch, match=rf"{bucket._name}/c\.json:2: no JSON"):
        Streamer(config(tmp_path)).run()


def test_google_events_name_keys_as_they_are(
    tmp_path: Path, bucket: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(bucket, "in/a+b%20.json", {"id": 1})
    row = {"bucket": file[0], "name": file[1], "size": str(file[2]), "updated": "2026-01-01T00:00:00Z", "n": 1}
    write_hudi(tmp_path / "events", pa.Table.from_pylist([row]), record_key="n")
    monkeypatch.setattr(
        event_files, "open_storage", lambda path, store: open_storage(path.replace("gs://", "memory://"), store)
    )

    assert Streamer(config(tmp_path, **{"source-class": "GcsEventsHoodieIncrSource"})).run().rows == 1


def test_a_table_that_is_none_of_events_and_a_checkpoint_of_another_source_are_said(
    tmp_path: Path, bucket: MemoryStorage
) -> None:
    write_hudi(tmp_path / "events", pa.table({"id": [1]}), record_key="id")
    with pytest.raises(ConfigError, match=r"no table of events: it has no column s3"):
        Streamer(config(tmp_path)).run()
    with pytest.raises(ConfigError, match="none of files that events name"):
        Streamer(config(tmp_path, checkpoint="orders,0:1")).run()
    with pytest.raises(ConfigError, match=r"hoodieincr\.path is missing"):
        Streamer(config(tmp_path, **{"hoodie.streamer.source.hoodieincr.path": None}))
    for key, value, said in (
        ("select.relative.path.regex", "(", "regex"),
        ("datasource.options", "[1]", "expected a JSON object"),
        ("datasource.options", '{"sep": ";"}', "sep: only header"),
    ):
        with pytest.raises(ConfigError, match=said):
            Streamer(config(tmp_path, **{f"{CLOUD}{key}": value}))
