"""Which tests make tables with a metadata table where they say nothing of it.

It is half of the time of a small write. In rooms whose subject it isn't new tables have none, but for one case of each
file, which the seed of the run chooses, and tests marked `metadata_table`. Tables of options that name it have it.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

import pytest

from pyhudi.actions import create_table
from pyhudi.model.options import WriteOptions
from pyhudi.model.table_config import TableConfig
from tests.support.sweeps import SEED

__all__ = ["WITHOUT", "has_one_by_default", "mark_with_metadata_table", "no_metadata_table_by_default"]

WITHOUT = frozenset({"actions", "filegroup", "queries", "services", "sql", "table"})
_of_users = create_table._metadata_partitions


def mark_with_metadata_table(items: Iterable[pytest.Item], seed: int = SEED) -> None:
    """Mark one case of each file of those rooms: its tables are made as those of users are."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        file = item.nodeid.partition("::")[0]
        if file.split("/")[1] in WITHOUT and not any(map(item.get_closest_marker, ("sweep", "slow"))):
            files.setdefault(file, []).append(item)
    for cases in files.values():
        min(cases, key=lambda item: crc32(f"{seed} {item.nodeid}".encode())).add_marker("metadata_table")


def has_one_by_default(item: pytest.Item) -> bool:
    return item.nodeid.split("/")[1] not in WITHOUT or item.get_closest_marker("metadata_table") is not None


def no_metadata_table_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """New tables of this process have no metadata table, unless options ask for it or for a part of it."""

    def partitions(config: TableConfig, options: WriteOptions) -> tuple[str, ...]:
        asked = any(key.startswith("hoodie.metadata.") for key in options.explicit)
        needed = "RECORD" in str(options.index_type).upper()
        return _of_users(config, options) if asked or needed else ()

    monkeypatch.setattr(create_table, "_metadata_partitions", partitions)
