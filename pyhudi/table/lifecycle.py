"""The long life of a HudiTable: undoing writes, savepoints, versions."""

from __future__ import annotations

from functools import partial

from pyhudi.actions.overwrite import remove_table
from pyhudi.actions.undo.restore import restore
from pyhudi.actions.undo.restore_result import RestoreResult, RollbackResult
from pyhudi.actions.undo.rollback_to import roll_back
from pyhudi.errors import ConfigError
from pyhudi.services.savepoint import Savepoint, Savepoints, delete_savepoint, load_savepoints, savepoint
from pyhudi.services.versions.result import VersionChange
from pyhudi.services.versions.upgrade import admit_version, change_version
from pyhudi.table.calls import Options, TableCalls

__all__ = ["TableLifecycle"]


class TableLifecycle(TableCalls):
    """rollback, savepoint, restore, drop, upgrade."""

    def rollback(
        self, instant_time: str | None = None, *, to: str | None = None, options: Options | None = None, **more: object
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
        return self._serve(partial(roll_back, instant_time=instant_time, to=to), options, more)

    def savepoint(
        self,
        instant_time: str | None = None,
        *,
        user: str = "",
        comment: str = "",
        options: Options | None = None,
        **more: object,
    ) -> Savepoint:
        """Save a commit (None: the newest): cleaning leaves its files, and `restore` can take the table back to it.

        Raises: TableError when there is no such commit, it is saved already, or files of it were cleaned.
        """
        return self._serve(partial(savepoint, instant_time=instant_time, user=user, comment=comment), options, more)

    def delete_savepoint(self, instant_time: str, *, options: Options | None = None, **more: object) -> None:
        """Give a saved commit free again. Raises: TableError when it has no savepoint."""
        self._serve(partial(delete_savepoint, instant_time=instant_time), options, more)

    def savepoints(self) -> Savepoints:
        """The savepoints, oldest first; prints as a table."""
        return load_savepoints(self._meta.reload())

    def restore(self, to: str, *, options: Options | None = None, **more: object) -> RestoreResult:
        """Take the table back to a savepoint, or to another commit whose files are all there.

        Nobody may write meanwhile. Later commits are lost for good. A restore that died is finished by the next write
        or service.

        Args:   to: instant time of the commit.
        Raises: TableError when it can't be restored (later savepoints, cleaned or archived), WriteConflict while others
            write.
        """
        return self._serve(partial(restore, to=to), options, more)

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

    def _change_version(self, to: int, upwards: bool, options: Options | None, more: Options) -> VersionChange:
        change = partial(change_version, target=to, upwards=upwards)
        return self._serve(change, options, more, admit=partial(admit_version, target=to, upwards=upwards))
