"""Files of a few lines: properties, partition metadata, markers, locks, heartbeats, hash rings, schema history."""

from __future__ import annotations

import json

import pyarrow as pa

from fuzz.golden import golden_files
from fuzz.mutation import json_shape
from fuzz.target import Target
from pyhudi.errors import HudiError
from pyhudi.filegroup.write.markers import list_markers, sweep
from pyhudi.filegroup.write.partition_metadata import partition_creation_time
from pyhudi.formats.hash_ring import decode_nodes, decode_ring, encode_ring, initial_ring
from pyhudi.formats.properties import parse_properties, print_properties
from pyhudi.keygen import from_options
from pyhudi.locks.base import LockOptions
from pyhudi.locks.filesystem import FileSystemLock
from pyhudi.locks.process import note_of_this_process
from pyhudi.locks.storage_based import LOCK_PATH, StorageLock
from pyhudi.model.filenames import PARTITION_METADATA_NAME, PROPERTIES_PATH
from pyhudi.model.new_table import NewTable, new_table_properties
from pyhudi.model.table_config import TableConfig
from pyhudi.schema.internal import decode_history, decode_internal_schema, schema_as_of
from pyhudi.storage import FixedClock, MemoryStorage
from pyhudi.timeline.heartbeat import is_expired
from pyhudi.timeline.table_properties import load_table_config, update_table_config

__all__ = ["TARGETS"]

_NOW_MS = 1_760_000_000_000
_INSTANT = "20240101000000000"
_ROWS = pa.RecordBatch.from_pylist([{"id": "a", "x": 1, "day": "2024-01-02", "city": "b", "ts": 5}])


def _properties(data: bytes) -> None:
    storage, clock = MemoryStorage(clock=FixedClock(_NOW_MS)), FixedClock(_NOW_MS)
    print_properties(parse_properties(data, "hoodie.properties"))
    storage.write(PROPERTIES_PATH, data)
    config = load_table_config(storage, clock)
    for name in dir(TableConfig):
        if not name.startswith("_") and isinstance(getattr(TableConfig, name), property):
            _refused(lambda name=name: getattr(config, name))  # type: ignore[misc]
    _refused(lambda: from_options(config.properties, current_year=2024).columns(_ROWS))
    _refused(config.check_writable)
    update_table_config(storage, {"a": "b"}, (), clock)


def _refused(call: object) -> None:
    """Goes on behind an error of the family: the next call has its own."""
    try:
        call()  # type: ignore[operator]
    except HudiError:
        return


def _properties_seeds() -> list[bytes]:
    tables = (
        NewTable("trips", record_key_fields=("id",), partition_fields=("day",), ordering_fields=("ts",)),
        NewTable("trips", table_version=6, table_type="MERGE_ON_READ", record_key_fields=("id", "x"),
                 partition_fields=("day:TIMESTAMP", "city:SIMPLE"), key_generator="CUSTOM", timezone="UTC",
                 keygen_properties={
                     "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
                     "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd,yyyy/MM/dd",
                     "hoodie.keygen.timebased.input.dateformat.list.delimiter.regex": ",",
                     "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
                     "hoodie.keygen.timebased.timezone": "GMT+8:00",
                 }),
    )  # fmt: skip
    made = [print_properties(new_table_properties(table), ("a comment",)) for table in tables]
    return [*made, *golden_files(r"\.hoodie/hoodie\.properties")]


def _partition_metadata(data: bytes) -> None:
    storage = MemoryStorage()
    storage.write(f"p/{PARTITION_METADATA_NAME}", data)
    partition_creation_time(storage, "p")


def _markers(data: bytes) -> None:
    storage = MemoryStorage(clock=FixedClock(_NOW_MS))
    folder = f".hoodie/.temp/{_INSTANT}"
    storage.write(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.write(f"{folder}/MARKERS0", data)
    storage.write(f"p/a_0-1-2_{_INSTANT}.parquet", b"PAR1")
    list_markers(storage, _INSTANT)
    sweep(storage, _INSTANT, ())


def _lock(data: bytes) -> None:
    clock = FixedClock(_NOW_MS)
    storage = MemoryStorage(clock=clock)
    storage.write(LOCK_PATH, data)
    storage.write(".hoodie/lock", data)
    for provider in (StorageLock, FileSystemLock):
        lock = provider(LockOptions(retry_wait_ms=1), storage, clock)
        try:
            _ = lock.owner_note
            lock.try_acquire(0.01)
        except HudiError:
            continue
        finally:
            lock.release()


def _lock_seeds() -> list[bytes]:
    lease = {"expired": False, "validUntil": _NOW_MS, "owner": "a process"}
    note = {**json.loads(note_of_this_process("token")), "host": "h", "pid": 1, "place": "boot pid", "started": "1"}
    return [json.dumps(lease).encode(), json.dumps({**lease, "expired": True}).encode(), json.dumps(note).encode()]


def _heartbeat(data: bytes) -> None:
    clock = FixedClock(_NOW_MS)
    storage = MemoryStorage(clock=clock)
    name = data.decode("utf-8", "replace")
    try:
        storage.write(f".hoodie/.heartbeat/{name}", data)
    except HudiError:
        pass
    else:
        storage.set_modified(f".hoodie/.heartbeat/{name}", int.from_bytes(data[:8], "big", signed=True))
    is_expired(storage, name, clock.now_ms())


def _hash_ring(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    _refused(lambda: decode_nodes(text, "plan"))
    ring = decode_ring(data, "ring")
    encode_ring(ring)
    for node in ring.nodes[:10]:
        ring.node_of(node.file_id)
        ring.before(node.value)


def _hash_ring_seeds() -> list[bytes]:
    return [encode_ring(initial_ring("p", count)) for count in (1, 4)] + list(golden_files(r".*\.hashing_meta"))


def _internal_schema(data: bytes) -> None:
    _refused(lambda: decode_internal_schema(data.decode("utf-8", "replace")))
    schemas = decode_history(data)
    for schema in schemas:
        schema.to_arrow()
    schema_as_of(schemas, _INSTANT)


def _internal_schema_seeds() -> list[bytes]:
    point = {"type": "record", "fields": [{"id": 5, "name": "x", "type": "double", "optional": True}]}
    fields = [
        {"id": 0, "name": "id", "optional": False, "type": "string"},
        {"id": 1, "name": "price", "optional": True, "type": "decimal(10, 2)", "doc": "in euro"},
        {"id": 2, "name": "key", "optional": True, "type": "fixed[16]"},
        {"id": 3, "name": "at", "optional": True, "type": point},
        {"id": 4, "name": "tags", "optional": True,
         "type": {"type": "array", "element_id": 6, "element": "string", "element_optional": True}},
        {"id": 7, "name": "m", "optional": True,
         "type": {"type": "map", "key_id": 8, "value_id": 9, "key": "string", "value": "timestamp"}},
    ]  # fmt: skip
    schema = {"max_column_id": 9, "version_id": int(_INSTANT), "type": "record", "fields": fields}
    return [json.dumps({"schemas": [schema]}).encode(), json.dumps(schema).encode(), *golden_files(r".*\.schemacommit")]


TARGETS = (
    Target(
        "properties",
        _properties,
        _properties_seeds,
        words=(
            b"\\\n",
            b"\\u",
            b"\\ud800",
            b"=",
            b"\n#",
            b"\n",
            b"hoodie.table.version=",
            b"999999999999",
            b",",
            b"(a+)+$",
            b"hoodie.timeline.path=../..",
            b"hoodie.table.checksum=",
        ),
    ),
    Target(
        "partition-metadata",
        _partition_metadata,
        lambda: [
            f"#a\ncommitTime={_INSTANT}\npartitionDepth=1\n".encode(),
            *golden_files(r".*\.hoodie_partition_metadata"),
        ],
        words=(b"\\\n", b"\\u", b"commitTime=", b"\n"),
    ),
    Target(
        "markers",
        _markers,
        lambda: [f"p/a_0-1-2_{_INSTANT}.parquet.marker.CREATE\np/.b_{_INSTANT}.log.1_0-1-2.marker.APPEND\n".encode()],
        words=(b"..", b"/", b"\n", b".marker.MERGE", b".hoodie/", b"\xff", b"\xed\xa0\x80", b"\x00", b"x" * 300),
    ),
    Target("locks", _lock, _lock_seeds, (json_shape,), (b"1e999", b"NaN", b"9" * 5000, b"[" * 5000, b"\\ud800")),
    Target("heartbeats", _heartbeat, lambda: [_INSTANT.encode(), b"2024"], words=(b"/", b"..", b"\x00", b"9" * 300)),
    Target("hash-rings", _hash_ring, _hash_ring_seeds, (json_shape,), (b"[" * 5000, b"9" * 5000, b"\\ud800")),
    Target(
        "internal-schemas",
        _internal_schema,
        _internal_schema_seeds,
        (json_shape,),
        (b"[" * 5000, b"9" * 5000, b"decimal(39,5)", b"decimal(5,999999999999)", b"fixed[2147483647]", b"\\ud800"),
    ),
)
