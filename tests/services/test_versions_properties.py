"""Properties that a table has at version 6: what only merge-on-read tables ask there, and what was there already."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyhudi.timeline.table_properties import load_table_config, update_table_config
from tests.support.tables.small import TestTable
from tests.support.tables.versioned import copy_on_write, merge_on_read, take_to

STRATEGY = "hoodie.compaction.record.merger.strategy"
BY_EVENT_TIME = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
OTHER = "00000000-1111-2222-3333-444444444444"


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize(("make", "there"), [(copy_on_write, None), (merge_on_read, BY_EVENT_TIME)])
def test_only_a_table_with_log_files_is_given_its_old_strategy(
    make: Callable[[str], TestTable], there: str | None, version: str
) -> None:
    table = make(version)
    assert STRATEGY not in load_table_config(table.storage).properties

    take_to(table.storage, 6)

    assert load_table_config(table.storage).properties.get(STRATEGY) == there


@pytest.mark.parametrize("make", [copy_on_write, merge_on_read])
def test_an_old_strategy_that_a_table_has_stays_as_it_is(make: Callable[[str], TestTable]) -> None:
    table = make("8")
    update_table_config(table.storage, {STRATEGY: OTHER})

    take_to(table.storage, 6)

    assert load_table_config(table.storage).properties[STRATEGY] == OTHER
