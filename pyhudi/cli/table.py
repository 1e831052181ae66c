"""`pyhudi table ...` and `pyhudi timeline`: a table as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from cyclopts import Parameter

from pyhudi.cli.calls import command_for
from pyhudi.cli.options import COMMON, CONSENT, CommonOptions, ConsentOptions, TablePath
from pyhudi.cli.reply import JsonColumns, Reply
from pyhudi.errors import ConfigError
from pyhudi.result import Result

__all__ = [
    "create",
    "describe",
    "diff",
    "drop",
    "files",
    "health",
    "history",
    "partitions",
    "schema",
    "stats",
    "timeline",
]


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


def create(
    table: TablePath,
    /,
    *,
    columns: str | None = None,
    like: str | None = None,
    record_key: str | None = None,
    partition_by: str | None = None,
    ordering: str | None = None,
    table_type: str | None = None,
    table_name: str | None = None,
    common: CommonOptions = COMMON,
) -> Reply:
    """Make an empty table.

    Args:
        columns: As SQL names them: "id BIGINT NOT NULL, city STRING, fare DECIMAL(10,2)".
        like: A Parquet, CSV, JSON or Arrow file that has them.
        record_key: Key columns, with commas; without them keys are generated.
        partition_by: Partition columns, with commas.
        ordering: The columns whose greater value wins, with commas.
        table_type: COPY_ON_WRITE or MERGE_ON_READ.
        table_name: The folder's name without it.
    """
    from pyhudi import HudiTable
    from pyhudi.cli.write import names_of
    from pyhudi.sql.columns import schema_of_columns
    from pyhudi.table.row_files import RowFiles

    if (columns is None) == (like is None):
        raise ConfigError("A table needs columns: give --columns or --like, one of them.")
    created = HudiTable.create(
        common.path(table),
        schema_of_columns(columns) if columns is not None else RowFiles.of([like or ""]).read(None).schema,
        record_key=names_of(record_key),
        partition_by=names_of(partition_by),
        ordering=names_of(ordering),
        table_type=table_type,
        table_name=table_name,
        storage_options=common.storage_options,
        options=common.options,
    )
    return Reply(created.inspect.describe())


def drop(table: TablePath, /, *, consent: ConsentOptions = CONSENT, common: CommonOptions = COMMON) -> Reply:
    """Delete a table: its rows, its history, its folder."""
    opened = common.open(table)
    described = opened.inspect.describe()
    if not consent.dry_run:
        consent.ask(lambda: described, "Delete this table for good?")
        opened.drop()
        return Reply(described, f"{described.path}: dropped")
    return Reply(described, f"would drop this table\n{described}")


def schema(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """The columns of a table."""
    return Reply([TableColumn(field.name, str(field.type), field.nullable) for field in common.open(table).schema()])


def files(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """The newest file of each file group."""
    from pyhudi.table.description import file_columns

    return Reply(JsonColumns(file_columns(common.state(table))))


def partitions(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """The partitions, with their files and bytes."""
    from pyhudi.table.description import partition_columns

    return Reply(JsonColumns(partition_columns(common.state(table))))


def history(
    table: TablePath,
    /,
    *,
    limit: Annotated[int | None, Parameter(name=["--limit", "-n"])] = None,
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


def stats(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """Sizes of files, and what each commit wrote."""
    return Reply(common.open(table).inspect.stats())


def diff(table: TablePath, since: str, until: str | None = None, /, *, common: CommonOptions = COMMON) -> Reply:
    """What came between two commits: rows, files, columns.

    Args:
        since: The earlier one: its instant time, or a date or time.
        until: The later one; the newest commit without it.
    """
    return Reply(common.open(table).inspect.diff(since, until))


def health(table: TablePath, /, *, deep: bool = False, common: CommonOptions = COMMON) -> Reply:
    """What makes a table slow or large, and what mends it.

    Exit code 3 where something needs a call.

    Args:
        deep: Also what each repair would mend; this reads keys, log files and history.
    """
    report = common.open(table).inspect.health(deep=deep, options=common.options)
    findings = tuple(replace(one, run=command_for(one.run, report.table)) for one in report.findings)
    return Reply(replace(report, findings=findings), found_wrong=not report.is_healthy)


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
    instants = common.open(table).state().timeline
    shown = [
        one
        for one in (instants.pending() if pending else instants)
        if action is None or one.action.value == action.lower()
    ]
    return Reply(shown)
