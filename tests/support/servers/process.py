"""Servers that tests start: programs on this machine, each a process of its own that ends with the test."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.source import ROOT

__all__ = ["free_port", "program", "running"]

_PROCESSES = 64  # more than a run has workers
_INSTALLED = ROOT / ".servers"  # by `make servers`


def program(variable: str, name: str, installed: str) -> Path:
    """A server's program: where the environment variable says, on PATH, or below `.servers`; else the test is skipped.

    Args: `installed`: where `make servers` puts it.
    """
    found = os.environ.get(variable) or shutil.which(name) or str(_INSTALLED / installed)
    if not Path(found).exists():
        pytest.skip(f"no {name} here: neither on PATH nor at {variable}; `make servers` installs it")
    return Path(found)


def free_port() -> int:
    """A port for a server that is about to start.

    Not one of those that the system gives to connections, which would take it before the server does; and each process
    of one run of the tests chooses among ports of its own.
    """
    worker = int("0" + os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw"))
    for _ in range(1000):
        port = 10_000 + _PROCESSES * random.SystemRandom().randrange(22_000 // _PROCESSES) + worker % _PROCESSES
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port between 10000 and 32000")


@contextmanager
def running(
    command: Sequence[str | Path], port: int, env: Mapping[str, str] | None = None, folder: Path | None = None
) -> Iterator[None]:
    """The server runs for a `with` block; it has answered at its port by then."""
    command = [str(part) for part in command]
    log = subprocess.DEVNULL if folder is None else (folder / "log").open("wb")
    with subprocess.Popen(
        command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})}, cwd=folder
    ) as process:
        try:
            _wait(port, process, command, folder)
            yield
        finally:
            process.kill()


def _wait(port: int, process: subprocess.Popen[bytes], command: Sequence[str], folder: Path | None) -> None:
    deadline_s = time.monotonic() + 180  # a JVM on a busy machine
    while process.poll() is None and time.monotonic() < deadline_s:
        with socket.socket() as probe:
            probe.settimeout(5)
            if probe.connect_ex(("127.0.0.1", port)) == 0 and process.poll() is None:
                return
        time.sleep(0.1)
    log = (folder / "log").read_text(errors="replace")[-2000:] if folder else ""
    raise AssertionError(f"{' '.join(command)} does not answer\n{log}")
