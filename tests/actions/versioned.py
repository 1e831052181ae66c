"""Tables that tests take from one version to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pyhudi.engine.local import LocalEngine
from pyhudi.model.options import WriteOptions
from pyhudi.services.versions.result import VersionChange
from pyhudi.services.versions.upgrade import admit_version, change_version
from pyhudi.storage.base import Storage
from pyhudi.table.run_service import serve
from pyhudi.timeline.table_properties import load_table_config
from tests.actions.tables import TestTable


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
