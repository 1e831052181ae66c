"""A machine that is busy with other work makes tests slow, and none fail."""

from __future__ import annotations

import contextlib
import io
import itertools
import random
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.servers.process import free_port


def test_an_example_of_hypothesis_may_take_as_long_as_it_takes() -> None:
    assert settings.default is not None
    assert settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check


def test_two_processes_of_a_run_never_start_servers_at_the_same_port(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = []
    for worker in ("gw0", "gw1", "gw15"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        ports.append({free_port() for _ in range(50)})

    assert ports[0].isdisjoint(ports[1] | ports[2])
    assert ports[1].isdisjoint(ports[2])
    assert max(set.union(*ports)) < 32_768, "from there on the system gives ports to connections"


def test_a_port_that_is_taken_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        numbers = random.Random(port)
        turns = itertools.chain([port - 10_000], (numbers.randrange(22_000) for _ in itertools.count()))
        monkeypatch.setattr("random.SystemRandom.randrange", lambda *_: next(turns))
        monkeypatch.setattr("tests.support.servers.process._PROCESSES", 1)
        monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)

        assert free_port() != port


def test_a_request_in_two_steps_is_one_at_the_s3_server_of_the_tests() -> None:
    pytest.importorskip("moto.server")
    from tests.support.servers.moto_server import OneAtATime

    stored: list[bytes] = []
    looked = threading.Barrier(2)

    def put_if_absent(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        there = bool(stored)
        with contextlib.suppress(threading.BrokenBarrierError):
            looked.wait(0.05)  # one who comes between the steps, would come now
        if not there:
            stored.append(environ["wsgi.input"].read())
        return [b"late" if there else b"made"]

    def request(body: bytes) -> bytes:
        answer = server({"CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body)}, None)
        return b"".join(answer)

    server = OneAtATime(put_if_absent)
    with ThreadPoolExecutor(2) as pool:
        answers = sorted(pool.map(request, [b"first", b"second"]))

    assert answers == [b"late", b"made"]
    assert len(stored) == 1
