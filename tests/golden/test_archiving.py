"""Tables of real Hudi, archived by PyHudi as far as it goes: now and as of every instant they hold what they held."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi import HudiTable
from pyhudi.errors import HudiError, UnsupportedTable
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.removal import MetadataTableRemoved
from pyhudi.storage import open_storage
from pyhudi.timeline.archived_timeline import load_archived_timeline
from tests.support.golden.folder import Golden

KEEP = {
    "hoodie.metadata.enable": "false",  # a metadata table keeps instants until it has compacted them
    "hoodie.keep.min.commits": "1",
    "hoodie.keep.max.commits": "2",
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.archive.beyond.savepoint": "true",
    "hoodie.timeline.compaction.batch.size": "2",
}
QUICK = [
    ("0.15.0", "history_a_mor"),
    ("1.0.2", "history_a_mor"),
    ("1.2.0", "history_a_cow"),
    ("1.2.0", "g2_savepoint_restore"),
    ("0.15.0", "state_savepoint_and_rollback"),
    ("1.2.0", "upgrade_a_mor_2_v8"),
    ("1.2.0", "upgrade_a_mor_6_v6"),
]


def every_table() -> list[object]:
    root = Path(__file__).resolve().parents[3] / "shared" / "golden"
    found = [(path.parent.name, path.stem) for path in sorted(root.glob("*.*.*/*.zip"))]
    return [pytest.param(*table, marks=pytest.mark.slow) for table in found if table not in QUICK]


@pytest.mark.filterwarnings(f"ignore::{MetadataTableRemoved.__module__}.{MetadataTableRemoved.__name__}")
@pytest.mark.parametrize(("version", "name"), [*QUICK, *every_table()])
def test_archiving_changes_no_read(golden: Golden, version: str, name: str) -> None:
    path, _ = golden(version, name)
    table = HudiTable.open(path)
    times = [None, *(instant.requested_time for instant in table.state().timeline.commits())]
    if len(times) < 4:
        return  # nothing would be archived
    before, known = {time: rows(table, time) for time in times}, archived(path)
    try:
        result = table.maintenance.archive(options=KEEP)
    except UnsupportedTable:
        return  # not written in this release

    assert {time: rows(table, time) for time in times} == before
    assert archived(path) == known | {(i.requested_time, i.action.value) for i in result.archived}
    if (version, name) in QUICK:
        assert result.archived


def rows(table: HudiTable, time: str | None) -> list[str]:
    """All rows, or by what name the read was refused."""
    try:
        return sorted(map(repr, table.scan(as_of=time).to_arrow().to_pylist()))
    except HudiError as error:
        return [type(error).__name__]


def archived(path: Path) -> set[tuple[str, str]]:
    storage = open_storage(path)
    history = load_archived_timeline(storage, MetaClient.load(storage).config)
    return {(i.requested_time, i.action.value) for i in history.times()}
