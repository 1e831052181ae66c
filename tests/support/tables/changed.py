"""A table that updates, deletes by filters and merges change, and the dict that it must be equal to."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import HudiTable
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.storage import open_storage

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.int64()),
        ("note", pa.string()),
        ("tags", pa.list_(pa.string())),
    ]
)
OPTIONS = {
    "hoodie.index.bloom.num_entries": "50",
    "hoodie.bloom.index.filter.dynamic.max.entries": "200",
    "hoodie.metadata.enable": "false",
}
PARTIAL_UPDATES = "hoodie.spark.sql.merge.into.partial.updates"
NAMES = itertools.count()

Key = tuple[str, str]
Row = dict[str, Any]


class Changed:
    """A table and the dict that it must be equal to."""

    def __init__(
        self,
        table_type: str,
        version: int,
        ordering: str | None,
        block_format: str = "parquet",
        partial_updates: bool | None = None,
    ) -> None:
        given = {"hoodie.write.table.version": str(version), **OPTIONS}
        if partial_updates is not None:
            given[PARTIAL_UPDATES] = str(partial_updates).lower()
        if version == 6 and ordering:
            given["hoodie.datasource.write.payload.class"] = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
        self.options = {**given, "hoodie.logfile.data.block.format": block_format}
        self.event_time = ordering is not None
        self.rows: dict[Key, Row] = {}
        self.deleted: dict[Key, int] = {}
        self.partly: set[Key] = set()  # changed in part since the last compaction
        self.in_part = bool(partial_updates and ordering) and table_type == "MERGE_ON_READ" and version >= 8
        self.table = HudiTable.create(
            f"memory://changes-{next(NAMES)}",
            SCHEMA,
            record_key="id",
            partition_by="p",
            ordering=ordering,
            table_type=table_type,
            table_name="t",
            options=given,
        )

    def in_time(self, rows: list[Row]) -> list[Row]:
        """Without rows that are older than a delete of their key: those come back or not, as in Hudi, by the state of
        the log files. And without rows that are older than a partial update in the log: as in Hudi, that takes over the
        columns which it does not have.
        """
        keys = [(row["id"], row["p"]) for row in rows]
        return [
            row
            for key, row in zip(keys, rows, strict=True)
            if not self.event_time
            or (key in self.rows and (key not in self.partly or row["ts"] >= self.rows[key]["ts"]))
            or (key not in self.rows and row["ts"] > self.deleted.get(key, -1))
        ]

    def forget(self, key: Key) -> None:
        self.deleted[key] = max(self.deleted.get(key, -1), self.rows.pop(key)["ts"])

    def upsert(self, *rows: Row) -> None:
        rows = tuple(self.in_time(list(rows)))
        self.table.upsert(pa.Table.from_pylist(list(rows), SCHEMA), options=self.options)
        for row in rows:
            self.put(row)

    def put(self, row: Row) -> None:
        stored = self.rows.get((row["id"], row["p"]))
        if stored is None or not self.event_time or row["ts"] >= stored["ts"]:
            self.rows[row["id"], row["p"]] = row

    def update(self, where: str | None, holds: Callable[[Row], bool], values: dict[str, Any], **new: Any) -> None:
        self.table.update(where, values=values, options=self.options)
        self.change(holds, **new)

    def change(self, holds: Callable[[Row], bool], **new: Any) -> None:
        for row in list(self.rows.values()):
            if holds(row):
                self.put({**row, **{name: f(row) if callable(f) else f for name, f in new.items()}})
                self.partly |= {(row["id"], row["p"])} if self.in_part else set()

    def delete(self, where: str, holds: Callable[[Row], bool]) -> None:
        self.table.delete(where=where, options=self.options)
        for key in [key for key, row in self.rows.items() if holds(row)]:
            self.forget(key)

    def merge(self, source: list[Row]) -> None:
        source = self.in_time(source)
        rows = pa.Table.from_pylist(source, pa.schema([*SCHEMA, ("gone", pa.bool_())]))
        merge = self.table.merge(rows, options=self.options).when_matched_delete("source.gone")
        merge = merge.when_matched_update({"v": "source.v", "ts": "source.ts"}, "source.v > target.v")
        merge = merge.when_matched_update(
            {"note": lambda target, _: pc.binary_join_element_wise("m", target["id"], "")}
        )
        merge = merge.when_not_matched_insert_all("not gone")
        merge.when_not_matched_by_source_update({"note": "'unseen'"}, "v >= 900").execute()
        by_key = {(row["id"], row["p"]): row for row in source}
        self.change(lambda row: (row["id"], row["p"]) not in by_key and row["v"] >= 900, note="unseen")
        for key, row in by_key.items():
            stored = self.rows.get(key)
            if stored is None:
                if not row["gone"]:
                    self.put({name: row[name] for name in SCHEMA.names})
            elif row["gone"]:
                self.forget(key)
            elif row["v"] > stored["v"]:
                self.put({**stored, "v": row["v"], "ts": row["ts"]})
            else:
                self.put({**stored, "note": "m" + row["id"]})
            self.partly |= {key} if self.in_part else set()

    def check(self) -> None:
        found = self.table.scan(columns=SCHEMA.names).to_arrow().to_pylist()
        assert sorted(found, key=repr) == sorted(self.rows.values(), key=repr)


def row(number: int, ts: int = 10, v: int | None = None, **other: Any) -> Row:
    made = {"id": f"k{number}", "p": "xy"[number % 2], "ts": ts, "v": number if v is None else v}
    return {**made, "note": f"n{number}", "tags": ["a", None], **other}


def blocks(table: HudiTable) -> list[LogBlock]:
    storage = open_storage(table.path)
    paths = sorted(info.path for info in storage.walk("") if ".log." in info.name)
    return [block for path in paths for block in scan_log(storage, path) if isinstance(block, LogBlock)]
