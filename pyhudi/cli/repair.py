"""`pyhudi repair ...`: damage found and mended. The plan is shown and asked about before anything changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from pyhudi.cli.options import COMMON, CONSENT, CommonOptions, ConsentOptions, TablePath, pairs_of
from pyhudi.cli.reply import Reply

if TYPE_CHECKING:
    from pyhudi.services.repair.result import RepairResult

__all__ = [
    "deprecated_partition",
    "duplicates",
    "empty_instants",
    "log_checksums",
    "orphans",
    "partition_metadata",
    "properties",
    "rename_partition",
]


def orphans(table: TablePath, /, *, consent: ConsentOptions = CONSENT, common: CommonOptions = COMMON) -> Reply:
    """Delete data files that no instant owns.

    Exit code 3 where --dry-run finds some, as for all repairs.
    """
    return _mended(partial(common.open(table).maintenance.repair.orphans, options=common.options), consent)


def duplicates(
    table: TablePath,
    /,
    *,
    partition: list[str] | None = None,
    consent: ConsentOptions = CONSENT,
    common: CommonOptions = COMMON,
) -> Reply:
    """Keep one row of each key, by the merge rules.

    Args:
        partition: Path of a partition to look at; all without it. May be given several times.
    """
    mend = partial(common.open(table).maintenance.repair.duplicates, partitions=partition, options=common.options)
    return _mended(mend, consent)


def partition_metadata(
    table: TablePath, /, *, consent: ConsentOptions = CONSENT, common: CommonOptions = COMMON
) -> Reply:
    """Write missing or wrong partition metadata."""
    return _mended(partial(common.open(table).maintenance.repair.partition_metadata, options=common.options), consent)


def empty_instants(table: TablePath, /, *, consent: ConsentOptions = CONSENT, common: CommonOptions = COMMON) -> Reply:
    """Mend instants whose files are empty or damaged."""
    return _mended(partial(common.open(table).maintenance.repair.empty_instants, options=common.options), consent)


def properties(
    table: TablePath,
    /,
    *,
    set: list[str] | None = None,
    consent: ConsentOptions = CONSENT,
    common: CommonOptions = COMMON,
) -> Reply:
    """Make damaged hoodie.properties again.

    Args:
        set: KEY=VALUE: a property that counts before all others. May be given several times.
    """
    from pyhudi import repair_properties

    mend = partial(
        repair_properties,
        common.path(table),
        properties=pairs_of("--set", set),
        options=common.options,
        storage_options=common.storage_options,
    )
    return _mended(mend, consent)


def rename_partition(
    table: TablePath,
    old: str,
    new: str,
    /,
    *,
    consent: ConsentOptions = CONSENT,
    common: CommonOptions = COMMON,
) -> Reply:
    """Give the rows of a partition the values of another path.

    Args:
        old: Path of the partition.
        new: Its new path, where there must be no rows.
    """
    return _mended(
        partial(common.open(table).maintenance.repair.rename_partition, old, new, options=common.options), consent
    )


def deprecated_partition(
    table: TablePath, /, *, consent: ConsentOptions = CONSENT, common: CommonOptions = COMMON
) -> Reply:
    """Move rows without a value from `default` to the default partition of today."""
    return _mended(partial(common.open(table).maintenance.repair.deprecated_partition, options=common.options), consent)


def log_checksums(table: TablePath, /, *, consent: ConsentOptions = CONSENT, common: CommonOptions = COMMON) -> Reply:
    """Keep what damaged log files still hold."""
    return _mended(partial(common.open(table).maintenance.repair.log_checksums, options=common.options), consent)


def _mended(repair: Callable[..., RepairResult], consent: ConsentOptions) -> Reply:
    """Show what a repair would do; do it when somebody says yes."""
    plan = repair(dry_run=True)
    if consent.dry_run or not plan.to_mend:
        return Reply(plan, found_wrong=bool(plan.items))
    consent.ask(lambda: plan, f"Mend {len(plan.to_mend):,}?")
    return Reply(repair(dry_run=False))
