"""A schema registry: a server on this machine that answers with what it is given."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

__all__ = ["Registry", "registry_of"]


@dataclass
class Registry:
    """`asked`: the paths, with their questions."""

    url: str
    asked: list[str] = field(default_factory=list)


@contextmanager
def registry_of(answers: Mapping[str, Any]) -> Iterator[Registry]:
    """A registry for a `with` block. `answers`: path, without a question → JSON; others are 404."""
    registry = Registry("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.asked.append(self.path)
            answer = answers.get(self.path.partition("?")[0])
            self.send_response(404 if answer is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *arguments: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
