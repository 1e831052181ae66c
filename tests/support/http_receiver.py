"""An HTTP server that keeps what it is sent, and answers with the statuses that it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    """`statuses`: of the next answers; after them 200."""

    url: str = ""
    port: int = 0
    requests: list[Received] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    location: str | None = None


@contextmanager
def http_receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            receiver.requests.append(Received(self.command, self.path, dict(self.headers.items()), body))
            self.send_response(receiver.statuses.pop(0) if receiver.statuses else 200)
            if receiver.location:
                self.send_header("Location", receiver.location)
            self.end_headers()

        do_POST = do_PUT = do_DELETE = do_GET = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    receiver.port = server.server_address[1]
    receiver.url = f"http://127.0.0.1:{receiver.port}"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
