"""What keeps a metadata table small: compactions and cleaning of its own. Hold the data table's lock.

They come before the delta commit of an instant of the table, while that instant is inflight. So a reader never waits
for them, and one that dies leaves a plan, which the next instant executes. Its timeline is archived together with the
table's (`services/archive`). Source: docs/formats/metadata-table.md, "Compaction and cleaning", "Log compaction".
"""

from __future__ import annotations

from pyhudi.metadata.cleaning import clean_if_due, run_pending_cleans
from pyhudi.metadata.compaction import compact_if_due, run_pending_compactions
from pyhudi.metadata.log_compaction import drop_pending_log_compactions, log_compact_if_due
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.options.metadata import MetadataOptions

__all__ = ["run_services"]


def run_services(table: MetadataTable, options: MetadataOptions) -> MetadataTable:
    """Finish what waits, clean and compact what is due; the table as it is then.

    Raises: MetadataTableDamaged, CorruptFile.
    """
    table = drop_pending_log_compactions(run_pending_cleans(run_pending_compactions(table)))
    table = clean_if_due(table, options.delta_commits_max)
    return log_compact_if_due(compact_if_due(table, options.delta_commits_max), options)
