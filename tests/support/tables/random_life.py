"""A random life of a small table: writes, changes, services, undoing, indexes and reads, and a dict beside it.

A seed says everything: what the table is, and what happens to it. The dict knows the rows after every commit, so that
every moment that may be read is compared, and what came between two moments too.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import HudiTable
from pyhudi.errors import RangeNotReadable, TableError, WriteConflict
from pyhudi.view.readable_history import load_readable_history

SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int64()), ("note", pa.string())]
)
KEYS = [f"k{number}" for number in range(10)]
_NAMES = itertools.count()
_MODEL = "org.apache.hudi.common.model."
_INDEXES = {
    "SIMPLE": {},
    "BLOOM": {},
    "GLOBAL_SIMPLE": {},
    "BUCKET": {"hoodie.bucket.index.num.buckets": "2"},
    "GLOBAL_RECORD_LEVEL_INDEX": {
        "hoodie.metadata.enable": "true", "hoodie.metadata.global.record.level.index.enable": "true",
    },
}  # fmt: skip

Row = dict[str, Any]
Rows = dict[str, Row]  # by the record key, which says the partition too


def _chosen(choice: random.Random) -> tuple[Mapping[str, Any], dict[str, str]]:
    """What the table is, and the options of every call."""
    version = choice.choice(["6", "8", "9", "9"])
    index = choice.choice(list(_INDEXES) if version != "6" else list(_INDEXES)[:-1])
    event_time, merge_on_read = choice.random() < 0.6, choice.random() < 0.65
    inline = choice.choice(["true", "false"])
    payload = "DefaultHoodieRecordPayload" if event_time else "OverwriteWithLatestAvroPayload"
    options = {
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.payload.class": _MODEL + payload,
        "hoodie.index.type": index,
        "hoodie.metadata.enable": choice.choice(["true", "false"]),
        **_INDEXES[index],
        "hoodie.logfile.data.block.format": choice.choice(["avro", "parquet"]),
        "hoodie.parquet.small.file.limit": choice.choice(["0", "104857600"]),
        "hoodie.index.bloom.num_entries": "50",
        "hoodie.bloom.index.filter.dynamic.max.entries": "200",
        "hoodie.compact.inline": inline,
        "hoodie.compact.inline.max.delta.commits": choice.choice(["2", "4"]),
        "hoodie.clean.automatic": inline,
        "hoodie.clean.commits.retained": "2",
        "hoodie.archive.automatic": inline,
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "5",
        "hoodie.clustering.inline": choice.choice([inline, "false"]) if index != "BUCKET" else "false",
        "hoodie.clustering.inline.max.commits": "3",
    }
    made = {
        "record_key": "id",
        "partition_by": choice.choice(["p", None]),
        "ordering": "ts" if event_time else None,
        "table_type": "MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE",
        "table_name": "life",
    }
    return made, options


class RandomLife:
    """`story`: what happened so far. `step` does something, and compares."""

    def __init__(self, seed: int) -> None:
        self.choice = random.Random(seed)
        self.made, self.options = _chosen(self.choice)
        self.by_value = self.made["ordering"] is not None
        self.in_logs = self.made["table_type"] == "MERGE_ON_READ"
        self.path = f"memory://life-{next(_NAMES)}"
        self.table = HudiTable.create(self.path, SCHEMA, options=self.options, **self.made)
        self.rows: Rows = {}
        self.deleted: dict[str, int] = {}  # greatest ordering value of a key that was ever deleted
        self.rows_at: dict[str, Rows] = {}  # by the requested time of a commit
        self.numbers = itertools.count(1)
        self.story = [f"seed {seed}: {self.made}, {self.options}"]

    def step(self) -> None:
        kinds = [*self.writes * 3, *self.services, *self.undoings, *self.indexes]
        kind = self.choice.choice(kinds)
        self.story.append(kind.__name__)
        before = dict(self.rows)
        try:
            kind()
        except (WriteConflict, TableError) as error:
            # Pending work, savepoints, and what later writes built upon refuse some actions; nothing has changed then.
            self.story.append(f"  refused: {error}")
            if kind in self.writes and "clustering" not in str(error):
                raise
            self.rows = before
        self.check()
        if self.choice.random() < 0.35:
            self.look_around()

    def check(self) -> None:
        """Compare the newest rows, and keep them as those of the commits that are new."""
        assert self.found() == self.rows, "the newest rows"
        for instant in self.table.state.timeline.commits():
            self.rows_at.setdefault(instant.requested_time, dict(self.rows))

    def look_around(self) -> None:
        """Compare moments that can be read, what came between two, a filter's rows; and look at the metadata table."""
        meta = self.table.state
        commits = [instant.requested_time for instant in meta.timeline.commits()]
        if meta.config.metadata_partitions:
            assert self.table.metadata.validate() == ()
        readable = load_readable_history(meta)
        for time in self.choice.sample(sorted(self.rows_at), min(2, len(self.rows_at))):
            if readable.is_readable(time):
                assert self.found(as_of=time) == self.rows_at[time], f"as of {time}"
        some = f"id = '{self.choice.choice(KEYS)}' OR v > {self.choice.randrange(60)}"
        wanted = self.table.scan(where=some).to_arrow().to_pylist()
        holds = some.split("'")[1], int(some.rpartition(" ")[2])
        expected = {key for key, row in self.rows.items() if key == holds[0] or row["v"] > holds[1]}
        assert sorted(row["id"] for row in wanted) == sorted(expected), some
        if len(commits) > 1:
            self.check_range(*sorted(self.choice.sample(commits, 2)))

    def check_range(self, begin: str, end: str) -> None:
        """The rows that are new or others at the end; where no row comes late, no row that isn't there then."""
        try:
            found = self.table.changes(since=begin, until=end).to_arrow().to_pylist()
        except RangeNotReadable:
            return
        was, is_now = self.rows_at[begin], self.rows_at[end]
        came = {row["id"]: {name: row[name] for name in SCHEMA.names} for row in found}
        assert len(came) == len(found), f"{begin} to {end}"
        changed = {key: row for key, row in is_now.items() if was.get(key) != row}
        assert {key: came.get(key) for key in changed} == changed, f"{begin} to {end}"
        if not (self.by_value and self.in_logs):
            assert came == {key: is_now.get(key) for key in came}, f"{begin} to {end}"

    def found(self, as_of: str | None = None) -> Rows:
        rows = self.table.scan(columns=SCHEMA.names, as_of=as_of).to_arrow().to_pylist()
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
                live = self.found().get(key)
                assert live in (None, row), f"{row} came late, behind a delete"
                if live is None:
                    continue
            if stored is None or not self.by_value or row["ts"] >= stored["ts"]:
                self.rows[key] = row

    def forget(self, keys: Iterable[str]) -> None:
        for key in list(keys):
            stored = self.rows.pop(key, None)
            if stored is not None:
                self.deleted[key] = max(stored["ts"], self.deleted.get(key, stored["ts"]))

    def row(self, key: str) -> Row:
        number = next(self.numbers)
        return {"id": key, "p": "xy"[KEYS.index(key) % 2], "ts": self.choice.randrange(10), "v": number,
                "note": self.choice.choice([None, f"n{number}"])}  # fmt: skip

    def batch(self, keys: Iterable[str] = KEYS) -> list[Row]:
        keys = list(keys)
        return [self.row(key) for key in self.choice.sample(keys, min(len(keys), self.choice.randint(1, 4)))]

    # what happens

    def upsert(self) -> None:
        rows = self.batch()
        self.table.upsert(pa.Table.from_pylist(rows, SCHEMA), options=self.options)
        self.put(rows)

    def _inserted(self, call: Callable[..., object]) -> None:
        rows = self.batch([key for key in KEYS if key not in self.rows])
        if rows:
            call(pa.Table.from_pylist(rows, SCHEMA), options=self.options)
            self.put(rows)

    def insert(self) -> None:
        self._inserted(self.table.insert)

    def bulk_insert(self) -> None:
        self._inserted(self.table.bulk_insert)

    def delete(self) -> None:
        keys = self.batch()
        self.table.delete(pa.Table.from_pylist(keys, SCHEMA).select(["id", "p"]), options=self.options)
        self.forget(row["id"] for row in keys)

    def delete_where(self) -> None:
        limit = self.choice.randint(1, 40)
        self.table.delete(where=f"v < {limit}", options=self.options)
        self.forget([key for key, row in self.rows.items() if row["v"] < limit])

    def update(self) -> None:
        limit, new = self.choice.randint(1, 40), {"note": f"u{next(self.numbers)}"}
        values: dict[str, Any] = new if self.choice.random() < 0.5 else {"v": pc.add(pc.field("v"), 1)}
        if self.choice.random() < 0.3:
            values["ts"] = self.choice.randrange(10)
        self.table.update(f"v >= {limit}", values=values, options=self.options)
        for row in list(self.rows.values()):
            if row["v"] >= limit:
                self.put([{**row, **values, "v": row["v"] + ("v" in values)}])

    def merge(self) -> None:
        rows = self.batch()
        merge = self.table.merge(pa.Table.from_pylist(rows, SCHEMA), options=self.options)
        merge = merge.when_matched_delete("source.ts = 0").when_matched_update({"v": "source.v"})
        merge.when_not_matched_insert_all().execute()
        there = set(self.rows)
        self.forget(row["id"] for row in rows if row["ts"] == 0)
        for row in rows:
            if row["id"] not in there:
                self.put([row])
            elif row["ts"]:
                self.put([{**self.rows[row["id"]], "v": row["v"]}])

    def insert_overwrite(self) -> None:
        rows = self.batch()
        self.table.insert_overwrite(pa.Table.from_pylist(rows, SCHEMA), options=self.options)
        paths = {row["p"] for row in rows}
        replaced = [key for key, row in self.rows.items() if self.made["partition_by"] is None or row["p"] in paths]
        for key in replaced:
            del self.rows[key]
        self.rows |= {row["id"]: row for row in rows}

    def delete_partition(self) -> None:
        path = self.choice.choice("xy")
        if self.made["partition_by"] is None or not any(row["p"] == path for row in self.rows.values()):
            return
        self.table.delete_partitions(path, options=self.options)
        self.rows = {key: row for key, row in self.rows.items() if row["p"] != path}

    def compact(self) -> None:
        if self.in_logs:
            self.table.compact(schedule_only=self.choice.random() < 0.3, options=self.options)

    def log_compact(self) -> None:
        if self.in_logs:
            self.table.log_compact(options={**self.options, "hoodie.log.compaction.blocks.threshold": "2"})

    def cluster(self) -> None:
        if self.options["hoodie.index.type"] != "BUCKET":
            self.table.cluster(sort_columns="v", options=self.options)

    def clean(self) -> None:
        self.table.clean(options={**self.options, "hoodie.clean.commits.retained": self.choice.choice(["1", "3"])})

    def archive(self) -> None:
        self.table.archive(options={**self.options, "hoodie.clean.commits.retained": "1"})

    def savepoint(self) -> None:
        if self.rows_at:
            self.table.savepoint(options=self.options)

    def free_savepoints(self) -> None:
        for saved in self.table.savepoints():
            self.table.delete_savepoint(saved.instant_time, options=self.options)

    def rollback(self) -> None:
        if len(self.table.state.timeline.commits()) > 1:
            self.table.rollback(options=self.options)
            self._go_back()

    def restore(self) -> None:
        commits = [instant.requested_time for instant in self.table.state.timeline.commits()]
        if commits:
            self.table.restore(self.choice.choice(commits[-3:]), options=self.options)
            self._go_back()

    def _go_back(self) -> None:
        for key, row in self.rows.items():
            self.deleted[key] = max(row["ts"], self.deleted.get(key, row["ts"]))
        commits = [instant.requested_time for instant in self.table.state.timeline.commits()]
        last = max(commits)
        self.rows_at = {time: rows for time, rows in self.rows_at.items() if time <= last}
        self.rows = dict(self.rows_at[last])

    def build_index(self) -> None:
        name = self.choice.choice(["column_stats", "bloom_filters", "record_index"])
        there = {index.name for index in self.table.indexes()}
        if self.rows and name not in there and self.options["hoodie.metadata.enable"] == "true":
            self.table.create_index(name, options=self.options)

    def drop_index(self) -> None:
        there = [index.name for index in self.table.indexes() if index.name in ("column_stats", "bloom_filters")]
        if there:
            self.table.drop_index(self.choice.choice(there), options=self.options)

    def switch_metadata(self) -> None:
        if self.options["hoodie.index.type"] != "GLOBAL_RECORD_LEVEL_INDEX":
            now = {"true": "false", "false": "true"}[self.options["hoodie.metadata.enable"]]
            self.options = {**self.options, "hoodie.metadata.enable": now}

    @property
    def writes(self) -> list[Callable[[], None]]:
        return [self.upsert, self.upsert, self.insert, self.bulk_insert, self.delete, self.delete_where, self.update,
                self.merge, self.insert_overwrite, self.delete_partition]  # fmt: skip

    @property
    def services(self) -> list[Callable[[], None]]:
        return [self.compact, self.compact, self.log_compact, self.cluster, self.clean, self.archive]

    @property
    def undoings(self) -> list[Callable[[], None]]:
        return [self.savepoint, self.free_savepoints, self.rollback, self.restore]

    @property
    def indexes(self) -> list[Callable[[], None]]:
        return [self.build_index, self.drop_index, self.switch_metadata]
