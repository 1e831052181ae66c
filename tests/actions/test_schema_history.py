"""Merge-on-read tables with a schema history: columns of base files and of log blocks are matched by id."""

from __future__ import annotations

from typing import Any

import pytest

from pyhudi import HudiTable
from tests.actions.altered import NAMES, ROWS, Altered, altered
from tests.actions.merge_on_read import VERSIONS


def rows(table: Altered, names: tuple[str, ...] = NAMES, **query: Any) -> list[tuple[Any, ...]]:
    found = HudiTable(table.meta).scan(list(names), **query).to_arrow()
    return sorted(zip(*(found.column(name).to_pylist() for name in names), strict=True))


@pytest.mark.parametrize("version", VERSIONS)
def test_log_files_of_older_schemas_are_read_by_column_id(version: str) -> None:
    table = altered(version)
    assert rows(table) == ROWS
    assert rows(table, ("id", "extra"), where="extra = 'e2'") == [("c", "e2")]
    first, renamed = (table.meta.timeline.commits().instants[at].requested_time for at in (1, 3))
    assert rows(table, ("id", "name", "extra"), as_of=first)[:2] == [("a", "n0b", 1), ("b", "n1", 10)]
    assert rows(table, ("id", "title", "extra"), as_of=renamed)[:3] == [
        ("a", "n0b", 1),
        ("b", "t1", 2),
        ("c", "n2", 20),
    ]
