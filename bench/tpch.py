"""TPC-H's `lineitem`, refreshes of it, and what is true of both, which DuckDB calculates from the files alone.

A refresh updates 3 % of the rows, as LHBench's do, and does what TPC-H's own does: orders of 0.1 % of the rows come
between the others, and as many go. Numbers of orders and lines decide which: each run has the same refreshes.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # environments of contestants have it not
    from duckdb import DuckDBPyConnection

KEY = ("l_orderkey", "l_linenumber")
COLUMNS = (
    "l_orderkey", "l_partkey", "l_suppkey", "l_linenumber", "l_quantity", "l_extendedprice", "l_discount", "l_tax",
    "l_returnflag", "l_linestatus", "l_shipdate", "l_commitdate", "l_receiptdate", "l_shipinstruct", "l_shipmode",
    "l_comment",
)  # fmt: skip
# In the dialects of Spark and of DuckDB alike.
QUERIES = {
    "Q1": """
        SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
               sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
               avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
        FROM {table} WHERE l_shipdate <= DATE '1998-09-02'
        GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    "Q6": """
        SELECT sum(l_extendedprice * l_discount) FROM {table}
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
          AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
}
# Of the text of a whole row, so that no value of a column may differ; sums are the same in any order.
DIGEST = """
    SELECT count(*), sum(l_quantity), sum(l_extendedprice), sum({first}), sum({second})
    FROM (SELECT l_quantity, l_extendedprice, md5(concat_ws('|', {columns})) AS whole FROM {table}) AS texts"""
PART_OF_TEXT = {
    "spark": "CAST(conv(substr(whole, {at}, 7), 16, 10) AS BIGINT)",
    "duckdb": "CAST('0x' || substr(whole, {at}, 7) AS BIGINT)",
}
# TPC-H's order keys are the first 8 of every 32, so that new orders fit in between; this numbers them without gaps.
ORDER = "(l_orderkey // 32 * 8 + l_orderkey % 32)"
PICKED = f"({ORDER} * 8 + l_linenumber) * (2654435761 + 15838 * {{round}}) % 4294967296 // 65536 % 1000 < 30"
MOST_ROUNDS = 400
WARM_BELOW = 40_000  # order keys of the small table that every contestant warms up with
Answer = list[list[Any]]


@dataclass(frozen=True)
class Refreshes:
    """Files of the base table and of the refreshes, and the truth: before the refreshes and after."""

    base: str
    batches: list[str]
    warm: tuple[str, str]
    truth: dict[str, dict[str, Answer]]


def generate(folder: Path, scale: float) -> Path:
    beside = Path(sys.executable).parent / "tpchgen-cli"
    program = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise SystemExit("bench.lhbench needs tpchgen-cli, which is not there: pip install 'pyhudi[bench]'")
    command = [program, "parquet", "--scale-factor", str(scale), "--tables=lineitem", "--output-dir", str(folder)]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return folder / "lineitem.parquet"


def prepare(duck: DuckDBPyConnection, base: Path, rounds: int) -> Refreshes:
    """Writes the refreshes next to the base table, and calculates what they make of it."""
    if not 0 < rounds <= MOST_ROUNDS:
        raise SystemExit(f"--rounds is from 1 to {MOST_ROUNDS}, not {rounds}")
    duck.execute(f"CREATE VIEW base AS SELECT {', '.join(COLUMNS)} FROM '{base}'")
    batches = [str(base.with_name(f"refresh_{number}.parquet")) for number in range(1, rounds + 1)]
    for number, path in enumerate(batches, 1):
        duck.execute(f"COPY ({refresh(number, rounds)}) TO '{path}' (FORMAT parquet)")
    warm = str(base.with_name("warm.parquet")), str(base.with_name("warm_refresh.parquet"))
    for source, path in zip((str(base), batches[0]), warm, strict=True):
        duck.execute(f"COPY (FROM '{source}' WHERE l_orderkey < {WARM_BELOW}) TO '{path}' (FORMAT parquet)")
    duck.execute(f"CREATE VIEW refreshed AS {after_all(batches)}")
    truth = {when: answers(duck, table) for when, table in (("before", "base"), ("after", "refreshed"))}
    return Refreshes(str(base), batches, warm, truth)


def refresh(number: int, rounds: int) -> str:
    """The query of a refresh: rows in their new form, and what becomes of them. Deleted orders are never updated."""
    changed = (
        "CAST(l_quantity % 50 + 1 AS DECIMAL(15, 2)) AS l_quantity, "
        f"CAST(l_extendedprice + {number} AS DECIMAL(15, 2)) AS l_extendedprice, "
        f"'refreshed in round {number}' AS l_comment"
    )
    return f"""
        SELECT * REPLACE ({changed}), 'U' AS op, {number} AS round FROM base
        WHERE {PICKED.format(round=number)} AND {ORDER} % 1000 NOT BETWEEN 1 AND {rounds}
        UNION ALL SELECT *, 'D', {number} FROM base WHERE {ORDER} % 1000 = {number}
        UNION ALL SELECT * REPLACE (l_orderkey + 8 AS l_orderkey), 'I', {number} FROM base
        WHERE {ORDER} % 1000 = {number + MOST_ROUNDS}"""


def after_all(batches: Sequence[str]) -> str:
    """The query of the refreshed table, without a merge: of each key that is in a refresh the last one counts."""
    key, columns = ", ".join(KEY), ", ".join(COLUMNS)
    return f"""
        WITH changes AS (FROM read_parquet({list(batches)})
                         QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY round DESC) = 1)
        SELECT {columns} FROM base ANTI JOIN changes USING ({key})
        UNION ALL SELECT {columns} FROM changes WHERE op <> 'D'"""


def answers(duck: DuckDBPyConnection, table: str) -> dict[str, Answer]:
    questions = {"digest": digest("duckdb"), **QUERIES}
    return {name: plain(duck.execute(text.format(table=table)).fetchall()) for name, text in questions.items()}


def digest(dialect: str) -> str:
    first, second = (PART_OF_TEXT[dialect].format(at=at) for at in (1, 8))
    return DIGEST.format(first=first, second=second, columns=", ".join(COLUMNS), table="{table}")


def plain(rows: Sequence[Sequence[Any]]) -> Answer:
    """Numbers of either engine: whole ones exact, others as floats, since engines divide to different digits."""
    return [[value if isinstance(value, (str, int)) else float(value) for value in row] for row in rows]


def same(left: Answer, right: Answer) -> bool:
    pairs = list(zip_longest(chain(*left), chain(*right)))
    return all(
        math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6) if isinstance(a, float) and b is not None else a == b
        for a, b in pairs
    )
