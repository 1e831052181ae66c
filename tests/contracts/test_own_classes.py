"""A user's own lock provider and index: named in full, with options that their class declares."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import pytest

from pyhudi.errors import ConfigError, LockTimeout
from pyhudi.locks import LockProvider, hold, open_lock
from pyhudi.model.options import HudiOptionWarning, ReadOptions, WriteOptions
from pyhudi.model.options.declare import option
from pyhudi.storage import MemoryStorage
from tests.support.tables.small import TestTable
from tests.support.values.own_classes import INDEX, LOCK, SEEN, NamedLock

PROVIDER = "hoodie.write.lock.provider"
NAME = "hoodie.write.lock.named.name"
TRIES = "hoodie.write.lock.named.tries"
NOTE = "hoodie.index.watched.note"
MANY = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL", PROVIDER: LOCK}


class NoOptions:
    options_class = int


@dataclass(frozen=True)
class Taken:
    files: int = option("hoodie.parquet.max.file.size", 1, "Ours already.")


class TakesOurs:
    options_class = Taken


@dataclass(frozen=True)
class Unused:
    client: str = option("hoodie.bootstrap.parallelism", "-", "Known and without effect, but for this class.")


class TakesUnused:
    options_class = Unused


@pytest.fixture(autouse=True)
def _warnings_are_errors() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", HudiOptionWarning)
        yield


def lock_of(**options: str) -> NamedLock:
    given = {PROVIDER: LOCK, **{f"hoodie.write.lock.named.{name}": text for name, text in options.items()}}
    lock = open_lock(WriteOptions.parse(given).lock, MemoryStorage())
    assert isinstance(lock, NamedLock)
    return lock


def test_a_lock_provider_of_ones_own_reads_its_options() -> None:
    lock = lock_of(name="mine", tries="5")

    assert isinstance(lock, LockProvider)
    assert (lock.options.name, lock.options.tries) == ("mine", 5)
    assert lock_of().options.name == "one for all"


@pytest.mark.thorough
def test_a_lock_provider_of_ones_own_excludes_others() -> None:
    with hold(lock_of(name="ours"), 0):
        with pytest.raises(LockTimeout, match="who knows the name 'ours'"), hold(lock_of(name="ours"), 0.01):
            pass
        with hold(lock_of(name="theirs"), 0):
            pass


@pytest.mark.thorough
def test_writes_take_the_lock_of_ones_own() -> None:
    table = TestTable(options={**MANY, NAME: "table"}, failed_writes_policy="LAZY")
    table.upsert(("a", "x", 1, 10))
    table.options = {**table.options, "hoodie.write.lock.wait_time_ms": "10"}

    with hold(lock_of(name="table"), 0), pytest.raises(LockTimeout):
        table.upsert(("b", "x", 1, 20))
    table.upsert(("c", "x", 1, 30))

    assert table.rows() == [("a", "x", 1, 10), ("c", "x", 1, 30)]


@pytest.mark.thorough
@pytest.mark.parametrize("key", ["hoodie.index.type", "hoodie.index.class"])
def test_an_index_of_ones_own_finds_keys_and_reads_its_options(key: str) -> None:
    SEEN.clear()
    table = TestTable(options={key: INDEX, NOTE: "looked"})
    table.upsert(("a", "x", 1, 10))
    table.upsert(("a", "y", 2, 11))

    assert table.rows() == [("a", "y", 2, 11)], "it is global, as its class says"
    assert SEEN == ["looked", "looked"]


@pytest.mark.thorough
def test_options_of_a_class_are_checked_as_ours_are() -> None:
    with pytest.raises(ConfigError, match=f"{TRIES}: expected at least 1, found 0"):
        lock_of(tries="0")
    with pytest.raises(ConfigError, match=f"{TRIES}: expected one integer, found 'many'"):
        lock_of(tries="many")
    with pytest.raises(HudiOptionWarning, match=f"'hoodie.write.lock.named.nmae' is ignored. Did you mean '{NAME}'"):
        lock_of(nmae="mine")


@pytest.mark.thorough
def test_options_of_a_class_are_unknown_where_it_is_not_named() -> None:
    with pytest.raises(HudiOptionWarning, match=f"Unknown option '{NAME}'"):
        WriteOptions.parse({NAME: "mine", PROVIDER: "IN_PROCESS"})


@pytest.mark.thorough
def test_a_session_names_the_class_and_a_call_gives_its_options() -> None:
    parsed = WriteOptions.parse({NAME: "mine"}, {PROVIDER: LOCK, TRIES: "7"})

    assert parsed.lock.own_texts == {NAME: "mine", TRIES: "7"}


@pytest.mark.thorough
def test_an_option_without_effect_in_this_release_may_be_that_of_a_class() -> None:
    own = {"hoodie.bootstrap.parallelism": "7", PROVIDER: f"{__name__}:TakesUnused"}

    assert WriteOptions.parse(own).lock.own_texts == {"hoodie.bootstrap.parallelism": "7"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("TakesOurs", "declares hoodie.parquet.max.file.size, which is an option of PyHudi's"),
        ("NoOptions", "its options_class is <class 'int'>; expected a dataclass"),
        ("Nobody", "can't be imported"),
    ],
)
def test_a_class_whose_options_make_no_sense_is_refused(name: str, complaint: str) -> None:
    for key in (PROVIDER, "hoodie.index.type"):
        with pytest.raises(ConfigError, match=complaint):
            WriteOptions.parse({key: f"{__name__}:{name}"})


@pytest.mark.thorough
def test_a_class_that_is_no_index_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"derives from pyhudi.index.base.Index, found <class .*NamedLock"):
        TestTable(options={"hoodie.index.type": LOCK}).upsert(("a", "x", 1, 10))


@pytest.mark.thorough
def test_a_read_imports_no_class_that_only_writes_ask() -> None:
    ReadOptions.parse({}, {PROVIDER: "not_installed:Lock", "hoodie.index.type": "not_installed:Index", NAME: "mine"})
