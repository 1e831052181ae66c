"""Tables of real Hudi are cleaned as far as can be: no row changes, now or as of what is still readable."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from pyhudi.errors import UnsupportedTable
from pyhudi.formats.timeline.clean_plans import decode_clean_plan
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.options import WriteOptions
from pyhudi.services.clean.cleaning import clean
from pyhudi.services.clean.planner import last_clean
from pyhudi.storage.local import LocalStorage
from pyhudi.table.calls import serve
from pyhudi.view.readable_history import load_readable_history
from tests.support.golden.folder import shared_folder
from tests.support.tables.small import TestTable

FAMILIES = ("cow_", "state_", "failed_write_", "history_", "mdt_all_", "g2_savepoint", "g2_cluster", "upgrade_a_mor_6")
POLICIES = ({"hoodie.clean.commits.retained": 1}, {"hoodie.clean.fileversions.retained": 1})


def tables() -> list[tuple[str, str]]:
    root = Path(__file__).resolve().parents[3] / "shared" / "golden"
    return [
        (version.name, path.stem)
        for version in sorted(root.glob("*.*.*"))
        for path in sorted(version.glob("*.zip"))
        if path.stem.startswith(FAMILIES)
    ]


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*metadata table.*")
@pytest.mark.parametrize(("version", "name"), tables() or [("", "")])
def test_cleaning_changes_no_row_that_can_be_read(version: str, name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(shared_folder() / "golden" / version / f"{name}.zip") as archive:
        archive.extractall(tmp_path)
    table = TestTable(LocalStorage(str(tmp_path / name)))
    before = rows_of(table)
    rows_at = {i.requested_time: rows_of(table, i.requested_time) for i in readable(table)}

    deleted = 0
    for policy in POLICIES:
        try:
            result = serve(table.storage, clean, WriteOptions.parse(policy), table.engine)
        except UnsupportedTable:
            return  # records changes, or has a version that is only read
        deleted += sum(run.files_deleted for run in result.runs)
        assert rows_of(table) == before
        for instant in readable(table):
            assert rows_of(table, instant.requested_time) == rows_at[instant.requested_time], instant
    if name.startswith(("cow_operations", "mdt_all_cow", "history_")):
        assert deleted


def rows_of(table: TestTable, as_of: str | None = None) -> list[str]:
    return sorted(map(repr, table.read(as_of).to_pylist()))


def readable(table: TestTable) -> list[Instant]:
    retention = load_readable_history(table.meta)
    return [i for i in table.meta.timeline.commits() if retention.is_readable(i.requested_time)]


@pytest.mark.parametrize(("version", "name"), [t for t in tables() if t[1].startswith(("history_", "mdt_all"))])
def test_plans_of_real_hudi_are_understood(version: str, name: str, tmp_path: Path) -> None:
    """What its last clean deleted is what its plan says, and is gone; what it retained is on the timeline."""

    with zipfile.ZipFile(shared_folder() / "golden" / version / f"{name}.zip") as archive:
        archive.extractall(tmp_path)
    table = TestTable(LocalStorage(str(tmp_path / name)))
    cleans = [i for i in table.meta.timeline.completed() if i.action is ActionKind.CLEAN]
    if not cleans:
        return
    plan = decode_clean_plan(table.meta.reader.read_body(cleans[-1], State.REQUESTED))
    done = last_clean(table.meta)
    assert done is not None
    assert plan.earliest is not None
    assert plan.earliest.requested_time == done.earliest
    assert {p: set(names) for p, names in plan.files.items() if names} == {
        p: set(found.deleted) | set(found.failed) for p, found in done.partitions.items() if found.deleted
    }
    for path, names in plan.files.items():
        assert not {info.name for info in table.storage.list(path)} & set(names)
    assert load_readable_history(table.meta).earliest == done.earliest
