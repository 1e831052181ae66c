"""Tables that were changed in the ways of deltalake and pyiceberg: real Hudi reads them, and writes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from tests.support.judge.real_hudi import HUDI_OF_TABLE_VERSION, Judge

SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("n", pa.int64()), ("note", pa.string()), ("ts", pa.int64())]
)


def row(id: str, city: str, n: int, ts: int = 5) -> dict[str, Any]:
    return {"id": id, "city": city, "n": n, "note": f"note {id}", "ts": ts}


def judged(judge: Judge, table: HudiTable) -> list[tuple[Any, ...]]:
    rows = judge.rows(Path(table.path), HUDI_OF_TABLE_VERSION[9])
    return sorted((row["id"], row["city"], row["n"], row["note"]) for row in rows)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_real_hudi_reads_what_these_changes_wrote(kind: str, judge: Judge, tmp_path: Path) -> None:
    table = HudiTable.create(
        tmp_path / "t", SCHEMA, record_key="id", partition_by="city", ordering="ts", table_type=kind
    )
    table.upsert([row(f"k{n}", "oslo" if n % 2 else "rome", n) for n in range(8)])
    table.constraints.add("small", "n < 1000")
    expected = {f"k{n}": (f"k{n}", "oslo" if n % 2 else "rome", n, f"note k{n}") for n in range(8)}

    table.upsert([{"id": "k1", "city": "oslo", "n": 100, "ts": 6}, {"id": "k9", "city": "oslo", "n": 9, "ts": 6}])
    expected |= {"k1": ("k1", "oslo", 100, "note k1"), "k9": ("k9", "oslo", 9, None)}
    assert judged(judge, table) == sorted(expected.values(), key=lambda one: one[0]), "rows without all columns"

    table.overwrite([row("k2", "rome", 22, ts=7), row("k8", "rome", 8)], where="n IN (2, 3, 4, 8, 22)")
    for key in ("k2", "k3", "k4"):
        del expected[key]
    expected |= {"k2": ("k2", "rome", 22, "note k2"), "k8": ("k8", "rome", 8, "note k8")}
    assert judged(judge, table) == sorted(expected.values(), key=lambda one: one[0]), "an overwrite of rows"

    table.overwrite([row("k5", "oslo", 55, ts=1)], where="city = 'oslo'")
    expected = {key: one for key, one in expected.items() if one[1] != "oslo"} | {"k5": ("k5", "oslo", 55, "note k5")}
    assert judged(judge, table) == sorted(expected.values(), key=lambda one: one[0]), "an overwrite of partitions"

    (tmp_path / "in" / "city=bonn").mkdir(parents=True)
    pq.write_table(
        pa.table({"id": ["k20"], "n": [20], "note": ["file"], "ts": [1]}), tmp_path / "in" / "city=bonn" / "a.parquet"
    )
    table.maintenance.add_files(tmp_path / "in")
    table.update("id = 'k20'", set={"n": "n * 2", "note": "upper(note)"})
    expected["k20"] = ("k20", "bonn", 40, "FILE")
    assert judged(judge, table) == sorted(expected.values(), key=lambda one: one[0]), "added files, updated by SQL"
    judge.check(Path(table.path), HUDI_OF_TABLE_VERSION[9], steps=["read", "as_of", "upsert"])
    assert table.constraints.list() == {"small": "n < 1000"}, "Hudi leaves the constraints alone"

    table.constraints.drop("small")
    table.overwrite(pa.table({"id": ["a"], "city": ["rome"], "ts": [1], "price": [1.5]}), schema_mode="overwrite")
    (one,) = judge.rows(Path(table.path), HUDI_OF_TABLE_VERSION[9])
    assert {name: one[name] for name in one if not name.startswith("_")} == {
        "id": "a", "city": "rome", "ts": 1, "price": 1.5,
    }, "other columns"  # fmt: skip
