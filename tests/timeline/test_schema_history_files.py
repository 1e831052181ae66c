"""Files of a schema history: saved ones are on the disk, and deleted ones are gone from it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.model.filenames import SCHEMA_FOLDER
from pyhudi.schema.changes import numbered_schema
from pyhudi.timeline.schema_history_files import delete_history, save_history
from tests.support.storages.power import PowerStorage
from tests.support.tables.small import TestTable

TIMES = ("20240101000000001", "20240101000000002")
HISTORY = (numbered_schema(pa.schema([("a", pa.int64())]), with_meta=False),)


def on_disk(storage: PowerStorage) -> dict[str, bytes]:
    """The history that a power cut leaves in the worst case."""
    return {path: data for path, data in storage.after_the_worst_cut().items() if path.startswith(SCHEMA_FOLDER)}


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_history_that_was_saved_outlives_a_power_cut_and_a_deleted_one_stays_away(
    version: str,
) -> None:
    table = TestTable(options={"hoodie.write.table.version": version})
    table.upsert(("a", "x", 1, 1))
    storage, meta = PowerStorage(table.memory), table.meta

    save_history(TIMES, HISTORY, storage, meta.config, meta.timeline)

    saved = on_disk(storage)
    assert saved == {path: storage.read(path) for path in storage.paths() if path.startswith(SCHEMA_FOLDER)}
    assert len(saved) == 3
    assert sum(b'"a"' in data for data in saved.values()) == 1

    delete_history(TIMES[0], storage)

    assert on_disk(storage) == {}
