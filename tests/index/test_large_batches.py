"""A large batch is joined with the stored keys where they are, and finds what a small one finds."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.engine.base import Frame, TaskContext
from pyhudi.engine.local import LocalEngine
from pyhudi.index.base import Lookup, Tagged
from pyhudi.index.key_join import PlacesThatCount, count_groups
from pyhudi.index.key_lookup import KeyLookupIndex
from pyhudi.model.keys import LOCATION, PARTITION_PATH, RECORD_KEY
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from tests.support.large_batches import (
    CASES,
    LOADED,
    MERGE_ON_READ,
    Case,
    by_three,
    collects_keys,
    large_from,
    numbered,
    play,
    shifted,
    upsert,
)
from tests.support.remote_engine import RemoteEngine


@pytest.mark.parametrize("name", CASES)
def test_a_large_batch_finds_the_keys_that_a_small_one_finds_and_none_comes_to_the_planner(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = RemoteEngine(), RemoteEngine()
    here = play(CASES[name], MemoryStorage(), LocalEngine(2))
    of_small = play(CASES[name], LocalStorage(str(tmp_path / "small")), small)
    large_from(monkeypatch, 0)
    of_large = play(CASES[name], LocalStorage(str(tmp_path / "large")), large)

    assert of_large == of_small == here
    assert collects_keys(small.collected) is not name.startswith(("records", "global records"))
    assert large.collected
    assert not collects_keys(large.collected)


@pytest.mark.thorough
@pytest.mark.parametrize("key_bytes", [0, 1 << 20], ids=["large", "small"])
def test_a_key_in_two_places_is_written_where_it_is_alive_and_leaves_other_keys_where_they_are(
    key_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large_from(monkeypatch, key_bytes)
    *_, last = play(CASES["simple, keys in two places"], LocalStorage(str(tmp_path)), RemoteEngine())
    rows = {row[0]: row for row in last[3]}

    assert len(last[3]) == len(rows), "no key is in the table twice"
    assert all(rows[f"k{n:03}"] == (f"k{n:03}", f"p{n % 3}", 9, 3000 + n) for n in range(20))
    assert not {f"k{n:03}" for n in range(40, 50)} & set(rows), "the rows are older than the deletes they meet"


@pytest.mark.thorough
@pytest.mark.parametrize("key_bytes", [0, 1 << 20], ids=["large", "small"])
def test_a_key_that_was_updated_in_the_second_of_its_places_is_found_there(
    key_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both places have log files then: those of the first delete the key, those of the second have its newest row."""
    away_and_back = [upsert(*numbered(0, 20, to, 6), index_type="GLOBAL_SIMPLE") for to in (shifted, by_three)]
    updated = upsert(*numbered(0, 20, by_three, 8), index_type="GLOBAL_SIMPLE")
    last = upsert(*numbered(0, 20, by_three, 9, 3000))
    large_from(monkeypatch, key_bytes)
    case = Case({"hoodie.index.type": "SIMPLE", **MERGE_ON_READ}, (LOADED, *away_and_back, updated, last))
    *_, (inserted, met, deleted, rows) = play(case, LocalStorage(str(tmp_path)), RemoteEngine())

    assert (inserted, met, deleted) == (0, 20, 0)
    assert [row for row in rows if row[0] < "k020"] == [(f"k{n:03}", f"p{n % 3}", 9, 3000 + n) for n in range(20)]


@pytest.mark.thorough
@pytest.mark.parametrize("key_bytes", [0, 1 << 20], ids=["large", "small"])
@pytest.mark.parametrize("name", ["simple", "simple, log files", "simple, keys in two places"])
def test_what_an_index_says_of_rows_by_file_group_is_so(
    name: str, key_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large_from(monkeypatch, key_bytes)
    tag, stated, true = KeyLookupIndex.tag, [], []

    def noted(self: KeyLookupIndex, rows: Frame, lookup: Lookup) -> Tagged:
        tagged = tag(self, rows, lookup)
        if tagged.counts is not None:
            stated.append(dict(tagged.counts))
            true.append(count_groups(lookup.engine, tagged.rows))
        return tagged

    monkeypatch.setattr(KeyLookupIndex, "tag", noted)
    play(CASES[name], LocalStorage(str(tmp_path)), RemoteEngine())

    assert stated == true
    assert stated or name == "simple", "the large road counts rows where log files may tell two places of a key apart"


def hit(key: str, place: str, alive: bool) -> dict[str, object]:
    return {RECORD_KEY: key, PARTITION_PATH: "p", LOCATION: place, "_pyhudi_alive": alive}


@pytest.mark.thorough
def test_of_several_places_those_count_where_the_key_is_alive_and_a_single_one_always() -> None:
    hits = [
        *(hit("one, dead", "A", False), hit("one, alive", "A", False), hit("one, alive", "A", True)),
        *(hit("two, one alive", "A", False), hit("two, one alive", "B", False), hit("two, one alive", "B", True)),
        *(hit("two, dead", "A", False), hit("two, dead", "B", False)),
        *(hit("two, alive", "A", True), hit("two, alive", "B", True), hit("two, alive", "B", True)),
    ]
    batches = pa.Table.from_pylist(hits).to_batches(max_chunksize=3)

    found = pa.Table.from_batches(PlacesThatCount()(TaskContext(0, 0, 0), iter(batches)))

    places = sorted((row[RECORD_KEY], row[LOCATION]) for row in found.to_pylist())
    assert places == [
        ("one, alive", "A"),
        ("one, dead", "A"),
        ("two, alive", "A"),
        ("two, alive", "B"),
        ("two, one alive", "B"),
    ]
