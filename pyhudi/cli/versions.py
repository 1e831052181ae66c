"""`pyhudi upgrade`, `downgrade`, `change-type`: the same rows in another form of table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyhudi.cli.options import COMMON, CONSENT, CommonOptions, ConsentOptions, TablePath
from pyhudi.cli.reply import Reply

if TYPE_CHECKING:
    from pyhudi.services.table_type import TypeChange
    from pyhudi.services.versions.upgrade import VersionChange

__all__ = ["change_type", "downgrade", "upgrade"]


def _changes(plan: VersionChange | TypeChange) -> bool:
    return plan.source != plan.target


def upgrade(
    table: TablePath, /, *, to: int = 9, consent: ConsentOptions = CONSENT, common: CommonOptions = COMMON
) -> Reply:
    """Take a table to a higher version.

    Args:
        to: The version: 6, 8 or 9.
    """
    opened = common.open(table)
    if not consent.dry_run:
        consent.ask(
            partial(opened.maintenance.upgrade, to, dry_run=True, options=common.options),
            "Upgrade the table?",
            _changes,
        )
    return Reply(opened.maintenance.upgrade(to, dry_run=consent.dry_run, options=common.options))


def downgrade(
    table: TablePath, /, *, to: int, consent: ConsentOptions = CONSENT, common: CommonOptions = COMMON
) -> Reply:
    """Take a table to a lower version, for older readers and writers.

    Args:
        to: The version: 8 or 6.
    """
    opened = common.open(table)
    if not consent.dry_run:
        consent.ask(
            lambda: opened.maintenance.downgrade(to, dry_run=True, options=common.options),
            "Downgrade the table?",
            _changes,
        )
    return Reply(opened.maintenance.downgrade(to, dry_run=consent.dry_run, options=common.options))


def change_type(
    table: TablePath, /, *, to: str, consent: ConsentOptions = CONSENT, common: CommonOptions = COMMON
) -> Reply:
    """Make a table copy-on-write or merge-on-read.

    To copy-on-write all log files are compacted first.

    Args:
        to: COPY_ON_WRITE or MERGE_ON_READ; cow and mor for short.
    """
    opened = common.open(table)
    if not consent.dry_run:
        consent.ask(
            lambda: opened.maintenance.change_type(to, dry_run=True, options=common.options),
            "Change the table's type?",
            _changes,
        )
    return Reply(opened.maintenance.change_type(to, dry_run=consent.dry_run, options=common.options))
