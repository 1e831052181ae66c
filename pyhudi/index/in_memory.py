"""Index INMEMORY, for tests: keys of files this process has seen stay in memory.

A base file never changes, so what is kept per file is right for ever; a file that is new to the process is read. Files
that are not candidates any more are forgotten. Keys are unique in the table.
Source: spec, metadata and indexes part 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.index.base import Lookup
from pyhudi.index.key_lookup import KeyLookupIndex
from pyhudi.model.file_group import BaseFile
from pyhudi.model.keys import RECORD_KEY

__all__ = ["InMemoryIndex"]

_KNOWN: dict[str, dict[str, pa.Table]] = {}  # table root → path of a base file → its keys and places
_GUARD = Lock()


@dataclass(frozen=True, slots=True)
class InMemoryIndex(KeyLookupIndex):
    """INMEMORY, the index of that name in Hudi, global as there."""

    is_global: bool = True

    def find(self, keys: pa.Table, files: Sequence[BaseFile], lookup: Lookup) -> pa.Table:
        work = self.work({}, lookup)
        wanted = pc.unique(keys.column(RECORD_KEY))
        changed = [file for file in files if file.path in work.slices]
        files = [file for file in files if file.path not in work.slices]
        live = [pa.Table.from_batches(work.hits(file, wanted), work.schema) for file in changed]
        with _GUARD:
            known = _KNOWN.get(lookup.storage.root, {})
            tables = {
                file.path: known[file.path]
                if file.path in known and known[file.path].schema == work.schema
                else pa.Table.from_batches(work.every_key(file), work.schema)
                for file in files
            }
            _KNOWN[lookup.storage.root] = tables
        stored = pa.concat_tables([work.schema.empty_table(), *tables.values()])
        return pa.concat_tables([stored.filter(pc.is_in(stored.column(RECORD_KEY), value_set=wanted)), *live])
