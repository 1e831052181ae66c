"""Tables with a record index, and where their rows are by it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.rows import KEYED_FIELDS, AddKeys, batch_by_partition
from pyhudi.actions.table_keys import PROBE_TIME, table_keygen
from pyhudi.actions.writes.index_lookup import lookup_of, table_index
from pyhudi.index.base import LOCATION_PARTITION
from pyhudi.locks import open_lock
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.locations import file_ids, partition_paths
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.keys import LOCATION, PARTITION_PATH, RECORD_KEY
from pyhudi.model.options import WriteOptions
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches
from pyhudi.storage.clock import SystemClock
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.small import TestTable

GLOBAL, PARTITIONED = "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX"
ON = {"hoodie.metadata.enable": "true", "hoodie.index.type": GLOBAL}
RECORDS = {
    GLOBAL: "hoodie.metadata.global.record.level.index.enable",
    PARTITIONED: "hoodie.metadata.record.level.index.enable",
}


def tagged(meta: MetaClient, rows: pa.Table, index_type: str, engine: Any) -> list[tuple[Any, ...]]:
    """(key, partition path, file group's partition path, its file id) of each row, as the index tags them."""
    options = WriteOptions.parse({"hoodie.index.type": index_type}, table=meta.config)
    storage, clock = meta.storage, SystemClock()
    context = ActionContext(meta, options, open_lock(options.lock, storage, clock), clock, engine)
    index, keygen = table_index(context), table_keygen(context, PROBE_TIME)
    work = AddKeys(keygen, False)
    keyed = engine.extend(engine.from_arrow(rows), rows.column_names, work, pa.schema(KEYED_FIELDS))
    batch = batch_by_partition(engine, keyed)
    view = FileSystemView.load(meta, partitions=None if index.is_global else batch)
    lookup = lookup_of(index, batch, view, keygen, context, ordering_fields=(), only_live=False)
    found = engine.collect(index.tag(keyed, lookup).rows)
    names = [RECORD_KEY, PARTITION_PATH, LOCATION_PARTITION if index.is_global else PARTITION_PATH, LOCATION]
    columns = (found.column(name).to_pylist() for name in names)
    return sorted(
        ((*row[:2], *((None, None) if row[3] is None else row[2:])) for row in zip(*columns, strict=True)), key=repr
    )


def live_rows(meta: MetaClient) -> pa.Table:
    plan = plan_snapshot(meta, Query(use_metadata=False))
    rows = pa.Table.from_batches(read_batches(plan, meta.storage), plan.schema)
    return rows.select([name for name in rows.column_names if not name.startswith("_hoodie_")])


def table_of(index_type: str = GLOBAL) -> TestTable:
    table = TestTable(options={**ON, RECORDS[index_type]: "true", "hoodie.index.type": index_type})
    table.upsert(*((f"k{n:03}", f"p{n % 3}", 1, n) for n in range(30)))
    return table


def places(meta: MetaClient) -> dict[tuple[str, str], str]:
    """(partition path, key) → file id, as the record index says."""
    found = MetadataTable.open(meta)
    assert found is not None
    records = found.records("record_index")
    payload = records.column("recordIndexMetadata").combine_chunks()
    columns = (partition_paths(payload), records.column("key"), file_ids(payload))
    return {(path.as_py(), key.as_py()): file_id.as_py() for path, key, file_id in zip(*columns, strict=True)}
