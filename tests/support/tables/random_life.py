"""A random life of a small table: writes, changes, services, undoing, indexes and versions, against a dict.

A seed and an emphasis say everything: what the table is, and what happens to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow.compute as pc

from pyhudi.errors import TableError, WriteConflict
from tests.support.tables.life_table import KEYS, WITH_FLAG, LifeTable

__all__ = ["EMPHASES", "RandomLife"]

_PLAN = "hoodie.clustering.plan.strategy."
_CLUSTERINGS: tuple[Mapping[str, str], ...] = (
    {},
    {f"{_PLAN}class": "SINGLE_FILE_SORT"},
    {f"{_PLAN}class": "RECENT_DAYS", f"{_PLAN}daybased.lookback.partitions": "1"},
    {f"{_PLAN}class": "SELECTED_PARTITIONS", f"{_PLAN}cluster.begin.partition": "y"},
    {f"{_PLAN}class": "COMMIT_BASED", f"{_PLAN}earliest.commit.to.cluster": "0"},
    {f"{_PLAN}max.bytes.per.group": "1"},
    {f"{_PLAN}single.group.clustering.enabled": "false"},
    {f"{_PLAN}target.file.max.bytes": "1"},
)
_LAYOUTS: tuple[Mapping[str, str], ...] = (
    {},
    {f"{_PLAN}sort.columns": "v"},
    {f"{_PLAN}sort.columns": "v,id,ts", "hoodie.layout.optimize.strategy": "ZORDER"},
    {
        f"{_PLAN}sort.columns": "id,v",
        "hoodie.layout.optimize.strategy": "HILBERT",
        "hoodie.layout.optimize.curve.build.method": "SAMPLE",
    },
)
_POLICIES: tuple[Mapping[str, str], ...] = (
    {"hoodie.clean.commits.retained": "1"},
    {"hoodie.clean.commits.retained": "3"},
    {"hoodie.clean.fileversions.retained": "1"},
    {"hoodie.clean.fileversions.retained": "2"},
    {"hoodie.clean.hours.retained": "0"},
)
# Method → how often it happens; what an emphasis names happens five times as often.
_WEIGHTS: Mapping[str, Mapping[str, int]] = {
    "writes": {
        "upsert": 6, "insert": 3, "bulk_insert": 3, "delete": 3, "delete_where": 3, "mark_deleted": 2, "update": 3,
        "merge": 3, "insert_overwrite": 2, "insert_overwrite_table": 1, "delete_partition": 1,
    },
    "compaction": {"compact": 2, "log_compact": 1},
    "clustering": {"cluster": 1},
    "cleaning": {"clean": 1, "savepoint": 1, "free_savepoints": 1},
    "archiving": {"archive": 1},
    "undoing": {"rollback": 1, "restore": 1},
    "indexes": {"build_index": 1, "drop_index": 1, "switch_metadata": 1},
    "versions": {"change_version": 1},
}  # fmt: skip
_BY_COLUMN = "columns"  # rows that merge column by column, and what has a meaning for them
_BY_COLUMN_WEIGHTS = {"upsert": 6, "compact": 2, "log_compact": 2, "rollback": 2, "clean": 1}
EMPHASES = (*_WEIGHTS, _BY_COLUMN)


class RandomLife(LifeTable):
    """`emphasis`: one of `EMPHASES`, what happens most. `step` does something, and compares."""

    def __init__(self, seed: int, emphasis: str = "writes", path: str | None = None) -> None:
        super().__init__(seed, by_column=emphasis == _BY_COLUMN, path=path)
        self.story.append(emphasis)
        self.weights = dict(_BY_COLUMN_WEIGHTS)
        if emphasis != _BY_COLUMN:
            self.weights = {
                name: weight * (5 if group == emphasis != "writes" else 1)
                for group, names in _WEIGHTS.items()
                for name, weight in names.items()
            }

    def step(self) -> None:
        (name,) = self.choice.choices([*self.weights], [*self.weights.values()])
        self.story.append(name)
        before = dict(self.rows)
        try:
            getattr(self, name)()
        except (WriteConflict, TableError) as error:
            # Pending work, savepoints, and what later writes built upon refuse some actions; nothing has changed then.
            self.story.append(f"  refused: {error}")
            if name in _WEIGHTS["writes"] and "clustering" not in str(error):
                raise
            self.rows = before
        self.check()
        if self.choice.random() < 0.35:
            self.look_around()

    def upsert(self) -> None:
        rows = self.batch()
        self.table.upsert(self.arrow(rows), options=self.options)
        self.put(rows)

    def _inserted(self, call: Callable[..., object]) -> None:
        rows = self.batch([key for key in KEYS if key not in self.rows])
        if rows:
            call(self.arrow(rows), options=self.options)
            self.put(rows)

    def insert(self) -> None:
        self._inserted(self.table.insert)

    def bulk_insert(self) -> None:
        self._inserted(self.table.bulk_insert)

    def delete(self) -> None:
        keys = self.batch()
        self.table.delete(self.arrow(keys).select(["id", "p"]), options=self.options)
        self.forget(row["id"] for row in keys)

    def delete_where(self) -> None:
        limit = self.choice.randint(1, 40)
        self.table.delete(where=f"v < {limit}", options=self.options)
        self.forget([key for key, row in self.rows.items() if row["v"] < limit])

    def mark_deleted(self) -> None:
        if self.schema is not WITH_FLAG:
            return
        rows = [{**row, "_hoodie_is_deleted": True} for row in self.batch()]
        self.table.upsert(self.arrow(rows), options=self.options)
        for row in rows:
            stored = self.rows.get(row["id"], row)
            if not self.by_value or row["ts"] >= stored["ts"]:
                self.rows.pop(row["id"], None)
                self.deleted[row["id"]] = max(row["ts"], stored["ts"], self.deleted.get(row["id"], 0))

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
        merge = self.table.merge(self.arrow(rows), options=self.options)
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
        rows = [row for row in self.batch() if self.rows.get(row["id"], row)["p"] == row["p"]]  # it looks for no keys
        if not rows:
            return
        self.table.insert_overwrite(self.arrow(rows), options=self.options)
        paths = {row["p"] for row in rows}
        stays = {key: row for key, row in self.rows.items() if self.partition_by and row["p"] not in paths}
        self.rows = {**stays, **{row["id"]: row for row in rows}}

    def insert_overwrite_table(self) -> None:
        rows = self.batch()
        self.table.overwrite(self.arrow(rows), options=self.options)
        self.rows = {row["id"]: row for row in rows}

    def delete_partition(self) -> None:
        path = self.choice.choice("xy")
        if self.partition_by is None or not any(row["p"] == path for row in self.rows.values()):
            return
        self.table.delete_partitions(path, options=self.options)
        self.rows = {key: row for key, row in self.rows.items() if row["p"] != path}

    def compact(self) -> None:
        if self.in_logs:
            self.table.compact(schedule_only=self.choice.random() < 0.3, options=self.options)

    def log_compact(self) -> None:
        if self.in_logs:
            self.table.maintenance.log_compact(options={**self.options, "hoodie.log.compaction.blocks.threshold": "2"})

    def cluster(self) -> None:
        if self.options["hoodie.index.type"] != "BUCKET":
            how = {**self.choice.choice(_CLUSTERINGS), **self.choice.choice(_LAYOUTS)}
            self.table.cluster(schedule_only=self.choice.random() < 0.3, options={**self.options, **how})

    def clean(self) -> None:
        policy = self.choice.choice(_POLICIES)
        options = {key: text for key, text in self.options.items() if not key.startswith("hoodie.clean.")}
        self.table.clean(schedule_only=self.choice.random() < 0.2, options={**options, **policy})

    def archive(self) -> None:
        keep = self.choice.randint(1, 4)
        options = {
            "hoodie.clean.commits.retained": "1",
            "hoodie.keep.min.commits": str(keep),
            "hoodie.keep.max.commits": str(keep + 1),
            "hoodie.archive.beyond.savepoint": self.choice.choice(["true", "false"]),
            "hoodie.timeline.compaction.batch.size": "2",
        }
        self.table.maintenance.archive(options={**self.options, **options})

    def savepoint(self) -> None:
        if self.rows_at:
            self.table.savepoints.create(options=self.options)

    def free_savepoints(self) -> None:
        for saved in self.table.savepoints.list():
            self.table.savepoints.delete(saved.instant_time, options=self.options)

    def rollback(self) -> None:
        if len(self.table.state().timeline.commits()) > 1:
            self.table.rollback(options=self.options)
            self.go_back()

    def restore(self) -> None:
        commits = [instant.requested_time for instant in self.table.state().timeline.commits()]
        if commits:
            self.table.restore(self.choice.choice(commits[-3:]), options=self.options)
            self.go_back()

    def build_index(self) -> None:
        name = self.choice.choice(["column_stats", "bloom_filters", "record_index"])
        there = {
            index.name for index in self.table.indexes.list()
        }  # a call that makes the metadata table makes some, too
        if self.rows and there and name not in there and self.options["hoodie.metadata.enable"] == "true":
            self.table.indexes.create(name, options=self.options)

    def drop_index(self) -> None:
        there = [index.name for index in self.table.indexes.list() if index.name in ("column_stats", "bloom_filters")]
        if there and self.options["hoodie.metadata.enable"] == "true":  # else the call takes the metadata table out
            self.table.indexes.drop(self.choice.choice(there), options=self.options)

    def switch_metadata(self) -> None:
        if self.options["hoodie.index.type"] != "GLOBAL_RECORD_LEVEL_INDEX":
            now = {"true": "false", "false": "true"}[self.options["hoodie.metadata.enable"]]
            self.options = {**self.options, "hoodie.metadata.enable": now}

    def change_version(self) -> None:
        """Up or down, log files compacted on the way. Copy-on-write tables of version 6 store no merge mode: upgraded,
        the row written later wins (docs/compatibility.md).
        """
        now, to = int(self.options["hoodie.write.table.version"]), self.choice.choice([6, 8, 9])
        if now == to or not self.rows_at or (to == 6 and "RECORD" in self.options["hoodie.index.type"]):
            return
        if now == 6 and self.by_value and not self.in_logs:
            return
        change = self.table.maintenance.upgrade if to > now else self.table.maintenance.downgrade
        change(to, options={**self.options, "hoodie.write.table.version": str(now)})
        self.options = {**self.options, "hoodie.write.table.version": str(to)}
