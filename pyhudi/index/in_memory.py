"""Index INMEMORY, for tests: keys of files that this process has read stay in memory.

A base file never changes, so its entry remains valid; a file new to the process is read. Files that are no longer
candidates are dropped. Keys are unique in the table.
Source: docs/formats/indexes.md, "Finding keys".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.index.base import Lookup
from pyhudi.index.key_lookup import FindKeys, KeyLookupIndex
from pyhudi.index.stored_keys import Candidate, StoredKeys
from pyhudi.model.keys import RECORD_KEY

__all__ = ["InMemoryIndex"]

_TABLES: dict[str, dict[str, pa.Table]] = {}  # table root → path of a base file → its keys and locations
_GUARD = Lock()


@dataclass(frozen=True, slots=True)
class InMemoryIndex(KeyLookupIndex):
    """INMEMORY, which is global as in Hudi."""

    is_global: ClassVar[bool] = True

    def find(self, keys: pa.Table, to_search: Sequence[Candidate], lookup: Lookup) -> pa.Table:
        stored_keys, distinct_keys = StoredKeys.of(lookup), pc.unique(keys.column(RECORD_KEY))
        # A slice can get further log files, so its live keys are read again.
        changing = FindKeys(stored_keys, {}, uses_bloom=False)
        live = [
            b
            for candidate in to_search
            if candidate.merging is not None
            for b in changing.hits(candidate, distinct_keys)
        ]
        with _GUARD:
            tables_before = _TABLES.get(lookup.storage.root, {})
            files = [candidate.file for candidate in to_search if candidate.file and candidate.merging is None]
            tables = {
                file.path: tables_before[file.path]
                if file.path in tables_before and tables_before[file.path].schema == stored_keys.schema
                else pa.Table.from_batches(stored_keys.every_key(Candidate(file)), stored_keys.schema)
                for file in files
            }
            _TABLES[lookup.storage.root] = tables
        places = pa.concat_tables([stored_keys.schema.empty_table(), *tables.values()])
        hits = places.filter(pc.is_in(places.column(RECORD_KEY), value_set=distinct_keys))
        return pa.concat_tables([hits, pa.Table.from_batches(live, stored_keys.schema)])
