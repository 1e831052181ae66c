"""A real S3 server on this machine (moto's), for tests: a process of its own, that logs what it is asked."""

from __future__ import annotations

import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers.process import free_port, running

_SERVER = Path(__file__).with_name("moto_server.py")
SECRET = "very-secret-key-4711"


def options_of(port: int) -> dict[str, str]:
    """Hadoop's options for the server."""
    return {
        "fs.s3a.endpoint": f"http://127.0.0.1:{port}",
        "fs.s3a.access.key": "test-access",
        "fs.s3a.secret.key": SECRET,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
    }


@contextmanager
def s3_server() -> Iterator[int]:
    """The port of a server that runs for a `with` block."""
    port = free_port()
    with running([sys.executable, _SERVER, str(port)], port):
        yield port


def make_bucket(port: int, name: str) -> None:
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/{name}", method="PUT"), timeout=180).close()
