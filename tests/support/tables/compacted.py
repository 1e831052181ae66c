"""Merge-on-read tables that are compacted only when a test says so."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.options import WriteOptions
from pyhudi.services.compact.compaction import COMPACTION, LOG_COMPACTION
from pyhudi.services.planned import Service, call
from pyhudi.services.results import CompactionResult
from pyhudi.table.calls import serve
from tests.support.tables.merge_on_read import MergeOnRead

EVERYTHING = [*META_COLUMNS[:4], "id", "p", "ts", "v"]


class Compacted(MergeOnRead):
    """A merge-on-read table whose writes compact only when they are asked to."""

    def __init__(self, version: str = "9", **options: str) -> None:
        by_event_time = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
        fixed = {"compact_inline": "false", "datasource_write_payload_class": by_event_time}
        super().__init__(version, **{**fixed, **options})

    def compact(
        self, service: Service = COMPACTION, *, policy: str = "EAGER", instant: str | None = None, **more: Any
    ) -> CompactionResult:
        options = {"hoodie." + n.replace("_", "."): more.pop(n) for n in list(more) if isinstance(more[n], str)}
        parsed = WriteOptions.parse({**self.options, **options}, table=self.meta.config)
        parsed = replace(parsed, failed_writes_policy=policy)
        run = partial(call, service, instant_time=instant, **more)
        return serve(self.storage, run, parsed, self.engine, dry_run=more.get("dry_run", False), clock=self.clock)

    def log_compact(self, **more: Any) -> CompactionResult:
        return self.compact(LOG_COMPACTION, log_compaction_blocks_threshold="2", **more)

    def start(self) -> Compacted:
        """Three rows in two partitions, then an update, a delete and a late row in log files."""
        self.bulk_insert(("a", "x", 1, 10), ("b", "x", 1, 20), ("c", "y", 5, 30))
        self.upsert(("a", "x", 2, 11), ("c", "y", 4, 99))
        self.delete(("b", "x"))
        return self

    def pending(self) -> list[str]:
        return [instant.requested_time for instant in self.meta.timeline.pending()]

    def base_names(self) -> list[str]:
        return [path for path in self.paths() if path.endswith(".parquet")]


ROWS = [("a", "x", 2, 11), ("c", "y", 5, 30)]
