"""A process that writes to a table until it is killed, and prints each commit once it is done: <table> <round>."""

from __future__ import annotations

import itertools
import sys

from pyhudi.storage.local import LocalStorage
from tests.support.tables.small import TestTable


def main() -> None:
    table = TestTable(LocalStorage(sys.argv[1]), metadata_by_default=True)
    for n in itertools.count():
        # Each commit rewrites the counter row and adds a row of its own: both or none must be there.
        value = int(sys.argv[2]) * 1_000_000 + n
        table.upsert(("counter", "x", value, value), (f"row-{value}", f"p{n % 3}", value, value))
        print(value, flush=True)


if __name__ == "__main__":
    main()
