"""The data source `hudi` for `spark.readStream`: offsets, and the tasks of a batch.

An offset is Hudi's own, `{"offsetCommitTime": "<time>"}`: the time of the last commit that was read. Spark stores
offsets in the query's checkpoint. Everything except reading tasks runs in one Python process on the driver's machine.
Source: docs/formats/incremental.md, "Offsets of a stream".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql.types import StructType

from pyhudi.errors import ConfigError, CorruptFile
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import ReadOptions, canonical_keys
from pyhudi.model.options.queries import AS_OF, BEGIN, END, IncrementalOptions
from pyhudi.model.options.streaming import MAX_BYTES, MAX_COMMITS, START_OFFSET
from pyhudi.queries.follow import end_of_batch, first_begin, followed_range
from pyhudi.queries.incremental import plan_incremental
from pyhudi.queries.query import Query
from pyhudi.session.data_source import hudi_options_of, storage_of, tasks_of
from pyhudi.spark import capabilities
from pyhudi.spark.failures import spelled_out

__all__ = ["FollowedTable", "Offset"]

Offset = dict[str, str]

_TIME = "offsetCommitTime"
_FIRST = "00000000000000"  # Hudi's time before the first commit
_INSTANT_TIME = re.compile(r"\d{1,17}", re.ASCII)
_TYPE, _FORMAT = "hoodie.datasource.query.type", "hoodie.datasource.query.incremental.format"
_HOLES = "hoodie.read.timeline.holes.resolution.policy"


class FollowedTable:
    """A table that a stream follows. `target`: the end of an `availableNow` run."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        """Raises ConfigError for options that have no meaning for a stream."""
        self._given_options, self._schema = dict(options), schema
        self._options = ReadOptions.parse(hudi_options_of(options))
        self._meta: MetaClient | None = None
        self._target: str | None = None
        keys = canonical_keys(options)
        refused = sorted(keys & {AS_OF, BEGIN, END})
        if refused:
            raise ConfigError(f"{refused[0]} says nothing to a stream: where it begins says {START_OFFSET}.")
        kind = self._options.query_type
        if kind == "read_optimized":
            raise ConfigError(f"{_TYPE}={kind}: a stream returns rows of log files, too. Leave the option out.")
        if self._options.incremental.returns_changes and kind != "incremental":
            raise ConfigError(f"{_FORMAT}=cdc: a stream of changes needs {_TYPE}=incremental as well.")
        if self.is_limited and not capabilities.PRESENT.limits_streams:
            raise ConfigError(
                f"{MAX_COMMITS}, {MAX_BYTES}: this Spark reads all new rows at once from a format written in Python "
                "(limits need Spark 4.2). Leave the option out, or follow the table with pyhudi.follow."
            )

    @property
    def is_limited(self) -> bool:
        """True if the options limit a batch."""
        return bool(self._options.source.max_commits or self._options.source.max_bytes)

    def first_offset(self) -> Offset:
        """The offset at which a stream without a checkpoint begins."""
        with spelled_out():
            return _offset(first_begin(self._reload(), self._options.source.start, self._incremental))

    def next_offset(self, start: Offset | None, *, limited: bool) -> Offset:
        """The offset at which the batch that begins at `start` ends. `limited`: obey the limits of the options."""
        with spelled_out():
            begin = "" if start is None else _begin(start)
            if self._target is not None and begin >= self._target:
                return _offset(begin)
            limits = self._options.source if limited else None
            return _offset(end_of_batch(self._reload(), begin, self._incremental, limits, self._target))

    def newest_known_offset(self) -> Offset | None:
        """The time of the newest commit when the table was last read, for Spark's progress reports."""
        if self._meta is None:
            return None
        with spelled_out():
            return _offset(end_of_batch(self._meta, "", self._incremental))

    def stop_at_newest(self) -> None:
        """Stop at the newest commit; later commits are for the next run."""
        self._target = _begin(self.next_offset(None, limited=False))

    def tasks(self, start: Offset, end: Offset) -> list[bytes]:
        """The pickled tasks of a batch; see `read_task`."""
        begin, until = _begin(start), _begin(end)
        if begin == until:
            return []
        with spelled_out():
            meta = self._reload()
            options = self._options
            plan = plan_incremental(
                meta,
                followed_range(meta, begin, until, self._incremental),
                Query(
                    columns=self._schema.names,
                    query_type="incremental",
                    merger_classes=options.merger_classes,
                    memory=options.memory,
                    damage=options.damage,
                    use_metadata=options.use_metadata,
                ),
            )
            return tasks_of(meta, plan)

    @property
    def _incremental(self) -> IncrementalOptions:
        """The options of the query. As in Hudi, a stream by default stops before a hole until that write completes."""
        options = self._options.incremental
        return options if _HOLES in canonical_keys(self._given_options) else replace(options, holes="BLOCK")

    def _reload(self) -> MetaClient:
        self._meta = MetaClient.load(storage_of(self._given_options)) if self._meta is None else self._meta.reload()
        return self._meta


def _offset(time: str) -> Offset:
    return {_TIME: time or _FIRST}


def _begin(offset: Mapping[str, str]) -> str:
    """The time of an offset, "" before the first commit. Raises CorruptFile."""
    time = offset.get(_TIME)
    if not isinstance(time, str) or not _INSTANT_TIME.fullmatch(time):
        raise CorruptFile(
            f"The checkpoint of the stream: expected an offset with the time of a commit ({_TIME}), found {offset!r}. "
            "It is damaged, or of another source; begin a new checkpoint."
        )
    return "" if set(time) == {"0"} else time
