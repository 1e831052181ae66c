"""`pyhudi savepoint`, `restore`, `rollback`: going back."""

from __future__ import annotations

from pyhudi.cli.options import COMMON, CONSENT, CommonOptions, ConsentOptions, TablePath
from pyhudi.cli.reply import Reply

__all__ = ["create_savepoint", "delete_savepoint", "list_savepoints", "restore", "rollback"]


def list_savepoints(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """The savepoints of a table, oldest first."""
    return Reply(common.open(table).savepoints.list())


def create_savepoint(
    table: TablePath,
    instant: str | None = None,
    /,
    *,
    user: str = "",
    comment: str = "",
    common: CommonOptions = COMMON,
) -> Reply:
    """Save a commit: cleaning leaves its files.

    Args:
        instant: The commit; the newest one without it.
        user: Who saves it.
        comment: Why.
    """
    opened = common.open(table)
    return Reply(opened.savepoints.create(instant, user=user, comment=comment, options=common.options))


def delete_savepoint(
    table: TablePath,
    instant: str,
    /,
    *,
    consent: ConsentOptions = CONSENT,
    common: CommonOptions = COMMON,
) -> Reply:
    """Give a saved commit free again. Answers with the savepoints that stay.

    Args:
        instant: The saved commit.
    """
    opened = common.open(table)
    going = opened.savepoints.delete(instant, dry_run=True, options=common.options)
    if not consent.dry_run:
        consent.ask(opened.savepoints.list, f"Delete the savepoint of {going.instant_time}?")
        opened.savepoints.delete(instant, options=common.options)
    savepoints = opened.savepoints.list()
    stay = type(savepoints)(one for one in savepoints if one.instant_time != going.instant_time)
    return Reply(
        stay,
        f"would delete the savepoint of {going.instant_time}; these would stay:\n{stay}" if consent.dry_run else None,
    )


def restore(
    table: TablePath, /, *, to: str, consent: ConsentOptions = CONSENT, common: CommonOptions = COMMON
) -> Reply:
    """Take a table back to a commit; later ones are lost.

    Args:
        to: The commit: its instant time, or a date or time.
    """
    opened = common.open(table)
    if not consent.dry_run:
        consent.ask(lambda: opened.restore(to, dry_run=True, options=common.options), "Lose these writes for good?")
    return Reply(opened.restore(to, dry_run=consent.dry_run, options=common.options))


def rollback(
    table: TablePath,
    instant: str | None = None,
    /,
    *,
    to: str | None = None,
    consent: ConsentOptions = CONSENT,
    common: CommonOptions = COMMON,
) -> Reply:
    """Undo the newest write, or those after a commit.

    Args:
        instant: The write to undo: the newest, which it is without this, or a pending one.
        to: Undo all writes after this commit, each by a rollback of its own.
    """
    opened = common.open(table)
    if not consent.dry_run:
        consent.ask(lambda: opened.rollback(instant, to=to, dry_run=True, options=common.options), "Undo these writes?")
    return Reply(opened.rollback(instant, to=to, dry_run=consent.dry_run, options=common.options))
