"""How many file groups a record index gets when it is made; their number never changes after that.

Source: docs/formats/metadata-table.md, "Partitions", "Record index".
"""

from __future__ import annotations

import math

from pyhudi.model.options.metadata import RecordIndexOptions

__all__ = ["record_index_group_count"]

_RECORD_BYTES = 48  # what Hudi takes for the size of a record


def record_index_group_count(keys: int, options: RecordIndexOptions, *, of_partition: bool = False) -> int:
    """File groups for so many keys: room for what the table is expected to grow to, within the options' bounds.

    Args:    of_partition: the file groups of one partition of the table, in an index that has some for each.
    """
    least, most = options.groups_min, options.groups_max
    if of_partition:
        least, most = options.partition_groups_min, options.partition_groups_max
    if least == most:
        return max(1, least)
    wanted = math.ceil(keys * options.growth_factor) // max(1, options.group_bytes_max // _RECORD_BYTES)
    return max(1, min(max(wanted, least), most))
