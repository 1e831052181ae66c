"""What the history keeps of every kind of action: the bodies of its files, in Hudi's fields."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from pyhudi.formats.timeline.instant_files import decode_avro_record, decode_commit
from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.services.clean.cleaning import clean
from pyhudi.timeline.archived_timeline import archive_log, lsm_history
from tests.support.tables.archived import archived
from tests.support.tables.small import TestTable
from tests.support.tables.undone import (
    clustering,
    compact,
    delete,
    log_compact,
    merge_on_read,
    overwrite,
    rolled_back,
    served,
    upsert,
)
from tests.support.tables.versioned import take_to

pytestmark = pytest.mark.filterwarnings("ignore:.*is not above hoodie.clean.commits.retained.*")
NOT_BEFORE_8 = {"missingSchedulePartitions"}  # of a plan
States = dict[State, tuple[ActionKind, bytes]]


def with_every_action(version: str) -> TestTable:
    """Deltacommits, compaction, log compaction, overwrite, clustering, rollback and cleans."""
    table = merge_on_read(version)
    for step in (upsert, upsert, delete, compact, upsert, upsert, log_compact, overwrite, upsert, upsert, clustering):
        step(table)
    upsert(table)
    rolled_back(table)
    for _ in range(3):
        upsert(table)
        compact(table)
        served(table, partial(clean), clean_commits_retained="1")
    for _ in range(3):
        upsert(table)
    return table


def states_of(table: TestTable) -> dict[Instant, States]:
    """The bodies of all states of all completed instants of the active timeline."""
    meta = table.meta
    folder = {entry.name: entry.path for entry in table.storage.list(meta.config.timeline_path)}
    found: dict[Instant, States] = {}
    for instant in meta.timeline.completed():
        reader = meta.reader
        states: States = {State.COMPLETED: (instant.action, reader.read_body(instant, State.COMPLETED))}
        for state in (State.REQUESTED, State.INFLIGHT):
            pending = [
                n for n in folder if n.startswith(f"{instant.requested_time}.") and n.endswith(state.name.lower())
            ]
            word = pending[0].split(".")[1]
            action = ActionKind.COMMIT if word == "inflight" else ActionKind(word)
            states[state] = action, table.storage.read(folder[pending[0]])
        found[instant] = states
    return found


@pytest.mark.parametrize("version", ["8", "9"])
def test_the_merge_tree_keeps_the_bytes_of_results_and_plans(version: str) -> None:
    table = with_every_action(version)
    before = states_of(table)
    gone = archived(table, compact_inline_max_delta_commits="1").archived
    kinds = {before[i][State.REQUESTED][0] for i in gone}
    assert kinds >= {
        ActionKind.DELTACOMMIT, ActionKind.COMPACTION, ActionKind.LOGCOMPACTION, ActionKind.REPLACECOMMIT,
        ActionKind.CLUSTERING, ActionKind.CLEAN, ActionKind.ROLLBACK,
    }  # fmt: skip

    kept = {i.instant: i for i in lsm_history(table.storage, table.meta.config).instants()}

    assert set(kept) == set(gone)
    for instant, states in before.items():
        if instant not in kept:
            continue
        assert kept[instant].metadata == states[State.COMPLETED][1]
        action, plan = states[State.REQUESTED]
        if action is ActionKind.REPLACECOMMIT:  # Hudi keeps the profile instead
            plan = states[State.INFLIGHT][1] or plan
        has_plan = action not in (ActionKind.COMMIT, ActionKind.DELTACOMMIT, ActionKind.ROLLBACK)
        assert kept[instant].plan == (plan if has_plan else None), action


FIELDS = {
    (ActionKind.COMPACTION, State.REQUESTED): "hoodieCompactionPlan",
    (ActionKind.LOGCOMPACTION, State.REQUESTED): "hoodieCompactionPlan",
    (ActionKind.CLEAN, State.REQUESTED): "hoodieCleanerPlan",
    (ActionKind.CLEAN, State.INFLIGHT): "hoodieCleanerPlan",
    (ActionKind.CLEAN, State.COMPLETED): "hoodieCleanMetadata",
    (ActionKind.ROLLBACK, State.COMPLETED): "hoodieRollbackMetadata",
    (ActionKind.REPLACECOMMIT, State.REQUESTED): "hoodieRequestedReplaceMetadata",
    (ActionKind.REPLACECOMMIT, State.INFLIGHT): "HoodieInflightReplaceMetadata",
    (ActionKind.REPLACECOMMIT, State.COMPLETED): "hoodieReplaceCommitMetadata",
    **{(a, s): "hoodieCommitMetadata" for a in (ActionKind.COMMIT, ActionKind.DELTACOMMIT) for s in State},
}


@pytest.mark.thorough
def test_the_archive_of_version_6_keeps_every_state_in_the_field_of_its_kind() -> None:
    table = with_every_action("6")
    before = states_of(table)
    gone = set(archived(table, compact_inline_max_delta_commits="1").archived)
    assert {i.action for i in gone} >= {ActionKind.DELTACOMMIT, ActionKind.COMMIT, ActionKind.REPLACECOMMIT}

    kept = {i.instant: i.entries for i in archive_log(table.storage, table.meta.config).instants()}

    assert set(kept) == gone
    for instant in gone:
        for state, (action, body) in before[instant].items():
            entry = kept[instant][state.name]
            filled = {name for name, value in entry.items() if value is not None and name.lower().startswith("hoodie")}
            always = (action, state) in FIELDS and action in (ActionKind.COMMIT, ActionKind.DELTACOMMIT)
            assert (entry["actionType"], entry["commitTime"]) == (action.value, instant.requested_time)
            assert filled == ({FIELDS[action, state]} if (body and (action, state) in FIELDS) or always else set())
            if filled:
                check(entry[filled.pop()], body, action)


def check(kept: dict[str, Any], body: bytes, action: ActionKind) -> None:
    if "partitionToWriteStats" in kept:
        commit = decode_commit(body)
        assert {p: [s["fileId"] for s in stats] for p, stats in kept["partitionToWriteStats"].items()} == {
            p: [s.file_id for s in stats] for p, stats in commit.partition_to_write_stats.items()
        }
        assert kept["extraMetadata"] == {**commit.extra_metadata, "ROLLING_STAT": ""}
        assert kept["operationType"] == commit.operation_type
    elif action is not ActionKind.REPLACECOMMIT:
        whole = decode_avro_record(body)
        assert {name: whole.get(name) for name in kept} == kept


@pytest.mark.thorough
def test_in_the_archive_of_a_table_that_went_down_to_version_6_services_are_pending_under_their_own_names() -> None:
    table = with_every_action("9")
    gone = archived(table, compact_inline_max_delta_commits="1").archived
    take_to(table.storage, 6)
    kept = {i.instant: i.entries for i in archive_log(table.storage, table.meta.config).instants()}

    services = {ActionKind.COMPACTION: "commit", ActionKind.LOGCOMPACTION: "deltacommit"}
    pending = {(i.action, entries["REQUESTED"]["actionType"]) for i, entries in kept.items() if "REQUESTED" in entries}
    completed = {(i.action.value, entries["COMPLETED"]["actionType"]) for i, entries in kept.items()}
    assert {i.requested_time for i in kept} == {i.requested_time for i in gone}
    assert pending >= {(ActionKind(done), service.value) for service, done in services.items()}
    assert all(action == expected for action, expected in completed)


@pytest.mark.thorough
def test_results_and_plans_of_archived_instants_survive_the_way_down_to_version_6_and_up_again() -> None:
    table = with_every_action("9")
    archived(table, compact_inline_max_delta_commits="1")
    before = {i.instant.requested_time: i for i in lsm_history(table.storage, table.meta.config).instants()}
    take_to(table.storage, 6)
    take_to(table.storage, 9)
    after = {i.instant.requested_time: i for i in lsm_history(table.storage, table.meta.config).instants()}

    assert before.keys() <= after.keys()
    for time, kept in before.items():
        action = after[time].instant.action
        if action.is_commit:
            was, is_now = decode_commit(kept.metadata or b""), decode_commit(after[time].metadata or b"")
            assert is_now.operation_type == was.operation_type
            assert sorted(s.path or "" for s in is_now.stats()) == sorted(s.path or "" for s in was.stats())
        else:
            was_body, body = decode_avro_record(kept.metadata or b""), decode_avro_record(after[time].metadata or b"")
            assert {name: body.get(name) for name in was_body} == was_body, action
        if kept.plan is not None and action in (ActionKind.COMMIT, ActionKind.DELTACOMMIT, ActionKind.CLEAN):
            was_plan, plan = decode_avro_record(kept.plan), decode_avro_record(after[time].plan or b"")
            assert {name: plan.get(name) for name in was_plan if name not in NOT_BEFORE_8} == {
                name: value for name, value in was_plan.items() if name not in NOT_BEFORE_8
            }, action
