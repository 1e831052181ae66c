"""MetaClient and the bodies of commits: schemas and reloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.formats.timeline.instant_files import encode_commit
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStat
from pyhudi.model.instant import ActionKind
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.table_config import NewTable, new_table_properties
from pyhudi.storage import FixedClock, LocalStorage, MemoryStorage
from pyhudi.timeline.listing import load_timeline
from pyhudi.timeline.table_properties import create_table, update_table_config
from pyhudi.transaction.instants import TimelineWriter

GoldenTable = Callable[[str, str], tuple[Path, dict[str, Any]]]
Timelines = Callable[[], Iterator[tuple[str, MemoryStorage, dict[str, Any]]]]

T, C = "20250713010535797", "20250713010536405"
OLD = '{"type":"record","name":"r","fields":[{"name":"id","type":"string"}]}'
NEW = OLD.replace("]}", ',{"name":"x","type":["null","int"],"default":null}]}')


def new_table(version: int = 9, **changes: Any) -> MemoryStorage:
    storage = MemoryStorage()
    create_table(storage, new_table_properties(NewTable("t", table_version=version, timezone="UTC", **changes)))
    return storage


def commit(storage: Any, time: str, body: CommitMetadata | None, action: ActionKind = ActionKind.COMMIT) -> None:
    """A completed write with `body`; None leaves a file of zero bytes."""
    config = MetaClient.load(storage).config
    writer = TimelineWriter(storage, config)
    data = b"" if body is None else encode_commit(body, action.completed_as, config.table_version)
    writer.complete(writer.start(writer.request(time, action)), f"{int(time) + 1}", data)


def times(number: int) -> str:
    return f"202507130105357{number:02d}"


def test_every_golden_table_has_the_columns_that_its_rows_have(golden_timelines: Timelines) -> None:
    compared = 0
    for name, storage, description in golden_timelines():
        rows = description.get("expected", {}).get("snapshot")
        if not isinstance(rows, list) or not rows or description["type"].lower() != "cow":
            continue
        meta = MetaClient.load(storage)
        schema = meta.table_schema()
        left_out = meta.config.partition_fields if meta.config.drop_partition_columns else ()
        expected = {column for column in rows[0] if column not in (*META_COLUMNS, *left_out)}
        assert set(schema.names) >= expected, name
        assert not set(schema.names) & set(META_COLUMNS), name
        compared += 1
    assert compared > 50


def test_the_schema_comes_from_the_newest_commit_that_carries_one() -> None:
    storage = new_table(create_schema=OLD)
    assert MetaClient.load(storage).table_schema() == pa.schema([pa.field("id", pa.string(), nullable=False)])
    commit(storage, times(1), CommitMetadata({}, {"schema": NEW}, OperationType.INSERT))
    commit(storage, times(3), CommitMetadata({}, {}, OperationType.DELETE))
    commit(storage, times(5), CommitMetadata({}, {"schema": OLD}, OperationType.COMPACT), ActionKind.COMPACTION)

    assert MetaClient.load(storage).table_schema().names == ["id", "x"]


def test_a_completed_file_of_zero_bytes_is_an_empty_commit() -> None:
    storage = new_table()
    commit(storage, times(1), None)
    meta = MetaClient.load(storage)
    (instant,) = meta.timeline.commits()

    body = meta.commits.metadata(instant)

    assert body.operation_type == OperationType.UNKNOWN
    assert body.stats() == ()
    assert meta.table_schema() == pa.schema([])


def test_without_schemas_in_commits_the_newest_base_file_says_the_columns(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    create_table(storage, new_table_properties(NewTable("t", timezone="UTC")))
    data = pa.table({**{name: ["x"] for name in META_COLUMNS}, "id": ["a"], "v": pa.array([1], pa.int32())})
    path = f"p/f-0_0-0-0_{times(1)}.parquet"
    with storage.open_output(path) as sink:
        pq.write_table(data, sink)
    stats = (WriteStat("f-0", path, "p"), WriteStat("g-0", f"p/g-0_0-0-0_{times(1)}.parquet", "p"))
    commit(storage, times(1), CommitMetadata({"p": stats}, {}, OperationType.INSERT))

    schema = MetaClient.load(storage).table_schema()

    assert [(field.name, field.type) for field in schema] == [("id", pa.string()), ("v", pa.int32())]


def test_a_damaged_commit_names_its_instant() -> None:
    storage = new_table()
    commit(storage, times(1), CommitMetadata({}, {"schema": OLD}, OperationType.INSERT))
    (path,) = (path for path in storage.paths() if path.endswith(".commit"))
    storage.write(path, storage.read(path)[:-30])

    with pytest.raises(CorruptFile, match=f"commit {times(1)}"):
        MetaClient.load(storage).table_schema()


def test_a_reload_sees_new_commits_and_reads_no_body_twice() -> None:
    storage = new_table()
    commit(storage, times(1), CommitMetadata({}, {"schema": OLD}, OperationType.INSERT))
    meta = MetaClient.load(storage)
    assert meta.table_schema().names == ["id"]
    commit(storage, times(3), CommitMetadata({}, {}, OperationType.INSERT))

    newer = meta.reload()

    assert len(meta.timeline.commits()) == 1
    assert len(newer.timeline.commits()) == 2
    storage.reset_faults()
    newer.table_schema()
    assert [path.rpartition("/")[2][:17] for verb, path in storage.log if verb == "read"] == [times(3)]


def test_a_table_of_a_later_version_is_refused_with_what_to_do() -> None:
    storage = new_table()
    update_table_config(storage, {"hoodie.table.version": "10"}, clock=FixedClock(0))

    with pytest.raises(UnsupportedTable, match=r"version 10.*newer release"):
        MetaClient.load(storage)


def test_a_table_that_real_hudi_upgraded_is_read_at_every_stage(golden: GoldenTable) -> None:
    stages = ["1_v6", "2_v8", "3_v9", "4_v9", "5_v8", "6_v6"]
    for stage in stages:
        path, _ = golden("1.2.0", f"upgrade_a_mor_{stage}")

        meta = MetaClient.load(LocalStorage(str(path)))

        assert meta.config.table_version == int(stage[-1])
        assert meta.timeline.last_commit() is not None
        assert "id" in meta.table_schema().names


@pytest.mark.parametrize(
    "names",
    [
        [f"{T}.commit.requested", f"{T}.inflight", f"{T}_{C}.commit", f"{C}.deltacommit.requested"],
        [f"{T}.commit.requested", f"{T}.commit"],  # as 0.x wrote it: completed when it was modified
        [f"{T}.commit.requested", f"{T}_{C}.commit", f"{C}.schemacommit", "README", f".pyhudi-{C}.tmp"],
    ],
)
def test_on_a_local_disk_names_alone_give_the_timeline_of_a_listing(names: list[str], tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    create_table(storage, new_table_properties(NewTable("t", timezone="UTC")))
    for name in names:
        storage.write(f".hoodie/timeline/{name}", b"{}")
    (tmp_path / ".hoodie/timeline" / f"{C}_{C}.commit").mkdir()  # a folder is no instant
    meta = MetaClient.load(storage)

    assert len(meta.timeline) >= 1
    assert meta.timeline == load_timeline(storage, meta.config)
    assert meta.is_current()

    storage.write(f".hoodie/timeline/{T}_{C}.clean", b"{}")
    assert not meta.is_current()
    assert meta.reload().timeline == load_timeline(storage, meta.config) != meta.timeline
