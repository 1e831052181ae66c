"""Log files that lack what completed writes put into them: queries say so, or fail if they shall."""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import DamagedLog, HudiTable
from pyhudi.errors import StaleRead
from tests.support.tables.damaged import OLD, damaged, values
from tests.support.values.damaged_logs import DAMAGES, log_files

FAIL = {"hoodie.pyhudi.read.damaged.logs": "fail"}


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", DAMAGES)
def test_a_query_warns_once_of_a_damaged_log_file_and_returns_the_rows_without_it(
    tmp_path: Path, version: str, kind: str
) -> None:
    log = damaged(tmp_path, kind, version)
    instant = HudiTable.open(tmp_path).state().timeline.last_commit()
    assert instant is not None
    with pytest.warns(UserWarning, match="is damaged") as caught:
        assert values(tmp_path) == OLD
    (warning,) = caught
    assert all(word in str(warning.message) for word in (log.name, instant.requested_time, "bytes"))
    assert warning.filename == str(Path(values.__code__.co_filename)), "the caller's line"


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", DAMAGES)
def test_a_query_that_shall_fail_for_damaged_log_files_names_the_file(tmp_path: Path, version: str, kind: str) -> None:
    log = damaged(tmp_path, kind, version)
    scan = HudiTable.open(tmp_path).scan(options=FAIL)
    with pytest.raises(DamagedLog, match=log.name.replace(".", r"\.")):
        scan.to_arrow()
    with pytest.raises(DamagedLog):
        scan.count()


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_log_file_that_the_metadata_table_lists_and_that_was_deleted_is_an_error(
    tmp_path: Path, version: str
) -> None:
    """As in real Hudi. Only listed folders can't tell that there was one, so the commits are compared there."""
    log = damaged(tmp_path, "deleted", version, metadata_table=True)
    with pytest.raises(StaleRead, match=log.name.replace(".", r"\.")):
        values(tmp_path)


def test_a_count_warns_too(tmp_path: Path) -> None:
    damaged(tmp_path, "emptied")
    with pytest.warns(UserWarning, match="is damaged"):
        assert HudiTable.open(tmp_path).scan().count() == len(OLD)


def test_several_slices_that_are_read_side_by_side_warn_of_each_file_in_the_callers_name(tmp_path: Path) -> None:
    damaged(tmp_path, "cut in half", partitions=("x", "y", "z"))
    for log in log_files(tmp_path):
        log.write_bytes(b"")
    with pytest.warns(UserWarning, match="is damaged") as caught:
        values(tmp_path)
    assert len({str(one.message) for one in caught}) == len(caught) == 3
    assert {one.filename for one in caught} == {str(Path(values.__code__.co_filename))}


@pytest.mark.parametrize("kind", DAMAGES)
def test_what_was_committed_before_the_damaged_file_is_read_without_a_word(tmp_path: Path, kind: str) -> None:
    damaged(tmp_path, kind)
    table = HudiTable.open(tmp_path)
    first = table.state().timeline.instants[0].requested_time
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert table.scan(["id"], as_of=first).to_arrow().num_rows == len(OLD)
        assert table.scan(["id"], query_type="read_optimized").to_arrow().num_rows == len(OLD)


def test_a_torn_log_file_of_a_write_that_never_completed_is_nothing(tmp_path: Path) -> None:
    damaged(tmp_path, None, "6")
    new = HudiTable.open(tmp_path).scan(["id", "v"]).to_arrow()
    log = log_files(tmp_path)[-1]
    token = log.name.rpartition("_")[2]
    torn = log.with_name(log.name.replace(f".log.1_{token}", f".log.2_{token}"))
    torn.write_bytes(log.read_bytes()[:100])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert HudiTable.open(tmp_path).scan(["id", "v"], options=FAIL).to_arrow().equals(new)
        HudiTable.open(tmp_path).compact()
        assert _sorted(HudiTable.open(tmp_path).scan(["id", "v"]).to_arrow()) == _sorted(new)


def test_a_block_that_stands_behind_a_torn_one_of_a_failed_attempt_is_whole(tmp_path: Path) -> None:
    damaged(tmp_path, None)
    log = log_files(tmp_path)[-1]
    data = log.read_bytes()
    log.write_bytes(data[: len(data) // 2] + data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert values(tmp_path, FAIL) != OLD


def _sorted(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))
