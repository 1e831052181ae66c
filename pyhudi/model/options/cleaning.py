"""CleaningOptions: how much history a write or a call of the cleaner keeps, typed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyhudi.caller_warnings import warn_caller
from pyhudi.errors import ConfigError
from pyhudi.model.clean_plan import KEEP_LATEST_BY_HOURS, KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS
from pyhudi.model.options.spec import HudiOptionWarning
from pyhudi.model.options.values import Values

__all__ = ["CleaningOptions", "PartitionFilter", "cleaning_options"]

_POLICY = "hoodie.clean.policy"
_COMMITS = "hoodie.clean.commits.retained"
_HOURS = "hoodie.clean.hours.retained"
_VERSIONS = "hoodie.clean.fileversions.retained"
_TRIGGER = "hoodie.clean.trigger.max.commits"
_INCREMENTAL = "hoodie.clean.incremental.enabled"
_SELECTED = "hoodie.clean.partition.filter.selected"
_REGEX = "hoodie.clean.partition.filter.regex"
_KEPT_MIN = "hoodie.keep.min.commits"
_POLICY_OF = {
    _COMMITS: KEEP_LATEST_COMMITS,
    _HOURS: KEEP_LATEST_BY_HOURS,
    _VERSIONS: KEEP_LATEST_FILE_VERSIONS,
}


@dataclass(frozen=True, slots=True)
class PartitionFilter:
    """The partitions that a clean is allowed to look at: those `selected` by path, else those whose whole path matches
    `regex`. Neither: all.
    """

    selected: tuple[str, ...] = ()
    regex: str = ""

    def __bool__(self) -> bool:
        return bool(self.selected or self.regex)

    def __str__(self) -> str:
        return f"{_SELECTED}={','.join(self.selected)}" if self.selected else f"{_REGEX}={self.regex}"


@dataclass(frozen=True, slots=True)
class CleaningOptions:
    """`trigger_is_given`: the caller said how many commits to wait for."""

    automatic: bool = True
    policy: str = KEEP_LATEST_COMMITS
    commits_retained: int = 10
    hours_retained: int = 24
    file_versions_retained: int = 3
    is_incremental: bool = True
    partitions: PartitionFilter = PartitionFilter()
    trigger: str = "NUM_COMMITS"
    trigger_commits: int = 1
    trigger_is_given: bool = False
    commits_cleaned_max: int = 2**63 - 1


def cleaning_options(values: Values) -> CleaningOptions:
    """The options of a write or of a call of a service. Warns when archiving is asked to keep less than cleaning."""
    options = CleaningOptions(
        automatic=values.flag("hoodie.clean.automatic"),
        policy=_policy(values),
        commits_retained=values.integer(_COMMITS, minimum=1),
        hours_retained=values.integer(_HOURS, minimum=0),
        file_versions_retained=values.integer(_VERSIONS, minimum=1),
        is_incremental=values.flag(_INCREMENTAL),
        partitions=_partitions(values),
        trigger=values.must("hoodie.clean.trigger.strategy"),
        trigger_commits=values.integer(_TRIGGER, minimum=1),
        trigger_is_given=_TRIGGER in values.given,
        commits_cleaned_max=values.integer("hoodie.clean.max.commits.to.clean", minimum=1),
    )
    _check_archiving(options, values)
    return options


def _partitions(values: Values) -> PartitionFilter:
    """The filter of partitions. Raises ConfigError beside incremental cleaning, as Hudi does, and for a bad pattern."""
    found = PartitionFilter(values.names(_SELECTED), values.text(_REGEX) or "")
    if found and values.flag(_INCREMENTAL):
        raise ConfigError(
            f"{found} names partitions to clean, but incremental cleaning chooses them by itself: partitions that one "
            f"clean leaves out would be forgotten by the next. Set {_INCREMENTAL}=false, or leave the filter out."
        )
    try:
        re.compile(found.regex)
    except re.error as error:
        raise ConfigError(f"{_REGEX}={found.regex!r} is no regular expression: {error}.") from error
    return found


def _check_archiving(options: CleaningOptions, values: Values) -> None:
    """Archiving goes only as far as cleaning has gone, so a smaller number for it says what can't happen."""
    kept = values.integer(_KEPT_MIN)
    if options.policy == KEEP_LATEST_COMMITS and _KEPT_MIN in values.given and kept <= options.commits_retained:
        warn_caller(
            f"{_KEPT_MIN}={kept} is not above {_COMMITS}={options.commits_retained}: cleaning keeps the files of "
            f"{options.commits_retained} commits, and those commits stay on the active timeline, so archiving keeps "
            f"{options.commits_retained + 1} at least. Retain fewer commits, or give archiving a greater number.",
            HudiOptionWarning,
        )


def _policy(values: Values) -> str:
    """The policy; when none is given and just one of the numbers is, that number says it, as in Hudi 1.x."""
    given = [key for key in _POLICY_OF if key in values.given]
    for key in given:
        values.text(key)
    policy = values.must(_POLICY)
    if _POLICY not in values.given and len(given) == 1:
        return _POLICY_OF[given[0]]
    return policy
