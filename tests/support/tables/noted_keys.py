"""A record index kept by nothing but what commits report: statuses of tasks, and keys of replaced file groups."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.written_keys import replaced_keys
from pyhudi.engine.local import LocalEngine
from pyhudi.filegroup.write.status import STATUS_SCHEMA, from_table
from pyhudi.formats.base import open_base_file
from pyhudi.locks import open_lock
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.locations import file_ids, partition_paths, partitioned_record_index_updates
from pyhudi.metadata.partitions.base import PartitionUpdate
from pyhudi.model.commit import OperationType, WriteStatus, change_of
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.options import WriteOptions
from pyhudi.services.cluster.calls import cluster
from pyhudi.services.compact.compaction import COMPACTION
from pyhudi.services.planned import call
from pyhudi.table.calls import serve
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.small import DEFAULTS, TestTable

Place = tuple[str, str]  # partition path, file id


class NotingEngine(LocalEngine):
    """Keeps the statuses that tasks reported since it was asked last."""

    def __init__(self) -> None:
        super().__init__(2)
        self.noted: list[WriteStatus] = []

    def collect(self, frame: Any) -> pa.Table:
        found = super().collect(frame)
        if found.schema.equals(STATUS_SCHEMA):
            self.noted += from_table(found)
        return found

    def take(self) -> list[WriteStatus]:
        noted, self.noted = self.noted, []
        return noted


class NotedKeys(TestTable):
    """A table, and the places of its keys as its commits told them: (partition path, key) → (partition path, file id).

    Needs `keeps_record_index` of `pyhudi.actions.writes.preparation` to be true.
    """

    def __init__(self, **options: str) -> None:
        self.noting = NotingEngine()
        super().__init__(options={"hoodie.write.set.null.for.missing.columns": "true", **options}, engine=self.noting)
        self.places: dict[Place, Place] = {}
        self.is_global = "GLOBAL" in self.options.get("hoodie.index.type", "")

    def write(self, operation: str, data: Any, **options: str) -> Any:
        before = self.meta if self.places or self.storage.list("") else None
        result = super().write(operation, data, **options)
        self.note(before)
        return result

    def cluster(self) -> None:
        self._serve(partial(cluster, dry_run=False, schedule_only=False, instant_time=None))

    def compact(self) -> None:
        self._serve(partial(call, COMPACTION, dry_run=False, schedule_only=False, instant_time=None))

    def _serve(self, run: Any) -> None:
        before = self.meta
        given = {
            "hoodie.clustering.plan.strategy.small.file.limit": "1000000",
            "hoodie.compact.inline.max.delta.commits": "1",
        }
        serve(self.storage, run, WriteOptions.parse(given, table=before.config), self.engine)
        self.note(before)

    def note(self, before: MetaClient | None) -> None:
        """Apply what the newest commit has reported. `before`: the table as it was then."""
        statuses, meta = self.noting.take(), self.meta
        known = set() if before is None else {i.requested_time for i in before.timeline.commits()}
        for instant in meta.timeline.commits():
            if instant.requested_time in known:
                continue
            body = meta.commits.metadata(instant)
            rewritten = body.operation_type == OperationType.CLUSTER
            groups = frozenset[FileGroupId]() if rewritten else change_of(body).groups_replaced
            gone = {} if before is None else replaced_keys(groups, self._context(before))
            own = [s for s in statuses if s.stat.path in {stat.path for stat in body.stats()}]
            updates = partitioned_record_index_updates(
                meta.config.table_version, instant.requested_time, meta.config.timeline_zone, own, gone
            )
            for path, update in updates.items():
                self._apply(path, update)

    def _context(self, meta: MetaClient) -> ActionContext:
        options = WriteOptions.parse({**DEFAULTS, **self.options}, table=meta.config)
        return ActionContext(meta, options, open_lock(options.lock, self.storage, self.clock), self.clock, self.engine)  # type: ignore[arg-type]

    def _apply(self, path: str, update: PartitionUpdate) -> None:
        for key in update.deleted.to_pylist():
            self.places.pop((path, key), None)
        payload = update.records.column("recordIndexMetadata").combine_chunks()
        if isinstance(payload, pa.DictionaryArray):  # each place once
            payload = payload.dictionary.take(payload.indices)
        rows = zip(update.records.column("key").to_pylist(), partition_paths(payload), file_ids(payload), strict=True)
        for key, at, file_id in rows:
            self.places[(path, key)] = (at.as_py(), file_id.as_py())

    def live(self) -> dict[Place, Place]:
        """The places of all rows of the table."""
        if not self.meta.config.populate_meta_fields:
            return self._live_by_slice()
        rows = self.rows(("_hoodie_partition_path", "_hoodie_record_key", "_hoodie_file_name"))
        return {(path, key): (path, name.split("_")[0]) for path, key, name in rows}

    def _live_by_slice(self) -> dict[Place, Place]:
        """The same where rows don't say their keys and files; the key is the column `id`."""
        found: dict[Place, Place] = {}
        for base in FileSystemView.load(self.meta).all_base_files():
            with open_base_file(self.storage, base.path) as reader:
                keys = reader.column("id").to_pylist()
            found |= {(base.partition_path, str(key)): (base.partition_path, base.file_id) for key in keys}
        return found
