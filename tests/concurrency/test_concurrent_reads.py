"""A read during whatever else happens to its table: it sees a state that the table had meanwhile, or says it came late.

Another process does all of an action, or a part of it, between any two storage calls of the read.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.errors import HudiError, StaleRead, TableError
from pyhudi.meta_client import MetaClient
from pyhudi.queries.count import count_rows
from pyhudi.queries.plan import plan_snapshot
from pyhudi.queries.query import Query
from pyhudi.queries.snapshot import read_batches
from pyhudi.storage import MemoryStorage
from tests.support.storages.film import Files, FilmedStorage, ShownStorage
from tests.support.tables.clustered import TYPES
from tests.support.tables.merge_on_read import VERSIONS
from tests.support.tables.small import SCHEMA
from tests.support.writers.dying import on_clone
from tests.support.writers.meanwhile import MEANWHILE, made

Answer = Any
_SOME = ("commits, clean", "clustering, clean", "dropped partition, clean", "rollback", "restore, commit")


@dataclass(frozen=True)
class Question:
    """A read. `warm`: of a process that has read the table before, so that it knows the bodies of its commits."""

    query_type: str = "snapshot"
    as_of: str | None = None
    counts: bool = False
    warm: bool = False

    def ask(self, storage: MemoryStorage, before: MetaClient | None = None) -> Answer:
        meta = MetaClient.load(storage)
        if before is not None and meta.config.timeline_path == before.config.timeline_path:
            meta.commits._cache.update(before.commits._cache)
        plan = plan_snapshot(meta, Query(as_of=self.as_of, query_type=self.query_type))
        if self.counts:
            return count_rows(plan, storage)
        found = pa.Table.from_batches(list(read_batches(plan, storage)), plan.schema)
        return sorted(map(repr, found.select(SCHEMA.names).to_pylist())) if found.num_rows else []


@dataclass
class Film:
    """All states of a table's files while something happens, and what a query finds in each when nothing does."""

    frames: list[Files]
    query: Question
    answers: dict[int, Answer] = field(default_factory=dict)

    def answer(self, frame: int) -> Answer:
        if frame not in self.answers:
            try:
                self.answers[frame] = self.query.ask(ShownStorage(self.frames, lambda _: frame))
            except TableError as error:
                self.answers[frame] = type(error)
        return self.answers[frame]

    @cached_property
    def before(self) -> MetaClient | None:
        if not self.query.warm:
            return None
        meta = MetaClient.load(ShownStorage(self.frames, lambda _: 0))
        for instant in meta.timeline.commits():
            meta.commits.metadata(instant)
        return meta

    def calls(self) -> int:
        """Storage calls of the query when nothing happens."""
        storage = ShownStorage(self.frames, lambda _: 0)
        self.query.ask(storage, self.before)
        return storage.turns

    def check(self, frame_of: Callable[[int], int], where: str) -> None:
        """The query, shown these frames, finds what is in one of them or says that it came too late."""
        storage = ShownStorage(self.frames, frame_of)
        try:
            found = self.query.ask(storage, self.before)
        except StaleRead:
            return
        except TableError as error:
            found = type(error)
        except HudiError as error:
            raise AssertionError(f"{where}: {error}") from error
        first, last = frame_of(1), frame_of(storage.turns)
        ends_first = sorted(range(first, last + 1), key=lambda frame: min(frame - first, last - frame))
        assert any(self.answer(frame) == found for frame in ends_first), f"{where}: found {found}"


def film(version: str, table_type: str, meanwhile: str, query: Question) -> Film:
    table = made(version, table_type)
    if query.as_of is not None:
        query = Question(query.query_type, table.meta.timeline.commits().instants[int(query.as_of)].requested_time)
    filmed = on_clone(table)
    filmed.storage = camera = FilmedStorage(table.memory)
    for step in MEANWHILE[meanwhile]:
        step(filmed)
    return Film(camera.frames, query)


def check_between_calls(version: str, table_type: str, meanwhile: str, query: Question) -> None:
    shown = film(version, table_type, meanwhile, query)
    last = len(shown.frames) - 1
    for n in range(2, shown.calls() + 1):
        shown.check(lambda call, n=n: last if call >= n else 0, f"all of it before call {n}")


def check_during_calls(version: str, table_type: str, meanwhile: str, query: Question, tries: int) -> None:
    shown = film(version, table_type, meanwhile, query)
    calls, chance = shown.calls(), random.Random(f"{version} {table_type} {meanwhile}")
    for number in range(tries):
        pace = chance.choice((2, 4, calls, 4 * calls))
        cuts = sorted(chance.choices(range(len(shown.frames)), k=pace))
        shown.check(lambda call, cuts=cuts: cuts[min(call - 1, len(cuts) - 1)], f"try {number}, frames {cuts}")


@pytest.mark.thorough
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize(("version", "table_type"), [("9", "COPY_ON_WRITE"), ("6", "MERGE_ON_READ")])
@pytest.mark.parametrize("meanwhile", _SOME)
def test_all_of_an_action_between_two_calls(meanwhile: str, version: str, table_type: str, warm: bool) -> None:
    check_between_calls(version, table_type, meanwhile, Question(warm=warm))


@pytest.mark.parametrize(
    "query", [Question("read_optimized"), Question(as_of="1"), Question(as_of="-1"), Question(counts=True)]
)
@pytest.mark.parametrize("meanwhile", ["commits, compaction, clean", "restore, commit"])
def test_other_queries(meanwhile: str, query: Question) -> None:
    check_between_calls("8", "MERGE_ON_READ", meanwhile, query)


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("meanwhile", ["commits, clean, archive", "restore", "other version", "other version and back"])
def test_an_action_during_the_calls(meanwhile: str, version: str) -> None:
    check_during_calls(version, "COPY_ON_WRITE", meanwhile, Question(warm=True), 40)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_everything_during_every_read(meanwhile: str, version: str, table_type: str) -> None:
    for query in (
        Question(),
        Question(warm=True),
        Question("read_optimized"),
        Question(as_of="1"),
        Question(as_of="-1"),
    ):
        check_between_calls(version, table_type, meanwhile, query)
        check_during_calls(version, table_type, meanwhile, query, 60)
