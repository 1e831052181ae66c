"""`pyhudi table ...`: a table as it is."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.cli.options import COMMON, CommonOptions, TablePath
from pyhudi.cli.reply import Reply
from pyhudi.result import Result

__all__ = ["describe", "files", "health", "history", "partitions", "schema"]


@dataclass(frozen=True, slots=True, repr=False)
class TableColumn(Result):
    """A column: `type` as Arrow names it."""

    name: str
    type: str
    nullable: bool


def describe(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """What a table is: type, version, keys, newest commit."""
    from pyhudi.table.description import describe as described

    return Reply(described(common.path(table), common.storage_options))


def schema(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """The columns of a table."""
    return Reply([TableColumn(field.name, str(field.type), field.nullable) for field in common.open(table).schema])


def files(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """The newest file of each file group."""
    return Reply(common.open(table).files())


def partitions(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """The partitions, with their files and bytes."""
    return Reply(common.open(table).partitions())


def history(
    table: TablePath,
    /,
    *,
    limit: int | None = None,
    since: str | None = None,
    until: str | None = None,
    active: bool = False,
    common: CommonOptions = COMMON,
) -> Reply:
    """What happened to a table, newest first.

    Args:
        limit: Only the newest ones.
        since: The first instant time, or a date or time.
        until: The last instant time, or a date or time.
        active: Only those on the active timeline.
    """
    return Reply(common.open(table).history(limit, archived=not active, since=since, until=until))


def health(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """What makes a table slow or large, and what mends it.

    Exit code 3 where something needs a call.
    """
    found = common.open(table).health(options=common.options)
    return Reply(found, found_wrong=not found.is_healthy)
