"""The bodies of completed writes, read once each, and the table schema in them.

Source: docs/formats/timeline.md, "Steps of an instant", "Bodies"; docs/formats/schema.md, "Schema of a table".
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from pyhudi.errors import CorruptFile, PathNotFound
from pyhudi.formats.timeline.instant_files import decode_commit, decode_totals
from pyhudi.model.commit import CommitMetadata, CommitTotals, OperationType
from pyhudi.model.instant import Instant, State
from pyhudi.model.table_config import TableConfig
from pyhudi.model.timeline import Timeline
from pyhudi.storage.base import Storage
from pyhudi.storage.file_cache import get_or_load, peek
from pyhudi.timeline.archived_timeline import ArchivedInstant, load_archived_timeline
from pyhudi.timeline.listing import instant_path
from pyhudi.timeline.read import TimelineReader

__all__ = ["CommitBodies", "has_table_schema"]

_WITHOUT_SCHEMA_CHANGE = frozenset(
    {OperationType.CLUSTER, OperationType.COMPACT, OperationType.LOG_COMPACT, OperationType.INDEX}
)


_PART, _TOTALS_PART = "commit", "totals"  # names of the cached parts of a completed file
_NOTHING = CommitMetadata({})  # in a file of zero bytes
_STAT_BYTES = 2000  # about the size of a write stat in memory

Decoded = TypeVar("Decoded")


class CommitBodies:
    """Reads commit metadata through a cache. A completed file never changes, so an instant is read once."""

    def __init__(self, storage: Storage, config: TableConfig) -> None:
        self._reader = TimelineReader(storage, config)
        self._storage = storage
        self._config = config
        self._cache: dict[Instant, CommitMetadata] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[CommitBodies], tuple[Storage, TableConfig]]:
        """Pickle without the cache: a task that gets the table reads bodies itself."""
        return CommitBodies, (self._storage, self._config)

    def metadata(self, instant: Instant) -> CommitMetadata:
        """Return the body of a completed write. A file of zero bytes (a crash on HDFS) is an empty UNKNOWN operation.

        Raises CorruptFile, and PathNotFound if the write was rolled back since.
        """
        assert instant.is_completed, instant
        with self._lock:
            body = self._cache.get(instant)
        if body is None:
            body = self._load(instant, _PART, decode_commit, _size_of, lambda archived: archived.commit())
            if body != _NOTHING:  # a repair may still write the file
                with self._lock:
                    self._cache[instant] = body
        return body

    def totals(self, instant: Instant) -> CommitTotals:
        """Like `metadata`, with the write stats summed up: less is decoded, and no body stays in memory."""
        assert instant.is_completed, instant
        body = self.peek_metadata(instant)
        if body is not None:
            return CommitTotals.of(body)
        return self._load(instant, _TOTALS_PART, decode_totals, _size_of, lambda archived: archived.totals())

    def with_body(self, instant: Instant, body: CommitMetadata) -> CommitBodies:
        """Return these bodies with that of an instant which is about to complete."""
        bodies = CommitBodies(self._storage, self._config)
        with self._lock:
            bodies._cache.update(self._cache)
        bodies._cache[instant] = body
        return bodies

    def peek_metadata(self, instant: Instant) -> CommitMetadata | None:
        """Return the body if it is cached, else None."""
        with self._lock:
            cached = self._cache.get(instant)
        return cached or peek(self._storage, instant_path(instant, self._config), _PART, CommitMetadata)

    def _load(
        self,
        instant: Instant,
        part: str,
        decode: Callable[[bytes], Decoded],
        size_of: Callable[[Decoded], int],
        archived_form: Callable[[ArchivedInstant], Decoded | None],
    ) -> Decoded:
        try:
            return get_or_load(
                self._storage,
                instant_path(instant, self._config),
                part,
                lambda: decode(self._reader.read_body(instant, State.COMPLETED)),
                size_of,
            )
        except PathNotFound:
            # Archived since the timeline was loaded: readers of that timeline still find the body.
            time = instant.requested_time
            for archived in load_archived_timeline(self._storage, self._config).instants(time, time):
                body = archived_form(archived) if archived.instant.action is instant.action else None
                if body is not None:
                    return body
            raise
        except CorruptFile as error:
            raise CorruptFile(
                f"{self._storage.root}: the completed file of {instant.action.value} {instant.requested_time} "
                f"can't be read: {error}"
            ) from error

    def latest_schema_json(self, timeline: Timeline) -> str | None:
        """Return the table's schema as Avro JSON, from the newest commit that has one; None without any."""
        newest = self._newest_with_schema(timeline)
        return None if newest is None else self.metadata(newest).schema_json

    def schema_json_as_of(self, timeline: Timeline, instant_time: str) -> str | None:
        """Like `latest_schema_json`, from active and archived commits requested at `instant_time` or before."""
        newest = self._newest_with_schema(timeline.up_to(instant_time))
        since, newest_time = timeline.active_since, newest.requested_time if newest is not None else None
        # Archiving passes savepointed commits: a newer commit may be in the history.
        if newest_time is None or (newest_time != instant_time and since is not None and newest_time < since):
            for archived in load_archived_timeline(self._storage, self._config).instants(newest_time, instant_time):
                body = archived.commit()
                if body is not None and has_table_schema(body):
                    return body.schema_json
        return None if newest is None else self.metadata(newest).schema_json

    def _newest_with_schema(self, timeline: Timeline) -> Instant | None:
        return next((i for i in reversed(timeline.commits().instants) if has_table_schema(self.metadata(i))), None)


def has_table_schema(body: CommitMetadata | CommitTotals) -> bool:
    """True if the commit holds the table's schema. Services rewrite rows unchanged and may hold an older one."""
    return body.operation_type not in _WITHOUT_SCHEMA_CHANGE and body.schema_json is not None


def _size_of(body: CommitMetadata | CommitTotals) -> int:
    stats = 1 if isinstance(body, CommitTotals) else len(body.stats())
    return _STAT_BYTES * stats + sum(map(len, body.extra_metadata.values()))
