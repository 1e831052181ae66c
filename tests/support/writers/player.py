"""A process of a play: `writer <table> <play> <name> <first> <end>` or `services <table> <play>`.

A writer says "begin <batch>" and "done <batch>"; a server says which services did something. Whatever goes wrong ends
the process with an error. Ctrl-C (SIGINT) and SIGTERM end a writer as they end a script, from inside whatever it does.
"""

from __future__ import annotations

import signal
import sys
import time
import warnings
from typing import Any

from pyhudi import HudiTable
from pyhudi.errors import LockTimeout, WriteConflict
from pyhudi.storage.local import LocalStorage
from tests.support.writers.plays import PLAYS, write


def be_writer(path: str, play: str, name: str, first: int, end: int) -> None:
    for number in range(first, end):
        batch = f"{name}-{number}"
        print(f"begin {batch}", flush=True)
        write(LocalStorage(path), PLAYS[play], batch)
        print(f"done {batch}", flush=True)


def call_service(path: str, play: str, service: str) -> Any:
    options = {key: text for key, text in PLAYS[play].options.items() if not key.startswith("hoodie.datasource")}
    table = HudiTable.open(path)
    return getattr(table if hasattr(table, service) else table.maintenance, service)(options=options)


def serve(path: str, play: str) -> None:
    while True:
        for service in PLAYS[play].services:
            try:
                result = call_service(path, play, service)
                print(f"{service}: {result}".replace("\n", " "), flush=True)
            except (WriteConflict, LockTimeout) as error:
                print(f"{service} gave way: {error}", flush=True)
        time.sleep(0.05)


def _end(*_: object) -> None:
    raise SystemExit(143)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits that it is ignored
    role, path, play, *rest = sys.argv[1:]
    if role == "writer":
        be_writer(path, play, rest[0], int(rest[1]), int(rest[2]))
    else:
        serve(path, play)
