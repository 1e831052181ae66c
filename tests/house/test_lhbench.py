"""Refreshes of bench/tpch.py and their truth, against rows merged one by one; and what bench/spent.py counts."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bench.spent import processor_s
from bench.tpch import COLUMNS, Refreshes, plain, prepare, same

duckdb = pytest.importorskip("duckdb", reason="DuckDB 2 is not for this Python")

ORDERS, LINES, ROUNDS = 3000, 2, 3
Rows = dict[tuple[int, int], dict[str, Any]]


@pytest.fixture(scope="module")
def refreshes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Refreshes]:
    base = tmp_path_factory.mktemp("tpch") / "lineitem.parquet"
    pq.write_table(lineitem(), base)
    with duckdb.connect() as duck:
        yield prepare(duck, base, ROUNDS)


def lineitem() -> pa.Table:
    """Columns of TPC-H's types, order keys as sparse as TPC-H's."""
    numbers = np.repeat(np.arange(ORDERS), LINES)
    money = {
        name: pc.cast(pa.array(numbers % 97 + 1), pa.decimal128(25, 2)).cast(pa.decimal128(15, 2))
        for name in COLUMNS[4:6]
    }
    rates = {name: pc.cast(pa.array(numbers % 9 / 100), pa.decimal128(15, 2)) for name in COLUMNS[6:8]}
    days = pc.cast(pa.array((9000 + numbers % 900).astype(np.int32)), pa.date32())
    made = {
        "l_orderkey": pa.array(numbers // 8 * 32 + numbers % 8),
        "l_linenumber": pa.array(np.tile(np.arange(1, LINES + 1), ORDERS).astype(np.int32)),
        **money,
        **rates,
        **dict.fromkeys(("l_shipdate", "l_commitdate", "l_receiptdate"), days),
    }
    words = pc.cast(pa.array(numbers % 7), pa.string())
    return pa.table({name: made.get(name, pa.array(numbers) if name[-3:] == "key" else words) for name in COLUMNS})


def merged(refreshes: Refreshes) -> Rows:
    rows = {key(row): row for row in pq.read_table(refreshes.base).to_pylist()}
    for batch in refreshes.batches:
        for row in pq.read_table(batch).to_pylist():
            if row["op"] == "D":
                del rows[key(row)]
            else:
                assert (key(row) in rows) == (row["op"] == "U")
                rows[key(row)] = row
    return rows


def key(row: dict[str, Any]) -> tuple[int, int]:
    return row["l_orderkey"], row["l_linenumber"]


def digest(rows: Rows) -> list[list[object]]:
    texts = ["|".join(str(row[name]) for name in COLUMNS) for row in rows.values()]
    hashes = [hashlib.md5(text.encode()).hexdigest() for text in texts]
    sums = [sum(row[name] for row in rows.values()) for name in ("l_quantity", "l_extendedprice")]
    return plain([[len(rows), *sums, *(sum(int(text[at : at + 7], 16) for text in hashes) for at in (0, 7))]])


def test_the_truth_after_all_refreshes_is_what_rows_merged_one_by_one_hold(refreshes: Refreshes) -> None:
    assert refreshes.truth["after"]["digest"] == digest(merged(refreshes))
    assert refreshes.truth["before"]["digest"] == digest({key(row): row for row in lineitem().to_pylist()})
    assert refreshes.truth["before"]["Q1"] != refreshes.truth["after"]["Q1"]


def test_a_refresh_updates_3_percent_of_the_rows_and_a_thousandth_of_the_orders_comes_and_goes(
    refreshes: Refreshes,
) -> None:
    for batch in refreshes.batches:
        operations = {row["values"]: row["counts"] for row in pc.value_counts(pq.read_table(batch)["op"]).to_pylist()}

        assert operations["I"] == operations["D"] == ORDERS * LINES // 1000
        assert operations["U"] == pytest.approx(0.03 * ORDERS * LINES, rel=0.3)


def test_answers_of_two_engines_are_the_same_but_for_the_last_digits_of_a_division() -> None:
    assert same([["a", 3, 0.1234567]], [["a", 3, 0.12345671]])
    assert not same([["a", 3, 0.1234567]], [["a", 3, 0.1236]])
    assert not same([[1_000_000_000_000, 1.0]], [[1_000_000_000_001, 1.0]])
    assert not same([["a", 3, 1.0]], [])


# Its child works, is idle and ends; the system forgets what it took.
DAEMON = """
import os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    while time.process_time() < 0.5:
        pass
    print("worked", flush=True)
    time.sleep(0.5)
    os._exit(0)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="where there is no /proc, other processes are not counted")
def test_what_a_worker_took_counts_when_it_has_ended_and_nobody_waited_for_it() -> None:
    before = processor_s() - time.process_time()
    with subprocess.Popen([sys.executable, "-c", DAEMON], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline() == b"worked\n"
        processor_s()
        time.sleep(1.5)
        after = processor_s() - time.process_time()
        daemon.communicate()
    assert after - before >= 0.4
