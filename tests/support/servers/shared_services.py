"""Servers of shared/services: a broker, a registry, databases, Debezium. Each has a folder of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.golden.folder import shared_folder

__all__ = ["service"]

_START_S = 600  # the first start brings the programs


@contextmanager
def service(name: str, folder: Path, *arguments: str, more: Mapping[str, str] | None = None) -> Iterator[str]:
    """The server's address for a `with` block. `more`: of the environment. Skips the test where it can't be had."""
    scripts = shared_folder() / "services" / name
    if not (scripts / "start").exists():
        pytest.skip(f"no {name} in shared/services")
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    started = subprocess.run(
        [scripts / "start", folder, *arguments],
        env={**os.environ, **(more or {})},
        capture_output=True,
        text=True,
        timeout=_START_S,
    )
    try:
        assert started.returncode == 0, started.stderr[-2000:]
        yield started.stdout.splitlines()[-1].partition("=")[2]
    finally:
        subprocess.run([scripts / "stop", folder], check=False, capture_output=True, timeout=60)
