"""moto's server with one request at a time: `moto_server.py <port>`.

moto looks whether an object may be put, and puts it, in two steps, between which another request may come; at AWS a
conditional put is one. On a busy machine two writers would both win.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable
from typing import Any

from moto import backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple


class OneAtATime:
    """A WSGI application that answers requests one after the other. A body may still be on its way meanwhile."""

    def __init__(self, application: Callable[[dict[str, Any], Any], Any]) -> None:
        self._application, self._turn = application, threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        size = -1 if environ.get("wsgi.input_terminated") else int(environ.get("CONTENT_LENGTH") or 0)
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(size))
        with self._turn:
            answer = self._application(environ, start_response)
            try:
                return [b"".join(answer)]
            finally:
                getattr(answer, "close", lambda: None)()


if __name__ == "__main__":
    # moto looks through its folder of services twice for each request: two fifths of its processor time.
    services = tuple(backends.list_of_moto_modules())
    backends.list_of_moto_modules = lambda: services
    application = OneAtATime(DomainDispatcherApplication(create_backend_app))
    run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=True, request_handler=MotoRequestHandler)
