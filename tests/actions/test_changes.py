"""Update, delete by a filter and merge: the table ends like a dict that was changed in the same way."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi import HudiTable
from pyhudi.errors import ConfigError, SchemaMismatch, WriteConflict
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
KINDS = [
    (table_type, version, ordering)
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ")
    for version in (6, 8, 9)
    for ordering in ("ts", None)
]
OPTIONS = {"hoodie.index.bloom.num_entries": "50", "hoodie.bloom.index.filter.dynamic.max.entries": "200"}
_NAMES = itertools.count()

Key = tuple[str, str]
Row = dict[str, Any]


class Changed:
    """A table and the dict that it must be equal to."""

    def __init__(self, table_type: str, version: int, ordering: str | None, block_format: str = "parquet") -> None:
        given = {"hoodie.write.table.version": str(version), **OPTIONS}
        if version == 6 and ordering:
            given["hoodie.datasource.write.payload.class"] = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
        self.options = {**given, "hoodie.logfile.data.block.format": block_format}
        self.event_time = ordering is not None
        self.rows: dict[Key, Row] = {}
        self.deleted: dict[Key, int] = {}
        self.partly: set[Key] = set()  # changed in part since the last compaction
        self.in_part = ordering is not None and table_type == "MERGE_ON_READ" and version >= 8
        self.table = HudiTable.create(
            f"memory://changes-{next(_NAMES)}",
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
        self.table.update(where, set=values, options=self.options)
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
        merge.when_not_matched_by_source_update({"note": "unseen"}, "v >= 900").execute()
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


NUMBERS = st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True)
VALUES = st.integers(0, 1000)
STEPS = st.one_of(
    st.tuples(st.just("upsert"), NUMBERS, st.integers(0, 20), VALUES),
    st.tuples(st.just("update"), NUMBERS, st.integers(0, 20), VALUES),
    st.tuples(st.just("reorder"), NUMBERS, st.integers(0, 20), VALUES),
    st.tuples(st.just("delete"), NUMBERS, st.integers(0, 20), VALUES),
    st.tuples(st.just("merge"), NUMBERS, st.integers(0, 20), VALUES),
    st.tuples(st.just("compact"), NUMBERS, st.integers(0, 20), VALUES),
)


@pytest.mark.parametrize(("table_type", "version", "ordering"), KINDS)
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, min_size=2, max_size=7), block_format=st.sampled_from(["avro", "parquet"]))
def test_random_changes_end_like_a_dict(
    table_type: str, version: int, ordering: str | None, steps: list[Any], block_format: str
):
    changed = Changed(table_type, version, ordering, block_format)
    changed.upsert(*(row(number) for number in range(8)))
    for word, numbers, ts, value in steps:
        names = ", ".join(f"'k{number}'" for number in numbers)
        keys = {f"k{number}" for number in numbers}
        if word == "upsert":
            changed.upsert(*(row(number, ts, value + number) for number in numbers))
        elif word == "update":
            new: Any = lambda row: row["v"] * 2  # noqa: E731
            changed.update(f"v < {value}", lambda row, value=value: row["v"] < value, {"v": pc.field("v") * 2}, v=new)
        elif word == "reorder":
            values = {"ts": ts, "tags": [str(value)]}
            changed.update(f"id IN ({names})", lambda row, keys=keys: row["id"] in keys, values, **values)
        elif word == "delete":
            changed.delete(f"id IN ({names})", lambda row, keys=keys: row["id"] in keys)
        elif word == "merge":
            changed.merge([{**row(number, ts, value + number), "gone": number % 3 == 0} for number in numbers])
        elif table_type == "MERGE_ON_READ":
            changed.table.compact()
            changed.partly.clear()
        changed.check()
    if table_type == "MERGE_ON_READ":
        changed.table.compact()
        changed.check()


@pytest.mark.parametrize(("version", "ordering"), [(9, "ts"), (9, None), (8, "ts")])
def test_an_update_of_a_merge_on_read_table_writes_the_changed_columns_only(version: int, ordering: str | None):
    changed = Changed("MERGE_ON_READ", version, ordering)
    changed.upsert(*(row(number) for number in range(8)))

    result = changed.table.update("v >= 6", set={"note": None})

    assert (result.operation, result.updated, result.files_rewritten, result.log_files_written) == ("UPDATE", 2, 0, 2)
    written = blocks(changed.table)
    assert [block.is_partial for block in written] == [True, True]
    for block in written:
        data = [name for name in block.rows().column_names if not name.startswith("_hoodie_")]
        assert data == ["ts", "note"] if ordering else ["note"]  # the ordering value says which row wins
    assert changed.table.to_arrow(["note"], "v >= 6").column(0).to_pylist() == [None, None]


@pytest.mark.parametrize(("version", "ordering"), [(8, None), (6, "ts"), (6, None)])
def test_whole_rows_go_to_the_log_where_hudi_of_the_tables_version_reads_no_partial_ones(
    version: int, ordering: str | None
):
    changed = Changed("MERGE_ON_READ", version, ordering)
    changed.upsert(*(row(number) for number in range(8)))
    changed.update("v = 6", lambda row: row["v"] == 6, {"note": "six"}, note="six")
    assert [block.is_partial for block in blocks(changed.table)] == [False]
    changed.check()


def test_whole_rows_go_to_the_log_when_partial_updates_are_switched_off():
    changed = Changed("MERGE_ON_READ", 9, "ts")
    changed.upsert(*(row(number) for number in range(8)))
    changed.options = {**changed.options, "hoodie.spark.sql.merge.into.partial.updates": "false"}
    changed.update("v = 6", lambda row: row["v"] == 6, {"note": "six"}, note="six")
    changed.merge([{**row(7, 9), "gone": False}])
    assert [block.is_partial for block in blocks(changed.table)] == [False, False]
    changed.check()


def test_log_compaction_keeps_partial_updates_partial():
    changed = Changed("MERGE_ON_READ", 9, "ts")
    changed.upsert(*(row(number) for number in range(8)))
    for value in ("a", "b", "c"):
        changed.update("p = 'x'", lambda row: row["p"] == "x", {"note": value}, note=value)
        changed.update("v = 2", lambda row: row["v"] == 2, {"tags": [value]}, tags=[value])
    changed.table.log_compact(options={"hoodie.log.compaction.blocks.threshold": "2"})
    changed.check()
    changed.table.compact()
    changed.check()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_files_without_matching_rows_stay_as_they_are(table_type: str):
    changed = Changed(table_type, 9, "ts")
    changed.upsert(*(row(number) for number in range(8)))
    before = changed.table.files()
    result = changed.table.update("v > 100", set={"note": "x"})
    assert (result.updated, result.files_rewritten, result.log_files_written) == (0, 0, 0)
    assert changed.table.files() == before
    assert changed.table.delete(where="v = 3").partitions == ("y",)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_that_the_source_of_a_merge_does_not_have_are_deleted(table_type: str):
    changed = Changed(table_type, 9, "ts")
    changed.upsert(*(row(number) for number in range(8)))
    source = pa.Table.from_pylist([row(1), row(6)], SCHEMA)

    merge = changed.table.merge(source, options=changed.options)
    result = merge.when_not_matched_by_source_delete("v < 5").execute()

    assert result.deleted == 4
    assert sorted(changed.table.to_arrow(["v"])["v"].to_pylist()) == [1, 5, 6, 7]


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "BUCKET", "BLOOM"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_changes_go_with_every_index(table_type: str, index: str):
    changed = Changed(table_type, 9, "ts")
    changed.options |= {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"}
    changed.upsert(*(row(number) for number in range(8)))
    changed.update("v > 4", lambda row: row["v"] > 4, {"note": "u"}, note="u")
    changed.merge([{**row(number, 11, number * 2), "gone": number == 3} for number in range(2, 12)])
    changed.delete("v = 8", lambda row: row["v"] == 8)
    changed.check()


def test_with_a_global_index_a_merge_leaves_rows_in_their_partition():
    changed = Changed("COPY_ON_WRITE", 9, "ts")
    options = {"hoodie.index.type": "GLOBAL_SIMPLE"}
    changed.table.upsert(pa.Table.from_pylist([row(1), row(2)], SCHEMA), options=options)
    source = pa.Table.from_pylist([row(1, 11, 100, p="elsewhere"), row(3, p="new")], SCHEMA)
    merge = changed.table.merge(source, options=options).when_matched_update_all().when_not_matched_insert_all()
    result = merge.execute()
    assert (result.operation, result.inserted, result.updated) == ("MERGE", 1, 1)
    found = changed.table.to_arrow(["id", "p", "v"]).sort_by("id").to_pylist()
    assert found == [
        {"id": "k1", "p": "y", "v": 100},
        {"id": "k2", "p": "x", "v": 2},
        {"id": "k3", "p": "new", "v": 3},
    ]


def test_rows_of_a_table_with_generated_keys_can_be_updated_and_deleted():
    table = HudiTable.create(f"memory://changes-{next(_NAMES)}", SCHEMA, table_name="t", options=OPTIONS)
    table.insert(pa.Table.from_pylist([row(number) for number in range(4)], SCHEMA))
    assert table.update("id = 'k1'", set={"note": "u"}).updated == 1
    assert table.delete_where("id = 'k2'").deleted == 1
    found = table.to_arrow(["id", "note"]).sort_by("id").to_pylist()
    assert found == [{"id": "k0", "note": "n0"}, {"id": "k1", "note": "u"}, {"id": "k3", "note": "n3"}]
    with pytest.raises(ConfigError, match="no key fields"):
        table.merge([{"id": "k0", "note": "x"}]).when_matched_update_all().execute()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_tables_without_meta_columns_are_changed_by_their_computed_keys(table_type: str):
    options = {"hoodie.populate.meta.fields": "false", **OPTIONS}
    table = HudiTable.create(
        f"memory://changes-{next(_NAMES)}", SCHEMA, record_key="id", partition_by="p", table_name="t",
        table_type=table_type, options=options,
    )  # fmt: skip
    table.insert(pa.Table.from_pylist([row(number) for number in range(4)], SCHEMA))
    table.update("v >= 2", set={"note": "u"})
    table.delete(where="v = 3")
    merge = table.merge([{"id": "k0", "p": "x", "v": 50}]).when_matched_update({"v": "source.v"})
    merge.execute()
    found = table.to_arrow(["id", "v", "note"]).sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in found] == [("k0", 50, "n0"), ("k1", 1, "n1"), ("k2", 2, "u")]


def test_a_write_that_completes_meanwhile_is_a_conflict_and_is_not_lost():
    changed = Changed("MERGE_ON_READ", 9, None)
    changed.upsert(row(1))

    def slow(rows: pa.Table) -> pa.ChunkedArray:
        HudiTable.open(changed.table.path).upsert(pa.Table.from_pylist([row(1, v=70)], SCHEMA))
        return pc.add(rows["v"], 1)

    with pytest.raises(WriteConflict):
        changed.table.update("id = 'k1'", set={"v": slow})
    assert changed.table.to_arrow(["v"]).column(0).to_pylist() == [70]


def test_an_update_with_a_lower_ordering_value_changes_nothing():
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        changed = Changed(table_type, 9, "ts")
        changed.upsert(row(1, ts=10))
        changed.update(None, lambda row: True, {"ts": 5, "note": "late"}, ts=5, note="late")
        assert changed.table.to_arrow(["note"]).column(0).to_pylist() == ["n1"]
        changed.update(None, lambda row: True, {"ts": 10, "note": "tie"}, note="tie")
        changed.check()


MERGES: dict[str, tuple[Callable[[HudiTable], Any], type[Exception], str]] = {
    "no clause": (lambda t: t.merge([row(1)]).execute(), ConfigError, "no clause"),
    "other join columns": (
        lambda t: t.merge([row(1)], on="v").when_matched_delete().execute(), ConfigError, "record key, id"
    ),
    "a key twice": (
        lambda t: t.merge([row(1), row(1)]).when_matched_update_all().execute(), ConfigError, "key 'k1'"
    ),
    "no partition column": (
        lambda t: t.merge([{"id": "k1"}]).when_matched_delete().execute(), ConfigError, "lacks p"
    ),
    "key set": (lambda t: t.update("v = 1", set={"id": "k9"}), ConfigError, "id: key and partition columns"),
    "partition set": (lambda t: t.update("v = 1", set={"p": "z"}), ConfigError, "p: key and partition columns"),
    "unknown column": (lambda t: t.update("v = 1", set={"nope": 1}), ConfigError, "Did you mean 'note'"),
    "meta column": (lambda t: t.update(set={"_hoodie_record_key": "x"}), ConfigError, "meta columns"),
    "nothing set": (lambda t: t.update(set={}), ConfigError, "empty"),
    "unknown filter column": (lambda t: t.update("w = 1", set={"v": 1}), ConfigError, "'w'"),
    "wrong type": (lambda t: t.update(set={"v": "many"}), ConfigError, "'v' is of type int64"),
    "wrong type of expression": (lambda t: t.update(set={"v": pc.field("tags")}), SchemaMismatch, "'v'"),
    "values that do not fit": (lambda t: t.update(set={"v": pc.divide(pc.field("v"), 2.0)}), SchemaMismatch, "'v'"),
    "function of wrong length": (lambda t: t.update(set={"v": lambda rows: pa.array([1])}), ConfigError, "1 values"),
    "key of new rows": (
        lambda t: t.merge([row(1)]).when_not_matched_insert({"id": "z"}).execute(), ConfigError, "those of the source"
    ),
    "condition that is no condition": (
        lambda t: t.merge([row(1)]).when_matched_delete(pc.field("v") + 1).execute(), ConfigError, "true or false"
    ),
    "two ways to say what to delete": (lambda t: t.delete([row(1)], where="v = 1"), ConfigError, "give one"),
}  # fmt: skip


@pytest.mark.parametrize("what", MERGES)
def test_what_cannot_be_meant_is_refused_and_changes_nothing(what: str):
    call, error, words = MERGES[what]
    changed = Changed("COPY_ON_WRITE", 9, "ts")
    changed.upsert(row(1), row(2), row(3))
    commits = len(changed.table.timeline.commits())
    with pytest.raises(error, match=words):
        call(changed.table)
    assert len(changed.table.timeline.commits()) == commits
    assert not changed.table.timeline.pending()
    changed.check()


@pytest.mark.parametrize("block_format", ["avro", "parquet"])
def test_an_update_does_not_revive_values_of_a_version_that_came_late(block_format: str):
    changed = Changed("MERGE_ON_READ", 9, "ts", block_format)
    changed.upsert(*(row(number) for number in range(8)))
    changed.upsert(row(0, ts=0, v=1000))

    changed.table.update("id IN ('k0', 'k2')", set={"tags": ["new"]}, options=changed.options)

    changed.change(lambda row: row["id"] in ("k0", "k2"), tags=["new"])
    changed.check()
    assert sorted(block.is_partial for block in blocks(changed.table)) == [False, False, True]


@pytest.mark.parametrize("block_format", ["avro", "parquet"])
def test_an_update_that_lost_by_its_ordering_value_lends_nothing_to_the_next(block_format: str):
    changed = Changed("MERGE_ON_READ", 9, "ts", block_format)
    changed.upsert(*(row(number) for number in range(8)))

    changed.table.update("id = 'k0'", set={"ts": 5, "v": 1000}, options=changed.options)
    changed.table.update("id = 'k0'", set={"tags": ["new"]}, options=changed.options)

    changed.change(lambda row: row["id"] == "k0", tags=["new"])
    changed.check()
