"""Calls of a store that does not answer can be interrupted, time out, and are announced. Source: docs/storage.md."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import FrameType
from typing import Any

import pyarrow.fs as pafs
import pytest

from pyhudi.errors import ConfigError, StorageError
from pyhudi.storage import waiting
from pyhudi.storage.arrow import ArrowStorage
from pyhudi.storage.stores.gcs import gcs_retry_time
from pyhudi.storage.stores.options import named_options
from pyhudi.storage.waiting import TIMEOUT, announce_waits, answer_of, change_by, timeout_s


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


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[int], None]]:
    """Press Ctrl-C a number of times, a little later; the handler raises InterruptedError."""

    def end(number: int, frame: FrameType | None) -> None:
        raise InterruptedError

    def press(presses: int) -> None:
        for _ in range(presses):
            time.sleep(0.03)
            signal.pthread_kill(main, signal.SIGINT)

    main, before = threading.get_ident(), signal.signal(signal.SIGINT, end)
    yield lambda presses: threading.Thread(target=press, args=(presses,), daemon=True).start()
    signal.signal(signal.SIGINT, before)


def test_a_signal_waits_for_the_end_of_a_change_which_is_announced(
    monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[int], None]
) -> None:
    monkeypatch.setattr(waiting, "_ANNOUNCED_AFTER_S", 0.02)
    announced: list[str] = []
    monkeypatch.setattr(waiting, "_announce", announced.append)
    ends = threading.Event()
    threading.Timer(0.2, ends.set).start()
    ctrl_c(1)
    with pytest.raises(InterruptedError):
        change_by(lambda: ends.wait(30), "gs://b/slow")
    assert (ends.is_set(), announced) == (True, ["gs://b/slow"])
    assert change_by(lambda: 5, "gs://b/next") == 5


def test_the_third_signal_ends_the_wait_and_nothing_is_changed_before_that_call_has_ended(
    ctrl_c: Callable[[int], None],
) -> None:
    ends = threading.Event()
    ctrl_c(3)
    with pytest.raises(InterruptedError):
        change_by(lambda: ends.wait(30), "gs://b/hangs")
    with pytest.raises(StorageError, match="gs://b/next: an earlier call that changes the store was interrupted"):
        change_by(lambda: 5, "gs://b/next")
    ends.set()
    assert waiting._abandoned[0].wait(5)
    assert change_by(lambda: 5, "gs://b/next") == 5


CREDENTIALS: dict[str, dict[str, str]] = {
    "gs": {"fs.gs.auth.type": "UNAUTHENTICATED"},
    "s3": {"fs.s3a.access.key": "k", "fs.s3a.secret.key": "s"},
    "abfss": {"fs.azure.account.key": "a2V5"},
}


@pytest.mark.parametrize("url", ["gs://b/t", "s3://b/t", "abfss://c@a.dfs.core.windows.net/t"])
def test_the_clients_of_changing_calls_have_the_limit(url: str) -> None:
    pytest.importorskip("obstore")
    server = {"gs": "fs.gs.storage.root.url", "s3": "fs.s3a.endpoint", "abfss": "fs.azure.abfs.endpoint"}
    scheme = url.partition(":")[0]
    options = {TIMEOUT: "0.3", **CREDENTIALS[scheme]}
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and never answers
        options[server[scheme]] = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began_s = time.monotonic()
        with pytest.raises(StorageError, match=r"x: the store refused: .*"):
            ArrowStorage(url, options).write("x", b"data")
    assert time.monotonic() - began_s < 5
