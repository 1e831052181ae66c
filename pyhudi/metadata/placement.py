"""Which file group of a partition of the metadata table a key belongs to.

Source: docs/formats/metadata-table.md, "File groups of a key".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.metadata.partitions import MetadataKind, kind_of
from pyhudi.metadata.record_keys import shards
from pyhudi.model.new_table import SECONDARY_BY_VALUE

__all__ = ["group_numbers", "groups_by_prefix"]

_GROUP_NUMBER = re.compile(r"\d{4}(-0)?$", re.ASCII)  # in a file id, of its number among the file groups


def groups_by_prefix(file_ids: Iterable[str]) -> Mapping[str, list[str]]:
    """File ids by what comes before their number, each in its order: one prefix, but in a record index that has file
    groups for each partition of the table.
    """
    found: dict[str, list[str]] = {}
    for file_id in sorted(file_ids):
        found.setdefault(_GROUP_NUMBER.sub("", file_id), []).append(file_id)
    return found


def group_numbers(partition: str, keys: pa.Array, groups: int, table_version: int) -> npt.NDArray[np.int32]:
    """The number of the file group, among `groups`, that each key belongs to."""
    by_value = kind_of(partition) is MetadataKind.SECONDARY_INDEX and table_version >= SECONDARY_BY_VALUE
    return shards(keys, groups, by_secondary_value=by_value)
