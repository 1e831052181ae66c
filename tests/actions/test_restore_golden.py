"""Savepoints and restores of real Hudi: the same names in savepoints, the same plan, the same undoing, the same rows.

`g2_savepoint_only` is the table that real Hudi then restored, which is `g2_savepoint_restore`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local import LocalEngine
from pyhudi.formats.timeline.instant_files import decode_avro_record
from pyhudi.formats.timeline.savepoints import (
    decode_restore_metadata,
    decode_restore_plan,
    decode_savepoint,
    encode_restore_metadata,
    encode_restore_plan,
    encode_savepoint,
)
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.removal import MetadataTableRemoved
from pyhudi.model.instant import ActionKind, State
from pyhudi.model.options import WriteOptions
from pyhudi.model.plans import RestoreMetadata
from pyhudi.services.savepoint import delete_savepoint, savepoint
from pyhudi.storage import open_storage
from pyhudi.table.calls import serve
from tests.support.golden.folder import GoldenTable
from tests.support.golden.rows import differences

Golden = Callable[[str, str], GoldenTable]
VERSIONS = ("0.15.0", "1.0.2", "1.2.0")
SAVED = [(v, n) for v in VERSIONS for n in ("g2_savepoint_only", "state_savepoint_and_rollback")]
pytestmark = pytest.mark.filterwarnings(f"ignore::{MetadataTableRemoved.__module__}.{MetadataTableRemoved.__name__}")


def body(path: Path, action: ActionKind, state: State = State.COMPLETED) -> tuple[str, bytes]:
    """Requested time and body of the only instant of an action."""
    meta = MetaClient.load(open_storage(path))
    (instant,) = meta.timeline.of([action])
    return instant.requested_time, meta.reader.read_body(instant, state)


@pytest.mark.parametrize(("version", "name"), SAVED)
def test_a_savepoint_names_the_files_that_real_hudi_names(golden: Golden, version: str, name: str) -> None:
    path, _ = golden(version, name)
    time, data = body(path, ActionKind.SAVEPOINT)
    hudis = decode_savepoint(data)
    assert decode_avro_record(encode_savepoint(hudis)) == decode_avro_record(data)

    storage = open_storage(path)
    options = WriteOptions.parse({}, table=MetaClient.load(storage).config)
    serve(storage, partial(delete_savepoint, instant_time=time), options, LocalEngine(1))
    serve(storage, partial(savepoint, instant_time=time), options, LocalEngine(1))

    ours = decode_savepoint(body(path, ActionKind.SAVEPOINT)[1])
    if (version, name) == ("0.15.0", "g2_savepoint_only"):
        # Log files of version 6 bear the slice's name: those of later delta commits are kept too, as Hudi would now.
        kept = {partition: names[: len(hudis.files[partition])] for partition, names in ours.files.items()}
        assert kept == hudis.files
    else:
        assert ours.files == hudis.files
    assert (ours.savepointed_by, ours.comments) == (hudis.savepointed_by, hudis.comments)


@pytest.mark.parametrize("version", VERSIONS)
def test_restore_bodies_of_real_hudi_are_written_as_they_are_read(golden: Golden, version: str) -> None:
    path, _ = golden(version, "g2_savepoint_restore")
    _, plan = body(path, ActionKind.RESTORE, State.REQUESTED)
    assert decode_avro_record(encode_restore_plan(decode_restore_plan(plan))) == decode_avro_record(plan)
    _, done = body(path, ActionKind.RESTORE)
    assert decode_avro_record(encode_restore_metadata(decode_restore_metadata(done))) == decode_avro_record(done)


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS)
def test_a_restore_does_what_real_hudi_did(golden: Golden, version: str) -> None:
    path, description = golden(version, "g2_savepoint_only")
    theirs, restored = golden(version, "g2_savepoint_restore")
    time, _ = body(path, ActionKind.SAVEPOINT)

    table = HudiTable.open(path)
    table.restore(time)

    plan = decode_restore_plan(body(path, ActionKind.RESTORE, State.REQUESTED)[1])
    assert plan == decode_restore_plan(body(theirs, ActionKind.RESTORE, State.REQUESTED)[1])
    done = decode_restore_metadata(body(path, ActionKind.RESTORE)[1])
    hudis = decode_restore_metadata(body(theirs, ActionKind.RESTORE)[1])
    assert done.instants == hudis.instants
    assert list(undone(done)) == list(undone(hudis))
    assert differences(description["expected"]["as_of"][time], table.to_arrow()) == []
    after = restored["expected"]["snapshot_after_restore"]
    assert differences(after, table.to_arrow()) == []
    last = max(i.requested_time for i in HudiTable.open(theirs).state().timeline.commits())
    assert names(path) == {name for name in names(theirs) if not written_since(name, last)}


def undone(metadata: RestoreMetadata) -> Iterator[Any]:
    """What was done to which files, by their names, without how long it took."""

    def sizes(files: Any) -> list[tuple[str, int]]:
        return sorted((path.rpartition("/")[2], size) for path, size in files.items())

    for time, rollbacks in sorted(metadata.rollbacks.items()):
        for rollback in rollbacks:
            for partition, what in sorted(rollback.partitions.items()):
                deleted = sorted(file.rpartition("/")[2] for file in what.success_delete_files)
                logs = sizes(what.rollback_log_files)
                yield (
                    time,
                    rollback.instants_rollback,
                    partition,
                    deleted,
                    logs,
                    sizes(what.log_files_from_failed_commit),
                )


def names(path: Path) -> set[str]:
    """Names of data files."""
    storage = open_storage(path)
    return {
        info.name
        for info in storage.walk("")
        if not info.path.startswith(".hoodie")
        and not info.name.startswith(".hoodie")
        and not info.name.endswith(".crc")
    }


def written_since(name: str, last: str) -> bool:
    """Real Hudi wrote once more after its restore: version 6 into the fourth log of each slice."""
    return last in name or ".log.4_" in name
