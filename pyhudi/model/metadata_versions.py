"""From which table version on something holds of the metadata table: each rule with one name.

Source: docs/formats/metadata-table.md, "Timeline", "Which blocks count", "Partitions", "Index definitions",
"Secondary index", "Taking back", "Built while writers go on", "Log compaction".
"""

from __future__ import annotations

__all__ = [
    "BUILT_BESIDE_WRITERS",
    "BY_COMPLETION",
    "DELETE_BLOCKS",
    "INDEX_DEFINITIONS",
    "LATER_KINDS",
    "LOG_COMPACTED_STATISTICS",
    "OWN_LOG_FILES",
    "RECORD_INDEX_DEFINITION",
    "SECONDARY_BY_VALUE",
    "SECONDARY_NULLS",
]

BY_COMPLETION = 8  # what is older goes by completion times; below by instant times, of which three digits say the kind
BUILT_BESIDE_WRITERS = 8  # a base file of a build lies below the log files that came before it
OWN_LOG_FILES = 8  # each delta commit has log files with its instant in their names; below they name their slice
DELETE_BLOCKS = 8  # records of files that were deleted are taken away; below others say that they are
LOG_COMPACTED_STATISTICS = 9  # Hudi 1.0 reads log-compacted blocks next to those they stand for: counts are doubled
INDEX_DEFINITIONS = 8  # `.hoodie/.index_defs` says of which columns there are statistics
LATER_KINDS = 8  # statistics of partitions, secondary and expression indexes
RECORD_INDEX_DEFINITION = 9  # the definitions tell of the record index, too
SECONDARY_BY_VALUE = 9  # the value alone says the file group of a pair
SECONDARY_NULLS = 9  # rows without a value have a record, and dates are numbers of days
