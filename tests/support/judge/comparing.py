"""Rows of stories: written by PyHudi, handed to real Hudi, and what both read compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyhudi import HudiTable, write_hudi
from pyhudi.model.keys import META_COLUMNS
from tests.support.golden.rows import differences
from tests.support.judge.stories import Row, Step, Story


def write(path: Path, story: Story, step: Step) -> None:
    options = {**story.write_options(), **step.options}
    write_hudi(str(path), story.data(step), operation=step.operation, options=options)
    if step.crash:
        take_completed_file_away(path)


def take_completed_file_away(table: Path) -> None:
    """The newest completed write looks as if its writer had died just before the end."""
    timeline = table / ".hoodie" / "timeline"
    folder = timeline if timeline.is_dir() else table / ".hoodie"
    newest = max(path for path in folder.iterdir() if path.suffix in (".commit", ".deltacommit"))
    newest.unlink()


def without_meta(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in META_COLUMNS} for row in found]


def assert_same(
    found: list[dict[str, Any]],
    expected: list[dict[str, Any]],
    schema: pa.Schema,
    where: str,
    as_text: tuple[str, ...] = (),
    changed: Callable[[pa.Table], pa.Table] = lambda table: table,
) -> None:
    found_differences = differences(
        without_meta(found), changed(pa.Table.from_pylist(expected, schema=schema)), as_text=as_text
    )
    assert not found_differences, f"{where}: {found_differences[:6]}"


def assert_pyhudi_reads(
    table: Path,
    found: list[dict[str, Any]],
    where: str,
    as_text: tuple[str, ...] = (),
    changed: Callable[[pa.Table], pa.Table] = lambda table: table,
) -> None:
    """PyHudi returns, meta columns included, what real Hudi returned."""
    found_differences = differences(found, changed(HudiTable.open(str(table)).scan().to_arrow()), as_text=as_text)
    assert not found_differences, f"{where}: {found_differences[:6]}"


def as_json(given: list[Row]) -> list[dict[str, object]]:
    """Rows as the judge's `write` takes them."""
    return [
        {**row, "amount": float(row["amount"]), "at": row["at"].isoformat(), "day": row["day"].isoformat()}
        for row in given
    ]
