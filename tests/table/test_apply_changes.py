"""`apply_changes`: events in any order and any batches make the same table, by SCD type 1 and 2, each in one commit."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import ConfigError, CorruptFile, HudiTable, SchemaMismatch, WriteConflict, apply_changes, write_hudi
from pyhudi.actions.applied_changes import newest_changes
from pyhudi.errors import HudiError, StandingConflict
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import HIDDEN_EVENTS_FOLDER
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.change_events import apply_changes as calls
from pyhudi.table.change_events import flow
from tests.support.scd_model import Event, history_of, newest_of
from tests.support.sweeps import SEED, stride
from tests.support.writers.dying import READING, places_to_die

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
TYPES = [1, 2]
EVENTS = pa.schema([("k", pa.int64()), ("a", pa.int64()), ("b", pa.string()), ("ts", pa.int64()), ("op", pa.string())])
QUICK = {"hoodie.metadata.enable": "false", "hoodie.index.bloom.num_entries": "50"}


def batch(*events: Event) -> pa.Table:
    rows = [dict(zip(EVENTS.names, (*event[:4], "d" if event[4] else "u"), strict=True)) for event in events]
    return pa.Table.from_pylist(rows, EVENTS)


def upsert(key: int, a: int, ts: int) -> Event:
    return key, a, f"{key} at {ts}", ts, False


def delete(key: int, ts: int) -> Event:
    return key, 0, "", ts, True


def applied(place: Any, scd_type: int, *events: Event, **more: Any) -> Any:
    """Apply events: type 2 tracks the column a, and its table leaves ts out."""
    of_type_2 = {"track_history_column_list": "a"} if scd_type == 2 else {}
    left_out = ["op"] if scd_type == 1 else ["op", "ts"]
    named = {"keys": "k", "sequence_by": "ts", "apply_as_deletes": "op = 'd'", "except_column_list": left_out}
    options = {**QUICK, **more.pop("options", {})}
    return apply_changes(batch(*events), place, **{**named, **of_type_2, **more}, scd_type=scd_type, options=options)


def rows(place: Any) -> list[tuple[Any, ...]]:
    meta = MetaClient.load(place) if isinstance(place, MemoryStorage) else place
    table = HudiTable(meta).scan(meta_columns=False).to_arrow()
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def expected(scd_type: int, events: list[Event]) -> list[tuple[Any, ...]]:
    return newest_of(events) if scd_type == 1 else history_of(events)


def some_events(seed: int, count: int = 24) -> list[Event]:
    """Events of few keys, shuffled."""
    chance = random.Random(seed)
    moments = chance.sample([(key, ts) for key in range(4) for ts in range(12)], count)
    return [delete(k, ts) if chance.random() < 0.3 else upsert(k, chance.randrange(2), ts) for k, ts in moments]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scd_type", TYPES)
def test_any_order_and_any_batches_make_the_same_table_also_between_compactions(kind: str, scd_type: int) -> None:
    place = MemoryStorage()
    events = some_events(seed=scd_type * 10 + len(kind))
    compacting = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    options = {"hoodie.datasource.write.table.type": kind, **(compacting if kind == KINDS[1] else {})}
    for at in range(0, len(events), 4):
        applied(place, scd_type, *events[at : at + 4], *events[at - 2 : at - 1], options=options)

    assert rows(place) == expected(scd_type, events)
    if kind == KINDS[1]:
        assert any(entry.action == "commit" for entry in HudiTable(MetaClient.load(place)).history())


@pytest.mark.parametrize("scd_type", TYPES)
def test_new_rows_and_changed_ones_of_a_bucket_go_into_one_log_file(scd_type: int) -> None:
    place = MemoryStorage()
    events = some_events(seed=scd_type)
    options = {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
    }
    for at in range(0, len(events), 8):
        applied(place, scd_type, *events[at : at + 8], options=options)

    assert rows(place) == expected(scd_type, events)


@pytest.mark.parametrize("scd_type", TYPES)
def test_a_late_event_after_a_delete_brings_nothing_back(scd_type: int) -> None:
    place = MemoryStorage()
    applied(place, scd_type, delete(1, 5))
    assert rows(place) == []
    applied(place, scd_type, upsert(1, 0, 3))
    assert rows(place) == ([] if scd_type == 1 else [(1, 0, "1 at 3", 3, 5)])
    applied(place, scd_type, upsert(1, 1, 9))
    assert len(rows(place)) == scd_type


def test_a_late_event_splits_a_row_of_history_and_a_delete_closes_it() -> None:
    place = MemoryStorage()
    applied(place, 2, upsert(1, 0, 1), upsert(1, 1, 9))
    applied(place, 2, upsert(1, 2, 5), delete(1, 7))

    assert sorted(row[3:] for row in rows(place)) == [(1, 5), (5, 7), (9, None)]


def test_changes_of_columns_that_are_not_tracked_update_the_newest_row() -> None:
    place = MemoryStorage()
    applied(place, 2, upsert(1, 0, 1))
    applied(place, 2, upsert(1, 0, 4))
    assert rows(place) == [(1, 0, "1 at 4", 1, None)]
    applied(place, 2, upsert(1, 1, 2))
    assert rows(place) == [(1, 0, "1 at 1", 1, 2), (1, 0, "1 at 4", 4, None), (1, 1, "1 at 2", 2, 4)]


@pytest.mark.parametrize("scd_type", TYPES)
def test_a_batch_is_one_commit_and_a_restore_takes_its_hidden_events_back(tmp_path: Path, scd_type: int) -> None:
    place = tmp_path / "t"
    first = applied(place, scd_type, upsert(1, 0, 1))
    applied(place, scd_type, delete(2, 5))
    assert len(HudiTable.open(place).history()) == 2

    HudiTable.open(place).restore(first.instant_time)
    applied(place, scd_type, upsert(2, 0, 3))
    assert rows(place) == expected(scd_type, [upsert(1, 0, 1), upsert(2, 0, 3)])


def as_reader(events: pa.Table) -> pa.RecordBatchReader:
    return events.to_reader(max_chunksize=1)


@pytest.mark.parametrize("form", [pa.Table.to_pylist, pa.Table.to_pandas, pl.from_arrow, as_reader])
def test_events_come_in_any_form_that_a_write_takes(form: Callable[[pa.Table], Any]) -> None:
    place = MemoryStorage()
    for events in (batch(upsert(1, 0, 1), upsert(2, 0, 1)), batch(delete(2, 3), upsert(1, 1, 2))):
        apply_changes(
            form(events), place, keys="k", sequence_by="ts", apply_as_deletes=("op", "=", "d"),
            except_column_list="op", options=QUICK,
        )  # fmt: skip
    assert rows(place) == [(1, 1, "1 at 2", 2)]


def test_a_spark_dataframe_is_refused_by_name() -> None:
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})()
    with pytest.raises(ConfigError, match="takes no Spark DataFrame: collect the batch"):
        apply_changes(frame, MemoryStorage(), keys="k", sequence_by="ts")


@pytest.mark.parametrize("scd_type", TYPES)
def test_new_columns_and_wider_types_come_into_the_table(scd_type: int) -> None:
    place = MemoryStorage()
    narrow = batch(upsert(1, 0, 1)).set_column(1, "a", pa.array([0], pa.int32()))
    wide = batch(upsert(1, 1, 3)).append_column("new", pa.array(["n"]))
    late = batch(upsert(1, 1 << 40, 2)).drop_columns("b")
    for events in (narrow, wide, late):
        apply_changes(
            events, place, keys="k", sequence_by="ts", except_column_list="op", scd_type=scd_type,
            track_history_column_list="a" if scd_type == 2 else None, options=QUICK,
        )  # fmt: skip
    found = HudiTable(MetaClient.load(place)).to_arrow(["a", "b", "ts", "new"]).sort_by("ts").to_pylist()
    newest = {"a": 1, "b": "1 at 3", "ts": 3, "new": "n"}
    first = {"a": 0, "b": "1 at 1", "ts": 1, "new": None}
    between = {"a": 1 << 40, "b": None, "ts": 2, "new": None}
    assert found == ([newest] if scd_type == 1 else [first, between, newest])


@pytest.mark.parametrize("scd_type", TYPES)
def test_keys_and_sequences_of_another_number_type_are_those_of_the_table(scd_type: int) -> None:
    place = MemoryStorage()
    narrow = batch(upsert(1, 0, 1)).cast(
        pa.schema([field.with_type(pa.int32()) if field.name in ("k", "ts") else field for field in EVENTS])
    )
    for events in (narrow, batch(upsert(1, 1, 2)), narrow):
        apply_changes(
            events, place, keys="k", sequence_by="ts", except_column_list="op" if scd_type == 1 else ["op", "ts"],
            scd_type=scd_type, options=QUICK,
        )  # fmt: skip
    assert rows(place)[-1][:3] == (1, 1, "1 at 2")
    assert len(rows(place)) == scd_type


def test_a_column_twice_is_refused() -> None:
    events = batch(upsert(1, 0, 1)).append_column("a", pa.array([1]))
    with pytest.raises(ConfigError, match="several columns called a"):
        apply_changes(events, MemoryStorage(), keys="k", sequence_by="ts")


def test_a_table_takes_options_and_is_partitioned_by_a_key(tmp_path: Path) -> None:
    events = [{"city": city, "id": 1, "ts": 1, "v": 1} for city in ("rome", "oslo")]
    options = {"hoodie.datasource.write.partitionpath.field": "city", **QUICK}
    for ts, value in ((1, 1), (2, 2)):
        rows_now = [{**event, "ts": ts, "v": value} for event in events]
        apply_changes(rows_now, tmp_path / "t", keys=["city", "id"], sequence_by="ts", scd_type=2, options=options)

    table = HudiTable.open(tmp_path / "t")
    assert sorted(path.name for path in (tmp_path / "t").iterdir() if path.name[0] != ".") == ["oslo", "rome"]
    assert table.scan(where="city = 'rome' AND __END_AT IS NULL").to_arrow()["v"].to_pylist() == [2]


@pytest.mark.parametrize("scd_type", TYPES)
def test_a_commit_of_another_writer_in_between_is_kept_and_the_rows_are_computed_again(
    scd_type: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = MemoryStorage()
    applied(place, scd_type, upsert(1, 0, 1))
    others = [delete(1, 5), upsert(2, 0, 5)]
    real = vars(calls)["change_table"]

    def slow(*arguments: Any) -> Any:
        if others:
            event = others.pop()
            if event[0] == 2:
                monkeypatch.setattr(calls, "change_table", real)
            applied(place, scd_type, event)
            monkeypatch.setattr(calls, "change_table", slow)
        return real(*arguments)

    monkeypatch.setattr(calls, "change_table", slow)
    applied(place, scd_type, upsert(1, 1, 3), upsert(2, 1, 3))

    everything = [upsert(1, 0, 1), delete(1, 5), upsert(2, 0, 5), upsert(1, 1, 3), upsert(2, 1, 3)]
    assert rows(place) == expected(scd_type, everything)


@pytest.mark.parametrize("scd_type", TYPES)
def test_calls_at_once_on_a_new_table_lose_and_double_nothing(tmp_path: Path, scd_type: int) -> None:
    events = some_events(seed=scd_type, count=20)
    errors: list[Exception] = []

    def work(mine: list[Event]) -> None:
        for at in range(0, len(mine), 5):
            while True:
                try:
                    applied(tmp_path / "t", scd_type, *mine[at : at + 5])
                    break
                except WriteConflict as error:
                    if isinstance(error, StandingConflict):
                        errors.append(error)
                        return
                except Exception as error:
                    errors.append(error)
                    return

    threads = [threading.Thread(target=work, args=(events[at::2],)) for at in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert rows(tmp_path / "t") == expected(scd_type, events)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of what is left to do after a commit
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("scd_type", TYPES)
def test_a_death_at_any_storage_call_leaves_all_or_nothing_of_a_batch(scd_type: int, is_first: bool) -> None:
    before = [] if is_first else [upsert(1, 0, 1), upsert(2, 0, 4), delete(3, 6)]
    events = [upsert(1, 1, 3), delete(2, 5), delete(4, 5), upsert(3, 0, 2)]
    late = [upsert(4, 0, 4), upsert(2, 1, 9)]
    place = MemoryStorage()
    if before:
        applied(place, scd_type, *before)
    counted = place.clone()
    applied(counted, scd_type, *events)

    outcomes = set()
    places = places_to_die(counted.log)
    for kind, n in [places[0], *places[SEED % 5 : -1 : stride(5)], places[-1]]:
        dying = place.clone()
        dying.fail_at(n, kind)
        died = False
        try:
            applied(dying, scd_type, *events)
        except HudiError:
            died = True
        finally:
            dying.reset_faults()
        verb, path = counted.log[n - 1] if n <= len(counted.log) else ("", "")
        where = f"{kind} call {n}: {verb} {path}"
        if not died and verb in READING:
            assert rows(dying) == expected(scd_type, [*before, *events]), where
            continue
        try:
            found = rows(dying)
        except pyhudi.TableNotFound:
            found = []
        is_in = found == expected(scd_type, [*before, *events])
        assert is_in or found == expected(scd_type, before), where
        applied(dying, scd_type, *late)
        assert rows(dying) == expected(scd_type, [*before, *(events if is_in else []), *late]), where
        outcomes.add(is_in)
    assert False in outcomes  # the sample of places may have none behind the commit


# ---- hidden events


def test_hidden_events_are_in_few_files_and_those_of_no_commit_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5", "hoodie.clean.commits.retained": "2"}
    monkeypatch.setattr("pyhudi.actions.applied_changes._UNNEEDED_MS", -1)
    for n in range(12):
        applied(tmp_path, 1, delete(n, 5), options=options)

    table = HudiTable.open(tmp_path)
    newest = newest_changes(MetaClient.load(table._handle.storage))
    assert newest is not None
    assert [file.rows for file in newest.hidden] == [8, 4]
    stored = {path.name for path in (tmp_path / HIDDEN_EVENTS_FOLDER).iterdir()}
    assert stored >= {file.name for file in newest.hidden}
    assert len(stored) < 10
    applied(tmp_path, 1, *(upsert(n, 0, 4) for n in range(12)))
    assert rows(tmp_path) == []


def test_the_note_is_found_behind_commits_of_others_and_in_the_archive(tmp_path: Path) -> None:
    options = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"}
    applied(tmp_path, 1, delete(1, 5), options=options)
    for n in range(6):
        write_hudi(tmp_path, {"k": [9], "a": [n], "b": ["x"], "ts": [n]}, options={**QUICK, **options})
    applied(tmp_path, 1, upsert(1, 0, 4))
    assert rows(tmp_path) == [(9, 5, "x", 5)]


def test_a_missing_file_of_hidden_events_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    applied(tmp_path, 2, delete(1, 5))
    for path in (tmp_path / HIDDEN_EVENTS_FOLDER).iterdir():
        path.unlink()
    with pytest.raises(CorruptFile, match="is missing: events of apply_changes that late ones need"):
        applied(tmp_path, 2, upsert(1, 0, 4))
    assert len(HudiTable.open(tmp_path).history()) == 1


def test_copies_of_a_table_have_its_hidden_events(tmp_path: Path) -> None:
    applied(tmp_path / "t", 1, upsert(1, 0, 1), delete(2, 5))
    HudiTable.open(tmp_path / "t").maintenance.copy_to(tmp_path / "copy")
    applied(tmp_path / "copy", 1, upsert(2, 0, 4))
    assert rows(tmp_path / "copy") == [(1, 0, "1 at 1", 1)]


def test_hidden_events_are_parquet_with_keys_and_sequence(tmp_path: Path) -> None:
    applied(tmp_path, 1, delete(2, 5))
    (path,) = (tmp_path / HIDDEN_EVENTS_FOLDER).iterdir()
    assert [list(row.values())[:2] for row in pq.read_table(path).to_pylist()] == [[2, 5]]


# ---- refused, before anything is written


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"keys": []}, "keys is empty"),
    ({"keys": "id"}, "lack id. Their columns: k, a, b, ts, op"),
    ({"sequence_by": ["ts", "k"]}, "the name of one column"),
    ({"sequence_by": "when"}, "lack when"),
    ({"scd_type": 3}, "expected 1"),
    ({"column_list": "a", "except_column_list": "b"}, "are both given"),
    ({"except_column_list": ["op", "ts"]}, "stores the sequence"),
    ({"except_column_list": ["k"]}, "k: the table needs this column"),
    ({"track_history_column_list": "a"}, "goes with scd_type=2"),
    ({"scd_type": 2, "track_history_column_list": "a", "track_history_except_column_list": "b"}, "both given"),
    ({"apply_as_deletes": "op == "}, "apply_as_deletes: "),
    ({"apply_as_deletes": "what = 'd'"}, "what"),
    ({"options": {"hoodie.datasource.write.operation": "insert"}}, "as the events say"),
    ({"options": {"hoodie.datasource.write.recordkey.field": "a"}}, "keys and sequence_by say k; leave it out"),
    ({"options": {"hoodie.table.ordering.fields": "a"}}, "keys and sequence_by say ts"),
    ({"options": {"hoodie.no.such.key": "1"}}, "no.such"),
    ({"options": {"hoodie.datasource.write.partitionpath.field": "a"}}, "partitioned by a, which an event can change"),
    ({"options": {"hoodie.populate.meta.fields": "false"}}, "tables with meta columns"),
]


@pytest.mark.parametrize(("words", "message"), WRONG, ids=[message for _, message in WRONG])
def test_words_that_do_not_go_together_are_refused(words: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        apply_changes(batch(upsert(1, 0, 1)), tmp_path / "t", **{"keys": "k", "sequence_by": "ts", **words})
    assert not HudiTable.exists(tmp_path / "t")


@pytest.mark.parametrize("name", ["k", "ts"])
def test_events_without_a_key_or_a_sequence_are_refused_with_their_number(name: str) -> None:
    events = batch(upsert(1, 0, 1), upsert(2, 0, 1)).to_pylist()
    events[1][name] = None
    with pytest.raises(ConfigError, match=f"1 events have no value in {name}"):
        apply_changes(events, MemoryStorage(), keys="k", sequence_by="ts")


def test_columns_with_names_of_its_own_are_refused() -> None:
    events = pd.DataFrame({"k": [1], "ts": [1], "__START_AT": [1], "_hoodie_is_deleted": [True]})
    with pytest.raises(ConfigError, match="__START_AT: apply_changes uses this name itself"):
        apply_changes(events, MemoryStorage(), keys="k", sequence_by="ts", scd_type=2)
    with pytest.raises(ConfigError, match="Say apply_as_deletes='_hoodie_is_deleted'"):
        apply_changes(events.drop(columns="__START_AT"), MemoryStorage(), keys="k", sequence_by="ts")


@pytest.mark.parametrize(
    ("table", "scd_type", "message"),
    [
        ({"record_key": "a"}, 1, "with the record key k; this one has a"),
        ({"record_key": "k"}, 2, "with the record key k, __START_AT"),
        ({"record_key": "k", "partition_by": "a"}, 1, "partitioned by a, which an event can change"),
        ({"record_key": "k", "ordering": "a"}, 1, "merges rows by a, and changes by ts"),
        ({"record_key": "k", "options": {"hoodie.populate.meta.fields": "false"}}, 1, "tables with meta columns"),
    ],
)
def test_tables_that_events_can_not_be_applied_to_are_refused(
    table: dict[str, Any], scd_type: int, message: str, tmp_path: Path
) -> None:
    columns = pa.schema([field for field in EVENTS if field.name != "op"])
    HudiTable.create(tmp_path, columns, **table)
    with pytest.raises(ConfigError, match=message):
        applied(tmp_path, scd_type, upsert(1, 0, 1))


def test_a_table_goes_on_with_the_words_that_it_began_with() -> None:
    place = MemoryStorage()
    applied(place, 2, upsert(1, 0, 1))
    with pytest.raises(ConfigError, match=r"tracked columns = \['a'\] so far .* and now with None"):
        applied(place, 2, upsert(1, 0, 2), track_history_column_list=None)
    with pytest.raises(ConfigError, match="record key k; this one has k, __START_AT"):
        applied(place, 1, upsert(1, 0, 2))


@pytest.mark.parametrize("scd_type", TYPES)
def test_columns_that_do_not_fit_are_refused(scd_type: int) -> None:
    place = MemoryStorage()
    applied(place, scd_type, upsert(1, 0, 1))
    events = batch(upsert(1, 0, 2)).set_column(1, "a", pa.array(["text"]))
    with pytest.raises(SchemaMismatch, match=r"a\b"):
        apply_changes(
            events, place, keys="k", sequence_by="ts", except_column_list="op", scd_type=scd_type,
            track_history_column_list="a" if scd_type == 2 else None,
        )  # fmt: skip


def test_words_of_spark_are_pointed_to_ours() -> None:
    for theirs, ours in (("stored_as_scd_type", "scd_type"), ("target", "table"), ("ignore_null_updates", "Nulls")):
        with pytest.raises(ConfigError, match=ours):
            apply_changes([], MemoryStorage(), **{theirs: 2})  # type: ignore[arg-type]
    assert flow.names_of("a") == ("a",)
