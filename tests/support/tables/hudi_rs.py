"""Tables as hudi-rs reads them, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.tables.small import TestTable

pytest.importorskip("hudi", reason="the hudi package is not installed")

# In a process of its own: it may abort, and it prints where Python can't catch it.
READER = """
import sys
import pyarrow as pa
from hudi import HudiReadOptions, HudiTableBuilder
table = HudiTableBuilder.from_base_uri(sys.argv[1]).build()
options = HudiReadOptions().with_as_of_timestamp(sys.argv[3]) if len(sys.argv) > 3 else HudiReadOptions()
batches = [pa.record_batch(batch) for batch in table.read(options)]
with pa.OSFile(sys.argv[2], "wb") as sink, pa.ipc.new_stream(sink, batches[0].schema) as writer:
    for batch in batches:
        writer.write_batch(batch)
"""


def read_by_hudi_rs(table: TestTable, folder: Path, *as_of: str) -> pa.Table:
    answer = folder / "answer.arrow"
    command = [sys.executable, "-c", READER, table.storage.root, str(answer), *as_of]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    with pa.OSFile(str(answer)) as source:
        return pa.ipc.open_stream(source).read_all()


def rows(table: pa.Table, columns: list[str]) -> list[tuple[object, ...]]:
    return sorted(zip(*(table.column(name).to_pylist() for name in columns), strict=True), key=repr)
