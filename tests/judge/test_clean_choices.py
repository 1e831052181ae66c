"""Of copies of one table PyHudi and real Hudi clean the same files, by every policy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pyhudi import HudiTable, write_hudi
from tests.support.judge.real_hudi import HUDI_OF_TABLE_VERSION, Judge
from tests.support.judge.stories import BY_VALUE, KEYS, MERGE_ON_READ, Step, Story, rows

QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
# How each of the two is asked.
POLICIES = (
    ("retain_commits => 2", {"hoodie.clean.commits.retained": "2"}),
    ("retain_commits => 5", {"hoodie.clean.commits.retained": "5"}),
    (
        "clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1",
        {"hoodie.clean.fileversions.retained": "1"},
    ),
    (
        "clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 2",
        {"hoodie.clean.fileversions.retained": "2"},
    ),
)


def made(folder: Path, version: int, merge_on_read: bool) -> Path:
    """Updated, overwritten, compacted; a partition deleted and another one deleted and filled again."""
    kind = {**MERGE_ON_READ, "hoodie.compact.inline.max.delta.commits": "1"} if merge_on_read else {}
    by_value = BY_VALUE if version < 8 else {}
    story = Story("choices", version, {**KEYS, **kind, **by_value, **QUIET}, ())
    path = folder / "made"

    def write(operation: str, numbers: range, ts: int) -> None:
        write_hudi(str(path), story.data(Step(operation, rows(numbers, ts))), operation, options=story.write_options())

    write("bulk_insert", range(30), 10)
    table = HudiTable.open(str(path))
    write("upsert", range(12), 20)
    write("upsert", range(6), 30)
    table.delete_partitions("south", options=QUIET)
    if merge_on_read:
        table.compact()
    write("upsert", range(3), 40)
    write("insert_overwrite", range(30, 31), 50)
    table.delete_partitions("east", options=QUIET)
    write("upsert", range(30, 36), 60)
    if merge_on_read:
        table.compact(schedule_only=True)
    write("upsert", range(30, 33), 70)
    return path


def data_files(table: Path) -> set[str]:
    return {
        str(path.relative_to(table))
        for path in table.rglob("*")
        if path.is_file() and ".hoodie" not in str(path.relative_to(table)) and not path.name.endswith(".crc")
    }


@pytest.mark.parametrize(
    ("version", "merge_on_read"),
    [
        (9, True),
        pytest.param(9, False, marks=pytest.mark.slow),
        pytest.param(8, True, marks=pytest.mark.slow),
        pytest.param(8, False, marks=pytest.mark.slow),
        pytest.param(6, True, marks=pytest.mark.slow),
        pytest.param(6, False, marks=pytest.mark.slow),
    ],
)
def test_both_delete_the_same_files(version: int, merge_on_read: bool, judge: Judge, tmp_path: Path) -> None:
    table = made(tmp_path, version, merge_on_read)
    for n, (sql, options) in enumerate(POLICIES):
        theirs, ours = tmp_path / f"theirs{n}", tmp_path / f"ours{n}"
        shutil.copytree(table, theirs)
        shutil.copytree(table, ours)
        call = f"call run_clean(table => '{{table}}', {sql}, options => 'hoodie.metadata.enable=false')"
        answer = judge.ask(command="sql", sql=call, table=str(theirs), hudi=HUDI_OF_TABLE_VERSION[version])
        assert answer["ok"], answer
        HudiTable.open(str(ours)).clean(options=options)
        assert data_files(ours) == data_files(theirs), f"{sql} of {sorted(data_files(table))}"
        assert data_files(ours) < data_files(table)
