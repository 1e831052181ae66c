"""A small table that a seed describes, and a dict beside it that knows the rows after every commit.

Every moment that may be read is compared with the dict, and what came between two moments too. What happens to the
table is in `random_life`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import HudiTable
from pyhudi.errors import RangeNotReadable
from pyhudi.view.readable_history import load_readable_history

SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int64()), ("note", pa.string())]
)
WITH_FLAG = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
KEYS = [f"k{number}" for number in range(10)]
_NAMES = itertools.count()
_MODEL = "org.apache.hudi.common.model."
_CUSTOM = "hoodie.write.record.merge.custom.implementation.classes"
_RECORD_INDEX = "GLOBAL_RECORD_LEVEL_INDEX"  # not below version 8
_INDEXES: Mapping[str, Mapping[str, str]] = {
    "SIMPLE": {},
    "BLOOM": {},
    "GLOBAL_SIMPLE": {},
    "GLOBAL_BLOOM": {},
    "INMEMORY": {},
    "BUCKET": {"hoodie.bucket.index.num.buckets": "2"},
    _RECORD_INDEX: {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.record.index.update.partition.path": "true",
    },
}
_MOVES = frozenset({"GLOBAL_SIMPLE", "GLOBAL_BLOOM", "INMEMORY", _RECORD_INDEX})  # a row may change its partition

Row = dict[str, Any]
Rows = dict[str, Row]  # by the record key


class Greatest:
    """A merger of one's own: the greater `v`, the lesser `note`, and all else of the newer row."""

    strategy_id = "5b0f3d5e-6c5e-4f0e-9a43-0d6b2a1c7e11"

    def merge(self, older: pa.RecordBatch, newer: pa.RecordBatch, context: object) -> pa.RecordBatch:
        columns = {name: newer[name] for name in older.schema.names}
        columns["v"] = pc.max_element_wise(older["v"], newer["v"])
        columns["note"] = pc.min_element_wise(older["note"], newer["note"])
        return pa.RecordBatch.from_pydict(columns, schema=older.schema)


def _newer(stored: Row, row: Row) -> Row:
    return row


def _filled(stored: Row, row: Row) -> Row:
    return {name: stored[name] if value is None else value for name, value in row.items()}


def _greatest(stored: Row, row: Row) -> Row:
    v = max((value for value in (stored["v"], row["v"]) if value is not None), default=None)
    note = min((value for value in (stored["note"], row["note"]) if value is not None), default=None)
    return {**row, "v": v, "note": note}


def _payload(name: str) -> dict[str, str]:
    return {"hoodie.datasource.write.payload.class": _MODEL + name}


# Rows that merge column by column. They come in the order of their ordering values: which of several late rows fills
# a null depends on what was merged before, in real Hudi as here, and a dict can't tell it.
_BY_COLUMN: Mapping[str, tuple[Mapping[str, str], Callable[[Row, Row], Row]]] = {
    "partial update": (_payload("PartialUpdateAvroPayload"), _filled),
    "non-defaults": (_payload("OverwriteNonDefaultsWithLatestAvroPayload"), _filled),
    "custom": (
        {
            "hoodie.write.record.merge.mode": "CUSTOM",
            "hoodie.write.record.merge.strategy.id": Greatest.strategy_id,
            _CUSTOM: f"{__name__}:Greatest",
        },
        _greatest,
    ),
}


def _services(choice: random.Random, index: str) -> dict[str, str]:
    inline = choice.choice(["true", "false"])
    return {
        "hoodie.compact.inline": inline,
        "hoodie.compact.inline.max.delta.commits": choice.choice(["2", "4"]),
        "hoodie.clean.automatic": inline,
        "hoodie.clean.commits.retained": "2",
        "hoodie.archive.automatic": inline,
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "5",
        "hoodie.clustering.inline": choice.choice([inline, "false"]) if index != "BUCKET" else "false",
        "hoodie.clustering.inline.max.commits": "3",
        "hoodie.clustering.updates.strategy": choice.choice(["ALLOW", "REJECT"]),
    }


class LifeTable:
    """The table, the dict, and their comparison. `story`: what happened so far.

    `by_column`: rows merge column by column. `path`: None: in memory.
    """

    def __init__(self, seed: int, *, by_column: bool, path: str | None = None) -> None:
        self.choice = choice = random.Random(seed)
        version = choice.choice(["6", "8", "9", "9"])
        indexes = [name for name in _INDEXES if name != _RECORD_INDEX or version != "6"]
        index = choice.choice(["SIMPLE", "BUCKET"] if by_column else indexes)
        self.by_column = by_column
        self.by_value = by_column or choice.random() < 0.6
        self.in_logs = by_column or choice.random() < 0.65
        payload = _payload("DefaultHoodieRecordPayload" if self.by_value else "OverwriteWithLatestAvroPayload")
        merging: Mapping[str, str] = payload
        self.merged: Callable[[Row, Row], Row] = _newer
        if by_column:
            merging, self.merged = _BY_COLUMN[choice.choice([*_BY_COLUMN][: None if version != "6" else 2])]
        self.reading = {_CUSTOM: merging[_CUSTOM]} if _CUSTOM in merging else {}
        self.options = {
            "hoodie.write.table.version": version,
            **merging,
            "hoodie.index.type": index,
            "hoodie.metadata.enable": choice.choice(["true", "false"]),
            **_INDEXES[index],
            "hoodie.logfile.data.block.format": choice.choice(["avro", "parquet", "hfile"]),
            "hoodie.parquet.small.file.limit": choice.choice(["0", "104857600"]),
            "hoodie.index.bloom.num_entries": "50",
            "hoodie.bloom.index.filter.dynamic.max.entries": "200",
            **_services(choice, index),
        }
        self.partition_by = choice.choice(["p", None])
        self.moves = index in _MOVES and self.partition_by is not None
        self.schema = WITH_FLAG if choice.random() < 0.3 and not by_column else SCHEMA
        made = {
            "record_key": "id",
            "partition_by": self.partition_by,
            "ordering": "ts" if self.by_value else None,
            "table_type": "MERGE_ON_READ" if self.in_logs else "COPY_ON_WRITE",
            "table_name": "life",
        }
        place = path or f"memory://life-{next(_NAMES)}"
        self.table = HudiTable.create(place, self.schema, options=self.options, **made)
        self.rows: Rows = {}
        self.deleted: dict[str, int] = {}  # greatest ordering value of a key that was ever deleted
        self.rows_at: dict[str, Rows] = {}  # by the requested time of a commit
        self.late: set[str] = set()  # of them, those of plans that waited
        self.numbers = itertools.count(1)
        self.story = [f"seed {seed}: {made}, {self.options}"]

    def check(self) -> None:
        """Compare the newest rows, and keep them as those of the commits that are new."""
        assert self.read() == self.rows, "the newest rows"
        newest = max(self.rows_at, default="")
        for instant in self.table.state().timeline.commits():
            time = instant.requested_time
            if time > newest:
                self.rows_at[time] = dict(self.rows)
            elif time not in self.rows_at:  # a plan that waited: the rows are those of when it was made
                self.rows_at[time] = dict(self.rows_at[max(noted for noted in self.rows_at if noted < time)])
                self.late.add(time)

    def look_around(self) -> None:
        """Compare moments that can be read, what came between two, a filter's rows; and look at the metadata table."""
        meta = self.table.state()
        commits = [instant.requested_time for instant in meta.timeline.commits()]
        if meta.config.metadata_partitions:
            assert self.table.metadata.validate(options=self.reading) == ()
        readable = load_readable_history(meta)
        for time in self.choice.sample(sorted(self.rows_at), min(2, len(self.rows_at))):
            if readable.is_readable(time):
                assert self.read(as_of=time) == self.rows_at[time], f"as of {time}"
        key, limit = self.choice.choice(KEYS), self.choice.randrange(60)
        condition = f"id = '{key}' OR v > {limit}"
        passing = self.table.scan(where=condition, options=self.reading).to_arrow().to_pylist()
        expected = [id_ for id_, row in self.rows.items() if id_ == key or (row["v"] or 0) > limit]
        assert sorted(row["id"] for row in passing) == sorted(expected), condition
        ends = [time for time in commits if time not in self.late]  # a range takes commits by when they completed
        if len(ends) > 1:
            self.check_range(*sorted(self.choice.sample(ends, 2)))

    def check_range(self, begin: str, end: str) -> None:
        """The rows that are new or others at the end; where no row comes late, no row that isn't there then."""
        try:
            changes = self.table.changes(since=begin, until=end, options=self.reading).to_arrow().to_pylist()
        except RangeNotReadable:
            return
        was, is_now = self.rows_at[begin], self.rows_at[end]
        rows = [{name: row[name] for name in self.schema.names} for row in changes]
        # A row that came late, behind a delete, is there beside one of its key in another file group: as in Hudi, a
        # range does not read deletes from before it.
        rows.sort(key=lambda row: is_now.get(row["id"]) == row)
        came = {row["id"]: row for row in rows}
        assert len(came) == len(rows) or (self.by_value and self.in_logs), f"{begin} to {end}"
        changed = {key: row for key, row in is_now.items() if was.get(key) != row}
        if self.by_column:  # a range has the rows as its own commits brought them, whatever is stored below
            assert changed.keys() <= came.keys(), f"{begin} to {end}"
            return
        assert {key: came.get(key) for key in changed} == changed, f"{begin} to {end}"
        if not (self.by_value and self.in_logs):
            assert came == {key: is_now.get(key) for key in came}, f"{begin} to {end}"

    def read(self, as_of: str | None = None) -> Rows:
        scan = self.table.scan(columns=self.schema.names, as_of=as_of, options=self.reading)
        rows = scan.to_arrow().to_pylist()
        assert len({row["id"] for row in rows}) == len(rows), f"keys that are there twice, of {rows}"
        return {row["id"]: row for row in rows}

    # what a dict does

    def put(self, rows: Iterable[Row]) -> None:
        """Rows arrive. One that comes late, behind a delete, lives or not: the table says which, and the dict follows;
        the deleted row itself never comes back.
        """
        for row in rows:
            key, stored = row["id"], self.rows.get(row["id"])
            if stored is None and self.by_value and self.in_logs and row["ts"] < self.deleted.get(key, row["ts"]):
                live = self.read().get(key)
                assert live in (None, row), f"{row} came late, behind a delete"
                if live is None:
                    continue
            if stored is None:
                self.rows[key] = row
            elif not self.by_value or row["ts"] >= stored["ts"]:
                self.rows[key] = self.merged(stored, row)

    def forget(self, keys: Iterable[str]) -> None:
        for key in list(keys):
            stored = self.rows.pop(key, None)
            if stored is not None:
                self.deleted[key] = max(stored["ts"], self.deleted.get(key, stored["ts"]))

    def row(self, key: str) -> Row:
        number = next(self.numbers)
        path = self.choice.choice("xy") if self.moves else "xy"[KEYS.index(key) % 2]
        note = self.choice.choice([None, f"n{number}"])
        row: Row = {"id": key, "p": path, "ts": self.choice.randrange(10), "v": number, "note": note}
        if self.by_column:
            row |= {"ts": number, "v": self.choice.choice([None, number])}
        return row if self.schema is SCHEMA else {**row, "_hoodie_is_deleted": False}

    def batch(self, keys: Iterable[str] = KEYS) -> list[Row]:
        keys = list(keys)
        return [self.row(key) for key in self.choice.sample(keys, min(len(keys), self.choice.randint(1, 4)))]

    def go_back(self) -> None:
        """The rows are those of the newest commit that is left."""
        for key, row in self.rows.items():
            self.deleted[key] = max(row["ts"], self.deleted.get(key, row["ts"]))
        commits = [instant.requested_time for instant in self.table.state().timeline.commits()]
        self.rows_at = {time: rows for time, rows in self.rows_at.items() if time <= max(commits)}
        self.rows = dict(self.rows_at[max(commits)])

    def arrow(self, rows: Iterable[Row]) -> pa.Table:
        return pa.Table.from_pylist(list(rows), self.schema)
