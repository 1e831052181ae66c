"""A store that does not answer can be interrupted, given up and is announced. Source: docs/storage.md."""

from __future__ import annotations

import signal
import threading
import time
from datetime import timedelta
from types import FrameType
from typing import Any

import pyarrow.fs as pafs
import pytest

from pyhudi.errors import ConfigError, StorageError
from pyhudi.storage import waiting
from pyhudi.storage.arrow import ArrowStorage
from pyhudi.storage.gcs_client import gcs_retry_time
from pyhudi.storage.store_options import named_options
from pyhudi.storage.waiting import TIMEOUT, announce_waits, answer_of, timeout_s


def never() -> None:
    threading.Event().wait(30)


def test_a_call_that_waits_is_given_up_after_the_limit() -> None:
    with pytest.raises(StorageError, match=r"gs://b/t: the store has not answered for 0\.05 s"):
        answer_of(never, "gs://b/t", 0.05)


def test_answers_and_errors_are_those_of_the_call() -> None:
    def fails() -> None:
        raise FileNotFoundError("x")

    assert answer_of(lambda: 5, "gs://b/t", None) == 5
    with pytest.raises(FileNotFoundError, match="x"):
        answer_of(fails, "gs://b/t", None)


def test_a_signal_ends_a_wait_at_once() -> None:
    class Ended(Exception):
        pass

    def end(number: int, frame: FrameType | None) -> None:
        raise Ended

    before = signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        began_s = time.monotonic()
        with pytest.raises(Ended):
            answer_of(never, "gs://b/t", None)
        assert time.monotonic() - began_s < 5
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_wait_of_two_seconds_is_announced_with_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_ANNOUNCED_AFTER_S", 0.02)
    announced: list[str] = []
    announce_waits(announced.append)
    try:
        answer_of(lambda: None, "gs://b/quick", None)
        with pytest.raises(StorageError):
            answer_of(never, "gs://b/slow", 0.1)
    finally:
        announce_waits(None)
    assert announced == ["gs://b/slow"]


@pytest.mark.parametrize("scheme", ["gs", "s3", "abfss"])
def test_every_store_has_a_timeout_and_refuses_what_is_none(scheme: str) -> None:
    assert timeout_s(named_options(scheme, {"timeout": "2.5"})) == 2.5
    assert timeout_s(named_options(scheme, {TIMEOUT: "2.5"})) == 2.5
    assert timeout_s({}) is None
    for text in ("soon", "0", "-1", "nan", "inf"):
        with pytest.raises(ConfigError, match="number of seconds above 0"):
            timeout_s({TIMEOUT: text})


def test_googles_clients_try_again_for_a_quarter_of_a_minute_or_until_the_timeout() -> None:
    assert gcs_retry_time({}) == timedelta(seconds=15)
    assert gcs_retry_time({TIMEOUT: "3"}) == timedelta(seconds=3)


def test_the_reading_calls_of_a_remote_store_have_the_limit(tmp_path: Any) -> None:
    class Deaf(pafs.FileSystemHandler):
        def __getattribute__(self, name: str) -> Any:
            if name.startswith(("get_file_info", "open_input")):
                return lambda *arguments: never()
            return super().__getattribute__(name)

        def get_type_name(self) -> str:
            return "deaf"

    for name in pafs.FileSystemHandler.__abstractmethods__ - {"get_type_name"}:
        setattr(Deaf, name, lambda self, *arguments: never())
    Deaf.__abstractmethods__ = frozenset()
    storage = ArrowStorage("gs://b/t", {TIMEOUT: "0.05"}, pafs.PyFileSystem(Deaf()))

    for call in (storage.stat, storage.list, storage.open_input, storage.read, lambda path: list(storage.walk(path))):
        with pytest.raises(StorageError, match=r"has not answered for 0\.05 s"):
            call("x")
