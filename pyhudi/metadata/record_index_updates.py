"""What one commit changes in a record index: keys that came to file groups, and keys that left all of them.

    inserted, or written to another file group      a record
    deleted, or in a file group that was replaced   deleted
    both in one commit (moved)                      a record
    updated where it was, compacted                 nothing

Source: docs/formats/metadata-table.md, "Record index".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.metadata.place_records import RowPlace, coded_place_records, encoded_places, instant_ms
from pyhudi.metadata.updates import PartitionUpdate, nothing_deleted
from pyhudi.model.commit import WriteStatus

__all__ = ["key_records", "partitioned_record_index_updates", "record_index_update"]

_NO_KEYS: Mapping[str, pa.Array] = {}


def record_index_update(
    table_version: int,
    instant_time: str,
    zone: tzinfo | None,
    statuses: Sequence[WriteStatus],
    replaced_keys: Mapping[str, pa.Array] = _NO_KEYS,
) -> PartitionUpdate:
    """The update of the index whose keys are unique in the table.

    Args:
        zone: of the table's timeline, None: the local one; statuses: of the commit, with the keys that their tasks
            reported, or index pieces; replaced_keys: by partition path, the keys in file groups that the commit takes
            out of the table, unless their rows were rewritten (clustering, whose statuses have all keys).
    """
    at = instant_ms(instant_time, zone)
    return _update(table_version, at, statuses, replaced_keys.values())


def partitioned_record_index_updates(
    table_version: int,
    instant_time: str,
    zone: tzinfo | None,
    statuses: Sequence[WriteStatus],
    replaced_keys: Mapping[str, pa.Array] = _NO_KEYS,
) -> dict[str, PartitionUpdate]:
    """The same by partition path of the table, for an index that has file groups for each of them: only partitions of
    which something is to be written.
    """
    at = instant_ms(instant_time, zone)
    by_path: dict[str, list[WriteStatus]] = {path: [] for path in replaced_keys}
    for status in statuses:
        by_path.setdefault(status.stat.partition_path or "", []).append(status)
    updates = {
        path: _update(table_version, at, own, [replaced_keys[path]] if path in replaced_keys else ())
        for path, own in sorted(by_path.items())
    }
    return {path: update for path, update in updates.items() if not update.is_empty}


def key_records(table_version: int, at_ms: int, statuses: Sequence[WriteStatus]) -> pa.Table:
    """The records of the new keys that tasks reported one by one, as `coded_place_records` makes them.

    Args:   at_ms: the instant as `RowPlace` has it.
    """
    writing = [status for status in statuses if status.new_keys is not None and len(status.new_keys)]
    places = [RowPlace(s.stat.partition_path or "", s.stat.file_id, at_ms) for s in writing]
    came = [status.new_keys for status in writing if status.new_keys is not None]
    numbers = np.repeat(np.arange(len(came), dtype=np.int32), [len(keys) for keys in came])
    keys = pa.chunked_array(came, pa.string())
    return coded_place_records(table_version, keys, encoded_places(table_version, places), numbers)


def _update(
    table_version: int, at_ms: int, statuses: Sequence[WriteStatus], replaced: Iterable[pa.Array]
) -> PartitionUpdate:
    records = key_records(table_version, at_ms, statuses)
    keys = records.column("key")
    removed = [status.removed_keys for status in statuses if status.removed_keys is not None]
    left = pc.unique(pa.concat_arrays([nothing_deleted(), *removed, *replaced]))
    left = left.filter(pc.invert(pc.is_in(left, value_set=keys))) if len(keys) and len(left) else left
    # Of a key that came to several files the one that was told last counts.
    return PartitionUpdate(records, left, pieces=[piece for status in statuses for piece in status.index_pieces])
