"""Tables that tests take from one version to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pyhudi.engine.local import LocalEngine
from pyhudi.model.options import WriteOptions
from pyhudi.services.versions.upgrade import VersionChange, admit_version, change_version
from pyhudi.storage.base import Storage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.calls import serve
from pyhudi.timeline.table_properties import load_table_config
from tests.support.tables.merge_on_read import MergeOnRead
from tests.support.tables.small import TestTable


def take_to(
    storage: Storage, version: int, *, policy: str = "EAGER", options: Mapping[str, str] | None = None
) -> VersionChange:
    """Upgrade or downgrade the table at a storage."""
    config = load_table_config(storage)
    upwards = version >= config.table_version
    parsed = replace(WriteOptions.parse(options or {}, table=config), failed_writes_policy=policy)
    change = partial(change_version, target=version, upwards=upwards)
    admit = partial(admit_version, target=version, upwards=upwards)
    return serve(storage, change, parsed, LocalEngine(1), admit=admit)


def all_reads(table: TestTable) -> dict[str | None, list[tuple[Any, ...]]]:
    """The snapshot (under None), and what the table was as of each of its commits."""
    times = [instant.requested_time for instant in table.meta.timeline.commits()]
    return {time: table.rows(as_of=time) for time in (None, *times)}


BY_VALUE = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"


def copy_on_write(version: str) -> TestTable:
    table = TestTable(MemoryStorage(), {"hoodie.write.table.version": version})
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 5, 30))
    table.upsert(("a", "x", 2, 11), ("d", "z", 1, 40))
    table.delete(("b", "x"))
    return table


def merge_on_read(version: str) -> TestTable:
    """With a compaction in the middle, and log files before and after it."""
    table = MergeOnRead(version, datasource_write_payload_class=BY_VALUE)
    table.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 5, 30))
    table.upsert(("a", "x", 2, 11), ("c", "y", 4, 99))
    table.delete(("b", "x"))
    table.compact_now()
    table.upsert(("a", "x", 3, 12), ("d", "z", 1, 40))
    table.upsert(("a", "x", 2, 99), ("c", "y", 6, 31))
    return table
