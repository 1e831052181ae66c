"""Tables whose columns were renamed, dropped and added again between writes, as ALTER TABLE does it."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.open_table import table_lock
from pyhudi.formats.avro.schema import avro_from_arrow
from pyhudi.formats.timeline.instant_files import encode_commit
from pyhudi.model.commit import CommitMetadata, OperationType
from pyhudi.model.instant import ActionKind
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.options import WriteOptions
from pyhudi.storage.base import Storage
from pyhudi.transaction.instants import TimelineWriter, instant_times
from tests.support.tables.merge_on_read import MergeOnRead

HISTORY = ".hoodie/.schema"
TYPES = {"string": pa.string(), "int": pa.int32(), "long": pa.int64()}
KEYS = {5: ("id", "string"), 6: ("p", "string"), 7: ("ts", "long")}
FIRST = {**KEYS, 8: ("v", "int"), 9: ("name", "string"), 10: ("extra", "int")}
RENAMED = {**FIRST, 9: ("title", "string")}
DROPPED = {**KEYS, 8: ("v", "long"), 9: ("title", "string")}
LAST = {**KEYS, 9: ("title", "string"), 8: ("v", "long"), 11: ("extra", "string")}

Columns = dict[int, tuple[str, str]]


class Altered(MergeOnRead):
    """`alter` says what columns there are from now on; `publish` writes the history, after which nobody here writes."""

    def __init__(
        self, version: str = "9", storage: Storage | None = None, table_type: str = "MERGE_ON_READ", **options: str
    ) -> None:
        super().__init__(version, storage, **options)
        self.options = {**self.options, "hoodie.datasource.write.table.type": table_type}
        self.columns, self.schemas = FIRST, [_internal(0, FIRST)]

    def put(self, *rows: dict[str, Any], operation: str = "upsert") -> str:
        """Write rows of the columns that there are."""
        schema = pa.schema([(name, TYPES[kind]) for name, kind in self.columns.values()])
        return self.write(operation, pa.Table.from_pylist(list(rows), schema)).instant_time

    def alter(self, columns: Columns) -> str:
        meta, options = self.meta, WriteOptions.parse({}, table=self.meta.config)
        lock = table_lock(options, self.storage, self.clock)
        times = instant_times(ActionContext(meta, options, lock, self.clock, self.engine))
        time = times.draw(meta.timeline.latest_time)
        self.columns, self.schemas = columns, [_internal(int(time), columns), *self.schemas]
        schema = pa.schema([(name, TYPES[kind]) for name, kind in columns.values()])
        entries = {
            "schema": avro_from_arrow(schema, meta.config.table_name, with_meta=False),
            "latest_schema": json.dumps(self.schemas[0]),
        }
        body = CommitMetadata({}, entries, OperationType.ALTER_SCHEMA)
        writer = TimelineWriter(self.storage, meta.config)
        action = ActionKind.DELTACOMMIT if meta.config.is_merge_on_read else ActionKind.COMMIT
        inflight = writer.start(writer.request(time, action))
        writer.complete(inflight, times.draw_completion(time), encode_commit(body, action, meta.config.table_version))
        return time

    def publish(self) -> None:
        time = str(self.schemas[0]["version_id"])
        found = self.meta.timeline.find(time)
        assert found is not None
        name = time if self.meta.config.table_version < 8 else f"{time}_{found.completion_time}"
        self.storage.write(f"{HISTORY}/{name}.schemacommit", json.dumps({"schemas": self.schemas}).encode())


def _internal(version_id: int, columns: Columns) -> dict[str, Any]:
    numbered = {**{at: (name, "string") for at, name in enumerate(META_COLUMNS)}, **columns}
    fields = [{"id": at, "name": name, "optional": True, "type": kind} for at, (name, kind) in numbered.items()]
    return {"max_column_id": max(numbered), "version_id": version_id, "type": "record", "fields": fields}


def first_rows() -> list[dict[str, Any]]:
    return [
        {"id": key, "p": "xy"[at % 2], "ts": 1, "v": at, "name": f"n{at}", "extra": 10 * at}
        for at, key in enumerate("abcdef")
    ]


def altered(version: str, storage: Storage | None = None) -> Altered:
    """Base files of the first schema, with log files of that one, of the second and of the last."""
    table = Altered(version, storage)
    table.put(*first_rows(), operation="insert")
    table.put({"id": "a", "p": "x", "ts": 2, "v": 100, "name": "n0b", "extra": 1})
    table.alter(RENAMED)
    table.put({"id": "b", "p": "y", "ts": 2, "v": 101, "title": "t1", "extra": 2})
    table.alter(DROPPED)
    table.alter(LAST)
    table.put({"id": "c", "p": "x", "ts": 2, "v": 5_000_000_000, "title": "t2", "extra": "e2"})
    table.delete(("f", "y"))
    table.publish()
    return table


ROWS = [
    ("a", "n0b", 100, None),
    ("b", "t1", 101, None),
    ("c", "t2", 5_000_000_000, "e2"),
    ("d", "n3", 3, None),
    ("e", "n4", 4, None),
]
NAMES = ("id", "title", "v", "extra")
