"""Keys that touch the whole record index are looked for in the base files instead, with the same places."""

from __future__ import annotations

from typing import Any

import pytest

import pyhudi.index.record_index as record_index
from pyhudi.engine.local import LocalEngine
from pyhudi.metadata.locations import RecordLookup
from tests.support.remote_engine import RemoteEngine
from tests.support.tables.record_indexed import GLOBAL, ON, RECORDS, live_rows, table_of, tagged
from tests.support.tables.small import TestTable


@pytest.fixture
def opens_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the table's few files had so many keys that to open them takes no time."""
    monkeypatch.setattr(record_index, "_OPEN_REMOTE_NS", 0)
    monkeypatch.setattr(record_index, "_OPEN_LOCAL_NS", 0)


def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The file groups of the index that are read from now on."""
    groups: list[int] = []
    places = RecordLookup.places

    def noted(self: RecordLookup, wanted: Any) -> Any:
        groups.extend(group for group, _ in wanted)
        return places(self, wanted)

    monkeypatch.setattr(RecordLookup, "places", noted)
    return groups


@pytest.mark.parametrize("engine", [LocalEngine, RemoteEngine])
def test_many_keys_are_found_in_the_files_where_the_index_has_them(
    engine: type, monkeypatch: pytest.MonkeyPatch, opens_for_nothing: None
) -> None:
    table = table_of()
    rows, groups = live_rows(table.meta), asked(monkeypatch)
    found = tagged(table.meta, rows, GLOBAL, engine())
    assert len(found) == 30
    assert all(place[3] is not None for place in found)
    assert not groups
    monkeypatch.undo()
    assert tagged(table.meta, rows, GLOBAL, engine()) == found


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "value"), [("_FILES_BYTE_NS", 1000), ("_BLOCK_BYTES", 1)], ids=["many files' bytes", "few keys"]
)
def test_keys_are_looked_up_in_the_index_where_that_takes_less_time(
    name: str, value: int, monkeypatch: pytest.MonkeyPatch, opens_for_nothing: None
) -> None:
    table = table_of()
    rows, groups = live_rows(table.meta), asked(monkeypatch)
    monkeypatch.setattr(record_index, name, value)
    tagged(table.meta, rows, GLOBAL, LocalEngine())
    assert groups


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_slices_with_log_files_are_left_to_the_index(
    kind: str, monkeypatch: pytest.MonkeyPatch, opens_for_nothing: None
) -> None:
    options = {**ON, RECORDS[GLOBAL]: "true", "hoodie.datasource.write.table.type": kind}
    table = TestTable(options={**options, "hoodie.compact.inline": "false"})
    table.upsert(*((f"k{n:03}", "x", 1, n) for n in range(30)))
    table.upsert(("k000", "x", 2, 100))
    groups = asked(monkeypatch)
    found = tagged(table.meta, live_rows(table.meta), GLOBAL, LocalEngine())
    assert len({place[3] for place in found}) == 1
    assert bool(groups) is (kind == "MERGE_ON_READ")
