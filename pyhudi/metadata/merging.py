"""The merging of metadata records: of several records with one key, the newest wins or all are combined.

    files                       entries of the newer record are added to the older one's; sizes only grow
    column_stats                ranges are joined, counts added (below version 8 a log file grows by several writes),
                                unless the newer record covers the whole file (`isTightBound`) or marks a deletion
    all others                  the newer record

A delete removes all earlier versions of its key. Source: docs/formats/metadata-table.md, "Merging records".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.buffers import is_ascending, order_of_bytes
from pyhudi.formats.timeline.bodies import Body
from pyhudi.metadata.records import DELETED, KEY, SEQUENCE, TYPE
from pyhudi.metadata.schema import MetadataKind

__all__ = ["COMBINED", "merged_logs", "merged_records"]

COMBINED = frozenset({MetadataKind.FILES, MetadataKind.COLUMN_STATS})  # kinds that combine the versions of a key


def merged_records(versions: pa.Table, kind: MetadataKind) -> pa.Table:
    """`key`, `type` and the payloads of the live records, in order of the keys.

    Args: versions: `key`, `type`, payloads, `sequence` and `deleted`, as `GroupReader` returns them.
    """
    columns = [KEY, TYPE, *kind.payloads]
    if not versions.num_rows:
        return versions.select(columns)
    rows = _in_order(versions)
    first = _first_of_each(rows.column(KEY))
    since = _since_delete(rows, first)
    last = np.append(np.flatnonzero(first)[1:], rows.num_rows) - 1
    live = ~rows.column(DELETED).to_numpy()[last]
    newest = rows.select(columns)
    if live.sum() < rows.num_rows:
        newest = newest.take(pa.array(last[live]))
    several = (last - since)[live] > 0
    if kind in COMBINED and several.any():
        combined = _combined(rows, since[live][several], last[live][several], kind)
        newest = _replaced(newest, kind.payloads[0], several, combined)
    for payload in kind.payloads:
        newest = _without_marked(newest, payload)
    return newest


def merged_logs(versions: pa.Table, kind: MetadataKind) -> tuple[pa.Table, pa.Array] | None:
    """Merge log files without their base file: return the newest or combined record of each key, and the deleted keys.

    None if the result depends on the base file: a record follows a delete of its older versions.

    Args: versions: as for `merged_records`, of log files alone.
    """
    columns = [KEY, TYPE, *kind.payloads]
    rows = _in_order(versions)
    if not rows.num_rows:
        return rows.select(columns), pa.array([], pa.string())
    starts = np.flatnonzero(_first_of_each(rows.column(KEY)))
    last = np.append(starts[1:], rows.num_rows) - 1
    is_deleted = rows.column(DELETED).to_numpy()[last]
    newest = rows.take(pa.array(last[~is_deleted])).select(columns)
    deleted = rows.column(KEY).take(pa.array(last[is_deleted])).combine_chunks()
    several = (last - starts)[~is_deleted] > 0
    if kind not in COMBINED or not several.any():
        return newest, deleted
    begin, end = starts[~is_deleted][several], last[~is_deleted][several]
    if any(_follows_deletion(rows, *ends, kind) for ends in zip(begin.tolist(), end.tolist(), strict=True)):
        return None
    combined = _combined(rows, begin, end, kind, keeps_deleted=True)
    return _replaced(newest, kind.payloads[0], several, combined), deleted


def _follows_deletion(rows: pa.Table, start: int, end: int, kind: MetadataKind) -> bool:
    """True if a version of a key follows one that deletes the base file's record."""
    before = rows.slice(start, end - start)
    if pc.any(before.column(DELETED)).as_py():
        return True
    payloads = rows.column(kind.payloads[0]).slice(start, end - start + 1).to_pylist()
    if kind is not MetadataKind.FILES:
        return any(one is not None and one["isDeleted"] for one in payloads[:-1])
    names: set[str] = set()
    for entries in payloads:
        for name, entry in entries or ():
            if entry["isDeleted"]:
                names.add(name)
            elif name in names:
                return True
    return False


def _in_order(versions: pa.Table) -> pa.Table:
    """The versions, ordered by key and then by sequence."""
    sequence = versions.column(SEQUENCE).to_numpy()
    if (sequence[1:] < sequence[:-1]).any():
        versions = versions.take(pa.array(np.argsort(sequence, kind="stable")))
    rows = versions.combine_chunks()
    keys = rows.column(KEY).combine_chunks().cast(pa.binary())
    if is_ascending(keys):  # true within one file
        return rows
    return rows.take(pa.array(order_of_bytes(keys))).combine_chunks()


def _first_of_each(keys: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    first = np.ones(len(keys), np.bool_)
    if len(keys) > 1:
        first[1:] = pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1)).to_numpy()
    return first


def _since_delete(rows: pa.Table, first: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """For each key the first row whose version counts: the key's first row, or the one after its last delete."""
    deleted = rows.column(DELETED).to_numpy()
    starts = np.where(first, np.arange(rows.num_rows), 0)
    behind = np.where(deleted, np.arange(rows.num_rows) + 1, 0)
    since = np.maximum.accumulate(np.maximum(starts, np.concatenate([[0], behind[:-1]])))
    last = np.append(np.flatnonzero(first)[1:], rows.num_rows) - 1
    return cast("npt.NDArray[np.int64]", since[last])


def _combined(
    rows: pa.Table,
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    kind: MetadataKind,
    *,
    keeps_deleted: bool = False,
) -> list[Body | list[tuple[str, Body]] | None]:
    """The payloads of keys with several versions. This loops over keys: few have several, and rules apply per key."""
    payloads = rows.column(kind.payloads[0])
    merged = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        versions = payloads.slice(start, end - start + 1).to_pylist()
        merged.append(_joined_files(versions, keeps_deleted) if kind is MetadataKind.FILES else _joined_stats(versions))
    return merged


def _replaced(newest: pa.Table, payload: str, several: npt.NDArray[np.bool_], combined: Sequence[object]) -> pa.Table:
    at = newest.schema.get_field_index(payload)
    field = newest.schema.field(at)
    column = newest.column(at).combine_chunks()
    both = pa.concat_arrays([column, pa.array(combined, field.type)])
    places = np.arange(len(column))
    places[several] = len(column) + np.arange(int(several.sum()))
    return newest.set_column(at, field, both.take(pa.array(places)))


def _joined_files(
    versions: Iterable[Iterable[tuple[str, Body]] | None], keeps_deleted: bool = False
) -> list[tuple[str, Body]]:
    files: dict[str, Body] = {}
    for version in versions:
        for name, newer in version or ():
            older = files.get(name)
            if newer["isDeleted"] and older is not None and not older["isDeleted"] and not keeps_deleted:
                del files[name]
            elif newer["isDeleted"] or older is None:
                files[name] = newer
            else:
                files[name] = {"size": max(older["size"], newer["size"]), "isDeleted": False}
    return list(files.items())


def _joined_stats(versions: Iterable[Body | None]) -> Body | None:
    merged: Body | None = None
    for newer in versions:
        if merged is None or newer is None or merged["isDeleted"] or newer["isDeleted"] or newer.get("isTightBound"):
            merged = newer
        else:
            merged = _both_stats(merged, newer)
    return merged


def _both_stats(older: Body, newer: Body) -> Body:
    counts = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
    added = {name: (older[name] or 0) + (newer[name] or 0) for name in counts}
    bounds = {
        "minValue": _bound(older["minValue"], newer["minValue"], least=True),
        "maxValue": _bound(older["maxValue"], newer["maxValue"], least=False),
    }
    return {**newer, **added, **bounds}


def _bound(one: Body | None, other: Body | None, *, least: bool) -> Body | None:
    if one is None or other is None:
        return other if one is None else one
    (first, second) = (next(m["value"] for m in wrapped.values() if m is not None) for wrapped in (one, other))
    return one if (first <= second) == least else other


def _without_marked(rows: pa.Table, payload: str) -> pa.Table:
    """The rows, leaving out records that mark themselves as deleted."""
    column = rows.column(payload)
    if not pa.types.is_struct(column.type) or column.type.get_field_index("isDeleted") < 0:
        return rows
    return rows.filter(pc.invert(pc.fill_null(pc.struct_field(column, "isDeleted"), False)))
