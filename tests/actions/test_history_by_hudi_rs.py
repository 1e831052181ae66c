"""Archived and restored tables are read by hudi-rs, which shares no code with us, with the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.storage.local import LocalStorage
from tests.support.tables.archived import archived, upserts
from tests.support.tables.hudi_rs import read_by_hudi_rs, rows
from tests.support.tables.merge_on_read import VERSIONS
from tests.support.tables.small import SCHEMA
from tests.support.tables.undone import TABLES, compact, restored, saved

pytest.importorskip("hudi", reason="the hudi package is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:.*is not above hoodie.clean.commits.retained.*")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", TABLES)
def test_hudi_rs_reads_what_archiving_and_restoring_left(kind: str, version: str, tmp_path: Path) -> None:
    table = TABLES[kind](version)
    table.storage = LocalStorage(str(tmp_path / "table"))
    upserts(table, 4)
    if kind == "merge on read":
        compact(table)
    upserts(table, 4)
    result = archived(table, compact_inline_max_delta_commits="1")
    assert len(result.archived) >= 4
    assert rows(read_by_hudi_rs(table, tmp_path), SCHEMA.names) == table.rows()

    time = saved(table).instant_time
    before = table.rows()
    upserts(table, 3)
    restored(table, time)
    assert table.rows() == before
    assert rows(read_by_hudi_rs(table, tmp_path), SCHEMA.names) == before
