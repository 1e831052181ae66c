"""The life of a metadata table against a model: whatever happens to the table, and wherever in the steps of an instant
a process fails or dies, every reader sees the rows of the last write that is complete.

The model is a dict of rows for each write. What is complete is read off the table's timeline; the metadata table must
never make a difference: to who lists by it, who looks for a key in its record index, who leaves files out by its
statistics, and who travels in time. As long as nothing is half done, it says of each file and row what is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pyhudi.actions.undo.restore import restore, roll_back
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import HudiError, StorageError
from pyhudi.metadata import apply_commit
from pyhudi.metadata.table import MetadataTable
from pyhudi.metadata.undo import is_log_compaction
from pyhudi.model.filenames import heartbeat_path
from pyhudi.model.instant import ActionKind
from pyhudi.model.options import WriteOptions
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches
from pyhudi.queries.validation import validate
from pyhudi.services.clean.cleaning import clean
from pyhudi.services.cluster.calls import cluster
from pyhudi.services.compact.compaction import COMPACTION
from pyhudi.services.index_building import build_waiting, schedule_index
from pyhudi.services.indexes import create_index, drop_index, index_request
from pyhudi.services.metadata_table import rebuild_metadata
from pyhudi.services.planned import call
from pyhudi.storage.clock import FixedClock
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.calls import serve
from tests.support.sweeps import examples
from tests.support.tables.small import TestTable

PARTITIONS = {"a": "x", "b": "x", "c": "y", "d": "z"}  # key → the partition that it is always in
KEYS = st.sampled_from(sorted(PARTITIONS))
STEPS = [step.__name__ for step in apply_commit.STEPS]
COMPLETED = "completed file"  # all steps are done, and the instant is not complete
DELTA_COMMITS_MAX = 2
OPTIONS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": str(DELTA_COMMITS_MAX),
    "hoodie.metadata.log.compaction.enable": "true",
    "hoodie.metadata.log.compaction.blocks.threshold": "3",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "1",
    "hoodie.metadata.global.record.level.index.max.filegroup.count": "1",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
}
EXPIRED_MS = 10 * 60_000  # more than a heartbeat may be late

Rows = Mapping[str, int]  # id → v
Act = Callable[[], object]
Change = Callable[[Rows], Rows]


def unchanged(before: Rows) -> Rows:
    """The rows after a service."""
    return before


class Life(RuleBasedStateMachine):
    """A table, and what its writes have left: `states` by instant time, in the order of the timeline."""

    @initialize(version=st.sampled_from(["6", "8", "9"]), kind=st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"]))
    def begin(self, version: str, kind: str) -> None:
        self.version, self.is_merge_on_read = int(version), kind == "MERGE_ON_READ"
        names = {"hoodie.write.table.version": version, "hoodie.datasource.write.table.type": kind}
        clock = FixedClock(1_760_000_000_000)
        self.table = TestTable(MemoryStorage(clock=clock), {**OPTIONS, **names}, clock, LocalEngine(1))
        self.clock, self.number = clock, 0
        self.states: dict[str, Rows] = {}
        self.is_whole, self.is_cleaned = True, False
        self.act(*self.upsert(["a", "c"]))

    # ---- what happens to the table ---------------------------------------------------------------------------------

    def upsert(self, keys: list[str]) -> tuple[Act, Change]:
        self.number += 1
        number = self.number
        rows = [(key, PARTITIONS[key], number, number) for key in keys]
        return partial(self.table.upsert, *rows), lambda before: {**before, **dict.fromkeys(keys, number)}

    def delete(self, key: str) -> tuple[Act, Change]:
        left: Change = lambda before: {other: v for other, v in before.items() if other != key}  # noqa: E731
        return partial(self.table.delete, (key, PARTITIONS[key])), left

    def served(self, service: Callable[..., Any], **options: str) -> tuple[Act, Change]:
        def run() -> object:
            given = self.table.options | {"hoodie." + name.replace("_", "."): text for name, text in options.items()}
            parsed = WriteOptions.parse(given, table=self.table.meta.config)
            return serve(self.table.storage, service, parsed, self.table.engine, clock=self.clock)

        return run, unchanged

    def action(self, name: str, keys: list[str], back: int) -> tuple[Act, Change]:
        complete = list(self.states)
        to = complete[max(0, len(complete) - 1 - back)] if complete else ""
        match name:
            case "upsert":
                return self.upsert(keys)
            case "delete":
                return self.delete(keys[0])
            case "rollback":
                return self.served(roll_back)
            case "restore":
                return self.served(partial(restore, to=to))
            case "clean":
                return self.served(clean, clean_commits_retained="1")
            case "cluster":
                return self.served(cluster, clustering_plan_strategy_sort_columns="ts")
            case "compact" if self.is_merge_on_read:
                return self.served(partial(call, COMPACTION), compact_inline_max_delta_commits="1")
        return self.upsert(keys)

    ACTIONS = st.sampled_from(
        ["upsert"] * 4 + ["delete", "rollback", "rollback", "restore", "restore", "clean", "cluster", "compact"]
    )

    @rule(name=ACTIONS, keys=st.lists(KEYS, min_size=1, max_size=2, unique=True), back=st.integers(1, 3))
    def acts(self, name: str, keys: list[str], back: int) -> None:
        self.is_cleaned |= name == "clean"
        self.act(*self.action(name, keys, back))

    @rule(
        name=ACTIONS,
        keys=st.lists(KEYS, min_size=1, max_size=2, unique=True),
        back=st.integers(1, 3),
        step=st.sampled_from([*STEPS, COMPLETED]),
        dies=st.booleans(),
    )
    def ends_early(self, name: str, keys: list[str], back: int, step: str, dies: bool) -> None:
        """A process fails, and puts right what it can, or it dies and can't."""
        self.is_cleaned |= name == "clean"
        with self.ending_at(step, dies):
            self.act(*self.action(name, keys, back), dies=dies)

    @rule(keys=st.lists(KEYS, min_size=1, max_size=2, unique=True), step=st.sampled_from([*STEPS, COMPLETED]))
    def neighbour(self, keys: list[str], step: str) -> None:
        """A writer of another machine that is dead, while its last heartbeat is fresh: its instant stays pending."""
        known = {i.requested_time for i in self.table.meta.timeline}
        with self.ending_at(step, dies=True):
            self.act(*self.upsert(keys), dies=True)
        for instant in self.table.meta.timeline.pending():
            if instant.requested_time not in known and instant.action.is_commit:
                self.table.storage.write(heartbeat_path(instant.requested_time), b"")  # of no process here

    @rule()
    def neighbours_expire(self) -> None:
        self.clock.advance(EXPIRED_MS)

    @rule(name=st.sampled_from(["column_stats", "bloom_filters"]))
    def index_is_made_or_dropped(self, name: str) -> None:
        listed = self.table.meta.config.metadata_partitions
        self.act(*self.served(partial(drop_index if name in listed else create_index, name=name)))

    @rule()
    def index_is_begun(self) -> None:
        if self.version >= 8:
            self.act(*self.served(partial(schedule_index, index=index_request("bloom_filters", (), None, None))))

    @rule()
    def indexes_are_built(self) -> None:
        self.act(*self.served(build_waiting))

    @rule()
    def metadata_table_is_rebuilt(self) -> None:
        self.act(*self.served(rebuild_metadata))

    def act(self, act: Act, change: Change, *, dies: bool = False) -> None:
        """Let it happen, and write down what the instants that are complete by now have left."""
        before = list(self.states)
        try:
            act()
            # A service leaves what others may still be at; the next write finishes it, or the next clean.
            pending = self.table.meta.timeline.pending()
            self.is_whole = not any(i.action.is_undoing or i.action is ActionKind.CLEAN for i in pending)
        except HudiError as error:  # it was refused, failed, or died
            event(type(error).__name__)
            self.is_whole &= not dies and not isinstance(error, StorageError)
        finally:
            self.table.memory.reset_faults()
        complete = [i.requested_time for i in self.table.meta.timeline.commits()]
        new = [time for time in complete if time not in before]
        assert len(new) <= 1 or change is unchanged, (before, complete)  # a service also executes plans that wait
        states = {time: self.states[time] for time in complete if time in before}
        last = states[list(states)[-1]] if states else {}
        self.states = {**states, **dict.fromkeys(new, change(last) if new else last)}

    @contextmanager
    def ending_at(self, name: str, dies: bool) -> Iterator[None]:
        """Whoever comes to this step fails there, or dies: no call of storage does anything any more."""

        def ends(at: apply_commit.Progress, step: Callable[..., apply_commit.Progress]) -> apply_commit.Progress:
            if name == COMPLETED:
                at = step(at)
            event(f"ends at {name}")
            self.table.memory.fail_at(1, "before", None if dies else StorageError)
            return at if name == COMPLETED else step(at)

        at_name = STEPS[-1] if name == COMPLETED else name
        steps = tuple(partial(ends, step=step) if step.__name__ == at_name else step for step in apply_commit.STEPS)
        with mock.patch.object(apply_commit, "STEPS", steps):
            yield

    # ---- what readers see ------------------------------------------------------------------------------------------

    def expected(self) -> Rows:
        return self.states[list(self.states)[-1]] if self.states else {}

    def seen(self, **query: Any) -> Rows:
        plan = plan_snapshot(self.table.meta, Query(**query))
        rows = pa.Table.from_batches(list(read_batches(plan, self.table.storage)), plan.schema)
        if not rows.num_rows:
            return {}
        ids = rows.column("id").to_pylist()
        assert len(set(ids)) == len(ids), ids
        return dict(zip(ids, rows.column("v").to_pylist(), strict=True))

    @invariant()
    def every_reader_sees_the_last_complete_write(self) -> None:
        if not self.states:
            return
        expected = self.expected()
        assert self.seen(use_metadata=False) == expected, "who lists folders"
        assert self.seen() == expected, "who lists by the metadata table"
        for key in PARTITIONS:
            found = {key: expected[key]} if key in expected else {}
            assert self.seen(where=("id", "=", key), unique_keys=True) == found, "who looks for a key"
        newer = {key: v for key, v in expected.items() if v >= self.number - 1}
        assert self.seen(where=("v", ">=", self.number - 1)) == newer, "who leaves files out"
        before = list(self.states)[-2:-1]
        if before and not self.is_cleaned:
            assert self.seen(as_of=before[0]) == self.states[before[0]], "who travels in time"

    @invariant()
    def the_metadata_table_is_right(self) -> None:
        if self.is_whole and MetadataTable.open(self.table.meta) is not None:
            assert validate(self.table.meta) == ()

    def teardown(self) -> None:
        """The next writer, when nobody is thought to be alive any more, leaves nothing half done."""
        if not hasattr(self, "table") or not self.states:
            return
        self.clock.advance(EXPIRED_MS)
        pending = self.table.meta.timeline.pending()
        if any(instant.action.is_replacing for instant in pending):
            self.act(*self.action("cluster", [], 1))  # a plan that waits refuses updates of its file groups
        if pending.of([ActionKind.CLEAN]).instants:
            self.act(*self.action("clean", [], 1))  # only a clean goes on with a clean
        for _ in range(DELTA_COMMITS_MAX + 1):
            self.act(*self.upsert(["b"]))
            assert self.is_whole
            assert self.expected()["b"] == self.number
        assert not self.table.meta.config.metadata_to_build
        self.every_reader_sees_the_last_complete_write()
        self.the_metadata_table_is_right()
        self.the_metadata_table_is_small()

    def the_metadata_table_is_small(self) -> None:
        """Its services have run, now that nothing is pending. Below version 8 a plan that waits, or a clean that died,
        puts its compaction off, as in Hudi.
        """
        table = MetadataTable.open(self.table.meta)
        assert table is not None
        if self.version < 8 and self.table.meta.timeline.pending().instants:
            return
        since = [i for i in table.meta.timeline.completed() if i.action is ActionKind.DELTACOMMIT]
        compaction = max(
            (i.completion_time or "" for i in table.meta.timeline.completed().of([ActionKind.COMMIT])), default=""
        )
        left = [i for i in since if (i.completion_time or "") > compaction and not is_log_compaction(table, i)]
        assert len(left) <= DELTA_COMMITS_MAX + 1, left


def lives(count: int, steps: int) -> settings:
    return settings(
        max_examples=count,
        stateful_step_count=steps,
        deadline=None,
        phases=[Phase.generate],  # a failure prints its steps; making it smaller takes minutes
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        report_multiple_bugs=False,
    )


pytestmark = pytest.mark.filterwarnings("ignore")


class TestLife(Life.TestCase):  # type: ignore[name-defined, misc]
    """A metadata table makes no difference to what readers see, whatever happens to it."""

    settings = lives(examples(18), 12)


@pytest.mark.slow
class TestLongLife(Life.TestCase):  # type: ignore[name-defined, misc]
    settings = lives(200, 40)
