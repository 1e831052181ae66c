"""Which instants archiving may take: held against what readers and restores need."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.model.instant import ActionKind, Instant, State
from pyhudi.model.timeline import Timeline
from pyhudi.services.archive.planning import ArchiveLimit, select_instants
from tests.support.sweeps import examples

KINDS = st.sampled_from(["commit", "commit", "commit", "clean", "rollback", "pending", "savepoint"])


@settings(max_examples=examples(150), deadline=None)
@given(
    kinds=st.lists(KINDS, max_size=25),
    kept=st.integers(1, 6),
    limit=st.none() | st.integers(0, 30),
    beyond=st.booleans(),
    by_number=st.booleans(),
)
def test_what_leaves_is_the_oldest_and_nothing_that_is_needed(
    kinds: list[str], kept: int, limit: int | None, beyond: bool, by_number: bool
) -> None:
    instants: list[Instant] = []
    saved: set[str] = set()
    for n, kind in enumerate(kinds):
        time = f"{100 + n}"
        if kind == "savepoint":
            commits = [i for i in instants if i.action is ActionKind.COMMIT and i.is_completed]
            if commits:
                saved.add(commits[-1].requested_time)
        elif kind == "pending":
            instants.append(Instant(time, ActionKind.COMMIT, State.INFLIGHT))
        else:
            instants.append(Instant(time, ActionKind(kind), State.COMPLETED, time + "5"))
    limits = [ArchiveLimit(f"{100 + limit}", "why")] if limit is not None else []
    timeline = Timeline((*instants, *(Instant(t, ActionKind.SAVEPOINT, State.COMPLETED, "999") for t in saved)))

    plan = select_instants(
        timeline,
        kept,
        limits,
        frozenset(saved) if beyond else frozenset(),
        frozenset(timeline.of([ActionKind.CLEAN]).instants[-1:]),
        (kept, kept + 1) if by_number else None,
    )

    left = Timeline(tuple(i for i in timeline if i not in plan.instants))
    commits_left = left.commits().instants
    spared = saved if beyond else set()
    assert len([i for i in commits_left if i.requested_time not in spared]) >= min(
        kept, len([i for i in timeline.commits() if i.requested_time not in spared])
    )
    assert all(i.is_completed for i in plan.instants)
    assert all(limit is None or i.requested_time < f"{100 + limit}" for i in plan.instants)
    gone = [i for i in plan.instants if i.action is ActionKind.COMMIT]
    older = [i for i in commits_left if gone and i.requested_time < gone[-1].requested_time]
    assert {i.requested_time for i in older} <= spared  # what goes is the oldest
    assert not {i.requested_time for i in gone} & spared
    newest_clean = timeline.of([ActionKind.CLEAN]).instants[-1:]
    assert not set(newest_clean) & set(plan.instants)
    # Readers go on seeing the files of what left, and of nothing else.
    pending = [i for i in timeline if not i.is_completed]
    if not pending or not gone or gone[-1] < pending[0]:
        assert all(left.is_visible(i.requested_time) for i in timeline.commits()) or not commits_left
