"""Updates, deletes and merges that are refused, and leave the table as it was."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import ConfigError, HudiError, SchemaMismatch, WriteConflict
from pyhudi.schema.changes import DropNotNull
from tests.support.tables.changed import SCHEMA, Changed, row


def test_a_write_that_completes_meanwhile_is_a_conflict_and_is_not_lost():
    changed = Changed("MERGE_ON_READ", 9, None)
    changed.upsert(row(1))

    def slow(rows: pa.Table) -> pa.ChunkedArray:
        HudiTable.open(changed.table.path).upsert(pa.Table.from_pylist([row(1, v=70)], SCHEMA))
        return pc.add(rows["v"], 1)

    few = {"hoodie.write.num.retries.on.conflict.failures": "1"}  # each of them meets another write
    with pytest.raises(WriteConflict):
        changed.table.update("id = 'k1'", set={"v": slow}, options=few)
    assert changed.table.to_arrow(["v"]).column(0).to_pylist() == [70]


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
    "wrong type": (lambda t: t.update(values={"v": "many"}), ConfigError, "'v' is of type int64"),
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
    commits = len(changed.table.state().timeline.commits())
    with pytest.raises(error, match=words):
        call(changed.table)
    assert len(changed.table.state().timeline.commits()) == commits
    assert not changed.table.state().timeline.pending()
    changed.check()


REQUIRED = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("v", pa.int64(), nullable=False),
        pa.field("w", pa.int64()),
        pa.field("s", pa.struct([pa.field("x", pa.int64(), nullable=False)])),
    ]
)
LOOSE = pa.schema([("id", "utf8"), ("v", "int64"), ("w", "int64"), ("s", pa.struct([("x", pa.int64())]))])
NULL = pa.scalar(None, pa.int64())
NULLS: dict[str, Callable[[HudiTable], Any]] = {
    "a constant": lambda t: t.update(set={"v": None}),
    "an expression": lambda t: t.update(set={"v": pc.if_else(pc.is_valid(pc.field("id")), NULL, pc.field("w"))}),
    "a function": lambda t: t.update(set={"v": lambda rows: pa.nulls(len(rows), pa.int64())}),
    "a struct": lambda t: t.update(set={"s": {"x": None}}),
    "a merge that updates": lambda t: t.merge(null_of("a")).when_matched_update({"v": "source.v"}).execute(),
    "a merge of all columns": lambda t: t.merge(null_of("a")).when_matched_update_all().execute(),
    "a merge that inserts": lambda t: t.merge(null_of("b")).when_not_matched_insert_all().execute(),
}


def null_of(key: str) -> pa.Table:
    """A row of this key without v."""
    return pa.Table.from_pylist([{"id": key, "w": 5, "s": {"x": 1}}], LOOSE)


@pytest.mark.thorough
@pytest.mark.parametrize("what", NULLS)
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_change_that_makes_a_required_column_null_is_refused_until_the_column_takes_nulls(
    table_type: str, what: str, tmp_path: Path
) -> None:
    options = {"hoodie.datasource.write.table.type": table_type}
    table = HudiTable.create(tmp_path / "t", REQUIRED, record_key="id", options=options)
    table.upsert(pa.Table.from_pylist([{"id": "a", "v": 1, "s": {"x": 1}}], LOOSE))
    with pytest.raises(HudiError, match="NOT NULL"):
        NULLS[what](table)
    assert table.to_arrow(["id", "v", "s"]).to_pylist() == [{"id": "a", "v": 1, "s": {"x": 1}}]
    table.update(set={"w": 7})
    assert table.schema() == REQUIRED

    table.alter(DropNotNull("v"), DropNotNull("s.x"))
    NULLS[what](table)
    rows = table.to_arrow(["v", "s"]).to_pylist()
    assert {"v": None, "s": {"x": 1}} in rows or rows == [{"v": 1, "s": {"x": None}}]


@pytest.mark.parametrize("moment", ["2024-06-01 12:00:00", datetime(2024, 6, 1, 12), date(2024, 6, 1)])
def test_a_time_without_a_zone_is_no_moment_to_delete_or_update_by(tmp_path: Path, moment: Any):
    rows = pa.table({"id": ["a"], "at": pa.array([datetime(2024, 1, 1)], pa.timestamp("us", "UTC"))})
    write_hudi(tmp_path, rows, record_key="id")
    table = HudiTable.open(tmp_path)
    named = [("at", "<", moment), f"at < TIMESTAMP '{moment}'" if isinstance(moment, str) else [("at", "in", [moment])]]
    for where in named:
        for change in (table.delete, lambda where: table.update(where, set={"at": None})):
            with pytest.raises(ConfigError, match="no time zone"):
                change(where=where)
    with pytest.raises(ConfigError, match=r"set= gives the column at .*no time zone"):
        table.update("id = 'a'", **{"values" if isinstance(moment, str) else "set": {"at": moment}})
    with pytest.raises(ConfigError, match="no time zone"):
        table.merge(rows).when_matched_delete(("at", "<", moment)).execute()
    assert table.scan(where=("at", "<", moment)).count() == 1
    table.update("at < '2024-06-01 12:00:00Z'", values={"at": "2024-07-01 00:00:00+02:00"})
    assert table.to_arrow(["at"])["at"].to_pylist() == [datetime(2024, 6, 30, 22, tzinfo=timezone.utc)]
    assert table.delete(where="at < '2024-07-01 00:00:00+00:00'").deleted == 1


def test_a_word_in_double_quotes_is_no_column_to_delete_by(tmp_path: Path):
    write_hudi(tmp_path, pa.table({"id": ["a", "b"], "status": ["status", "open"]}), record_key="id")
    HudiTable.open(tmp_path).delete(where='status = "status"')
    assert HudiTable.open(tmp_path).to_arrow(["id"])["id"].to_pylist() == ["b"]
