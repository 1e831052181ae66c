"""Completed writes whose files are empty or cut off: what they replaced stays replaced, or they are left alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.meta_client import MetaClient
from pyhudi.schema import AddColumn, RenameColumn
from pyhudi.storage import open_storage
from tests.support.tables.repaired import START, VERSIONS, is_right, mended, read, rows, table_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*is empty, so rows that it replaced"),
    pytest.mark.metadata_table,  # it says what was replaced
]

CLUSTER = {"hoodie.clustering.plan.strategy.small.file.limit": "1000000000"}
NO_METADATA = {"hoodie.metadata.enable": "false"}
CUT = b'{"partitionToWr'


def completed(path: Path, version: str, ending: str) -> Path:
    folder = path / ".hoodie" if version == "6" else path / ".hoodie/timeline"
    return max(folder.glob(f"*.{ending}"))


def meta_of(path: Path) -> MetaClient:
    return MetaClient.load(open_storage(path))


def deletes_partition(table: HudiTable) -> object:
    return table.delete_partitions(["x"])


def truncates(table: HudiTable) -> object:
    return table.delete_partitions(matching=["*"])


def overwrites_with_nothing(table: HudiTable) -> object:
    return table.overwrite(rows(), where="p = 'x'")


@pytest.mark.parametrize(
    ("version", "kind", "content", "change"),
    [
        ("6", "COPY_ON_WRITE", b"", deletes_partition),
        ("6", "MERGE_ON_READ", CUT, truncates),
        ("8", "MERGE_ON_READ", b"", deletes_partition),
        ("8", "COPY_ON_WRITE", CUT, overwrites_with_nothing),
        ("9", "COPY_ON_WRITE", b"", deletes_partition),
        ("9", "MERGE_ON_READ", b"", truncates),
        ("9", "COPY_ON_WRITE", b"", overwrites_with_nothing),
    ],
)
def test_rows_that_a_damaged_replacecommit_deleted_stay_deleted(
    tmp_path: Path, version: str, kind: str, content: bytes, change: Callable[[HudiTable], object]
) -> None:
    table = table_of(tmp_path, version, kind)
    table.upsert(rows(("b", "x", 2, 21)))
    change(table)
    right = read(table)
    assert right in ([START[2]], [])
    table.upsert(rows(("d", "x", 1, 40)))  # a file group that the damaged write did not know
    completed(tmp_path, version, "replacecommit").write_bytes(content)
    table = HudiTable.open(tmp_path)
    if not content:
        assert len(read(table)) == 4  # what readers make of it meanwhile

    plan = table.maintenance.repair.empty_instants()
    assert plan.items[0].action.startswith("rewrite it: it replaced ")
    mended(table.maintenance.repair.empty_instants(dry_run=False))

    assert read(table) == read(HudiTable.open(tmp_path)) == [*right, ("d", "x", 1, 40)]
    assert table.maintenance.repair.empty_instants().items == ()
    assert is_right(table)
    table.upsert(rows(("e", "y", 1, 50)))
    assert ("a", "x", 1, 10) not in read(table)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("content", [b"", CUT])
def test_without_a_metadata_table_it_is_left_alone_and_said(tmp_path: Path, version: str, content: bytes) -> None:
    table = table_of(tmp_path, version, options=NO_METADATA)
    time = table.delete_partitions(["x"], options=NO_METADATA).instant_time
    file = completed(tmp_path, version, "replacecommit")
    file.write_bytes(content)

    result = HudiTable.open(tmp_path).maintenance.repair.empty_instants(dry_run=False)

    assert (result.is_done, result.repairable, file.read_bytes()) == (False, (), content)
    assert "the groups that it replaced are unknown, so their rows are back. Put its file back from a copy; or" in str(
        result
    )
    assert f"{'' if not content else 'empty it, '}call table.rollback({time!r}) and write again" in str(result)
    file.write_bytes(b"")  # the way out that it names
    table = HudiTable.open(tmp_path)
    table.rollback(time)
    table.delete_partitions(["x"])
    assert read(table) == [START[2]]


def test_readers_of_an_empty_replacecommit_are_warned(tmp_path: Path) -> None:
    table = table_of(tmp_path, "9")
    time = table.delete_partitions(["x"]).instant_time
    completed(tmp_path, "9", "replacecommit").write_bytes(b"")

    with pytest.warns(UserWarning, match=f"replacecommit {time} is empty, so rows that it replaced or deleted may be"):
        HudiTable.open(tmp_path).count()


def test_merged_records_of_the_metadata_table_do_not_tell_what_was_replaced(tmp_path: Path) -> None:
    often = {"hoodie.metadata.compact.max.delta.commits": "1"}
    table = table_of(tmp_path, "9")
    table.delete_partitions(["x"], options=often)
    table.upsert(rows(("d", "y", 1, 40)), options=often)
    completed(tmp_path, "9", "replacecommit").write_bytes(b"")

    result = HudiTable.open(tmp_path).maintenance.repair.empty_instants(dry_run=False)

    assert (result.is_done, len(result.items)) == (False, 1)
    assert "the groups that it replaced are unknown" in result.items[0].problem


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("content", [b"", CUT])
def test_a_damaged_clustering_is_written_again_from_its_plan(tmp_path: Path, version: str, content: bytes) -> None:
    table = table_of(tmp_path, version)
    table.bulk_insert(rows(("d", "x", 1, 40)))
    assert table.cluster(options=CLUSTER).instant_times
    right = read(table)
    file = completed(tmp_path, version, "replacecommit")
    file.write_bytes(content)
    table = HudiTable.open(tmp_path)
    if not content:
        assert len(read(table)) > len(right)  # each row of x twice

    mended(table.maintenance.repair.empty_instants(dry_run=False))

    assert read(table) == right
    assert is_right(table)
    table.rollback(file.name[:17])  # its files go, too
    assert read(table) == right
    assert table.maintenance.repair.orphans().items == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_overwrite_with_rows_is_left_alone_and_said(tmp_path: Path, version: str) -> None:
    table = table_of(tmp_path, version)
    table.overwrite(rows(("d", "x", 1, 40)), where="p = 'x'")
    completed(tmp_path, version, "replacecommit").write_bytes(b"")

    result = HudiTable.open(tmp_path).maintenance.repair.empty_instants(dry_run=False)

    assert (result.is_done, result.repairable) == (False, ())
    assert "data files, whose rows count; the groups that it replaced are unknown" in result.items[0].problem


def test_log_blocks_below_version_8_are_rows_of_the_damaged_write(tmp_path: Path) -> None:
    table = table_of(tmp_path, "6", "MERGE_ON_READ")
    table.upsert(rows(("b", "x", 2, 21)))  # the log file has the instant of the first write in its name
    file = completed(tmp_path, "6", "deltacommit")
    file.write_bytes(b"")

    result = HudiTable.open(tmp_path).maintenance.repair.empty_instants(dry_run=False)

    assert (result.is_done, file.read_bytes()) == (False, b"")
    assert result.items[0].problem.endswith("it has 1 data files, whose rows count")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_damaged_change_of_the_schema_is_left_alone_and_said(tmp_path: Path, version: str) -> None:
    table = table_of(tmp_path, version)
    table.alter(AddColumn("more", pa.int32()))
    completed(tmp_path, version, "commit").write_bytes(b"")

    result = HudiTable.open(tmp_path).maintenance.repair.empty_instants(dry_run=False)

    assert result.is_done is False
    assert "it may have changed the table's schema. Put its file back from a copy" in result.items[0].problem


@pytest.mark.parametrize("content", [b"", CUT])
def test_a_commit_without_files_keeps_the_schema_before_it(tmp_path: Path, content: bytes) -> None:
    table = table_of(tmp_path, "9")
    table.alter(RenameColumn("v", "vv"))
    before = meta_of(tmp_path).commits.latest_schema_json(table.state().timeline)
    table.delete(rows(("nobody", "x", 1, 1)), options={"hoodie.allow.empty.commit": "true"})
    file = completed(tmp_path, "9", "commit")
    file.write_bytes(content)

    table = HudiTable.open(tmp_path)
    mended(table.maintenance.repair.empty_instants(dry_run=False))

    body = meta_of(tmp_path).commits.metadata(table.state().timeline.commits().instants[-1])
    assert body.schema_json == before
    assert "latest_schema" in body.extra_metadata
    assert table.to_arrow(["vv"]).column("vv").to_pylist() == [10, 20, 30]
