"""Archiving stops at what the metadata table has not compacted yet, and goes on when it has."""

from __future__ import annotations

import pytest

from tests.support.tables.archived import active, archived, table_of, upserts
from tests.support.tables.with_metadata import metadata_of

RARELY = {"metadata_enable": "true", "metadata_compact_max_delta_commits": "100"}
OFTEN = {"hoodie.metadata.compact.max.delta.commits": "1"}


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_commits_that_the_metadata_table_has_not_compacted_stay(version: str) -> None:
    table = table_of(version, **RARELY)
    times = upserts(table, 6)

    result = archived(table)

    assert "the metadata table, which was not compacted since" in (result.kept_for or "")
    assert active(table) == times

    table.options = {**table.options, **OFTEN}
    times += upserts(table, 3)
    compacted = [i.requested_time for i in metadata_of(table).meta.timeline.commits() if i.action.value == "commit"]
    assert compacted
    archived(table)

    left = active(table)
    assert left[0] > times[0]
    assert left == times[-len(left) :]
