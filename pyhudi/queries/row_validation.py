"""Indexes of rows in the metadata table, against the rows.

Source: docs/formats/metadata-table.md, "Record index", "Secondary index".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.metadata.index_definitions import read_index_definitions
from pyhudi.metadata.partitions import MetadataKind
from pyhudi.metadata.placement import groups_by_prefix
from pyhudi.metadata.record_places import file_ids, partition_paths
from pyhudi.metadata.secondary_index_partition import why_no_secondary_index
from pyhudi.metadata.secondary_keys import secondary_keys
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.keys import FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.queries.metadata_difference import KEYS_SHOWN, Compared, Difference
from pyhudi.queries.plan import ReadPlan
from pyhudi.queries.snapshot import read_batches

__all__ = ["record_index", "secondary_index"]

_How: TypeAlias = Literal["full outer", "left outer"]
_PLACE = (RECORD_KEY, PARTITION_PATH, FILE_NAME)
_BETWEEN = "\0"  # of a partition path and a key


# ---- record index ----------------------------------------------------------------------------------------------------


def record_index(compared: Compared, partition: str) -> Iterator[Difference]:
    """Keys without an entry, entries without a row, and entries that name a file group that does not have the row. An
    index of each partition of the table is compared partition by partition.
    """
    table = compared.table
    is_global = MetadataKind.RECORD_INDEX.value.file_ids in groups_by_prefix(
        found.group.file_id for found in table.slices(partition)
    )
    there = _rows(compared, compared.plan(_PLACE), is_global=is_global)
    keys = there.column("key")
    records = table.records(partition) if compared.is_whole else table.lookup(partition, _texts(keys.unique()))
    listed = _listed(records, is_global=is_global)
    how: _How = "full outer" if compared.is_whole else "left outer"
    wrong = _wrong(there, listed, how)
    if not compared.is_whole and wrong.num_rows:  # it may have another row of this key, in a file group not looked at
        named = wrong.column("listed").drop_null().to_pylist()
        groups = {FileGroupId(*str(place).rsplit("/", 1)) for place in named}
        elsewhere = _rows(compared, compared.plan(_PLACE, groups), is_global=is_global)
        every = pa.concat_tables([there, elsewhere])
        wrong = _wrong(every.filter(pc.is_in(every.column("id"), wrong.column("id").combine_chunks())), listed, how)
    for row in wrong.slice(0, KEYS_SHOWN).to_pylist():
        where = f"key {str(row['id']).rpartition(_BETWEEN)[2]!r}"
        yield Difference(partition, where, row["there"] or "no entry", row["listed"] or "no entry")
    if wrong.num_rows > KEYS_SHOWN:
        yield Difference(partition, f"{wrong.num_rows} keys in all", "one right entry each", "others")


def _rows(compared: Compared, plan: ReadPlan, *, is_global: bool) -> pa.Table:
    """`id`, `key` and `there` (partition path and file id) of each row."""
    rows = pa.Table.from_batches(read_batches(plan, compared.table.data.storage), plan.schema)
    ids = pc.list_element(pc.split_pattern(rows.column(FILE_NAME), "_", max_splits=1), 0)
    keys, paths = rows.column(RECORD_KEY), rows.column(PARTITION_PATH)
    return pa.table({"id": _ids(paths, keys, is_global=is_global), "key": keys, "there": _places(paths, ids)})


def _listed(records: pa.Table, *, is_global: bool) -> pa.Table:
    """`id` and `listed` (partition path and file id) of each entry."""
    places = records.column(MetadataKind.RECORD_INDEX.payloads[0]).combine_chunks()
    paths, keys = partition_paths(places), records.column("key").combine_chunks()
    return pa.table({"id": _ids(paths, keys, is_global=is_global), "listed": _places(paths, file_ids(places))})


def _wrong(there: pa.Table, listed: pa.Table, how: _How) -> pa.Table:
    """Those without an entry of one of their rows: a key of several rows (inserted twice) has one, of any of them."""
    both = there.join(listed, "id", join_type=how)
    right = both.filter(pc.equal(both.column("there"), both.column("listed"))).column("id")
    return both.filter(pc.invert(pc.is_in(both.column("id"), right.combine_chunks())))


def _ids(
    paths: pa.Array | pa.ChunkedArray, keys: pa.Array | pa.ChunkedArray, *, is_global: bool
) -> pa.Array | pa.ChunkedArray:
    """What is unique: the key, or the key within its partition."""
    return keys if is_global else pc.binary_join_element_wise(paths, keys, _BETWEEN)


def _places(paths: pa.Array | pa.ChunkedArray, ids: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.binary_join_element_wise(paths, ids, "/")


# ---- secondary indexes -----------------------------------------------------------------------------------------------


def secondary_index(compared: Compared, partition: str) -> Iterator[Difference]:
    """Pairs of value and key that rows have and the index does not, and the other way round."""
    table = compared.table
    if why_no_secondary_index(table.data, partition) is not None:
        return  # nobody here knows what it should have
    (column,) = read_index_definitions(table.data.storage).by_name[partition].source_fields
    plan = compared.plan((RECORD_KEY, column))
    version = table.data.config.table_version
    of_rows = [
        secondary_keys(batch.column(column), batch.column(RECORD_KEY), version)
        for batch in read_batches(plan, table.data.storage)
    ]
    expected = pc.unique(pa.concat_arrays([pa.array([], pa.string()), *of_rows]))
    records = table.records(partition) if compared.is_whole else table.lookup(partition, _texts(expected))
    listed = records.column("key").combine_chunks()
    missing = expected.filter(pc.invert(pc.is_in(expected, listed)))
    wrong = listed.filter(pc.invert(pc.is_in(listed, expected)))
    for keys, wanted, found in ((missing, "a record", "none"), (wrong, "none", "a record")):
        for key in keys.slice(0, KEYS_SHOWN).to_pylist():
            yield Difference(partition, f"value and key {key!r}", wanted, found)
        if len(keys) > KEYS_SHOWN:
            yield Difference(partition, f"{len(keys)} pairs in all", wanted, found)


def _texts(keys: pa.Array | pa.ChunkedArray) -> list[str]:
    return [str(key) for key in keys.to_pylist()]
