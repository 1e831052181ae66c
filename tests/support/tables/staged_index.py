"""Tables whose record index the tasks of a load write in pieces, small as they are."""

from __future__ import annotations

import pytest

from pyhudi.meta_client import MetaClient
from pyhudi.metadata import staged_index
from pyhudi.metadata.table import MetadataTable

__all__ = ["blocks_of_index", "small_staged_files"]


def small_staged_files(monkeypatch: pytest.MonkeyPatch, most_keys: int = 1) -> None:
    """Tasks make pieces of the keys of so few rows: by default, a temporary file of them for each base file."""
    monkeypatch.setattr(staged_index, "_LEAST_KEYS", 1)
    monkeypatch.setattr(staged_index, "_LEAST_KEYS_OF_GROUP", 0)
    monkeypatch.setattr(staged_index, "_MOST_KEYS", most_keys)


def blocks_of_index(meta: MetaClient) -> list[int]:
    """How many blocks of records each log file of the record index has that has any."""
    found = MetadataTable.open(meta)
    assert found is not None
    blocks = [block for own in found.slices("record_index") for block in found.reader(own).blocks]
    of_files = [block.path for block in blocks if not block.is_delete]
    return [of_files.count(path) for path in dict.fromkeys(of_files)]
