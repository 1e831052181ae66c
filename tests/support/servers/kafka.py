"""A Kafka broker of the shared folder `services`, which tests may kill and start again, with its data."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.support.golden.folder import SHARED

__all__ = ["KafkaServer", "kafka_server"]

_SERVICE = SHARED / "services" / "kafka"


class KafkaServer:
    """A broker in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.address = self._started()

    def kill(self) -> None:
        """End it as a crash does."""
        for pid in (self._folder / "pids").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    def start(self) -> None:
        """Start it again, at the same port."""
        assert self._started(self.address.rpartition(":")[2]) == self.address

    def stop(self) -> None:
        """End it."""
        subprocess.run([str(_SERVICE / "stop"), str(self._folder)], capture_output=True, timeout=60, check=False)

    def _started(self, *port: str) -> str:
        command = [str(_SERVICE / "start"), str(self._folder), *port]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            pytest.skip(f"Kafka does not start here: {done.stderr[-300:]}")
        return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)["bootstrap"]


@contextmanager
def kafka_server() -> Iterator[KafkaServer]:
    """A broker for a `with` block; the test is skipped where the shared folder is absent."""
    if not (_SERVICE / "start").exists():
        pytest.skip(f"no {_SERVICE} here")
    folder = Path(mkdtemp(prefix="pyhudi-kafka-"))
    server = None
    try:
        server = KafkaServer(folder)
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
