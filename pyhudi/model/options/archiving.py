"""ArchivingOptions: when instants leave the active timeline, and how their history is kept.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.errors import ConfigError
from pyhudi.model.options.declare import Values, option, parse

__all__ = ["KEPT_MIN", "ArchivingOptions", "archiving_options"]

KEPT_MIN = "hoodie.keep.min.commits"
_KEPT_MAX = "hoodie.keep.max.commits"


@dataclass(frozen=True, slots=True)
class ArchivingOptions:
    """Options of archiving; what cleaning keeps stays active too."""

    automatic: bool = option(
        "hoodie.archive.automatic",
        True,
        "Writes archive instants when there are more commits on the active timeline than `hoodie.keep.max.commits`.",
    )
    commits_kept_max: int = option(
        _KEPT_MAX,
        30,
        "Completed commits on the active timeline above which archiving starts. Raised when cleaning keeps more.",
        minimum=1,
    )
    commits_kept_min: int = option(
        KEPT_MIN,
        20,
        "Completed commits that archiving leaves on the active timeline. Raised when cleaning keeps more.",
        minimum=1,
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
        "Archive commits after a savepoint too; the savepointed ones stay. By default archiving stops at the "
        "first savepoint. `restore` refuses to go back over archived commits.",
    )
    stops_at_latest_clean: bool = option(
        "hoodie.archive.block.on.latest.clean.ectr",
        False,
        "Archive nothing at or after the earliest commit that the latest clean kept.",
    )
    fold_files: int = option(
        "hoodie.timeline.compaction.batch.size",
        10,
        "From table version 8 on: as many files of one level of the history are folded into one of the next level.",
        minimum=2,
    )
    fold_bytes_max: int = option(
        "hoodie.timeline.compaction.target.file.max.bytes",
        1048576000,
        "From table version 8 on: bytes of history files that are folded into one at most.",
        minimum=1,
    )
    manifests_kept: int = option(
        "hoodie.timeline.manifest.retained.versions",
        3,
        "From table version 8 on: versions of the history that stay readable for those who began before.",
        minimum=1,
    )


def archiving_options(values: Values) -> ArchivingOptions:
    """The options of a write or of a call of a service. Raises ConfigError when max is not above min."""
    options = parse(ArchivingOptions, values)
    if options.commits_kept_max <= options.commits_kept_min:
        raise ConfigError(
            f"{_KEPT_MAX}={options.commits_kept_max} must be greater than {KEPT_MIN}={options.commits_kept_min}: "
            f"archiving starts when there are more commits than the one, and leaves as many as the other says."
        )
    return options
