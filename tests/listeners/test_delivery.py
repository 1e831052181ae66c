"""Listeners are notified after the heartbeat has ended, with a copy, in threads of their own: none fails or delays a
write.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import pyhudi
from pyhudi import ConfigError, HudiTable, StorageError, write_hudi
from pyhudi.listeners import delivery
from pyhudi.listeners import metrics as module
from tests.support.http_receiver import http_receiver
from tests.support.source import ROOT

LAZY = {"hoodie.cleaner.policy.failed.writes": "LAZY", "hoodie.clean.failed.writes.policy": "LAZY"}
MANY = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL", "hoodie.write.lock.provider": "FILESYSTEM"}
CALLBACK = "hoodie.write.commit.callback.class"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("_sets", "_reporters", "_owners", "_places"):
        monkeypatch.setattr(module, name, {})
    yield
    assert delivery.wait_for_all()


def write(path: Path, number: int = 1, **options: object) -> pyhudi.WriteResult:
    given = {"hoodie.write.commit.callback.on": CALLBACK in options or "url" in options, **MANY, **LAZY, **options}
    if url := given.pop("url", None):
        given["hoodie.write.commit.callback.http.url"] = url
    result = write_hudi(path, [{"id": number, "v": 1}], record_key="id", options=given)
    assert result is not None
    return result


def with_reporter(kind: type) -> dict[str, object]:
    return {"hoodie.metrics.on": True, "hoodie.metrics.reporter.class": f"{__name__}:{kind.__name__}"}


class Quiet:
    """The base of the other reporters."""

    heard: ClassVar[list[str]] = []

    def __init__(self, metrics: object, options: object) -> None: ...

    @staticmethod
    def place(options: object) -> str:
        return "quiet"

    def report(self, table: str, changed: dict[str, float]) -> None:
        self.heard.extend(changed)

    def flush(self) -> None: ...


class FailsAtPlace(Quiet):
    @staticmethod
    def place(options: object) -> str:
        raise RuntimeError("no place")


class FailsToBegin(Quiet):
    def __init__(self, metrics: object, options: object) -> None:
        raise RuntimeError("no beginning")


class Exits(Quiet):
    @staticmethod
    def place(options: object) -> str:
        return "exits"

    def report(self, table: str, changed: dict[str, float]) -> None:
        sys.exit(3)


class Sleeps(Quiet):
    may_end: ClassVar[threading.Event] = threading.Event()

    @staticmethod
    def place(options: object) -> str:
        return "sleeps"

    def report(self, table: str, changed: dict[str, float]) -> None:
        self.may_end.wait(60)
        changed.clear()


class Second(Quiet):
    """Another class with the place of Quiet."""


class WithoutPlace:
    def report(self, table: str, changed: dict[str, float]) -> None: ...

    def flush(self) -> None: ...


class Placeless(Quiet):
    @staticmethod
    def place(options: object) -> str:
        return None  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("kind", "says"),
    [(FailsAtPlace, "RuntimeError: no place"), (FailsToBegin, "no beginning"), (Exits, "SystemExit: 3")],
)
def test_a_reporter_that_fails_anywhere_fails_no_write(tmp_path: Path, kind: type, says: str) -> None:
    with pytest.warns(UserWarning, match=says):
        write(tmp_path, **with_reporter(kind))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(tmp_path, 2, **with_reporter(kind))  # what is complete is no error

    table = HudiTable.open(tmp_path)
    assert table.count() == 2
    assert len(table.state().timeline.pending()) == 0
    assert any(name.endswith("commit.totalRecordsWritten") for name in pyhudi.metrics())


def test_a_function_hears_after_heartbeat_and_lock_have_ended_from_a_copy(tmp_path: Path) -> None:
    seen: list[Any] = []

    def hear(message: dict[str, Any]) -> None:
        left = [file.name for file in (tmp_path / ".hoodie/.heartbeat").glob("*")]
        seen.append((left, (tmp_path / ".hoodie/lock").exists(), HudiTable.open(tmp_path).count()))
        message["hoodieWriteStat"].clear()
        message["extraMetadata"]["val"].clear()

    result = write(tmp_path, **{CALLBACK: hear})

    assert seen == [([], False, 1)]
    assert result.inserted == 1
    write(tmp_path, 2)
    assert HudiTable.open(tmp_path).schema().names == ["id", "v"]


def test_a_function_hears_of_a_replaced_table_when_the_new_one_is_there_and_not_at_all_when_it_never_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def hear(message: dict[str, Any]) -> None:
        seen.append((message["commitTime"], HudiTable.open(tmp_path).history()[-1].instant_time))

    write(tmp_path, 1)
    options = {"hoodie.write.commit.callback.on": True, CALLBACK: hear}
    result = write_hudi(tmp_path, [{"id": 2, "v": 2}], record_key="id", mode="replace", options=options)
    assert result is not None
    assert seen == [(result.instant_time, result.instant_time)]

    def fails(*arguments: object) -> None:
        raise StorageError("the new table can't take its place")

    monkeypatch.setattr("pyhudi.actions.replacement._put_in_place_of_old", fails)
    with pytest.raises(StorageError):
        write_hudi(tmp_path, [{"id": 3, "v": 3}], record_key="id", mode="replace", options=options)
    assert len(seen) == 1


def test_a_webhook_that_fails_delays_no_write_and_is_tried_again(tmp_path: Path) -> None:
    write(tmp_path, 1)
    with http_receiver() as receiver:
        receiver.statuses = [500, 500]
        began_s = time.monotonic()
        write(tmp_path, 2, url=receiver.url)
        took_s = time.monotonic() - began_s
        assert not list((tmp_path / ".hoodie/.heartbeat").glob("*"))
        assert len(receiver.requests) == 1  # the second one comes a second later
        began_s = time.monotonic()
        pyhudi.flush_metrics()
        assert len(receiver.requests) == 3
        assert time.monotonic() - began_s > 3 > took_s


def test_a_listener_that_hangs_holds_up_neither_writes_nor_other_listeners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "_PATIENCE_S", 0.05)
    Sleeps.may_end.clear()
    told: list[Any] = []
    try:
        for number in range(3):
            write(tmp_path, number, **with_reporter(Sleeps), **{CALLBACK: told.append})
        assert len(told) == 3
        assert [thread.name for thread in threading.enumerate()].count("hudi-metrics") == 1
    finally:
        Sleeps.may_end.set()
    assert delivery.wait_for_all()
    assert any(name.endswith("commit.totalRecordsWritten") for name in pyhudi.metrics())  # of a copy


def test_of_more_commits_than_can_wait_nobody_is_notified_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(delivery, "_QUEUE_LENGTH_MAX", 1)
    Sleeps.may_end.clear()
    try:
        write(tmp_path, 1, **with_reporter(Sleeps))
        write(tmp_path, 2, **with_reporter(Sleeps))
        with pytest.warns(UserWarning, match=r"its metrics could not be delivered: metrics is far behind"):
            write(tmp_path, 3, **with_reporter(Sleeps))
    finally:
        Sleeps.may_end.set()


def test_a_write_that_fails_after_its_commit_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyhudi.services.after_write import AFTER_WRITE

    def stopped(context: object) -> tuple[str, ...]:
        raise KeyboardInterrupt

    told: list[Any] = []
    write(tmp_path, 1)
    monkeypatch.setitem(AFTER_WRITE, "clean", stopped)  # type: ignore[call-overload]
    with pytest.raises(KeyboardInterrupt) as caught:
        write(tmp_path, 2, **{CALLBACK: told.append})
    assert delivery.wait_for_all()
    assert (told[0]["commitTime"],) == caught.value.completed_instants  # type: ignore[attr-defined]


SLOW = """
import sys, time, pyhudi
def told(message):
    time.sleep(1.5)
    print("told", flush=True)
options = {"hoodie.write.commit.callback.on": True, "hoodie.write.commit.callback.class": told}
pyhudi.write_hudi(sys.argv[1], [{"id": 1}], record_key="id", options=options)
print("written", flush=True)
"""


def test_a_process_that_ends_waits_for_its_listeners(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SLOW, str(tmp_path / "t")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["written", "told"]


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (WithoutPlace, r"WithoutPlace has no method place: a reporter is a class with place, report, flush"),
        (Placeless, r"Placeless has the place None; place\(\) returns a text"),
    ],
)
def test_what_is_no_reporter_is_refused_before_anything_is_written(tmp_path: Path, kind: type, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        write(tmp_path / "t", **with_reporter(kind))
    assert not (tmp_path / "t").exists()
    write(tmp_path / "t")
    for call in ("clean", "compact", "cluster"):
        with pytest.raises(ConfigError, match=says):
            getattr(HudiTable.open(tmp_path / "t"), call)(options=with_reporter(kind))


def test_two_reporters_with_one_place_are_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path / "one", **with_reporter(Quiet))
    with pytest.raises(ConfigError, match=rf"{__name__}:Quiet and {__name__}:Second have one place, 'quiet'"):
        write(tmp_path / "two", **with_reporter(Second))
    assert not (tmp_path / "two").exists()
    write(tmp_path / "one", 2, **with_reporter(Quiet))
