"""Options of the retention of history: file versions (cleaning), instants (archiving), partitions (time to live).

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from pyhudi.errors import ConfigError
from pyhudi.model.options.declare import Values, names_of, option, parse, part, row
from pyhudi.model.options.spec import HudiOptionWarning, Kind
from pyhudi.model.plans import KEEP_LATEST_BY_HOURS, KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS
from pyhudi.warnings import warn_caller

__all__ = [
    "KEEP_BY_CREATION_TIME",
    "KEEP_BY_TIME",
    "KEPT_MIN",
    "ArchivingOptions",
    "CleaningOptions",
    "PartitionFilter",
    "TtlOptions",
    "archiving_options",
    "cleaning_options",
    "ttl_options",
]

# ---- archiving ----

KEPT_MIN = "hoodie.keep.min.commits"
_KEPT_MAX = "hoodie.keep.max.commits"


@dataclass(frozen=True, slots=True)
class ArchivingOptions:
    """Options of archiving. Instants that cleaning keeps also remain active."""

    automatic: bool = option(
        "hoodie.archive.automatic",
        True,
        "Writes archive instants if the active timeline has more commits than `hoodie.keep.max.commits`.",
    )
    commits_kept_max: int = option(
        _KEPT_MAX,
        30,
        "Archiving starts if the active timeline has more completed commits than this. Raised if cleaning keeps more.",
        minimum=1,
        keyword="max_commits",
    )
    commits_kept_min: int = option(
        KEPT_MIN,
        20,
        "Completed commits that archiving leaves on the active timeline. Raised if cleaning keeps more.",
        minimum=1,
        keyword="min_commits",
    )
    batch_entries: int = option(
        "hoodie.commits.archival.batch",
        10,
        "Table version 6: entries (an instant has one for each of its states) in a block of an archive file.",
        minimum=1,
    )
    beyond_savepoint: bool = option(
        "hoodie.archive.beyond.savepoint",
        False,
        "Also archive commits after a savepoint, but not savepointed commits. By default archiving stops at the first "
        "savepoint. `restore` refuses to undo archived commits.",
    )
    stops_at_latest_clean: bool = option(
        "hoodie.archive.block.on.latest.clean.ectr",
        False,
        "Don't archive instants from the earliest commit on that the latest clean kept.",
    )
    merged_files: int = option(
        "hoodie.timeline.compaction.batch.size",
        10,
        "From table version 8 on: number of history files of one level that are merged into one of the next level.",
        minimum=2,
    )
    merged_bytes_max: int = option(
        "hoodie.timeline.compaction.target.file.max.bytes",
        1048576000,
        "From table version 8 on: maximum bytes of history files that are merged into one.",
        minimum=1,
    )
    manifests_kept: int = option(
        "hoodie.timeline.manifest.retained.versions",
        3,
        "From table version 8 on: versions of the history that remain readable, for reads that began earlier.",
        minimum=1,
    )


def archiving_options(values: Values) -> ArchivingOptions:
    """The options of a write or of a call of a service. Raises ConfigError unless max is above min."""
    options = parse(ArchivingOptions, values)
    if options.commits_kept_max <= options.commits_kept_min:
        raise ConfigError(
            f"{_KEPT_MAX}={options.commits_kept_max} must be greater than {KEPT_MIN}={options.commits_kept_min}: "
            f"archiving starts when there are more commits than the one, and leaves as many as the other says."
        )
    return options


# ---- cleaning ----

_POLICY = "hoodie.clean.policy"
_COMMITS = "hoodie.clean.commits.retained"
_HOURS = "hoodie.clean.hours.retained"
_VERSIONS = "hoodie.clean.fileversions.retained"
_TRIGGER = "hoodie.clean.trigger.max.commits"
_INCREMENTAL = "hoodie.clean.incremental.enabled"
_SELECTED = "hoodie.clean.partition.filter.selected"
_REGEX = "hoodie.clean.partition.filter.regex"
_POLICY_OF = {
    _COMMITS: KEEP_LATEST_COMMITS,
    _HOURS: KEEP_LATEST_BY_HOURS,
    _VERSIONS: KEEP_LATEST_FILE_VERSIONS,
}


@dataclass(frozen=True, slots=True)
class PartitionFilter:
    """The partitions that a clean may cover: those `selected` by path, else those whose whole path matches `regex`.
    If neither is set, all partitions.
    """

    selected: tuple[str, ...] = option(
        _SELECTED,
        (),
        "Clean only these partitions: paths, separated by commas. Needs `hoodie.clean.incremental.enabled=false`.",
        kind=Kind.TEXT,
        aliases=("hoodie.cleaner.partition.filter.selected",),
        convert=names_of,
    )
    regex: str = option(
        _REGEX,
        "",
        "Clean only partitions whose whole path matches this regular expression, unless some are selected by "
        "name. Needs `hoodie.clean.incremental.enabled=false`.",
        aliases=("hoodie.cleaner.partition.filter.regex",),
    )

    def __bool__(self) -> bool:
        return bool(self.selected or self.regex)

    def __str__(self) -> str:
        return f"{_SELECTED}={','.join(self.selected)}" if self.selected else f"{_REGEX}={self.regex}"


@dataclass(frozen=True, slots=True)
class CleaningOptions:
    """`trigger_is_given`: the caller set the number of commits."""

    automatic: bool = option("hoodie.clean.automatic", True, "Writes clean after they complete.")
    policy: str = option(
        _POLICY,
        KEEP_LATEST_COMMITS,
        "What cleaning keeps besides the newest version of every file. Unset: if only one of the three numbers is set, "
        "the policy of that number.",
        aliases=("hoodie.cleaner.policy",),
        choices=(KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS, KEEP_LATEST_BY_HOURS),
        keyword="policy",
    )
    commits_retained: int = option(
        _COMMITS,
        10,
        "KEEP_LATEST_COMMITS: the number of newest commits as of which the table can be read.",
        aliases=("hoodie.cleaner.commits.retained",),
        minimum=1,
        keyword="commits_retained",
    )
    hours_retained: int = option(
        _HOURS,
        24,
        "KEEP_LATEST_BY_HOURS: the table can be read as of each commit of this many hours.",
        aliases=("hoodie.cleaner.hours.retained",),
        minimum=0,
        keyword="hours_retained",
    )
    file_versions_retained: int = option(
        _VERSIONS,
        3,
        "KEEP_LATEST_FILE_VERSIONS: the number of versions of every file group to keep.",
        aliases=("hoodie.cleaner.fileversions.retained",),
        minimum=1,
        keyword="file_versions_retained",
    )
    is_incremental: bool = option(
        _INCREMENTAL,
        True,
        "Clean only partitions that changed since the last clean.",
        aliases=("hoodie.cleaner.incremental.mode",),
    )
    partitions: PartitionFilter = part(PartitionFilter)
    trigger: str = option(
        "hoodie.clean.trigger.strategy", "NUM_COMMITS", "The trigger of automatic cleaning.", choices=("NUM_COMMITS",)
    )
    trigger_commits: int = option(
        _TRIGGER,
        1,
        "Number of commits since the last clean that triggers a clean. `HudiTable.clean` obeys it only if it is set.",
        aliases=("hoodie.clean.max.commits",),
        minimum=1,
    )
    trigger_is_given: bool = False
    commits_cleaned_max: int = option(
        "hoodie.clean.max.commits.to.clean",
        2**63 - 1,
        "Maximum number of commits that one clean covers, so that a table not cleaned for long is cleaned in steps.",
        minimum=1,
    )


def cleaning_options(values: Values) -> CleaningOptions:
    """The options of a write or of a call of a service. Warns if archiving is set to keep less than cleaning."""
    options = parse(CleaningOptions, values)
    options = replace(options, policy=_policy(options, values), trigger_is_given=values.is_given(_TRIGGER))
    _check_partitions(options)
    _check_archiving(options, values)
    return options


def _check_partitions(options: CleaningOptions) -> None:
    """Raise ConfigError for a filter with incremental cleaning, as Hudi does, and for a bad pattern."""
    partitions = options.partitions
    if partitions and options.is_incremental:
        raise ConfigError(
            f"{partitions} names partitions to clean, but incremental cleaning chooses them by itself: partitions that "
            f"one clean leaves out would be forgotten by the next. Set {_INCREMENTAL}=false, or leave the filter out."
        )
    try:
        re.compile(partitions.regex)
    except re.error as error:
        raise ConfigError(f"{_REGEX}={partitions.regex!r} is no regular expression: {error}.") from error


def _check_archiving(options: CleaningOptions, values: Values) -> None:
    """Warn of a smaller number for archiving. It has no effect, as archiving never overtakes cleaning."""
    commits_min = values.texts.get(KEPT_MIN)
    if options.policy == KEEP_LATEST_COMMITS and commits_min and int(commits_min) <= options.commits_retained:
        warn_caller(
            f"{KEPT_MIN}={int(commits_min)} is not above {_COMMITS}={options.commits_retained}: cleaning keeps the "
            f"files of {options.commits_retained} commits, and those commits stay on the active timeline, so archiving "
            f"keeps {options.commits_retained + 1} at least. Retain fewer commits, or give archiving a greater number.",
            HudiOptionWarning,
        )


def _policy(options: CleaningOptions, values: Values) -> str:
    """The policy. If none is set, a single set number implies it, as in Hudi 1.x."""
    bounds = [key for key in _POLICY_OF if values.is_given(key)]
    if not values.is_given(_POLICY) and len(bounds) == 1:
        return _POLICY_OF[bounds[0]]
    return options.policy


# ---- partition time to live ----

KEEP_BY_TIME = "KEEP_BY_TIME"
KEEP_BY_CREATION_TIME = "KEEP_BY_CREATION_TIME"

_TTL_CLASS = row(
    "hoodie.partition.ttl.strategy.class",
    None,
    "The same by Hudi's class name, KeepByTimeStrategy or KeepByCreationTimeStrategy.",
)
_STRATEGY_OF = {"KeepByTimeStrategy": KEEP_BY_TIME, "KeepByCreationTimeStrategy": KEEP_BY_CREATION_TIME}


@dataclass(frozen=True, slots=True)
class TtlOptions:
    """`days_retained` 0 or less: nothing expires. `partitions`: those that may expire; () for all."""

    inline: bool = option("hoodie.partition.ttl.inline", False, "Writes delete expired partitions after they complete.")
    strategy: str = option(
        "hoodie.partition.ttl.management.strategy.type",
        KEEP_BY_TIME,
        "Start of a partition's age: its newest base file (KEEP_BY_TIME) or its first commit (KEEP_BY_CREATION_TIME).",
        choices=(KEEP_BY_TIME, KEEP_BY_CREATION_TIME),
        also=(_TTL_CLASS,),
    )
    days_retained: int = option(
        "hoodie.partition.ttl.strategy.days.retain",
        -1,
        "Days after which a partition expires. 0 or less: partitions never expire.",
        keyword="days_retained",
    )
    partitions: tuple[str, ...] = option(
        "hoodie.partition.ttl.strategy.partition.selected",
        (),
        "The partition paths that may expire. Unset: all.",
    )
    partitions_max: int = option(
        "hoodie.partition.ttl.strategy.max.delete.partitions",
        1000,
        "Maximum number of partitions deleted at once, oldest first; the others follow the next time.",
        minimum=1,
        keyword="max_partitions",
    )


def ttl_options(values: Values) -> TtlOptions:
    """The options of a write or of a call. Raises ConfigError for a strategy other than Hudi's."""
    options = parse(TtlOptions, values)
    class_name = values.text(_TTL_CLASS)
    if class_name is None:
        return options
    strategy = _STRATEGY_OF.get(class_name.rpartition(".")[2])
    if strategy is None:
        raise ConfigError(
            f"{_TTL_CLASS.key}={class_name}: known are Hudi's own, {' and '.join(_STRATEGY_OF)}. For a rule of your "
            "own call HudiTable.delete_partitions with the partitions that it picks."
        )
    return replace(options, strategy=strategy)
