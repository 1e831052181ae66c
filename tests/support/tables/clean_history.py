"""A table that remembers its rows of each commit, and every service that may run on it; made as users' tables are."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import strategies as st

from pyhudi.engine.local import LocalEngine
from pyhudi.model.options import WriteOptions
from pyhudi.services.clean.cleaning import clean
from pyhudi.services.cluster.calls import cluster
from pyhudi.services.compact.compaction import COMPACTION, LOG_COMPACTION
from pyhudi.services.planned import call
from pyhudi.services.savepoint import delete_savepoint, load_savepoints, savepoint
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.calls import serve
from pyhudi.view.readable_history import load_readable_history
from tests.support.tables.small import Row, TestTable, rows_of

WRITES = ("upsert", "upsert", "upsert", "delete", "insert_overwrite", "insert_overwrite_table", "delete_partition")
SERVICES = ("compact", "plan", "log_compact", "cluster", "savepoint", "forget", "clean", "clean", "clean_later")
POLICIES = (
    {"hoodie.clean.commits.retained": "1"},
    {"hoodie.clean.commits.retained": "3"},
    {"hoodie.clean.fileversions.retained": "1"},
    {"hoodie.clean.fileversions.retained": "2"},
    {"hoodie.clean.hours.retained": "0"},
)
QUIET = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.log.compaction.blocks.threshold": "2",
    "hoodie.parquet.small.file.limit": "0",
}
KEYS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz")), min_size=1, max_size=3, unique=True)


class Cleaned:
    """A table, and what each of its commits looked like when it was new."""

    def __init__(self, version: str, table_type: str) -> None:
        options = {"hoodie.write.table.version": version, "hoodie.datasource.write.table.type": table_type}
        self.table = TestTable(MemoryStorage(), {**options, **QUIET}, engine=LocalEngine(1), metadata_by_default=True)
        self.table.bulk_insert(("a", "x", 1, 0), ("b", "y", 1, 0), ("c", "z", 1, 0))
        self.rows_at: dict[str, list[Any]] = {}
        self.note()

    def note(self) -> None:
        newest = self.table.meta.timeline.last_commit()
        assert newest is not None
        self.rows_at.setdefault(newest.requested_time, self.table.rows())

    def serve(self, service: Any, **options: str) -> Any:
        return serve(self.table.storage, service, WriteOptions.parse({**QUIET, **options}), self.table.engine)

    def write(self, operation: str, keys: list[tuple[str, str]], value: int) -> None:
        rows: list[Row] = [(key, path, value, value) for key, path in keys]
        if operation == "delete":
            self.table.delete(*keys)
        else:
            self.table.write(operation, rows_of(*rows))

    def run(self, operation: str, data: st.DataObject) -> None:
        if operation == "savepoint":
            self.serve(savepoint)
        elif operation == "forget":
            for saved in load_savepoints(self.table.meta)[:1]:
                self.serve(partial(delete_savepoint, instant_time=saved.instant_time))
        elif operation == "cluster":
            self.serve(cluster)
        elif operation in ("clean", "clean_later"):
            policy = data.draw(st.sampled_from(POLICIES), "policy")
            self.serve(partial(clean, schedule_only=operation == "clean_later"), **policy)
            self.check(int(policy.get("hoodie.clean.commits.retained", 0)))
        elif self.table.meta.config.is_merge_on_read:
            service = LOG_COMPACTION if operation == "log_compact" else COMPACTION
            self.serve(partial(call, service, schedule_only=operation == "plan"))

    def check(self, retained: int = 0) -> None:
        """What is said to be readable is as it was, and nothing refers to a file that is gone."""
        retention = load_readable_history(self.table.meta)
        commits = [i.requested_time for i in self.table.meta.timeline.commits()]
        for instant in commits[-1:]:
            assert retention.is_readable(instant)
        for saved in load_savepoints(self.table.meta):
            assert retention.is_readable(saved.instant_time)
        for instant, rows in self.rows_at.items():
            if instant in commits and retention.is_readable(instant):
                assert self.table.rows(as_of=instant) == rows, f"as of {instant}"
        assert self.table.rows() == self.rows_at[max(self.rows_at)]
