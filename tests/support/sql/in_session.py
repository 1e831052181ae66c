"""Statements in a Spark session, one after the other: what each returns, as plain JSON values.

Run as a program by the Python of Hudi's judge, it does the same in a session with real Hudi: cases come as JSON by
stdin, answers go to a file. So nothing of this project is imported here.

    python in_session.py FOLDER_OF_THE_JUDGE FOLDER_FOR_TABLES FILE_OF_ANSWERS < cases.json
"""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["DATABASE", "run_statements"]

DATABASE = "listed"
HUDI = "1.2.0"
_PLACE = re.compile(r"\{(\w+)\.(instant|completed)(\d)\}")
_SETTING = re.compile(r"SET\s+([\w.]+)\s*=", re.IGNORECASE)
_QUERIES = ("SELECT", "WITH", "FROM", "TABLE", "VALUES", "SHOW", "DESC", "DESCRIBE", "CALL", "EXPLAIN", "(", "/*")
_COMPLETED = re.compile(r"(\d{17})_(\d{17})\.(?:commit|deltacommit|replacecommit)")


def run_statements(
    spark: Any, statements: Sequence[str], folder: Path, refusals: tuple[type[BaseException], ...] = (Exception,)
) -> list[dict[str, Any]]:
    """For each statement `{"columns": [[name, type], ...], "rows": [[value, ...], ...]}`, or `{"refused": why}`.

    They run in a database of their own, `DATABASE`, whose folder is `folder`/listed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    with _database(spark, folder, statements):
        for statement in statements:
            try:
                text = _placed(statement, folder)
                frame = spark.sql(text)
                rows = frame.collect()
            except refusals as error:
                found.append({"refused": _words(error)})
                continue
            if not statement.lstrip("/* ").upper().startswith(_QUERIES):
                found.append({})
                continue
            columns = [[field.name, field.dataType.simpleString()] for field in frame.schema]
            found.append({"columns": columns, "rows": [[plain(value) for value in row] for row in rows]})
    return found


@contextmanager
def _database(spark: Any, folder: Path, statements: Sequence[str]) -> Iterator[None]:
    spark.sql("USE default")
    spark.sql(f"DROP DATABASE IF EXISTS {DATABASE} CASCADE")
    spark.sql(f"CREATE DATABASE {DATABASE} LOCATION '{folder / DATABASE}'")
    spark.sql(f"USE {DATABASE}")
    try:
        yield
    finally:
        spark.sql("USE default")
        for row in spark.sql("SHOW TABLES").collect():
            if row.isTemporary:
                spark.catalog.dropTempView(row.tableName)
        for statement in statements:
            setting = _SETTING.match(statement)
            if setting is not None:
                spark.conf.unset(setting[1])


def _placed(statement: str, folder: Path) -> str:
    """The statement with its folder and the instants of tables, counted from 1."""

    def instant(found: re.Match[str]) -> str:
        places = (folder / found[1], folder / DATABASE / found[1])
        timeline = next(place for place in places if place.is_dir()) / ".hoodie" / "timeline"
        times = sorted(match.groups() for file in timeline.iterdir() if (match := _COMPLETED.fullmatch(file.name)))
        return str(times[int(found[3]) - 1][0 if found[2] == "instant" else 1])

    return _PLACE.sub(instant, statement).replace("{folder}", str(folder))


def plain(value: Any) -> Any:
    """A cell as a JSON value: decimals and dates as text, maps as sorted pairs, binary as base64."""
    if hasattr(value, "asDict"):
        return {key: plain(part) for key, part in value.asDict().items()}
    if isinstance(value, dict):
        return sorted(([plain(key), plain(part)] for key, part in value.items()), key=str)
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, (bytes, bytearray)):
        return "base64:" + base64.b64encode(bytes(value)).decode()
    if isinstance(value, (decimal.Decimal, datetime.date, datetime.datetime)):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _words(error: BaseException) -> str:
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        del lines[0]  # Py4J's; the next one is Hudi's
    return lines[0][:160] if lines else type(error).__name__


def main(judge: str, folder: str, answers: str) -> None:
    """Run the cases of stdin in a session with real Hudi."""
    sys.path.insert(0, judge)
    from engine import Engine  # the judge's

    cases = json.load(sys.stdin)
    engine = Engine(HUDI)
    engine.spark.conf.set("spark.sql.ansi.enabled", "true")  # what Spark does since version 4
    try:
        with open(answers, "w") as out:
            for number, case in enumerate(cases):
                found = run_statements(engine.spark, case["statements"], Path(folder) / str(number))
                print(json.dumps({"name": case["name"], "answers": found}), file=out, flush=True)
    finally:
        engine.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
