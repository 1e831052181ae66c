"""`pyhudi checkpoint ...`: where an ingestion job stands."""

from __future__ import annotations

from pyhudi.cli.options import COMMON, CONSENT, CommonOptions, ConsentOptions, TablePath
from pyhudi.cli.reply import Reply

__all__ = ["get", "set_checkpoint"]


def get(table: TablePath, /, *, key: str | None = None, common: CommonOptions = COMMON) -> Reply:
    """The newest checkpoint in the commits of a table. Exit code 3 without one.

    Args:
        key: Its key in the commit; those of Hudi's Streamer without it.
    """
    checkpoint = common.open(table).inspect.checkpoint(key)
    return Reply(checkpoint, found_wrong=checkpoint.value is None)


def set_checkpoint(
    table: TablePath,
    value: str,
    /,
    *,
    key: str | None = None,
    consent: ConsentOptions = CONSENT,
    common: CommonOptions = COMMON,
) -> Reply:
    """Set the checkpoint by an empty commit; older commits stay as they are.

    Args:
        value: Where the job shall go on.
        key: Its key in the commit; that of the newest checkpoint without it.
    """
    opened = common.open(table)
    if not consent.dry_run:
        now = opened.inspect.checkpoint(key)
        consent.ask(lambda: f"now:  {now}\nthen: {value}", "Set the checkpoint?")
    checkpoint = opened.maintenance.set_checkpoint(value, key=key, dry_run=consent.dry_run, options=common.options)
    return Reply(checkpoint, f"would set {value} ({checkpoint.key})" if consent.dry_run else None)
