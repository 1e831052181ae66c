"""ArchivingOptions: when instants leave the active timeline, and how their history is kept, typed."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.errors import ConfigError
from pyhudi.model.options.values import Values

__all__ = ["ArchivingOptions", "archiving_options"]


@dataclass(frozen=True, slots=True)
class ArchivingOptions:
    """Options of archiving; what cleaning keeps stays active too."""

    automatic: bool = True
    commits_kept_min: int = 20
    commits_kept_max: int = 30
    batch_entries: int = 10
    beyond_savepoint: bool = False
    stops_at_latest_clean: bool = False
    fold_files: int = 10
    fold_bytes_max: int = 1048576000
    manifests_kept: int = 3


def archiving_options(values: Values) -> ArchivingOptions:
    """The options of a write or of a call of a service. Raises ConfigError when max is not above min."""
    kept_min = values.integer("hoodie.keep.min.commits", minimum=1)
    kept_max = values.integer("hoodie.keep.max.commits", minimum=1)
    if kept_max <= kept_min:
        raise ConfigError(
            f"hoodie.keep.max.commits={kept_max} must be greater than hoodie.keep.min.commits={kept_min}: archiving "
            f"starts when there are more commits than the one, and leaves as many as the other says."
        )
    return ArchivingOptions(
        automatic=values.flag("hoodie.archive.automatic"),
        commits_kept_min=kept_min,
        commits_kept_max=kept_max,
        batch_entries=values.integer("hoodie.commits.archival.batch", minimum=1),
        beyond_savepoint=values.flag("hoodie.archive.beyond.savepoint"),
        stops_at_latest_clean=values.flag("hoodie.archive.block.on.latest.clean.ectr"),
        fold_files=values.integer("hoodie.timeline.compaction.batch.size", minimum=2),
        fold_bytes_max=values.integer("hoodie.timeline.compaction.target.file.max.bytes", minimum=1),
        manifests_kept=values.integer("hoodie.timeline.manifest.retained.versions", minimum=1),
    )
