"""`pyhudi compact`, `cluster`, `clean`, `archive` and their like: table services."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypedDict

from cyclopts import Group, Parameter

from pyhudi.cli.options import COMMON, CONSENT, CommonOptions, ConsentOptions, TablePath
from pyhudi.cli.reply import Reply
from pyhudi.errors import ConfigError

if TYPE_CHECKING:
    from typing_extensions import NotRequired

__all__ = ["archive", "clean", "cluster", "compact", "log_compact", "ttl"]

_PLANS = Group("Its plan", sort_key=8)


class PlanArguments(TypedDict):
    """Arguments of `HudiTable.compact` and its like."""

    dry_run: bool
    schedule_only: bool
    instant_time: str | None
    options: NotRequired[dict[str, str]]


@dataclass(frozen=True)
class Planned:
    """What becomes of the plan of a table service. Without these it is made and run, after those that wait.

    Args:
        schedule: Leave the plan on the timeline, for `--run` of any process.
        run: Run this plan that waits, by its instant time, and make none.
    """

    schedule: Annotated[bool, Parameter(group=_PLANS)] = False
    run: Annotated[str | None, Parameter(group=_PLANS)] = None

    def arguments(self, dry_run: bool, options: dict[str, str]) -> PlanArguments:
        """As arguments of a method. Raises ConfigError for two that contradict each other."""
        if dry_run + self.schedule + (self.run is not None) > 1:
            raise ConfigError("--dry-run, --schedule and --run say three things about the plan; give one of them.")
        return {
            "dry_run": dry_run,
            "schedule_only": self.schedule,
            "instant_time": self.run,
            "options": options,
        }


PlannedOptions: TypeAlias = Annotated[Planned, Parameter(name="*")]
PLANNED = Planned()


def compact(
    table: TablePath,
    /,
    *,
    dry_run: bool = False,
    planned: PlannedOptions = PLANNED,
    common: CommonOptions = COMMON,
) -> Reply:
    """Merge log files into base files.

    Args:
        dry_run: Only show what would be compacted.
    """
    return Reply(common.open(table).compact(**planned.arguments(dry_run, common.options)))


def log_compact(
    table: TablePath,
    /,
    *,
    dry_run: bool = False,
    planned: PlannedOptions = PLANNED,
    common: CommonOptions = COMMON,
) -> Reply:
    """Merge the log blocks of slices with many of them.

    Args:
        dry_run: Only show what would be compacted.
    """
    return Reply(common.open(table).maintenance.log_compact(**planned.arguments(dry_run, common.options)))


def cluster(
    table: TablePath,
    /,
    *,
    sort: str | None = None,
    layout: str | None = None,
    dry_run: bool = False,
    planned: PlannedOptions = PLANNED,
    common: CommonOptions = COMMON,
) -> Reply:
    """Rewrite small files as larger ones, with sorted rows.

    Args:
        sort: Columns to sort by, with commas.
        layout: LINEAR, ZORDER or HILBERT.
        dry_run: Only show what would be rewritten.
    """
    columns = None if sort is None else [name.strip() for name in sort.split(",")]
    arguments = planned.arguments(dry_run, common.options)
    return Reply(common.open(table).cluster(sort_columns=columns, layout=layout, **arguments))


def clean(
    table: TablePath,
    /,
    *,
    planned: PlannedOptions = PLANNED,
    consent: ConsentOptions = CONSENT,
    common: CommonOptions = COMMON,
) -> Reply:
    """Delete files that no allowed query needs.

    The policy is Hudi's: `--option hoodie.clean.policy=...`.
    """
    opened = common.open(table)
    arguments = planned.arguments(consent.dry_run, common.options)
    if not (consent.dry_run or planned.schedule or planned.run):
        consent.ask(
            lambda: opened.clean(dry_run=True, options=common.options),
            "Delete these files?",
            lambda plan: plan.planned or plan.waiting,
        )
    return Reply(opened.clean(**arguments))


def archive(table: TablePath, /, *, dry_run: bool = False, common: CommonOptions = COMMON) -> Reply:
    """Move old instants from the active timeline to the history.

    Args:
        dry_run: Only show which.
    """
    return Reply(common.open(table).maintenance.archive(dry_run=dry_run, options=common.options))


def ttl(table: TablePath, /, *, consent: ConsentOptions = CONSENT, common: CommonOptions = COMMON) -> Reply:
    """Delete the partitions that have expired.

    When they expire: `--option hoodie.partition.ttl.strategy.days.retain=30`.
    """
    opened = common.open(table)
    if not consent.dry_run:
        consent.ask(
            lambda: opened.maintenance.run_ttl(dry_run=True, options=common.options),
            "Delete these partitions?",
            lambda plan: plan.expired,
        )
    return Reply(opened.maintenance.run_ttl(dry_run=consent.dry_run, options=common.options))
