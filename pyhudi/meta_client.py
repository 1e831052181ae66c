"""MetaClient: a table at one moment (storage, config, timeline). Frozen; `reload` returns a newer one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyhudi.errors import TableNotFound
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.filenames import BaseFileName
from pyhudi.model.instant import Instant
from pyhudi.model.table_config import TableConfig
from pyhudi.model.timeline import Timeline
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.storage.place import file_names_in
from pyhudi.storage.staged_table import place_of, staged_table
from pyhudi.timeline.commits import CommitBodies
from pyhudi.timeline.listing import load_config_and_timeline
from pyhudi.timeline.read import TimelineReader
from pyhudi.timeline.table_properties import has_properties

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MetaClient"]

_SYSTEM_CLOCK = SystemClock()


@dataclass(frozen=True)
class MetaClient:
    """The starting point of readers and writers of one table."""

    storage: Storage
    config: TableConfig
    timeline: Timeline
    clock: Clock = _SYSTEM_CLOCK
    _bodies: CommitBodies | None = field(default=None, repr=False, compare=False)
    _instant_files: frozenset[str] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self._bodies is None:
            object.__setattr__(self, "_bodies", CommitBodies(self.storage, self.config))

    def __repr__(self) -> str:
        return f"MetaClient({self.storage.root}, {self.config}, {self.timeline})"

    @classmethod
    def load(cls, storage: Storage, clock: Clock = _SYSTEM_CLOCK) -> MetaClient:
        """Read the properties and list the timeline.

        A table that is being replaced at this moment is read where the new one was built. Raises TableNotFound,
        CorruptFile, and UnsupportedTable for a table that this release can't read.
        """
        storage = place_of(storage)
        try:
            return cls._loaded(storage, clock)
        except TableNotFound:
            staged = staged_table(storage)
            if staged is None and not has_properties(storage):
                raise
        return cls._loaded(staged or storage, clock)

    @classmethod
    def _loaded(cls, storage: Storage, clock: Clock) -> MetaClient:
        config, timeline, names = load_config_and_timeline(storage, clock)
        return cls(storage, config, timeline, clock, None, names)

    def reload(self) -> MetaClient:
        """The table as it is now; cached bodies stay unless the table was upgraded in between."""
        newer = MetaClient.load(self.storage, self.clock)
        if newer.config.timeline_path == self.config.timeline_path:
            object.__setattr__(newer, "_bodies", self._bodies)
        return newer

    def with_completed(self, instant: Instant, body: CommitMetadata) -> MetaClient:
        """The table as it will be when an inflight instant completes with this body, and nothing else changes."""
        assert self._bodies is not None
        others = (one for one in self.timeline if one.requested_time != instant.requested_time)
        timeline = Timeline((*others, instant))
        return MetaClient(self.storage, self.config, timeline, self.clock, self._bodies.with_body(instant, body))

    def is_current(self) -> bool:
        """True when no instant has changed its state since this was loaded. One listing.

        Names of instants appear and disappear once, and the newest write disappears only when it is undone: so instants
        begun before the listing are visible in it, whatever happens during it.
        """
        return self._instant_files == file_names_in(self.storage, self.config.timeline_path)

    @property
    def commits(self) -> CommitBodies:
        """The bodies of completed writes, cached."""
        assert self._bodies is not None
        return self._bodies

    @property
    def reader(self) -> TimelineReader:
        """Reads plans, profiles and other bodies of instants."""
        return TimelineReader(self.storage, self.config)

    def table_schema(self) -> pa.Schema:
        """Schema of the data columns, without meta columns.

        It is that of the newest commit with a schema, else the schema at creation, else the newest base file's; a table
        without any of them has no columns.
        """
        import pyarrow as pa

        from pyhudi.formats.avro.schema import arrow_from_avro, without_meta
        from pyhudi.formats.base import open_base_file

        text = self.commits.latest_schema_json(self.timeline) or self.config.create_schema
        if text is not None:
            return without_meta(arrow_from_avro(text))
        for path in self._base_files_newest_first():
            with open_base_file(self.storage, path) as reader:
                return without_meta(reader.schema)
        return pa.schema([])

    def stored_schema(self) -> pa.Schema:
        """`table_schema` without the partition columns that files leave out (`drop_partition_columns`).

        Hudi puts these columns into the schema of some commits (0.15.0: of upserts; any: of CREATE TABLE).
        """
        import pyarrow as pa

        dropped = self.config.dropped_partition_fields
        return pa.schema([field for field in self.table_schema() if field.name not in dropped])

    def _base_files_newest_first(self) -> Iterator[str]:
        """Existing base files of commits, newest first."""
        for instant in reversed(self.timeline.commits().instants):
            for stat in self.commits.metadata(instant).stats():
                if stat.path is None or BaseFileName.parse(stat.path.rpartition("/")[2]) is None:
                    continue
                if self.storage.stat(stat.path) is not None:
                    yield stat.path
