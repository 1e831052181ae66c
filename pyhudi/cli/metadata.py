"""`pyhudi metadata ...`: the metadata table."""

from __future__ import annotations

from pyhudi.cli.options import COMMON, CONSENT, CommonOptions, ConsentOptions, TablePath
from pyhudi.cli.reply import Reply

__all__ = ["drop", "rebuild", "stats", "validate"]

_NONE = "there is no metadata table"


def validate(table: TablePath, /, *, sample: int | None = None, common: CommonOptions = COMMON) -> Reply:
    """Compare the metadata table with the files. Exit code 3 for a difference.

    Args:
        sample: Read so many file groups only; the list of files is compared whole.
    """
    opened = common.open(table)
    differences = opened.metadata.validate(sample=sample, options=common.options)
    text = "\n".join(map(str, differences)) or ("no differences" if opened.metadata.partitions else _NONE)
    return Reply(differences, text, found_wrong=bool(differences))


def rebuild(
    table: TablePath,
    /,
    *,
    partitions: str | None = None,
    dry_run: bool = False,
    common: CommonOptions = COMMON,
) -> Reply:
    """Build the metadata table anew, or partitions of it.

    Args:
        partitions: Their names, with commas; all without it.
        dry_run: Only show which, and what is wrong now.
    """
    names = None if partitions is None else [part.strip() for part in partitions.split(",")]
    rebuilt = common.open(table).metadata.rebuild(names, dry_run=dry_run, options=common.options)
    return Reply(rebuilt)


def drop(
    table: TablePath,
    /,
    *,
    partitions: str | None = None,
    consent: ConsentOptions = CONSENT,
    common: CommonOptions = COMMON,
) -> Reply:
    """Take the metadata table out, or partitions of it. Answers with the names of what went.

    Args:
        partitions: Their names, with commas; all without it.
    """
    opened = common.open(table)
    names = None if partitions is None else [part.strip() for part in partitions.split(",")]
    going = opened.metadata.drop(names, dry_run=True, options=common.options)
    if going and not consent.dry_run:
        consent.ask(lambda: ", ".join(going), "Drop these partitions of the metadata table?")
        going = opened.metadata.drop(names, options=common.options)
    verb = "would drop" if consent.dry_run else "dropped"
    return Reply(going, f"{verb} {', '.join(going)}" if going else _NONE)


def stats(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """The files of the metadata table, by partition."""
    return Reply(common.open(table).metadata.stats())
