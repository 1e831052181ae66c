"""`pyhudi locks audit ...`: who held the storage-based lock of a table, and how long."""

from __future__ import annotations

from pyhudi.cli.options import COMMON, CONSENT, CommonOptions, ConsentOptions, TablePath
from pyhudi.cli.reply import Reply

__all__ = ["cleanup", "disable", "enable", "status", "validate"]


def status(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """Is the audit of the lock on, and what has it written?"""
    return Reply(common.open(table).maintenance.lock_audit.status())


def enable(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """Keep a journal of each holder of the storage-based lock.

    PyHudi keeps it, and real Hudi from 1.1 on.
    """
    return Reply(common.open(table).maintenance.lock_audit.enable())


def disable(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """Keep no more journals; those that are there stay."""
    return Reply(common.open(table).maintenance.lock_audit.disable())


def validate(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """Look for two holders at once, and holders that died. Exit code 3 for one."""
    validation = common.open(table).maintenance.lock_audit.validate()
    return Reply(validation, found_wrong=bool(validation.issues))


def cleanup(
    table: TablePath,
    /,
    *,
    days: int = 7,
    consent: ConsentOptions = CONSENT,
    common: CommonOptions = COMMON,
) -> Reply:
    """Delete old journals of the lock.

    Args:
        days: Those last written more than so many days ago.
    """
    audit = common.open(table).maintenance.lock_audit
    if not consent.dry_run:
        consent.ask(lambda: audit.cleanup(days, dry_run=True), "Delete these files?", lambda plan: plan.files)
    return Reply(audit.cleanup(days, dry_run=consent.dry_run))
