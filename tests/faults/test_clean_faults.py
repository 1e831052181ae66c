"""A process dies at any storage call of a clean: rows and allowed instants stay, and the next write finishes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from pyhudi.errors import TableError
from pyhudi.model.options import WriteOptions
from pyhudi.services.clean.cleaning import clean
from pyhudi.table.calls import serve
from tests.support.tables.small import TestTable, rows_of
from tests.support.writers.dying import deaths, on_clone
from tests.support.writers.every_fault import NEXT, empty, empty_merge_on_read, in_order

OPTIONS = {"hoodie.clean.commits.retained": "2"}
NEVER = {"hoodie.clean.automatic": "false"}


def history(version: str, make: Callable[[str], TestTable]) -> TestTable:
    """Several versions of a file, log files where there are any, and a partition that was deleted."""
    table = make(version)
    table.options = {**table.options, **NEVER}
    table.bulk_insert(("a", "x", 1, 1), ("b", "y", 1, 1))
    table.upsert(("a", "x", 2, 2))
    table.write("delete_partition", rows_of(("b", "y", 1, 1)))
    if table.meta.config.is_merge_on_read:
        table.upsert(("a", "x", 3, 3), compact_inline="true", compact_inline_max_delta_commits="1")
    table.upsert(("a", "x", 4, 4))
    table.upsert(("a", "x", 5, 5))
    table.upsert(("c", "z", 1, 1))
    return table


def run(table: TestTable) -> object:
    return serve(table.storage, partial(clean), WriteOptions.parse(OPTIONS), table.engine)


def instants(table: TestTable) -> list[str]:
    return [instant.requested_time for instant in table.meta.timeline.commits()]


@pytest.mark.filterwarnings("ignore:.*after it failed.*")
@pytest.mark.parametrize(("version", "make"), [("9", empty), ("6", empty_merge_on_read), ("8", empty_merge_on_read)])
def test_every_allowed_query_is_right_at_every_moment(version: str, make: Callable[[str], TestTable]) -> None:
    table = history(version, make)
    expected = {instant: table.rows(as_of=instant) for instant in instants(table)}
    retained = instants(table)[-2:]
    counted = on_clone(table)
    run(counted)
    deleted = [path for verb, path in counted.storage.log if verb == "delete" and path.startswith(("x/", "y/"))]
    assert len(deleted) >= 3

    for attempt, where in deaths(table, run):
        for instant, rows in expected.items():
            try:
                assert attempt.rows(as_of=instant) == rows, f"{where}, as of {instant}"
            except TableError:
                assert instant not in retained, where
        attempt.options = {**attempt.options, **OPTIONS, "hoodie.clean.automatic": "true"}
        attempt.upsert(NEXT)
        assert attempt.rows() == in_order([*table.rows(), NEXT]), where
        assert not attempt.meta.timeline.pending().instants, where
        assert not attempt.storage.list("x")[0].name.endswith("torn"), where
