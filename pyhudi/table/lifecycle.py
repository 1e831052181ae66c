"""The long life of a HudiTable: undoing writes, savepoints, versions."""

from __future__ import annotations

import re
from functools import partial

from pyhudi.actions.save_modes import remove_table
from pyhudi.actions.undo.restore import restore
from pyhudi.actions.undo.restore_result import RestoreResult, RollbackResult
from pyhudi.actions.undo.rollback_to import roll_back
from pyhudi.errors import ConfigError
from pyhudi.queries.query import AsOf, commit_at
from pyhudi.services.savepoint import Savepoint, Savepoints, delete_savepoint, load_savepoints, savepoint
from pyhudi.services.versions.upgrade import VersionChange, admit_version, change_version
from pyhudi.table.calls import Options, TableCalls, in_session_zone

__all__ = ["TableLifecycle"]

_INSTANT_TIME = re.compile(r"\d{14}|\d{17}", re.ASCII)


class TableLifecycle(TableCalls):
    """rollback, savepoint, restore, drop, upgrade."""

    def rollback(
        self,
        instant_time: AsOf | None = None,
        *,
        to: AsOf | None = None,
        options: Options | None = None,
        **more: object,
    ) -> RollbackResult:
        """Undo completed writes: the newest one, or all that came after an instant.

        Args:
            instant_time: the write to undo: the newest completed one, which None means, or a pending one.
            to: undo all writes after this commit, newest first, each with a rollback of its own. `restore` undoes them
                as one action.
        Raises: TableError when later writes built on it, a savepoint protects it, or cleaning has deleted what it
            replaced; ConfigError when both arguments are given.
        """
        if instant_time is not None and to is not None:
            raise ConfigError("rollback takes an instant to undo, or to= for the one to go back to; give one of them.")
        if instant_time is not None and not _is_instant_time(instant_time):
            raise ConfigError(
                f"rollback undoes one write, which a moment does not name: found {instant_time!r}. Give its instant "
                f"time (see `history()`), or the moment to go back to as rollback(to=...) or restore(...)."
            )
        undone = None if instant_time is None else self._commit(instant_time)
        target = None if to is None else self._commit(to)
        return self._serve(partial(roll_back, instant_time=undone, to=target), options, more)

    def savepoint(
        self,
        instant_time: AsOf | None = None,
        *,
        user: str = "",
        comment: str = "",
        options: Options | None = None,
        **more: object,
    ) -> Savepoint:
        """Save a commit (None: the newest): cleaning leaves its files, and `restore` can take the table back to it.

        Raises: TableError when there is no such commit, it is saved already, or files of it were cleaned.
        """
        saved = None if instant_time is None else self._commit(instant_time)
        return self._serve(partial(savepoint, instant_time=saved, user=user, comment=comment), options, more)

    def delete_savepoint(self, instant_time: AsOf, *, options: Options | None = None, **more: object) -> None:
        """Give a saved commit free again. Raises: TableError when it has no savepoint."""
        self._serve(partial(delete_savepoint, instant_time=self._commit(instant_time)), options, more)

    def savepoints(self) -> Savepoints:
        """The savepoints, oldest first; prints as a table."""
        return load_savepoints(self._meta.reload())

    def restore(self, to: AsOf, *, options: Options | None = None, **more: object) -> RestoreResult:
        """Take the table back to a savepoint, or to another commit whose files are all there.

        Nobody may write meanwhile. Later commits are lost for good. A restore that died is finished by the next write
        or service.

        Args:   to: instant time of the commit, or a moment as `as_of` of `scan` takes it: the newest commit that was
                    complete then.
        Raises: TableError when it can't be restored (later savepoints, cleaned or archived), WriteConflict while others
            write.
        """
        return self._serve(partial(restore, to=self._commit(to)), options, more)

    def drop(self) -> None:
        """Delete the table: its rows, its history, and all else in its folder. Nobody may use it meanwhile.

        A call that died leaves no table; what is left of its files goes by deleting the folder. Raises StorageError.
        """
        remove_table(self._meta.storage)

    def upgrade(self, to: int = 9, *, options: Options | None = None, **more: object) -> VersionChange:
        """Take the table to a higher version (4 → 5 → 6 → 8 → 9), in place. Nobody may write to it meanwhile.

        Failed writes are undone and log files compacted first. A call that died is finished by calling again.
        Raises: ConfigError when `to` is no higher version, UnsupportedTable, WriteConflict while others write.
        """
        return self._change_version(to, True, options, more)

    def downgrade(self, to: int, *, options: Options | None = None, **more: object) -> VersionChange:
        """Take the table to a lower version (9 → 8 → 6), for readers and writers of older releases. See `upgrade`."""
        return self._change_version(to, False, options, more)

    def _commit(self, time: AsOf) -> str:
        """The instant time of the commit that a caller names, by a time of its own or by a moment.

        Raises: ConfigError for what is no moment, TableError for a moment before the first commit.
        """
        meta = self._meta.reload()
        if not _is_instant_time(time):
            try:
                return commit_at(in_session_zone(time, self._spark), meta).requested_time
            except ConfigError as error:
                raise ConfigError(str(error).replace("as_of=", "The time ", 1)) from error
        text = str(time).strip()
        completed = [i.requested_time for i in meta.timeline.commits() if i.completion_time == text]
        return completed[0] if completed and meta.timeline.find(text) is None else text

    def _change_version(self, to: int, upwards: bool, options: Options | None, more: Options) -> VersionChange:
        change = partial(change_version, target=to, upwards=upwards)
        return self._serve(change, options, more, admit=partial(admit_version, target=to, upwards=upwards))


def _is_instant_time(time: object) -> bool:
    """Digits name one instant, and no other one is meant where it is not there."""
    return (
        not isinstance(time, bool) and isinstance(time, str | int) and bool(_INSTANT_TIME.fullmatch(str(time).strip()))
    )
