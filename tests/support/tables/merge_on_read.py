"""Merge-on-read tables for tests of writing: made with one word, read back slice by slice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from pyhudi.engine.local import LocalEngine
from pyhudi.filegroup.read.log_blocks import BlockRules
from pyhudi.filegroup.read.slice import SliceSpec, read_file_slice
from pyhudi.merge.rules import merge_rules
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.options import WriteOptions
from pyhudi.services.compact.compaction import COMPACTION
from pyhudi.services.planned import call
from pyhudi.storage.base import Storage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.calls import serve
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.small import DEFAULTS, SCHEMA, TestTable, rollback_write, rows_of

VERSIONS = ("6", "8", "9")
BLOCK_FORMATS = ("avro", "parquet", "hfile")
EVENT_TIME = "EVENT_TIME_ORDERING"
COMMIT_TIME = "COMMIT_TIME_ORDERING"


class MergeOnRead(TestTable):
    """A `TestTable` of that type, compacted only when options say so; `rows` reads it without the query side."""

    def __init__(self, version: str = "9", storage: Storage | None = None, **options: str) -> None:
        given = {
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.write.table.version": version,
            "hoodie.write.set.null.for.missing.columns": "true",
            "hoodie.compact.inline": "false",
            **{"hoodie." + name.replace("_", "."): text for name, text in options.items()},
        }
        super().__init__(storage if storage is not None else MemoryStorage(), given)

    def rows(self, columns: Sequence[str] = SCHEMA.names, as_of: str | None = None) -> list[tuple[Any, ...]]:
        meta = self.meta
        view = FileSystemView.load(meta, as_of=as_of)
        schema = pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *meta.table_schema()])
        rules = BlockRules(meta.config.table_version, meta.timeline.is_visible, as_of)
        spec = SliceSpec(meta.storage, schema, rules, merge_rules(meta.config))
        batches = [b for s in view.all_slices() for b in read_file_slice(spec, s, list(columns))]
        found = [tuple(row[name] for name in columns) for batch in batches for row in batch.to_pylist()]
        return sorted(found, key=repr)

    def mark_deleted(self, *rows: tuple[str, str, int, int]) -> Any:
        """Upsert rows that say that they are deleted, with their ordering values."""
        data = rows_of(*rows)
        return self.write("upsert", data.append_column("_hoodie_is_deleted", pa.repeat(True, len(data))))

    def upsert_with(self, *rows: tuple[str, str, int, int], **columns: str) -> Any:
        """Upsert rows with further text columns."""
        data = rows_of(*rows)
        for name, text in columns.items():
            data = data.append_column(name, pa.repeat(text, len(data)))
        return self.write("upsert", data)

    def compact_now(self, *, schedule_only: bool = False) -> None:
        """Compact whatever has log files."""
        given = {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.clean.failed.writes.policy": "LAZY"}
        options = WriteOptions.parse(given, table=self.meta.config)
        serve(self.storage, partial(call, COMPACTION, schedule_only=schedule_only), options, LocalEngine(1))

    def roll_back(self, instant_time: str) -> None:
        """Undo a write by its instant time."""
        rollback_write(self.storage, instant_time, WriteOptions.parse(DEFAULTS), self.engine)

    def roll_back_last(self) -> None:
        last = self.meta.timeline.last_commit()
        assert last is not None
        self.roll_back(last.requested_time)

    def paths(self) -> list[str]:
        """Data files."""
        return sorted(
            info.path
            for info in self.storage.walk("")
            if not info.path.startswith(".hoodie/") and not info.name.startswith(".hoodie_")
        )

    def logs(self) -> list[str]:
        return [path for path in self.paths() if ".log." in path]
