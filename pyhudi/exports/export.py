"""One export: the format's state → the commits since → a version for each.

        exported    read from the format's own newest version, so that a death at any moment needs no repair
        pending     commits.py
        apply       one version per commit; after a faster export the state is read again
        replace     if a format can't express a change, its metadata is recreated from the visible files

Several exports may run at once: a version is only made on top of the one that was read.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace

from pyhudi.errors import ConfigError, StaleRead, WriteConflict
from pyhudi.exports.commits import ExportCommit, Pending, load_pending
from pyhudi.exports.exportable import check_exportable
from pyhudi.exports.result import ExportResult
from pyhudi.exports.target import FORMATS, ExportTarget, MustRecreate, Overtaken
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.catalogs.exporting import ExportOptions, check_export_library
from pyhudi.services.clean.exported import note_export
from pyhudi.storage.base import Storage
from pyhudi.warnings import warn_caller

__all__ = ["export_after_commit", "export_now"]

_TRIES = 10


def export_now(name: str, meta: MetaClient, options: ExportOptions) -> ExportResult:
    """Update the metadata of a format.

    Raises: ConfigError for another format, MissingLibrary, UnsupportedTable and SchemaMismatch if the format can't
            express the table, WriteConflict if other exports were faster each time, StorageError. Completed versions
            are kept.
    """
    kind = name.lower() if isinstance(name, str) else name
    if kind not in FORMATS.entries:
        raise ConfigError(f"A table can be exported as {' or '.join(FORMATS.entries)}; found {name!r:.100}.")
    check_export_library(kind, f"export_metadata({kind!r})")
    began_s = meta.clock.monotonic_s()
    with closing(FORMATS.load(kind)(meta, options)) as target:
        run = _Run(target, ExportResult(meta.storage.root, kind, target.location))
        for _ in range(_TRIES):
            try:
                run.catch_up(meta)
            except (Overtaken, StaleRead):
                meta = meta.reload()
            else:
                result = replace(run.result, seconds=round(meta.clock.monotonic_s() - began_s, 3))
                _warn_of_logs(result)
                return result
    raise WriteConflict(
        f"{meta.storage.root}: each of {_TRIES} tries of the {kind} export was overtaken by other exports or cleans. "
        "The exported versions are right; export again."
    )


def export_after_commit(storage: Storage, options: WriteOptions) -> None:
    """Export a call's commit. An error becomes a warning: the commit is complete; the next export catches up."""
    for name in options.export.formats:
        try:
            export_now(name, MetaClient.load(storage), options.export)
        except Exception as error:  # of any class: no fault here may make a complete commit look failed
            warn_caller(
                f"{storage.root}: the commit is complete, but its {name} export is not yet; the next one catches up. "
                f"{type(error).__name__}: {error}"
            )


@dataclass(slots=True)
class _Run:
    """One call. `result`: its result so far."""

    target: ExportTarget
    result: ExportResult

    def catch_up(self, meta: MetaClient) -> None:
        """Update the target to the visible files. May raise Overtaken and StaleRead after some of the commits."""
        exported = self.target.exported()
        pending = load_pending(meta, exported)
        check_exportable(pending, by_name=not self.target.maps_names)
        self.result = replace(
            self.result,
            instant_time=None if exported is None else exported.instant,
            rows_in_logs=_rows_in_logs(pending),
        )
        if exported is None:  # a clean must know of the first version before it exists
            self._note(pending)
        try:
            for commit in pending.commits():
                self.target.apply(commit)
                self._count(commit)
        except MustRecreate as reason:
            pending = load_pending(meta, None)
            check_exportable(pending, by_name=not self.target.maps_names)
            for commit in pending.commits():
                self.target.replace(commit)
                self._count(commit)
            self.result = replace(self.result, replaced=str(reason))
        self._note(pending)

    def _note(self, pending: Pending) -> None:
        newest = pending.meta.timeline.last_commit()
        if newest is not None:
            note_export(pending.meta.storage, self.result.format, newest.requested_time)

    def _count(self, commit: ExportCommit) -> None:
        self.result = replace(
            self.result,
            instant_time=commit.instant,
            commits=self.result.commits + 1,
            files_added=self.result.files_added + len(commit.added),
            files_removed=self.result.files_removed + len(commit.removed),
        )


def _rows_in_logs(pending: Pending) -> int:
    """Rows of unmerged log files, by the commits on the active timeline that wrote them."""
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
