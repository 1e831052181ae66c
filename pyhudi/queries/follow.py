"""Following a table: the begin of a stream of its changes, and the end of its next batch.

A batch is an incremental query of a range. Its end is fixed before its rows are read, so that the batch can be read
again. Source: docs/formats/incremental.md, "The range", "Offsets of a stream".
"""

from __future__ import annotations

from dataclasses import replace

from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.options.queries import IncrementalOptions
from pyhudi.model.options.streaming import START_OFFSET, SourceOptions
from pyhudi.queries.incremental_range import active_commits, commits_in_range, incremental_range, is_service
from pyhudi.queries.query import EARLIEST, IncrementalRange
from pyhudi.timeline.archived_timeline import load_archived_timeline
from pyhudi.view.readable_history import load_readable_history

__all__ = ["LATEST", "end_of_batch", "first_begin", "followed_range"]

LATEST = "latest"


def followed_range(meta: MetaClient, begin: str, end: str | None, options: IncrementalOptions) -> IncrementalRange:
    """The range of a batch. Raises ConfigError when the table does not allow it; see `incremental_range`."""
    requested = incremental_range(meta, "incremental", begin or EARLIEST, end, None, options)
    assert requested is not None
    return requested


def first_begin(meta: MetaClient, start: str, options: IncrementalOptions) -> str:
    """The begin of a stream's first batch, "" for the first commit on.

    Args:    start: "earliest", "latest", or a moment as `begin` of an incremental query.
    Raises:  ConfigError.
    """
    if start.strip().lower() == LATEST:
        return end_of_batch(meta, "", options)
    try:
        return followed_range(meta, start, None, options).begin
    except ConfigError as error:
        raise ConfigError(str(error).replace("begin=", f"{START_OFFSET}=", 1)) from error


def end_of_batch(
    meta: MetaClient,
    begin: str,
    options: IncrementalOptions,
    limits: SourceOptions | None = None,
    until: str | None = None,
) -> str:
    """The end of the batch that begins at `begin`; `begin` itself if there is nothing new.

    The limits count writes, not table services. A batch has at least one write. If commits of the table were archived
    or their files cleaned, the first batch has all existing rows: their commits can't be separated.

    Args:    limits: None for all commits. until: commits after this time are left out.
    Raises:  RangeNotReadable for a hole in the range, if the options say so.
    """
    requested = replace(followed_range(meta, begin, None, options), end=until)
    active, time_of = active_commits(requested, meta)
    newest = max((time_of(instant) for instant in active), default=begin)
    if limits is None or not (limits.max_commits or limits.max_bytes) or newest <= begin:
        return newest
    if not begin and _is_incomplete(meta):
        return newest
    end, commits, size_bytes = begin, 0, 0
    in_range = commits_in_range(replace(requested, end=newest), meta, one_by_one=True)
    for instant, body in in_range.writes:
        time = time_of(instant)
        if not is_service(instant, body):
            full = commits == limits.max_commits or (limits.max_bytes is not None and size_bytes >= limits.max_bytes)
            if commits and full and time > end:
                return end
            commits, size_bytes = commits + 1, size_bytes + _bytes(body)
        end = max(end, time)
    return max(end, newest) if not in_range.lost else newest


def _is_incomplete(meta: MetaClient) -> bool:
    """True if the first commits of the table, or their files, no longer exist."""
    if load_readable_history(meta).earliest is not None:
        return True
    history = load_archived_timeline(meta.storage, meta.config)
    return bool(history.times(None, meta.timeline.active_since))


def _bytes(body: CommitMetadata) -> int:
    return sum(max(0, stat.total_write_bytes or stat.file_size_in_bytes) for stat in body.stats())
