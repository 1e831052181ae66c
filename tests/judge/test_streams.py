"""A stream that real Hudi and PyHudi write in turns: each goes on where the other stopped."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.actions.stream_batches import last_batch
from pyhudi.meta_client import MetaClient
from pyhudi.model.options.streaming import BATCH_ID, IDENTIFIER, SINK_CHECKPOINT
from pyhudi.storage import open_storage
from tests.support.golden.folder import shared_folder
from tests.support.judge.real_hudi import HUDI_OF_TABLE_VERSION, Judge
from tests.support.source import ROOT

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("who", pa.string())])
DDL = "id string, ts bigint, who string"
ROWS = 3  # of a batch


def batch(number: int, who: str) -> list[dict[str, Any]]:
    return [{"id": f"b{number}-{n}", "ts": 1, "who": who} for n in range(ROWS)]


@pytest.mark.parametrize(
    "version", [9, pytest.param(8, marks=pytest.mark.slow), pytest.param(6, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("identifier", ["default_single_writer", "mine"])
def test_real_hudi_goes_on_after_the_batches_that_pyhudi_wrote(
    version: int, identifier: str, judge: Judge, tmp_path: Path
) -> None:
    """Inserts: a batch that is written once more, or passed over, shows in the rows."""
    table, source = tmp_path / "t", tmp_path / "source"
    source.mkdir()
    options = {
        "hoodie.table.name": "streamed",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": "insert",
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
        IDENTIFIER: identifier,
    }
    for number in range(5):
        text = "\n".join(json.dumps(row) for row in batch(number, "Hudi"))
        (source / f"{number}.json").write_text(text)
        os.utime(source / f"{number}.json", (1_700_000_000 + number, 1_700_000_000 + number))
    for number in range(3):
        ours = pa.Table.from_pylist(batch(number, "PyHudi"), SCHEMA)
        write_hudi(str(table), ours, options={**options, BATCH_ID: str(number)}, mode="append")
    stream(HUDI_OF_TABLE_VERSION[version], source, table, tmp_path / "checkpoint", options)

    found = Counter((row["id"], row["who"]) for row in judge.rows(table, HUDI_OF_TABLE_VERSION[version]))
    expected = [(row["id"], row["who"]) for n in range(5) for row in batch(n, "PyHudi" if n < 3 else "Hudi")]
    assert found == Counter(expected), "Hudi passes over the batches 0 to 2, and writes 3 and 4"
    meta = MetaClient.load(open_storage(table))
    notes = [meta.commits.metadata(i).extra_metadata.get(SINK_CHECKPOINT) for i in meta.timeline.commits()]
    assert notes == [json.dumps({identifier: str(n)}, separators=(",", ":")) for n in range(5)], "the same bytes"
    assert last_batch(meta, identifier) == 4, "PyHudi sees the batches that Hudi wrote"
    assert HudiTable.open(table).scan(["id"]).count() == 5 * ROWS


def stream(hudi: str, source: Path, table: Path, checkpoint: Path, options: dict[str, str]) -> None:
    """Real Hudi streams the files of a folder, a batch each, into a table."""
    request = {
        "source": str(source), "schema": DDL, "table": str(table), "checkpoint": str(checkpoint), "options": options,
    }  # fmt: skip
    python = next((Path.home() / ".cache" / "pyhudi-judge").glob("venv-*/bin/python"))
    given = [
        python,
        ROOT / "tests" / "support" / "judge" / "hudi_stream.py",
        shared_folder() / "judge",
        hudi,
        json.dumps(request),
    ]
    environment = {"PATH": os.environ["PATH"], "HOME": str(Path.home()), "SPARK_LOCAL_IP": "127.0.0.1", "TZ": "UTC"}
    environment |= {name: os.environ[name] for name in ("JAVA_HOME", "XDG_CACHE_HOME") if name in os.environ}
    done = subprocess.run([*map(str, given)], env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr[-3000:]
