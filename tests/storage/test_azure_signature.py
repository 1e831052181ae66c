"""Azure by a shared access signature: both clients take it, and no message shows it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import urllib.parse

import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.errors import HudiError
from pyhudi.storage import Storage, open_storage
from tests.support.servers.object_stores import ObjectStoreServer, StartServer
from tests.support.tables.small import TestTable

pytestmark = pytest.mark.servers


def test_a_signature_is_enough_and_is_never_shown(start_server: StartServer) -> None:
    server = start_server("azure")
    signature = signature_of(server)
    storage = signed(server, server.table().root, signature)
    table = TestTable(storage, engine=LocalEngine(1))
    table.bulk_insert(("a", "x", 1, 10), ("b", "y", 1, 20))
    table.upsert(("a", "x", 2, 11))
    assert table.rows() == [("a", "x", 2, 11), ("b", "y", 1, 20)]
    storage.delete_tree("x")
    assert list(storage.walk("x")) == []

    secret = urllib.parse.parse_qs(signature)["sig"][0]
    refused = signed(server, f"{server.elsewhere}/t", signature)
    for act in (refused.read, refused.open_input, lambda path: refused.write(path, b"x"), refused.delete, storage.read):
        try:
            act("f")
        except HudiError as error:
            message = f"{error!r} {error.__cause__!r}"
            assert not [text for text in (secret, urllib.parse.quote(secret, safe="")) if text in message]


def signed(server: ObjectStoreServer, uri: str, signature: str) -> Storage:
    kept = {key: value for key, value in server.options.items() if ".key." not in key}
    return open_storage(uri, {**kept, "fs.azure.sas.fixed.token": signature})


def signature_of(server: ObjectStoreServer) -> str:
    """Return a signature for the whole account, as the portal creates it."""
    account = server.lake.partition("@")[2].partition(".")[0]
    parts = {"sp": "rwdlac", "ss": "b", "srt": "sco", "se": "2099-01-01T00:00:00Z", "spr": "https,http"}
    text = f"{account}\n{parts['sp']}\n{parts['ss']}\n{parts['srt']}\n\n{parts['se']}\n\n{parts['spr']}\n2020-02-10\n"
    assert server.secret is not None
    digest = hmac.new(base64.b64decode(server.secret), text.encode(), hashlib.sha256).digest()
    return urllib.parse.urlencode({**parts, "sv": "2020-02-10", "sig": base64.b64encode(digest).decode()})
