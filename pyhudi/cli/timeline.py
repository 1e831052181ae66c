"""`pyhudi timeline`: instants."""

from __future__ import annotations

from pyhudi.cli.options import COMMON, CommonOptions, TablePath
from pyhudi.cli.reply import Reply

__all__ = ["timeline"]


def timeline(
    table: TablePath,
    /,
    *,
    action: str | None = None,
    pending: bool = False,
    common: CommonOptions = COMMON,
) -> Reply:
    """The instants of the active timeline, oldest first.

    Archived ones are in `pyhudi table history`.

    Args:
        action: Only this one: commit, deltacommit, replacecommit, clean, rollback, savepoint and so on.
        pending: Only those that are not completed.
    """
    instants = common.open(table).timeline
    shown = [
        one
        for one in (instants.pending() if pending else instants)
        if action is None or one.action.value == action.lower()
    ]
    return Reply(shown)
