"""Servers of the shared folder `services`: each starts and stops by its own scripts."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.support.golden.folder import SHARED

__all__ = ["shared_service"]


@contextmanager
def shared_service(name: str, *arguments: str) -> Iterator[dict[str, str]]:
    """A server for a `with` block, as the addresses that it prints; skips the test where the folder is absent."""
    service = SHARED / "services" / name
    if not (service / "start").exists():
        pytest.skip(f"no {service} here")
    folder = Path(mkdtemp(prefix=f"pyhudi-{name}-"))  # servers with a user of their own reach no folder of pytest
    try:
        started = subprocess.run(
            [str(service / "start"), str(folder), *arguments], capture_output=True, text=True, timeout=300, check=False
        )
        if started.returncode:
            pytest.skip(f"{name} does not start here: {started.stderr[-300:]}")
        yield dict(line.split("=", 1) for line in (folder / "address").read_text().splitlines() if "=" in line)
    finally:
        subprocess.run([str(service / "stop"), str(folder)], capture_output=True, timeout=60, check=False)
        shutil.rmtree(folder, ignore_errors=True)
