"""The metadata table's timeline is archived with the table's: its oldest instants, as many as nobody needs.

    the table's own timeline     an instant that is there must be found here, else the metadata table is out of date
    the last compaction          slices since then are parted by what the timeline says of their log files
    pending work                 as everywhere

And the table's timeline is not archived past what its metadata table has compacted: below version 8 blocks of log
files count only while the instant that wrote them is on the table's active timeline, and real Hudi does the same in all
versions. Source: docs/formats/metadata-table.md, "Compaction and cleaning"; docs/formats/history.md,
"What may be archived".
"""

from __future__ import annotations

from collections.abc import Iterator

from pyhudi.errors import HudiError
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.new_table import BY_COMPLETION
from pyhudi.services.archive.planning import ArchiveLimit, select_instants

__all__ = ["instants_to_archive", "opened_metadata_table"]

_COMMITS_KEPT_MIN = 21  # cleaning there looks at the last 20 commits


def opened_metadata_table(meta: MetaClient) -> MetadataTable | None:
    """The table's metadata table; None when there is none, or none that can be opened: the next write builds it."""
    try:
        return MetadataTable.open(meta)
    except HudiError:
        return None


def instants_to_archive(table: MetadataTable, kept_min: int, kept_max: int) -> tuple[Instant, ...]:
    """The instants of the metadata table's timeline that may go.

    Args:   kept_min, kept_max: of the table; one more is kept here, and not less than cleaning looks at.
    """
    timeline = table.meta.timeline
    kept_min = max(kept_min + 1, _COMMITS_KEPT_MIN)
    kept_max = max(kept_max + 1, kept_min + 1)
    if len(timeline.commits()) <= kept_max:
        return ()
    by_version = (kept_min, kept_max) if table.data.config.table_version < BY_COMPLETION else None
    return select_instants(timeline, kept_min, _limits(table), per_action=by_version).instants


def _limits(table: MetadataTable) -> Iterator[ArchiveLimit]:
    oldest = min((i.requested_time for i in table.data.timeline), default="")
    yield ArchiveLimit(oldest, "the table's oldest active instant")
    compactions = table.meta.timeline.completed().of([ActionKind.COMMIT])
    yield ArchiveLimit(max((i.requested_time for i in compactions), default=""), "the last compaction")
    for instant in table.meta.timeline.pending():
        yield ArchiveLimit(instant.requested_time, "an instant that is pending")
