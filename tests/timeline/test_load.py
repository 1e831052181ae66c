"""Loading timelines: golden tables have the instants that their makers recorded."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import StorageError
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.table_config import NewTable, TableConfig, new_table_properties
from pyhudi.storage import MemoryStorage
from pyhudi.timeline.listing import is_complete, list_instant_files, load_timeline, time_of, timeline_of
from pyhudi.timeline.table_properties import load_table_config
from tests.support.storages.torn import TornStorage

Timelines = Callable[[], Iterator[tuple[str, MemoryStorage, dict[str, Any]]]]
GoldenTimeline = Callable[[str, str], tuple[MemoryStorage, dict[str, Any]]]

T, C = "20250713010535797", "20250713010536405"
LATER = "20250713010537000"
# "-> commit T (completed C), rollback T" and "-> T_C.commit, T.deltacommit"
_WORDS = re.compile(r"(\w+) (\d{17})(?: \(completed (\d{17})\))?")
_NAMES = re.compile(r"\b(\d{17})(?:_(\d{17}))?\.([a-z]+)\b(?!\.)")
# What a later step took away: rolled back, restored over, its completed file removed.
_TAKEN_AWAY = re.compile(r"(?:gone: |rollback of |rollback_to_instant\(.*?|removed )(.*)")
_ARCHIVED = ("history_", "mdt_compacted_", "upgrade_")


def expected_of(step: str) -> set[tuple[str, str, str]]:
    """(action, requested time, completion time or "") of the completed instants that a step says it made."""
    made = step.rpartition("-> ")[2] if "-> " in step else ""
    if "FAILED" in step or "failed in pre-commit" in step:
        return set()
    words = {(action, t, c) for action, t, c in _WORDS.findall(made)}
    return words or {(action, t, c or "") for t, c, action in _NAMES.findall(made)}


def taken_away(step: str) -> set[str]:
    """Requested times that a step's words name as gone."""
    named = " ".join(_TAKEN_AWAY.findall(step.replace(" -> ", "\n")))
    return set(re.findall(r"\b(\d{17})(?=_|\.|'|$|\s)", named))


def test_golden_timelines_hold_what_their_steps_made(golden_timelines: Timelines) -> None:
    compared, wrong = 0, {}
    for name, storage, description in golden_timelines():
        config = load_table_config(storage)
        gone = set().union(*(taken_away(step) for step in description["steps"]))
        made = set().union(*(expected_of(step) for step in description["steps"]))
        expected = {instant for instant in made if instant[1] not in gone}
        found = {
            (i.action.value, i.requested_time, i.completion_time or "")
            for i in load_timeline(storage, config).completed()
        }
        if config.layout_version == 1:  # no completion times in names
            expected, found = ({(action, t, "") for action, t, _ in either} for either in (expected, found))
        table = name.partition("/")[2]
        missing = set() if table.startswith(_ARCHIVED) else expected - found
        # The steps of these families name everything that happened.
        surplus = found - expected if table.startswith(("keys_", "types_", "cow_", "evolution_")) else set()
        compared += bool(expected)
        if missing or surplus:
            wrong[name] = (sorted(missing), sorted(surplus))
    assert wrong == {}
    assert compared > 150


def test_pending_instants_of_a_failed_writer_are_pending(golden_timeline: GoldenTimeline) -> None:
    for version in ("0.15.0", "1.0.2", "1.2.0"):
        storage, _ = golden_timeline(version, "state_failed_writer")

        timeline = load_timeline(storage, load_table_config(storage))

        (failed,) = timeline.pending()
        assert (failed.action, failed.state) == (ActionKind.COMMIT, State.INFLIGHT)
        assert not timeline.is_visible(failed.requested_time)
        assert len(timeline.commits()) == 2


def test_pending_compaction_and_clustering_are_known_in_both_layouts(golden_timeline: GoldenTimeline) -> None:
    expected = {"0.15.0": ActionKind.REPLACECOMMIT, "1.2.0": ActionKind.CLUSTERING}
    for version, clustering in expected.items():
        found = []
        for name in ("g2_compaction_pending", "g2_clustering_pending"):
            storage, _ = golden_timeline(version, name)
            found += [instant.action for instant in load_timeline(storage, load_table_config(storage)).pending()]
        assert found == [ActionKind.COMPACTION, clustering]


def test_a_savepoint_shares_the_time_of_its_commit(golden_timeline: GoldenTimeline) -> None:
    for version in ("0.15.0", "1.0.2", "1.2.0"):
        storage, _ = golden_timeline(version, "state_savepoint_and_rollback")

        timeline = load_timeline(storage, load_table_config(storage))

        (savepoint,) = timeline.of([ActionKind.SAVEPOINT])
        assert savepoint.is_completed
        commit = timeline.find(savepoint.requested_time)
        assert commit is not None
        assert commit.action is ActionKind.COMMIT


def config(version: int, timezone_name: str = "UTC") -> TableConfig:
    return TableConfig(new_table_properties(NewTable("t", table_version=version, timezone=timezone_name)))


def test_the_highest_state_wins() -> None:
    storage = MemoryStorage()
    for name in (f"{T}.commit.requested", f"{T}.inflight", f"{T}_{C}.commit"):
        storage.write(f".hoodie/timeline/{name}", b"")

    assert load_timeline(storage, config(9)).instants == (Instant(T, ActionKind.COMMIT, State.COMPLETED, C),)


def test_a_completed_compaction_is_one_instant() -> None:
    storage = MemoryStorage()
    for name in (f"{T}.compaction.requested", f"{T}.compaction.inflight", f"{T}_{C}.commit"):
        storage.write(f".hoodie/timeline/{name}", b"")

    assert load_timeline(storage, config(9)).instants == (Instant(T, ActionKind.COMMIT, State.COMPLETED, C),)


@pytest.mark.parametrize(("version", "folder"), [(6, ".hoodie"), (9, ".hoodie/timeline")])
def test_a_file_without_completion_time_completed_when_it_was_modified(version: int, folder: str) -> None:
    storage = MemoryStorage()
    storage.write(f"{folder}/{T}.commit", b"")
    moment = datetime(2025, 7, 13, 1, 5, 36, 405_000, tzinfo=timezone.utc)
    storage.set_modified(f"{folder}/{T}.commit", round(moment.timestamp() * 1000))

    assert load_timeline(storage, config(version)).instants[0].completion_time == C


@pytest.mark.parametrize(
    ("modified_ms", "time"),
    [
        (0, "19700101000000000"),
        (1, "19700101000000001"),
        (-1, "19700101000000000"),
        (1_760_000_000_999, "20251009085320999"),
        (253_339_142_400_000, "99971231000000000"),
        (1 << 62, "99981230000000000"),
    ],
)
def test_a_modification_time_is_an_instant_time_to_the_millisecond_whatever_it_is(modified_ms: int, time: str) -> None:
    assert time_of(modified_ms, timezone.utc) == time


def test_a_missing_folder_is_an_empty_timeline() -> None:
    assert load_timeline(MemoryStorage(), config(9)).instants == ()


def test_what_else_lies_in_the_folder_is_passed_over() -> None:
    storage = MemoryStorage()
    for path in (
        "history/manifest_1",
        f".{T}.commit.crc",
        "hoodie.properties",
        f"{T}.schemacommit",
        f"{T}.commit.requested/x",
    ):
        storage.write(f".hoodie/timeline/{path}", b"")

    assert load_timeline(storage, config(9)).instants == ()


@given(
    commits=st.integers(0, 6),
    changes=st.lists(st.lists(st.sampled_from(["commit", "archive"]), max_size=5), max_size=4),
    chance=st.randoms(use_true_random=False),
)
def test_changes_that_fall_into_a_listing_give_a_state_that_was(
    commits: int, changes: list[list[str]], chance: random.Random
) -> None:
    storage, table = MemoryStorage(), config(9)
    states: list[tuple[Instant, ...]] = []
    committed, archived = itertools.count(), itertools.count()

    def change(kind: str) -> None:
        number = next(committed if kind == "commit" else archived)
        path = f".hoodie/timeline/{int(T) + number}_{int(C) + number}.commit"
        storage.write(path, b"") if kind == "commit" else storage.delete(path)
        states.append(load_timeline(storage, table).instants)

    def change_all(kinds: list[str]) -> None:
        for kind in kinds:
            change(kind)

    change_all(["commit"] * (commits + sum(kinds.count("archive") for kinds in changes)))
    torn = TornStorage(
        storage,
        ".hoodie/timeline",
        [partial(change_all, kinds) for kinds in changes],
        lambda names: chance.sample(names, len(names)),
    )
    states.append(load_timeline(storage, table).instants)

    assert load_timeline(torn, table).instants in states


def test_a_timeline_whose_only_instant_is_archived_while_the_next_completes_is_never_empty() -> None:
    storage, table = MemoryStorage(), config(9)
    old, new = (f".hoodie/timeline/{int(T) + n}_{int(C) + n}.commit" for n in (0, 1))
    storage.write(old, b"")

    def commit_and_archive() -> None:
        storage.write(new, b"")
        storage.delete(old)

    # The newer name is looked at before the change, the older one after it.
    torn = TornStorage(storage, ".hoodie/timeline", [commit_and_archive], lambda names: names[::-1])

    assert [i.requested_time for i in load_timeline(torn, table).instants] == [str(int(T) + 1)]


def test_a_timeline_that_never_keeps_still_is_an_error() -> None:
    storage = MemoryStorage()
    changes = [lambda n=n: storage.write(f".hoodie/timeline/{n:04}", b"") for n in range(1000)]

    with pytest.raises(StorageError, match=r"\.hoodie/timeline changed during each of 100 listings"):
        load_timeline(TornStorage(storage, ".hoodie/timeline", changes), config(9))


@pytest.mark.parametrize(
    ("names", "complete"),
    [
        ([f"{T}_{C}.commit", f"{T}.commit.requested"], True),
        ([f"{T}_{C}.commit"], False),
        ([f"{T}_{C}.commit", f"{C}.deltacommit.requested"], False),
        ([f"{T}_{C}.commit", f"{T}.commit.requested", f"{C}_{LATER}.deltacommit"], False),
        ([f"{T}.commit.requested"], False),
        ([], False),
    ],
)
def test_instants_may_be_on_their_way_to_another_folder_unless_every_commit_has_its_requested_file(
    names: list[str], complete: bool
) -> None:
    storage = MemoryStorage()
    for name in names:
        storage.write(f".hoodie/timeline/{name}", b"")
    entries = list_instant_files(storage, config(9))

    assert is_complete(timeline_of(entries, config(9)), [entry.name for entry in entries]) is complete
