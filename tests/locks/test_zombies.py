"""A killed process whose parent has not waited for it still has its id. It is dead: for its lock and its heartbeat."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.locks import hold, open_lock
from pyhudi.locks.base import LockOptions
from pyhudi.locks.process import is_surely_dead
from pyhudi.storage import open_storage
from pyhudi.storage.clock import SystemClock
from pyhudi.timeline.heartbeat import is_expired
from tests.support.source import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows states of processes")

HOLDER = """
import sys, time
from pyhudi.locks import open_lock
from pyhudi.locks.base import LockOptions
from pyhudi.storage import open_storage
from pyhudi.storage.clock import SystemClock
from pyhudi.timeline.heartbeat import Heartbeat
storage = open_storage(sys.argv[1])
assert open_lock(LockOptions(provider="FILESYSTEM"), storage).try_acquire(5)
Heartbeat(storage, "20300101000000000", SystemClock()).start()
print("ready", flush=True)
time.sleep(60)
"""
NOTER = """
import ctypes, sys, threading, time
from pyhudi.locks.process import note_of_this_process
print(note_of_this_process("x").decode(), flush=True)
threading.Thread(target=time.sleep, args=(60,)).start()
if sys.argv[1] == "leader ends":
    ctypes.CDLL(None).pthread_exit(None)
"""


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process, and its first line. It is not waited for before the block ends."""
    command = [sys.executable, "-c", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def wait_for_state(pid: int, state: str) -> None:
    until = time.monotonic() + 20
    while state_of(pid) != state:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_the_lock_and_the_heartbeat_of_a_zombie_are_those_of_a_dead_writer(tmp_path: Path) -> None:
    write_hudi(tmp_path, pa.table({"id": ["a"]}), record_key="id")
    storage = open_storage(tmp_path)
    now_ms = SystemClock().now_ms()
    with running(HOLDER, str(tmp_path)) as (process, line):
        assert line == "ready"
        assert not is_expired(storage, "20300101000000000", now_ms)
        os.kill(process.pid, signal.SIGKILL)
        wait_for_state(process.pid, "Z")

        until = time.monotonic() + 20
        while not is_expired(storage, "20300101000000000", now_ms):  # its threads end one after the other
            assert time.monotonic() < until
            time.sleep(0.01)
        began_s = time.monotonic()
        with hold(open_lock(LockOptions(provider="FILESYSTEM"), storage), 10):
            assert time.monotonic() - began_s < 5
        HudiTable.open(tmp_path).upsert(pa.table({"id": ["b"]}))
        assert state_of(process.pid) == "Z"
    assert HudiTable.open(tmp_path).count() == 2


def test_a_process_whose_first_thread_has_ended_is_alive_while_another_runs() -> None:
    with running(NOTER, "leader ends") as (process, note):
        wait_for_state(process.pid, "Z")
        assert json.loads(note)["pid"] == process.pid
        assert not is_surely_dead(note.encode())
        os.kill(process.pid, signal.SIGKILL)
        until = time.monotonic() + 20
        while not is_surely_dead(note.encode()):
            assert time.monotonic() < until
            time.sleep(0.01)
