"""The keys in file groups that a write takes out of the table, read by tasks: a record index forgets them.

Source: docs/formats/table-services.md, "Replaced file groups"; docs/formats/metadata-table.md, "Record index".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.table_keys import PROBE_TIME, table_keygen
from pyhudi.actions.writes.index_lookup import stored_slices
from pyhudi.filegroup.read.keys import SliceKeys
from pyhudi.merge.combine import single_array
from pyhudi.model.file_group import FileGroupId
from pyhudi.view.committed_logs import with_committed_bytes
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["replaced_keys"]

_SHARES = 256  # tasks; a task has several slices where there are more


def replaced_keys(groups: Collection[FileGroupId], context: ActionContext) -> Mapping[str, pa.Array]:
    """The keys of the newest slices of these file groups, by partition path.

    Args:    context: with the table as it is before the write is complete.
    Raises:  CorruptFile, UnsupportedTable.
    """
    if not groups:
        return {}
    meta = context.meta
    view = FileSystemView.load(meta, partitions=sorted({group.partition_path for group in groups}))
    newest = with_committed_bytes(meta, [s for s in view.all_slices() if s.group in groups])
    numbered = list(enumerate(newest))
    keygen = None if meta.config.populate_meta_fields else table_keygen(context, PROBE_TIME)
    work = SliceKeys(stored_slices(keygen, context))
    shares = [numbered[first::_SHARES] for first in range(min(len(numbered), _SHARES))]
    found = context.engine.collect(context.engine.fan_out(shares, work, work.schema))
    paths = np.array([file_slice.group.partition_path for file_slice in newest], dtype=np.object_)
    of_keys = paths[found.column(1).to_numpy()] if len(newest) else paths
    keys = single_array(found.column(0))
    return {path: keys.filter(pa.array(of_keys == path)) for path in dict.fromkeys(paths.tolist())}
