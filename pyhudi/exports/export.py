"""One export: what the format has → the commits since → a version of each.

    exported    read from the format's own newest version, so a death at any moment leaves nothing to mend
    pending     commits.py
    apply       one version a commit; an export that was faster is met by looking again
    replace     where a format can't say a change, its metadata is made again from what is visible

Several exports may run at once: a version is only made on top of the one that was read.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace

from pyhudi.errors import ConfigError, StaleRead, WriteConflict
from pyhudi.exports.commits import ExportCommit, Pending, load_pending
from pyhudi.exports.result import ExportResult
from pyhudi.exports.sayable import check_exportable
from pyhudi.exports.target import FORMATS, ExportTarget, MustBeMadeAgain, Outrun
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.exporting import ExportOptions, check_export_library
from pyhudi.services.clean.exported import note_export
from pyhudi.storage.base import Storage
from pyhudi.warnings import warn_caller

__all__ = ["export_after_commit", "export_now"]

_TRIES = 10


def export_now(name: str, meta: MetaClient, options: ExportOptions) -> ExportResult:
    """Bring the metadata of a format up to date.

    Raises: ConfigError for another format, MissingLibrary, UnsupportedTable and SchemaMismatch for what it can't say,
            WriteConflict when other exports were faster each time, StorageError. Versions that were made stay.
    """
    kind = name.lower() if isinstance(name, str) else name
    if kind not in FORMATS.entries:
        raise ConfigError(f"A table is exported as {' or '.join(FORMATS.entries)}; found {name!r:.100}.")
    check_export_library(kind, f"export_metadata({kind!r})")
    began_s = meta.clock.monotonic_s()
    with closing(FORMATS.load(kind)(meta, options)) as target:
        run = _Run(target, ExportResult(meta.storage.root, kind, target.location))
        for _ in range(_TRIES):
            try:
                run.catch_up(meta)
            except (Outrun, StaleRead):
                meta = meta.reload()
            else:
                done = replace(run.done, seconds=round(meta.clock.monotonic_s() - began_s, 3))
                _warn_of_logs(done)
                return done
    raise WriteConflict(
        f"{meta.storage.root}: each of {_TRIES} tries of the {kind} export was overtaken by other exports or cleans. "
        "What was exported is right; export again."
    )


def export_after_commit(storage: Storage, options: WriteOptions) -> None:
    """Export what a call has committed. An error is a warning: the commit is complete; the next export catches up."""
    for name in options.export.formats:
        try:
            export_now(name, MetaClient.load(storage), options.export)
        except Exception as error:  # of any class: our fault must not make a complete commit look failed
            warn_caller(
                f"{storage.root}: the commit is complete, but its {name} export is not yet; the next one catches up. "
                f"{type(error).__name__}: {error}"
            )


@dataclass(slots=True)
class _Run:
    """One call. `done`: what it has done by now."""

    target: ExportTarget
    done: ExportResult

    def catch_up(self, meta: MetaClient) -> None:
        """Bring the target to what is visible. Raises Outrun and StaleRead after a part of it."""
        exported = self.target.exported()
        pending = load_pending(meta, exported)
        check_exportable(pending, by_name=not self.target.maps_names)
        self.done = replace(
            self.done,
            instant_time=None if exported is None else exported.instant,
            rows_in_logs=_rows_in_logs(pending),
        )
        if exported is None:  # a clean must know of the first version before it is there
            self._note(pending)
        try:
            for commit in pending.commits():
                self.target.apply(commit)
                self._count(commit)
        except MustBeMadeAgain as reason:
            pending = load_pending(meta, None)
            check_exportable(pending, by_name=not self.target.maps_names)
            for commit in pending.commits():
                self.target.replace(commit)
                self._count(commit)
            self.done = replace(self.done, replaced=str(reason))
        self._note(pending)

    def _note(self, pending: Pending) -> None:
        newest = pending.meta.timeline.last_commit()
        if newest is not None:
            note_export(pending.meta.storage, self.done.format, newest.requested_time)

    def _count(self, commit: ExportCommit) -> None:
        self.done = replace(
            self.done,
            instant_time=commit.instant,
            commits=self.done.commits + 1,
            files_added=self.done.files_added + len(commit.added),
            files_removed=self.done.files_removed + len(commit.removed),
        )


def _rows_in_logs(pending: Pending) -> int:
    """Rows of unmerged log files by the commits that wrote them, as far as the active timeline has these."""
    if not pending.log_names:
        return 0
    bodies = (pending.meta.commits.metadata(one) for one in pending.meta.timeline.commits())
    return sum(
        stat.changed_rows
        for body in bodies
        for stat in body.stats()
        if stat.path is not None and stat.path.rpartition("/")[2] in pending.log_names
    )


def _warn_of_logs(result: ExportResult) -> None:
    if result.rows_in_logs:
        warn_caller(
            f"{result.location}: the {result.format} export lacks {result.rows_in_logs:,} rows that are only in log "
            "files; the next export after a compaction has them."
        )
