"""Upgrades and downgrades against those that real Hudi did: properties, instant files, archives."""

from __future__ import annotations

import io
import itertools
import json
import warnings
from collections.abc import Callable
from typing import Any

import fastavro
import pytest

from pyhudi import HudiTable
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.removal import MetadataTableRemoved
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.timeline.archived_timeline import load_archived_timeline
from pyhudi.timeline.table_properties import load_table_config
from tests.support.golden.folder import GoldenTable
from tests.support.golden.rows import differences
from tests.support.tables.versioned import take_to

Golden = Callable[[str, str], GoldenTable]

# Keys that say which metadata table there is; PyHudi has taken it out.
METADATA_KEYS = ("hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight")


def golden_stage(golden: Golden, name: str) -> tuple[Storage, dict[str, Any]]:
    folder, description = golden("1.2.0", name)
    return open_storage(str(folder)), description


def taken_to(storage: Storage, version: int) -> Storage:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MetadataTableRemoved)
        take_to(storage, version)
    return storage


STEPS = [("1_v6", "2_v8"), ("2_v8", "3_v9"), ("4_v9", "5_v8"), ("5_v8", "6_v6")]


@pytest.mark.thorough
@pytest.mark.parametrize(("before", "after"), STEPS)
def test_properties_and_rows_are_those_of_real_hudis_own_step(golden: Golden, before: str, after: str) -> None:
    theirs, description = golden_stage(golden, f"upgrade_a_mor_{after}")
    ours, _ = golden_stage(golden, f"upgrade_a_mor_{before}")
    taken_to(ours, description["table_version"])

    expected = dict(load_table_config(theirs).properties)
    found = dict(load_table_config(ours).properties)
    for key in METADATA_KEYS:
        expected.pop(key, None)
        found.pop(key, None)
    assert found == expected
    rows = HudiTable.open(ours.root).scan().to_arrow()
    wanted = [{k: v for k, v in row.items() if k != "_hoodie_file_name"} for row in description["expected"]["snapshot"]]
    assert differences(wanted, rows.select([name for name in rows.column_names if name in wanted[0]])) == []


@pytest.mark.parametrize(("before", "after"), [("1_v6", "2_v8"), ("5_v8", "6_v6")])
def test_instant_files_are_those_of_real_hudis_own_step(golden: Golden, before: str, after: str) -> None:
    theirs, description = golden_stage(golden, f"upgrade_a_mor_{after}")
    ours, _ = golden_stage(golden, f"upgrade_a_mor_{before}")
    taken_to(ours, description["table_version"])

    expected, found = decoded(theirs), decoded(ours)
    assert found.keys() >= expected.keys()
    assert {key: found[key] for key in expected} == expected


# Real Hudi reads delta commits as commits on the way, which takes the fields of log files off them, and into version 6
# it writes fields that no release for version 6 knows.
LOST = ("baseFile", "logFiles", "logOffset", "logVersion", "recordsStats")
UNKNOWN_IN_6 = ("numUpdates", "prevBaseFile", "totalLogBlocksScanTimeMs", "totalLogBlocksSize", "totalLogReadTimeMs")


def decoded(storage: Storage) -> dict[str, Any]:
    """Instant files by name without completion time (those of an unzipped table are coarse), bodies decoded."""
    config = load_table_config(storage)
    bodies: dict[str, Any] = {}
    for entry in storage.list(config.timeline_path):
        if entry.is_dir or not entry.name[:1].isdigit():
            continue
        data = storage.read(entry.path)
        name = entry.name.partition(".")[0].partition("_")[0] + "." + entry.name.partition(".")[2]
        if name.endswith(("commit.requested", "savepoint.requested")):
            continue  # real Hudi makes an empty body of no body
        body = next(fastavro.reader(io.BytesIO(data))) if data.startswith(b"Obj") else json.loads(data or b"null")
        if isinstance(body, dict):
            for stat in itertools.chain(*(body.get("partitionToWriteStats") or {}).values()):
                for field in (*LOST, *UNKNOWN_IN_6, "totalValidLogBlocks"):
                    stat.pop(field, None)
        bodies[name] = body
    return bodies


@pytest.mark.thorough
@pytest.mark.parametrize(("before", "after"), [("1_v6", "2_v8"), ("5_v8", "6_v6")])
def test_the_archive_holds_at_least_what_real_hudi_takes_along(golden: Golden, before: str, after: str) -> None:
    theirs, description = golden_stage(golden, f"upgrade_a_mor_{after}")
    ours, _ = golden_stage(golden, f"upgrade_a_mor_{before}")
    archived_before = archive_of(ours)
    taken_to(ours, description["table_version"])

    found, expected = archive_of(ours), archive_of(theirs)
    assert found == archived_before
    missed = set(found) - set(expected)
    # Real Hudi's downgrade drops one instant whenever it writes out a full batch of ten.
    assert len(missed) == (1 if after == "6_v6" else 0)
    assert {key: found[key] for key in expected} == expected


def archive_of(storage: Storage) -> dict[tuple[str, str], Any]:
    meta = MetaClient.load(storage)
    found = {}
    for archived in load_archived_timeline(storage, meta.config).instants():
        commit = archived.commit()
        stats = None if commit is None else sorted((s.path, s.num_writes, s.prev_commit) for s in commit.stats())
        instant = archived.instant
        found[instant.requested_time, instant.action.value] = (instant.completion_time, stats)
    return found


@pytest.mark.thorough
def test_going_up_and_down_again_adds_nothing_to_the_archive(golden: Golden) -> None:
    storage, _ = golden_stage(golden, "upgrade_a_mor_1_v6")
    before = archive_of(storage)
    names = {entry.name for entry in storage.list(".hoodie/archived")}
    taken_to(storage, 9)
    assert archive_of(storage) == before
    taken_to(storage, 6)
    assert archive_of(storage) == before
    assert {entry.name for entry in storage.list(".hoodie/archived")} == names
