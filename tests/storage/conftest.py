"""Object stores for all tests of storages: every server is started once, when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from pyhudi.storage import Storage
from tests.support.servers.object_stores import OBJECT_STORES, ObjectStoreServer, StartServer, object_store_server


@pytest.fixture(scope="session")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartServer]:
    """Name → the running server; skips the test when its program is not here."""
    with ExitStack() as servers:
        yield cache(lambda name: servers.enter_context(object_store_server(name, tmp_path_factory.mktemp(name))))


@pytest.fixture(params=OBJECT_STORES)
def server(request: pytest.FixtureRequest, start_server: StartServer) -> ObjectStoreServer:
    return start_server(request.param)


@pytest.fixture
def stored(server: ObjectStoreServer) -> Storage:
    """A new place for a table on each of the object stores."""
    return server.table()
