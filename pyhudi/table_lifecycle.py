"""The long life of a HudiTable: undoing writes, savepoints, versions."""

from __future__ import annotations

from functools import partial
from typing import Any

from pyhudi.actions.services.upgrade import admit_version, change_version
from pyhudi.actions.services.upgrade_result import VersionChange
from pyhudi.table_calls import Options, TableCalls

__all__ = ["TableLifecycle"]


class TableLifecycle(TableCalls):
    """rollback, savepoint, restore, upgrade."""

    def upgrade(self, to: int = 9, *, options: Options | None = None, **more: Any) -> VersionChange:
        """Take the table to a higher version (4 → 5 → 6 → 8 → 9), in place. Nobody may write to it meanwhile.

        Failed writes are undone and log files folded first. A call that died is finished by calling again.
        Raises: ConfigError when `to` is no higher version, UnsupportedTable, WriteConflict while others write.
        """
        return self._change_version(to, True, options, more)

    def downgrade(self, to: int, *, options: Options | None = None, **more: Any) -> VersionChange:
        """Take the table to a lower version (9 → 8 → 6), for readers and writers of older releases. See `upgrade`."""
        return self._change_version(to, False, options, more)

    def _change_version(self, to: int, upwards: bool, options: Options | None, more: Options) -> VersionChange:
        change = partial(change_version, target=to, upwards=upwards)
        return self._serve(change, options, more, admit=partial(admit_version, target=to, upwards=upwards))
