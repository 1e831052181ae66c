"""What `apply_changes` notes in its commits: how changes are applied, and where the events are that rows don't show.

    commit  "pyhudi.apply.changes": {"type": 2, "keys": ["id"], "sequence": "ts", "tracked": null, "hidden": [...]}
            → .hoodie/.aux/pyhudi_hidden_events/<id>.parquet, each written once

The newest commit with a note counts, so rows and hidden events change in one commit, and a restore takes both back.
Under the lock, as a batch completes, the note that it was computed from must still be the newest: of two calls that
began on one state, whatever their processes, one comes into the table, and the other computes its rows again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.actions.streamer_checkpoints import commits_newest_first
from pyhudi.errors import CorruptFile, PathNotFound, StandingConflict
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import HIDDEN_EVENTS_FOLDER
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.streaming import APPLIED_CHANGES
from pyhudi.schema.projection import project
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock

__all__ = [
    "NO_CHANGES",
    "AppliedChanges",
    "ChangesMoved",
    "HiddenFile",
    "add_hidden",
    "check_changes",
    "delete_unneeded",
    "matching",
    "newest_changes",
    "read_hidden",
]

NO_CHANGES = "none"
_UNNEEDED_MS = 24 * 3600 * 1000  # before, a file may be that of a commit to come
_ROW_GROUP = 100_000


class ChangesMoved(StandingConflict):
    """Another call of apply_changes has changed the table since the rows of this one were computed."""


@dataclass(frozen=True, slots=True)
class HiddenFile:
    """A file with hidden events."""

    name: str
    rows: int

    @property
    def path(self) -> str:
        return f"{HIDDEN_EVENTS_FOLDER}/{self.name}"


@dataclass(frozen=True, slots=True)
class AppliedChanges:
    """The note of a commit. `type`: of the SCD; `tracked`: columns whose changes open a row, None for all."""

    type: int
    keys: Sequence[str]
    sequence: str
    tracked: Sequence[str] | None
    hidden: Sequence[HiddenFile] = ()
    instant_time: str = NO_CHANGES

    def encoded(self) -> str:
        """The note as text."""
        values = asdict(self)
        del values["instant_time"]
        return json.dumps({**values, "hidden": [[file.name, file.rows] for file in self.hidden]})

    @classmethod
    def decoded(cls, text: str, instant_time: str, root: str) -> AppliedChanges:
        """The note of a commit. Raises CorruptFile."""
        try:
            values = json.loads(text)
            files = tuple(HiddenFile(str(name), int(rows)) for name, rows in values.pop("hidden"))
            return cls(**values, hidden=files, instant_time=instant_time)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptFile(
                f"{root}: the commit {instant_time} has under {APPLIED_CHANGES} what apply_changes does not write: "
                f"{text!r:.200}."
            ) from error


def newest_changes(meta: MetaClient) -> AppliedChanges | None:
    """The newest note of the table; None without one. Commits of others do not hide it."""
    for time, body in commits_newest_first(meta):
        if APPLIED_CHANGES in body.extra_metadata:
            return AppliedChanges.decoded(body.extra_metadata[APPLIED_CHANGES], time, meta.storage.root)
    return None


def check_changes(options: WriteOptions, now: MetaClient) -> None:
    """Raise ChangesMoved when changes were computed from a note that is the newest no more. Hold the lock."""
    after = options.stream.changes_after
    if after is None:
        return
    newest = newest_changes(now)
    time = NO_CHANGES if newest is None else newest.instant_time
    ours = AppliedChanges.decoded(options.extra_metadata[APPLIED_CHANGES], time, now.storage.root)
    known = () if newest is None else newest.hidden
    missing = [file for file in ours.hidden if file not in known and now.storage.stat(file.path) is None]
    if time != after or missing:
        raise ChangesMoved(
            f"{now.storage.root}: these changes were computed after those of the commit {after}, and the newest are "
            f"those of {time} by now. Nothing of this batch is visible; apply it again."
        )


# ---- hidden events


def matching(batches: Iterator[pa.RecordBatch], schema: pa.Schema, keys: pa.Table) -> pa.Table:
    """The rows that have the keys, with the columns and types of `schema`.

    Of several key columns each is looked at alone, so rows of other keys may be among them: all or none of a key.
    """
    values = {name: pc.unique(keys.column(name)) for name in keys.schema.names}
    found = []
    for batch in batches:
        rows = project(batch, schema)
        for name, wanted in values.items():
            rows = rows.filter(pc.is_in(rows.column(name), value_set=wanted))
        if rows.num_rows:
            found.append(rows)
    return pa.Table.from_batches(found, schema)


def read_hidden(storage: Storage, files: Sequence[HiddenFile], schema: pa.Schema, keys: pa.Table) -> pa.Table:
    """The hidden events of keys, in the order of their files. Raises CorruptFile."""
    tables = [matching(_batches(storage, file), schema, keys) for file in files]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def add_hidden(
    storage: Storage, files: Sequence[HiddenFile], events: pa.Table, sort_by: Sequence[str], clock: Clock
) -> tuple[HiddenFile, ...]:
    """The files with further events, of which nobody knows yet. Files that are no larger than what comes are joined
    with it, so that a table has few: their number grows with the logarithm of the events.
    """
    if not len(events):
        return tuple(files)
    older, parts, rows = list(files), [events], len(events)
    while older and older[-1].rows <= rows:
        file = older.pop()
        parts.insert(0, pa.Table.from_batches(_batches(storage, file), _schema(storage, file)))
        rows += file.rows
    joined = pa.concat_tables(parts, promote_options="permissive").sort_by([(name, "ascending") for name in sort_by])
    sink = BytesIO()
    pq.write_table(joined, sink, compression="zstd", row_group_size=_ROW_GROUP)
    new = HiddenFile(f"{clock.new_uuid()}.parquet", rows)
    storage.create_synced(new.path, sink.getvalue())
    return (*older, new)


def delete_unneeded(meta: MetaClient, clock: Clock) -> None:
    """Delete files that no commit of the timeline names, and that are too old to be those of a commit to come."""
    entries = [entry for entry in meta.storage.list(HIDDEN_EVENTS_FOLDER) if not entry.is_dir]
    old = [entry for entry in entries if clock.now_ms() - entry.modified_ms > _UNNEEDED_MS]
    if not old:
        return
    newest = newest_changes(meta)
    needed = set() if newest is None else {file.path for file in newest.hidden}
    for instant in meta.timeline.commits().instants:
        text = meta.commits.metadata(instant).extra_metadata.get(APPLIED_CHANGES)
        if text is not None:
            note = AppliedChanges.decoded(text, instant.requested_time, meta.storage.root)
            needed |= {file.path for file in note.hidden}
    for entry in old:
        if entry.path not in needed:
            meta.storage.delete(entry.path)


def _batches(storage: Storage, file: HiddenFile) -> Iterator[pa.RecordBatch]:
    try:
        with storage.open_input(file.path) as source:
            yield from pq.ParquetFile(source).iter_batches()
    except PathNotFound as error:
        raise _missing(storage, file) from error
    except pa.ArrowInvalid as error:
        raise CorruptFile(f"{storage.full_path(file.path)}: no hidden events can be read: {error}.") from error


def _schema(storage: Storage, file: HiddenFile) -> pa.Schema:
    try:
        with storage.open_input(file.path) as source:
            return pq.read_schema(source)
    except PathNotFound as error:
        raise _missing(storage, file) from error


def _missing(storage: Storage, file: HiddenFile) -> CorruptFile:
    return CorruptFile(
        f"{storage.full_path(file.path)} is missing: events of apply_changes that late ones need. Without it rows "
        "could come out wrong, so nothing was written. Restore the file, or rebuild the table from its source."
    )
