"""Object stores that run on this machine: moto's S3, Microsoft's Azurite, and Google's testbench of its storage.

Every one is asked by Hadoop's keys, as a user would; so what turns those into clients is tested as well.
"""

from __future__ import annotations

import itertools
import json
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pyhudi.storage import Storage, open_storage
from tests.support.servers.process import free_port, program, running
from tests.support.servers.s3_server import SECRET, make_bucket, options_of, s3_server

__all__ = ["OBJECT_STORES", "ObjectStoreServer", "fake_gcs_server", "gcs_options", "object_store_server"]

_NUMBERS = itertools.count()
# The account that Azurite is born with, and its published key.
_ACCOUNT = "devstoreaccount1"
_ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class ObjectStoreServer:
    """A server with the bucket (or container) `lake`. `lake`, `elsewhere`: URIs of it and of one that is not there."""

    lake: str
    elsewhere: str
    options: Mapping[str, str] = field(repr=False)
    secret: str | None = field(repr=False)

    def table(self, name: str = "table") -> Storage:
        """A new place for a table."""
        return open_storage(f"{self.lake}/{name}-{next(_NUMBERS)}", self.options)


@contextmanager
def _s3(_: Path) -> Iterator[ObjectStoreServer]:
    pytest.importorskip("moto.server")
    with s3_server() as port:
        make_bucket(port, "lake")
        yield ObjectStoreServer("s3a://lake", "s3a://no-such-bucket", options_of(port), SECRET)


@contextmanager
def _azurite(folder: Path) -> Iterator[ObjectStoreServer]:
    port, host = free_port(), f"{_ACCOUNT}.dfs.core.windows.net"
    command = [program("PYHUDI_AZURITE", "azurite-blob", "node_modules/.bin/azurite-blob")]
    # Azurite is older than the newest version of the protocol that pyarrow speaks.
    quiet = ["--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck"]
    options = {"fs.azure.abfs.endpoint": f"http://127.0.0.1:{port}", f"fs.azure.account.key.{host}": _ACCOUNT_KEY}
    with running([*command, "--blobPort", str(port), *quiet], port, folder=folder):
        _make_container(options, host)
        yield ObjectStoreServer(f"abfs://lake@{host}", f"abfs://no-such-container@{host}", options, _ACCOUNT_KEY)


def _make_container(options: Mapping[str, str], host: str) -> None:
    storage = open_storage(f"abfs://lake@{host}", options)
    storage._filesystem.create_dir("lake")  # type: ignore[attr-defined]


@contextmanager
def _gcs_testbench(folder: Path) -> Iterator[ObjectStoreServer]:
    port = free_port()
    python = program("PYHUDI_GCS_TESTBENCH", "storage-testbench", "testbench/bin/storage-testbench").with_name("python")
    with running([python, Path(__file__).with_name("gcs_testbench.py"), str(port)], port, folder=folder):
        _make_gcs_bucket(port, "lake")
        yield ObjectStoreServer("gs://lake", "gs://no-such-bucket", gcs_options(port), None)


@contextmanager
def fake_gcs_server(folder: Path) -> Iterator[ObjectStoreServer]:
    """Not one of OBJECT_STORES: its XML interface lists and gets, and knows no plain puts."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [program("PYHUDI_FAKE_GCS", "fake-gcs-server", "bin/fake-gcs-server"), "-backend", "memory"]
    command += ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-external-url", url]
    with running([*command, "-public-host", f"127.0.0.1:{port}"], port, folder=folder):
        _make_gcs_bucket(port, "lake")
        yield ObjectStoreServer("gs://lake", "gs://no-such-bucket", gcs_options(port), None)


def gcs_options(port: int) -> dict[str, str]:
    """Options for a server that takes everybody."""
    return {"fs.gs.storage.root.url": f"http://127.0.0.1:{port}", "fs.gs.auth.type": "UNAUTHENTICATED"}


def _make_gcs_bucket(port: int, name: str) -> None:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/storage/v1/b?project=p",
        json.dumps({"name": name}).encode(),
        {"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=180).close()


_SERVERS = {"s3": _s3, "azure": _azurite, "gcs": _gcs_testbench}
OBJECT_STORES = [
    pytest.param(name, marks=() if name == "s3" else pytest.mark.servers) for name in _SERVERS
]  # params of a fixture that calls object_store_server


@contextmanager
def object_store_server(name: str, folder: Path) -> Iterator[ObjectStoreServer]:
    """The server of that name, for a `with` block; skips the test when its program is not here."""
    pytest.importorskip("obstore")
    with _SERVERS[name](folder) as server:
        yield server


StartServer = Callable[[str], ObjectStoreServer]
