"""`pyhudi index ...`: indexes of the metadata table."""

from __future__ import annotations

from pyhudi.cli.options import COMMON, CONSENT, CommonOptions, ConsentOptions, TablePath
from pyhudi.cli.reply import Reply

__all__ = ["build", "create", "drop", "list_indexes"]


def list_indexes(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """The indexes of a table."""
    return Reply(common.open(table).indexes.list())


def create(
    table: TablePath,
    name: str,
    /,
    *,
    columns: str | None = None,
    index_type: str | None = None,
    expression: str | None = None,
    while_writing: bool = False,
    schedule: bool = False,
    common: CommonOptions = COMMON,
) -> Reply:
    """Build an index, which later writes keep up.

    Args:
        name: Its name; record_index, column_stats, partition_stats and bloom_filters are types, too.
        columns: Its columns, with commas.
        index_type: secondary_index, column_stats or bloom_filters.
        expression: SQL over a column, as "from_unixtime(ts, 'yyyy-MM-dd')".
        while_writing: Let other writers go on meanwhile.
        schedule: Leave the plan on the timeline, for `pyhudi index build`.
    """
    names = () if columns is None else tuple(part.strip() for part in columns.split(","))
    built = common.open(table).indexes.create(
        name,
        columns=names,
        index_type=index_type,
        expression=expression,
        while_writing=while_writing,
        schedule_only=schedule,
        options=common.options,
    )
    return Reply(built)


def build(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """Build the indexes whose plans wait."""
    return Reply(common.open(table).indexes.build(options=common.options))


def drop(table: TablePath, name: str, /, *, consent: ConsentOptions = CONSENT, common: CommonOptions = COMMON) -> Reply:
    """Take an index out of the metadata table. Answers with those that stay.

    Args:
        name: Its name.
    """
    opened = common.open(table)
    going = opened.indexes.drop(name, dry_run=True, options=common.options).partitions
    if not consent.dry_run:
        consent.ask(lambda: ", ".join(going), "Drop it?")
        going = opened.indexes.drop(name, options=common.options).partitions
    indexes = opened.indexes.list()
    stay = type(indexes)(one for one in indexes if one.name not in going)
    return Reply(stay, f"would drop {', '.join(going)}; these would stay:\n{stay}" if consent.dry_run else None)
