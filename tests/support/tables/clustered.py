"""Tables for tests of clustering: clustered with one word."""

from __future__ import annotations

from functools import partial
from typing import Any

from pyhudi.model.commit import CommitMetadata
from pyhudi.model.options import WriteOptions
from pyhudi.services.cluster.calls import cluster
from pyhudi.services.results import ClusteringResult
from pyhudi.storage.base import Storage
from pyhudi.table.calls import serve
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.merge_on_read import MergeOnRead
from tests.support.tables.small import Row

SORT = "hoodie.clustering.plan.strategy.sort.columns"
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")


class Clustered(MergeOnRead):
    """A table of either type whose inserts make new file groups, clustered only when options say so."""

    def __init__(
        self, version: str = "9", table_type: str = "COPY_ON_WRITE", storage: Storage | None = None, **options: str
    ) -> None:
        super().__init__(version, storage, parquet_small_file_limit="0", **options)
        self.options = {**self.options, "hoodie.datasource.write.table.type": table_type}

    def cluster(self, *, dry_run: bool = False, schedule_only: bool = False, **options: Any) -> ClusteringResult:
        """Cluster; keyword options have "_" for ".", behind "hoodie."."""
        instant_time = options.pop("instant_time", None)
        given = {"hoodie." + name.replace("_", "."): text for name, text in options.items()}
        parsed = WriteOptions.parse(given, table=self.meta.config)
        run = partial(cluster, dry_run=dry_run, schedule_only=schedule_only, instant_time=instant_time)
        return serve(self.storage, run, parsed, self.engine, dry_run=dry_run, clock=self.clock)

    def groups(self) -> dict[str, int]:
        """Partition path → visible file groups."""
        view = FileSystemView.load(self.meta)
        return {path: len(view.slices(path)) for path in view.partitions()}

    def pending(self) -> list[str]:
        return [f"{i.action.value}.{i.state.name.lower()}" for i in self.meta.timeline.pending()]

    def first_body(self) -> CommitMetadata:
        meta = self.meta
        return meta.commits.metadata(meta.timeline.commits().instants[0])

    def clustering_body(self) -> CommitMetadata:
        """What the last completed clustering says."""
        meta = self.meta
        bodies = [meta.commits.metadata(instant) for instant in meta.timeline.commits()]
        return next(body for body in reversed(bodies) if body.operation_type == "CLUSTER")

    def data_files(self) -> list[str]:
        return sorted(
            info.path
            for info in self.storage.walk("")
            if not info.path.startswith(".hoodie") and ".hoodie_" not in info.path
        )


def made(version: str = "9", table_type: str = "COPY_ON_WRITE", **options: str) -> Clustered:
    """Two partitions; three file groups in x, with an updated and a deleted row, and one in y."""
    table = Clustered(version, table_type, **options)
    table.insert(("a", "x", 1, 10), ("b", "x", 1, 20))
    table.insert(("c", "x", 1, 5), ("d", "x", 1, 40))
    table.insert(("e", "x", 1, 1), ("f", "y", 1, 7))
    table.upsert(("a", "x", 2, 11))
    table.delete(("d", "x"))
    return table


ROWS: list[Row] = [("a", "x", 2, 11), ("b", "x", 1, 20), ("c", "x", 1, 5), ("e", "x", 1, 1), ("f", "y", 1, 7)]
OPTIMISTIC = {
    "write_concurrency_mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "write_lock_provider": "IN_PROCESS",
    "clean_failed_writes_policy": "LAZY",
}
