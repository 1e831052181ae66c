"""Tables made by hand in memory: a timeline and empty files, for tests of what a reader makes of them."""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.formats.timeline.instant_files import encode_commit
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.new_table import NewTable, new_table_properties
from pyhudi.storage import FixedClock, MemoryStorage
from pyhudi.timeline.table_properties import create_table
from pyhudi.transaction.instants import TimelineWriter


def instant(number: int) -> str:
    """The instant time of the `number`-th second of a day."""
    return f"202401010000{number:02d}000"


class HandMadeTable:
    """A merge-on-read table of a version; `t(3)` is its third instant time."""

    def __init__(self, version: int, table_type: str = "MERGE_ON_READ") -> None:
        self.storage = MemoryStorage()
        self.version = version
        clock = FixedClock(1_700_000_000_000)
        properties = new_table_properties(
            NewTable(
                "t", table_type, version, ("id",), ("p",), create_schema='{"type":"record","name":"t","fields":[]}'
            )
        )
        self.config = create_table(self.storage, properties, clock)
        self.timeline = TimelineWriter(self.storage, self.config)

    def partition(self, path: str, metadata_name: str = ".hoodie_partition_metadata") -> HandMadeTable:
        self.storage.write(f"{path}/{metadata_name}" if path else metadata_name, b"commitTime=0\npartitionDepth=1\n")
        return self

    def file(self, path: str, data: bytes = b"x") -> HandMadeTable:
        self.storage.write(path, data)
        return self

    def commit(
        self,
        at: int,
        until: int | None = None,
        action: ActionKind = ActionKind.COMMIT,
        state: State = State.COMPLETED,
        replaced: Mapping[str, tuple[str, ...]] | None = None,
    ) -> HandMadeTable:
        """An instant requested at `at`, completed at `until` (just afterwards when None), or left in another state."""
        begun = self.timeline.request(instant(at), action)
        if state is State.REQUESTED:
            return self
        begun = self.timeline.start(begun)
        if state is State.INFLIGHT:
            return self
        body = CommitMetadata({}, {}, partition_to_replace_file_ids=replaced)
        done = Instant(instant(at), action, State.INFLIGHT)
        self.timeline.complete(
            begun if begun else done, instant(until or at + 1), encode_commit(body, action.completed_as, self.version)
        )
        return self

    def meta(self) -> MetaClient:
        return MetaClient.load(self.storage)


def base(file_id: str, at: int) -> str:
    return f"{file_id}-0_0-1-1_{instant(at)}.parquet"


def log(file_id: str, at: int, version: int = 1, suffix: str = "") -> str:
    return f".{file_id}-0_{instant(at)}.log.{version}_0-1-1{suffix}"
