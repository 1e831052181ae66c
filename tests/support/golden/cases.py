"""Which tables of real Hudi are there, and which rows each may return."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.golden.folder import SHARED

NEWEST = "1.2.0"
# Tables of the TIMESTAMP key generator: real Hudi returns the stored number as text (or, 0.15.0, the path's text). We
# return the number: the column's own type (docs/compatibility.md, "Reading").
NUMBERS_AS_TEXT: Mapping[str, tuple[str, ...]] = {
    "keys_timestamp_number": ("ts",),
    "sample_table__cow__v9_timebasedkeygen_epochmillis": ("ts_millis",),
}


# Log files that a completed write names were damaged by hand: what they lack is given up only by name.
_DAMAGED = ("g2_logs_corrupt_cut", "g2_logs_corrupt_garbage_tail")


@dataclass(frozen=True)
class Query:
    """One read and the answers that count as right; an answer that is text is the error of real Hudi."""

    as_of: str | None
    answers: tuple[Any, ...]


def golden_names(table_type: str) -> list[tuple[str, str]]:
    """(Hudi version, name) of the golden tables of a type, "cow" or "mor"; [] without the shared folder."""
    return [table for table, kind in _kinds_of_golden_tables().items() if kind == table_type]


@cache  # every file of tests about golden tables asks when it is collected
def _kinds_of_golden_tables() -> dict[tuple[str, str], str | None]:
    paths = sorted((SHARED / "golden").glob("*/*.zip"))
    read = {path: json.loads(path.with_suffix(".json").read_text()) for path in paths}
    return {(path.parent.name, path.stem): description.get("type") for path, description in read.items()}


def given_up(name: str) -> dict[str, str]:
    """The options by which services merge the log files of a golden table."""
    return {"hoodie.pyhudi.rewrite.damaged.logs": "true"} if name in _DAMAGED else {}


def fixture_names() -> list[str]:
    """Names of hudi-rs' sample tables; [] without the shared folder."""
    return sorted(path.stem for path in (SHARED / "fixtures" / "hudi-tables").glob("*.zip"))


def open_fixture(name: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    """Unzip a sample table; its folder and its expected rows."""
    source = SHARED / "fixtures" / "hudi-tables"
    with zipfile.ZipFile(source / f"{name}.zip") as archive:
        archive.extractall(folder)
    table = next(entry for entry in folder.iterdir() if entry.name != "__MACOSX")
    return table, json.loads((source / f"{name}.expected.json").read_text())


def as_stored(description: Mapping[str, Any]) -> Mapping[str, Any]:
    """The description with slash-separated dates as they are in the files, where Hudi returns the path's slashes
    (docs/compatibility.md, "Reading").
    """
    options = description.get("options", {})
    if options.get("hoodie.datasource.write.slash.separated.date.partitioning") != "true":
        return description
    name = options["hoodie.datasource.write.partitionpath.field"]
    text = re.sub(rf'("{name}": ")(\d+)/(\d+)/(\d+)"', r'\1\2-\3-\4"', json.dumps(description["expected"]))
    return {**description, "expected": json.loads(text)}


def queries(description: Mapping[str, Any]) -> Iterator[Query]:
    """The snapshot and every time travel of a golden table, with the answers of its writer and of 1.2.0."""
    description = as_stored(description)
    expected, newest = description["expected"], description.get("expected_by_1.2.0", {})
    if "schema on read" in description["about"]:
        newest = {}  # 1.2.0 loses the renamed columns of older writers' tables: plainly wrong
    snapshot = expected["snapshot"]
    if snapshot is None:  # real Hudi needs an option to read this one
        snapshot = expected["snapshot_with_options"]["rows"]
    yield Query(None, _answers(newest.get("snapshot"), snapshot))
    for instant_time, rows in expected.get("as_of", {}).items():
        yield Query(instant_time, _answers(newest.get("as_of", {}).get(instant_time), rows))


def _answers(*given: Any) -> tuple[Any, ...]:
    """Rows, or a digest of rows; an error of real Hudi only when it is all there is."""
    rows = tuple(answer for answer in given if isinstance(answer, list) or (answer and "count" in answer))
    return rows or tuple(answer["error"] for answer in given if answer)
