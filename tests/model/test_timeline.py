"""Questions to a timeline."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.timeline import Timeline


def commit(time: str, state: State = State.COMPLETED, action: ActionKind = ActionKind.COMMIT) -> Instant:
    return Instant(time, action, state, f"{time}9" if state is State.COMPLETED else None)


def test_instants_are_sorted_by_requested_time() -> None:
    timeline = Timeline((commit("3"), commit("1"), commit("2")))

    assert [i.requested_time for i in timeline] == ["1", "2", "3"]


def test_commits_are_completed_writes_only() -> None:
    timeline = Timeline(
        (
            commit("1"),
            commit("2", action=ActionKind.CLEAN),
            commit("3", action=ActionKind.DELTACOMMIT),
            commit("4", State.INFLIGHT),
            commit("5", action=ActionKind.REPLACECOMMIT),
            commit("6", action=ActionKind.ROLLBACK),
            commit("7", State.REQUESTED, ActionKind.COMPACTION),
        )
    )

    assert [i.requested_time for i in timeline.commits()] == ["1", "3", "5"]
    assert [i.requested_time for i in timeline.pending()] == ["4", "7"]
    last = timeline.last_commit()
    assert last is not None
    assert last.requested_time == "5"


def test_files_of_completed_writes_are_visible_and_those_of_pending_ones_are_not() -> None:
    timeline = Timeline((commit("1"), commit("2", State.INFLIGHT), commit("3")))

    assert [time for time in "1234" if timeline.is_visible(time)] == ["1", "3"]


def test_files_older_than_the_active_timeline_are_visible_because_they_were_archived() -> None:
    assert Timeline((commit("5"),)).is_visible("4")


def test_a_pending_write_before_every_commit_stays_invisible() -> None:
    timeline = Timeline((commit("1", State.INFLIGHT), commit("2")))

    assert not timeline.is_visible("1")
    assert timeline.is_visible("0")


def test_nothing_is_visible_on_an_empty_timeline() -> None:
    assert not Timeline().is_visible("1")


def test_commits_that_a_savepoint_kept_do_not_hide_what_was_archived_after_them() -> None:
    savepoint = Instant("1", ActionKind.SAVEPOINT, State.COMPLETED, "19")
    timeline = Timeline((commit("1"), savepoint, commit("6")))

    assert [time for time in "13567" if timeline.is_visible(time)] == ["1", "3", "5", "6"]


def test_a_cut_timeline_still_knows_what_was_archived() -> None:
    timeline = Timeline((commit("5"), commit("6"))).up_to("4")

    assert timeline.is_visible("3")
    assert not timeline.is_visible("5")


def test_the_latest_time_counts_completion_times() -> None:
    timeline = Timeline((Instant("10", ActionKind.COMMIT, State.COMPLETED, "40"), commit("30", State.INFLIGHT)))

    assert timeline.latest_time == "40"
    assert Timeline().latest_time is None


def test_find_prefers_the_write_over_its_savepoint() -> None:
    savepoint = Instant("1", ActionKind.SAVEPOINT, State.COMPLETED, "19")
    timeline = Timeline((savepoint, commit("1", action=ActionKind.REPLACECOMMIT)))

    assert timeline.find("1") == commit("1", action=ActionKind.REPLACECOMMIT)
    assert timeline.find("1", ActionKind.SAVEPOINT) == savepoint
    assert timeline.find("2") is None


def test_a_pending_compaction_is_found_as_the_commit_that_it_becomes() -> None:
    compaction = commit("1", State.INFLIGHT, ActionKind.COMPACTION)

    assert Timeline((compaction,)).find("1", ActionKind.COMMIT) == compaction


@given(st.lists(st.tuples(st.integers(10, 30), st.sampled_from(list(State))), unique_by=lambda pair: pair[0]))
def test_cutting_never_makes_a_pending_write_visible(spec: list[tuple[int, State]]) -> None:
    timeline = Timeline(tuple(commit(str(time), state) for time, state in spec))

    for cut in range(9, 32):
        for time, state in spec:
            if state is not State.COMPLETED:
                assert not timeline.up_to(str(cut)).is_visible(str(time))
